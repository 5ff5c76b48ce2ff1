"""Misspecification, known ranges, running intersections, tests of a hypothesis, audits."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import mixbandit as mb

SIGMA, DELTA = 0.2, 0.05


class TestMisspecification:
    """f*(a) = aθ* + ε on every action that is measured, aθ* − ε where one asks: the worst signs there are."""

    EPSILON, THETA = 0.2, 0.5

    def run(self, seed, t, **options):
        rng = np.random.default_rng(seed)
        actions = rng.uniform(0.5, 1.0, size=(t, 1))
        rewards = self.THETA * actions[:, 0] + self.EPSILON + SIGMA * rng.normal(size=t)
        settings = {"sigma": SIGMA, "norm_bound": 1.0, "delta": DELTA, **options}
        return mb.MartingaleMixture(1, **settings).update(actions, rewards)

    def covers(self, cs):
        truth = self.THETA - self.EPSILON
        return cs.lower([[1.0]])[0] <= truth <= cs.upper([[1.0]])[0]

    @pytest.mark.parametrize("mixture", [mb.Standard(), mb.Scaled(0.1), mb.Grid([0.1, 1.0]), mb.Adaptive()])
    def test_the_option_keeps_coverage(self, mixture):
        assert all(self.covers(self.run(seed, 300, mixture=mixture, misspecification=0.2)) for seed in range(30))

    def test_without_the_option_coverage_is_lost(self):
        assert not any(self.covers(self.run(seed, 300)) for seed in range(30))

    def test_half_the_deviation_is_not_enough(self):
        assert not any(self.covers(self.run(seed, 3000, misspecification=0.05)) for seed in range(5))

    def test_the_set_holds_the_parameter_under_adversarial_signs(self):
        """Signs chosen to push the estimate of θ* along one direction, in five dimensions."""
        misses = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            theta = rng.normal(size=5) / 3
            cs = mb.MartingaleMixture(
                5, sigma=SIGMA, norm_bound=float(np.linalg.norm(theta)), delta=DELTA, misspecification=0.1
            )
            for _ in range(40):
                x = rng.normal(size=5)
                cs.update(x, x @ theta + 0.1 * np.sign(x[0]) + SIGMA * rng.normal())
                misses += not cs.contains(theta)
        assert misses == 0

    def test_the_tight_form_is_narrower_than_the_direct_one(self):
        """The direct form serves any mixture; a Grid of one scale is the same mixture without the tight form."""
        tight = self.run(0, 10_000, misspecification=0.05)
        direct = self.run(0, 10_000, misspecification=0.05, mixture=mb.Grid([1.0]))
        widths = [(cs.upper([[1.0]]) - cs.lower([[1.0]]))[0] for cs in (tight, direct)]
        assert widths[0] < widths[1]

    def test_the_tight_form_follows_its_definition(self):
        cs = self.run(1, 50, misspecification=0.2)
        plain = self.run(1, 50)
        alpha = plain.alpha0
        radius = plain.analytic_radius(alpha) + 0.2 * math.sqrt(50)
        V = cs.moment.data.factor[0, 0] ** 2 + alpha
        centre = (plain.upper([[1.0]], alpha) + plain.lower([[1.0]], alpha))[0] / 2
        expected = centre + radius / math.sqrt(V) + 0.2
        assert cs.upper([[1.0]], alpha=alpha)[0] == pytest.approx(expected, rel=1e-10)
        assert cs.upper([[1.0]])[0] == pytest.approx(min(expected, 1.0 + 0.2), rel=1e-10)
        assert (cs.upper([[1.0]], alpha=3 * alpha) >= cs.upper([[1.0]])).all()
        with pytest.raises(mb.InvalidInput, match="alpha ≥ alpha0"):
            cs.upper([[1.0]], alpha=alpha / 2)

    def test_the_analytic_radius_is_that_of_the_closed_form(self):
        cs, plain = self.run(1, 50, misspecification=0.2), self.run(1, 50)
        expected = plain.analytic_radius() + 0.2 * math.sqrt(50)
        assert cs.analytic_radius() == pytest.approx(expected, rel=1e-9)
        assert cs.analytic_radius(2 * cs.alpha0) > expected
        assert cs.support([[1.0]], alpha=3 * cs.alpha0).alpha[0] == pytest.approx(3 * cs.alpha0)
        with pytest.raises(mb.InvalidInput, match="alpha ≥ alpha0"):
            cs.analytic_radius(cs.alpha0 / 2)

    def test_a_range_caps_what_the_deviation_adds(self):
        cs = mb.MartingaleMixture(1, sigma=0.1, norm_bound=1.0, misspecification=0.2, reward_range=(0.0, 1.0))
        support = cs.support([[0.9], [0.5]])
        np.testing.assert_allclose(support.value, [1.0, 0.7])
        assert support.case.tolist() == ["range", "ball"]
        np.testing.assert_allclose(support.grad, [[0.0], [1.0]])

    def test_the_audit_knows_of_it(self):
        audit = self.run(0, 300, misspecification=0.2).audit()
        assert not audit.refuted
        assert "Hint" not in str(audit)
        refuted = self.run(0, 300, misspecification=0.01, norm_bound=0.1).audit()
        assert "up to misspecification=0.01" in str(refuted)

    def test_weights_count_in_the_deviation(self):
        """Half the noise level is twice the weight, and twice the deviation of the weighted row."""
        one = mb.MartingaleMixture(1, sigma=0.2, norm_bound=1.0, misspecification=0.1, mixture=mb.Grid([1.0]))
        one.update([[1.0]] * 4, [0.5] * 4, sigma=0.1)
        assert one.moment.rule.deviation(one.moment.data) == pytest.approx(0.1 * math.sqrt(4 * 4))

    def test_it_is_part_of_the_state(self):
        cs = self.run(0, 40, misspecification=0.2)
        again = mb.MartingaleMixture.from_state_dict(cs.state_dict())
        np.testing.assert_array_equal(again.upper([[1.0]]), cs.upper([[1.0]]))

    def test_no_misspecification_changes_nothing(self):
        np.testing.assert_array_equal(
            self.run(0, 40, misspecification=0.0).upper([[1.0]]), self.run(0, 40).upper([[1.0]])
        )

    def test_an_e_value_needs_linearity(self):
        with pytest.raises(mb.InvalidInput, match="misspecification=0"):
            self.run(0, 40, misspecification=0.2).log_evalue([0.5])

    @pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "x"])
    def test_bad_values_are_named(self, epsilon):
        with pytest.raises(mb.InvalidInput, match="misspecification"):
            self.run(0, 4, misspecification=epsilon)


class TestRewardRange:
    def make(self, **options):
        return mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=3.0, delta=DELTA, **options)

    def test_it_caps_both_ends(self):
        free, capped = self.make(), self.make(reward_range=(0.0, 1.0))
        for cs in (free, capped):
            cs.update([[1.0, 0.0]] * 30, [0.5] * 30)
        queries = [[1.0, 0.0], [0.0, 1.0]]
        np.testing.assert_array_equal(capped.upper(queries), np.minimum(free.upper(queries), 1.0))
        np.testing.assert_array_equal(capped.lower(queries), np.maximum(free.lower(queries), 0.0))
        support = capped.support(queries)
        assert support.case.tolist() == [free.support(queries).case[0], "range"]
        np.testing.assert_array_equal(support.grad[1], 0.0)
        np.testing.assert_array_equal(support.value, capped.upper(queries))

    @pytest.mark.parametrize("level", [-2.0, 2.0])
    def test_bounds_outside_the_range_refute(self, level):
        cs = self.make(reward_range=(0.0, 1.0)).update([[1.0, 0.0]] * 200, [level] * 200)
        with pytest.raises(mb.AssumptionsRefuted, match=r"outside reward_range.*reward_range=\(0\.0, 1\.0\)"):
            cs.lower([[1.0, 0.0]]), cs.upper([[1.0, 0.0]])
        going_on = self.make(reward_range=(0.0, 1.0), on_empty="inflate").update([[1.0, 0.0]] * 200, [level] * 200)
        with pytest.warns(mb.AssumptionsRefutedWarning, match="outside"):
            bounds = going_on.lower([[1.0, 0.0]])[0], going_on.upper([[1.0, 0.0]])[0]
        assert 0.0 <= bounds[0] <= bounds[1] <= 1.0
        assert "tested when bounds are computed" in str(going_on.audit())
        with pytest.warns(mb.AssumptionsRefutedWarning) as caught:
            assert going_on.support([[np.sign(level) * -1.0, 0.0]]).inflated
        assert caught[0].filename == __file__  # the warning points at the user's line

    def test_it_is_part_of_the_state(self):
        cs = self.make(reward_range=(0.0, 1.0))
        again = mb.MartingaleMixture.from_state_dict(cs.state_dict())
        assert again.reward_range == (0.0, 1.0)

    @pytest.mark.parametrize("bad", [(1.0, 0.0), (0.0, 0.0), (0.0, np.inf), (0.0,), 1.0, "ab", (np.nan, 1.0)])
    def test_bad_ranges_are_named(self, bad):
        with pytest.raises(mb.InvalidInput, match="reward_range"):
            self.make(reward_range=bad)


class TestRunningIntersection:
    def test_bounds_never_widen_and_hold(self):
        misses, wider = 0, 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            theta, arms = rng.normal(size=3) / 2, rng.normal(size=(8, 3))
            cs = mb.MartingaleMixture(3, sigma=SIGMA, norm_bound=2.0, delta=DELTA)
            running = mb.RunningIntersection(cs, arms)
            for _ in range(30):
                before = running.lower.copy(), running.upper.copy()
                x = arms[rng.integers(8)]
                assert running.update(x, x @ theta + SIGMA * rng.normal()) is running
                assert (running.lower >= before[0]).all()
                assert (running.upper <= before[1]).all()
                wider += (running.upper < cs.upper(arms) - 1e-12).sum()
            truth = arms @ theta
            misses += not ((running.lower <= truth) & (truth <= running.upper)).all()
        assert wider > 0  # it does something: the present bound is not always the best so far
        assert misses <= 6  # more than 6 of 40 has probability 0.003 at 5 %

    def test_contradictions_refute_for_good(self):
        running = mb.RunningIntersection(mb.MartingaleMixture(1, sigma=0.1, norm_bound=50.0), [[1.0]])
        running.update([[1.0]] * 50, [0.0] * 50)
        before = running.lower.copy(), running.upper.copy()
        with pytest.raises(mb.AssumptionsRefuted, match="contradict"):
            running.update([[1.0]] * 5000, [3.0] * 5000)
        assert running.is_empty
        assert running.sequence.t == 5050  # the data are in
        np.testing.assert_array_equal((running.lower, running.upper), before)

    def test_an_inflated_set_is_left_out_and_not_forgotten(self):
        cs = mb.MartingaleMixture(1, sigma=0.1, norm_bound=1.0, on_empty="inflate")
        running = mb.RunningIntersection(cs, [[1.0]])
        before = running.upper.copy()
        with pytest.warns(mb.AssumptionsRefutedWarning, match="empty"):
            running.update([[1.0]] * 50, [9.0] * 50)
        assert running.is_empty
        running.update([[1.0]] * 5000, [0.0] * 5000)
        assert not cs.is_empty
        assert running.is_empty
        np.testing.assert_array_equal(running.upper, before)
        strict = mb.RunningIntersection(mb.MartingaleMixture(1, sigma=0.1, norm_bound=1.0), [[1.0]])
        with pytest.raises(mb.AssumptionsRefuted, match="empty"):
            strict.update([[1.0]] * 50, [9.0] * 50)
        assert strict.is_empty

    def test_a_contradicted_range_is_left_out(self):
        cs = mb.MartingaleMixture(1, sigma=0.1, norm_bound=5.0, reward_range=(0.0, 1.0), on_empty="inflate")
        running = mb.RunningIntersection(cs, [[1.0]])
        with pytest.warns(mb.AssumptionsRefutedWarning, match="outside"):
            running.update([[1.0]] * 50, [-2.0] * 50)
        assert running.is_empty
        assert (running.lower[0], running.upper[0]) == (0.0, 1.0)

    def test_only_anytime_sequences(self):
        with pytest.raises(mb.InvalidInput, match="bounds of BayesCredible do not hold at all times"):
            mb.RunningIntersection(mb.BayesCredible(1, sigma=0.1), [[1.0]])


def test_the_p_value_is_valid_at_any_time_and_finds_what_is_false():
    rejections, found = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=2) / 2
        cs = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=2.0, delta=0.3)
        least = 1.0
        for _ in range(25):
            x = rng.normal(size=2)
            cs.update(x, x @ theta + SIGMA * rng.normal())
            least = min(least, cs.pvalue(theta))  # looked at every time, the best kept
        rejections += least <= 0.1
        found += cs.pvalue(theta + np.array([0.0, 0.8])) <= 0.001
    assert binomtest(rejections, 200, 0.1, alternative="greater").pvalue > 0.001
    assert rejections > 0
    assert found > 190


def test_the_p_value_is_at_most_one():
    cs = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=2.0)
    assert cs.pvalue([0.0, 0.0]) == 1.0
    assert 0.0 < cs.update([1.0, 0.0], 0.0).pvalue([0.0, 0.0]) <= 1.0
    far = [5.0, 0.0]
    assert cs.pvalue(far) == pytest.approx(math.exp(-cs.log_evalue(far)))
    assert cs.pvalue(far) < 1e-6


class TestAudit:
    def weakly_measured(self, seed, *, sigma, norm_bound, d=60):
        """One noisy look in each of many directions, with signal of the size of the noise: data that can tell σ."""
        rng = np.random.default_rng(seed)
        theta = 0.1 * rng.normal(size=d) / np.sqrt(d)
        cs = mb.MartingaleMixture(d, sigma=sigma, norm_bound=norm_bound, delta=DELTA, mixture=mb.Scaled(sigma**2))
        return cs.update(np.eye(d), theta + SIGMA * rng.normal(size=d)), theta

    def well_measured(self, seed, *, sigma=SIGMA, factor=1.0, t=200):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=4)
        cs = mb.MartingaleMixture(4, sigma=sigma, norm_bound=factor * float(np.linalg.norm(theta)), delta=DELTA)
        x = rng.normal(size=(t, 4))
        return cs.update(x, x @ theta + SIGMA * rng.normal(size=t)), theta

    def test_half_the_norm_is_refuted_and_the_least_bound_is_true(self):
        for seed in range(10):
            cs, theta = self.well_measured(seed, factor=0.5)
            audit = cs.audit()
            assert audit.refuted
            assert audit.norm_bound_refuted
            assert 0.8 * np.linalg.norm(theta) < audit.least_norm_bound <= np.linalg.norm(theta)
            assert "REFUTED at level 0.05" in str(audit)
            assert f"need norm_bound ≥ {audit.least_norm_bound:.4g}" in str(audit)

    def test_the_least_norm_bound_is_the_border(self):
        cs, _ = self.well_measured(0)
        least = cs.audit().least_norm_bound
        for factor, empty in ((0.999, True), (1.001, False)):
            ball = cs.moment.rule.ball_if(cs.moment.data, cs.sigma, factor * least)
            assert ball.is_empty == empty

    def test_the_least_norm_bound_is_found_however_far_off_the_stated_one(self):
        x = np.eye(2).repeat(50, axis=0)
        cs = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=1e-3).update(x, x @ [1e4, 0.0])
        assert 0.9e4 < cs.audit().least_norm_bound < 1e4
        assert "however large" not in str(cs.audit())

    def test_half_the_noise_is_refuted_where_data_can_tell(self):
        for seed in range(10):
            cs, theta = self.weakly_measured(seed, sigma=SIGMA / 2, norm_bound=0.11)
            audit = cs.audit()
            assert audit.refuted
            assert audit.sigma_refuted
            assert SIGMA / 2 < audit.refuted_sigma < SIGMA
            true, _ = self.weakly_measured(seed, sigma=SIGMA, norm_bound=0.11)
            assert not true.audit().refuted
            assert np.linalg.norm(theta) < 0.15

    def test_every_level_below_the_refuted_one_is_refuted(self):
        cs, _ = self.weakly_measured(0, sigma=SIGMA / 2, norm_bound=0.11)
        border = cs.audit().refuted_sigma

        def ball_if(sigma):
            return cs.moment.rule.ball_if(cs.moment.data, sigma, cs.norm_bound)

        for factor in np.geomspace(1e-4, 0.999, 30):
            assert ball_if(factor * border).is_empty
        assert not ball_if(1.001 * border).is_empty

    def test_true_assumptions_pass(self):
        cs, _ = self.well_measured(3, factor=1.2)
        audit = cs.audit()
        assert not audit.refuted
        assert not audit.norm_bound_refuted
        assert not audit.sigma_refuted
        assert "do not contradict" in str(audit)
        assert audit.residual_spread == pytest.approx(SIGMA, rel=0.2)
        assert "Hint" not in str(audit)

    @pytest.mark.heavy
    def test_false_alarms_over_2000_runs_are_within_delta(self):
        """The audit's refutations and the truth of its least norm bound, with everything stated as it is."""
        refuted = wrong = 0
        for seed in range(2000):
            rng = np.random.default_rng([8, seed])
            theta = rng.normal(size=6) / 4
            size = float(np.linalg.norm(theta))
            cs = mb.MartingaleMixture(6, sigma=SIGMA, norm_bound=size, delta=DELTA, mixture=mb.Scaled(0.05))
            empty = False
            for _ in range(4):
                x = 0.3 * rng.normal(size=(4, 6))
                cs.update(x, x @ theta + SIGMA * rng.normal(size=4))
                empty |= cs.is_empty
            audit = cs.audit()
            refuted += empty or audit.refuted
            wrong += audit.least_norm_bound > size * (1 + 1e-9) or audit.sigma_refuted
        for misses in (refuted, wrong):
            assert binomtest(misses, 2000, DELTA, alternative="greater").pvalue > 0.001

    def test_residuals_far_from_sigma_give_a_hint(self):
        below, _ = self.well_measured(0, sigma=10 * SIGMA)
        above, _ = self.well_measured(0, sigma=SIGMA / 4, factor=1.5)
        assert "Hint, not proven: the residual spread" in str(below.audit())
        assert "narrower" in str(below.audit())
        assert "too small" in str(above.audit())

    def test_unseen_and_collinear_directions_are_named(self):
        cs = mb.MartingaleMixture(3, sigma=SIGMA, norm_bound=3.0)
        assert cs.audit().unseen_directions == 3
        cs.update([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.1, 0.2])
        audit = cs.audit()
        assert (audit.unseen_directions, audit.residual_spread) == (1, None)
        assert "Nothing was measured in 1 direction" in str(audit)
        cs.update([[0.0, 0.0, 1e-8]] * 2, [0.0, 0.0])
        assert "collinear" in str(cs.audit())
        assert cs.audit().condition > 1e7

    def test_what_cannot_be_told_is_not(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(20, 2))
        adaptive = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=3.0, mixture=mb.Adaptive()).update(x, x[:, 0])
        assert adaptive.audit().refuted_sigma is None
        assert not adaptive.audit().sigma_refuted
        grid = mb.MartingaleMixture(2, sigma=SIGMA, norm_bound=3.0, mixture=mb.Grid([0.1, 1.0])).update(x, x[:, 0])
        assert grid.audit().refuted_sigma == 0.0
        general = mb.GeneralLambda(2, sigma=SIGMA, norm_bound=3.0).update(x, x[:, 0])
        assert general.audit().refuted_sigma is None


REFUTABLE = {
    "mixture": lambda **options: mb.MartingaleMixture(1, sigma=0.01, norm_bound=1.0, **options),
    "IGP": lambda **options: mb.IGPSequence(1, sigma=0.01, norm_bound=1.0, **options),
    "OFUL": lambda **options: mb.OFULSequence(1, sigma=0.01, norm_bound=1.0, **options),
    "Bayes": lambda **options: mb.BayesCredible(1, sigma=0.01, **options),
}


@pytest.mark.parametrize("name", REFUTABLE)
def test_the_advice_of_an_error_can_be_followed(name):
    make = REFUTABLE[name]
    policy = mb.UCB(make(), [[1.0]], rng=0)
    policy.learn([[1.0]] * 40, [0.5, -0.5] * 20)
    with pytest.raises(mb.AssumptionsRefuted) as caught:
        policy.ask()
    says = str(caught.value)
    assert ("audit()" in says) == (name == "mixture")
    assert ("on_empty='inflate'" in says) == (name != "Bayes")
    if "audit()" in says:
        assert "REFUTED" in str(policy.audit())
    else:
        with pytest.raises(mb.InvalidInput, match="no audit"):
            policy.audit()
    if "on_empty" in says:
        going_on = mb.UCB(make(on_empty="inflate"), [[1.0]], rng=0)
        going_on.learn([[1.0]] * 40, [0.5, -0.5] * 20)
        with pytest.warns(mb.AssumptionsRefutedWarning):
            assert not going_on.ask().trusted

"""Certificates: what they say is true of every parameter that the data leave, and they say how it is proven."""

import re

import numpy as np
import pytest

import mixbandit as mb
import mixbandit.certificates
from mixbandit.certificates import bound_optimum, certificate, largest_difference
from mixbandit.search.branch_and_bound import bound_over_box

RNG = 0


def sequence(seed, features=4, t=40, make=mb.MartingaleMixture, **options):
    """A sequence with data from a θ* well inside its set."""
    rng = np.random.default_rng([19, seed])
    cs = make(features, **{"sigma": 0.2, "norm_bound": 1.0, "delta": 0.05} | options)
    d, k = cs.features.dim, cs.features.dim_in
    theta = rng.normal(size=d)
    theta *= 0.6 / np.linalg.norm(theta)
    if t:
        actions = rng.normal(size=(t, k)) if isinstance(cs.features, mb.Identity) else rng.uniform(size=(t, k))
        cs.update(actions, cs.features(actions) @ theta + 0.2 * rng.uniform(-1.0, 1.0, size=t))
    return cs, theta, rng


def certify(cs, region, **options):
    return certificate(cs.moment, region, np.random.default_rng(RNG), **options)


FOURIER2 = mb.RandomFourier(dim_in=2, dim=10, lengthscale=0.5, rng=0)
FOURIER8 = mb.RandomFourier(dim_in=8, dim=12, lengthscale=1.0, rng=0)
UNIT2, UNIT8 = mb.Box([0.0, 0.0], [1.0, 1.0]), mb.Box(np.zeros(8), np.ones(8))

KINDS = {
    "exact": {},
    "range": {"reward_range": (-0.8, 0.8)},
    "misspecified": {"misspecification": 0.05},
    "grid": {"mixture": mb.Grid([0.1, 1.0])},
    "OFUL": {"make": mb.OFULSequence},
}


@pytest.mark.parametrize("kind", KINDS)
def test_over_arms_it_is_what_brute_force_says(kind):
    for seed in range(15):
        t = (0, 2, 10, 100)[seed % 4]
        cs, _, rng = sequence(seed, t=t, **KINDS[kind])
        actions = 0.5 * rng.normal(size=(20, 4))
        found = certify(cs, mb.Arms(actions, labels=[f"arm {i}" for i in range(20)]))
        lower, upper = cs.lower(actions), cs.upper(actions)
        best = int(np.argmax(lower))
        np.testing.assert_array_equal(found.action, actions[best])
        assert found.label == f"arm {best}"
        assert (found.lower, found.upper) == pytest.approx((lower[best], upper[best]), rel=1e-9)
        assert found.optimum_upper == pytest.approx(upper.max(), rel=1e-9)
        # The difference of two arms is a feature vector itself, to which the range does not apply, known up to 2ε.
        free, _, _ = sequence(
            seed, t=t, **{name: option for name, option in KINDS[kind].items() if name != "reward_range"}
        )
        epsilon = getattr(cs, "misspecification", 0.0)
        together = float((free.upper(actions - actions[best]) - epsilon).max()) + 2 * epsilon
        assert found.gap == pytest.approx(max(min(together, upper.max() - lower[best]), 0.0), rel=1e-7, abs=1e-9)
        assert found.gap <= found.optimum_upper - found.lower + 1e-12
        # What follows from the range alone is said to.
        by_range = kind == "range" and upper.max() >= 0.8 - 1e-9 and together >= upper.max() - lower[best] - 1e-9
        assert (found.proof, found.proven, found.trusted) == ("range" if by_range else "enumerated", True, True)
        assert (found.t, found.delta, found.guarantee) == (cs.t, 0.05, "anytime")


def test_the_form_of_one_theta_is_often_much_smaller():
    ratios = []
    for seed in range(20):
        cs, _, rng = sequence(seed)
        found = certify(cs, mb.Arms(0.5 * rng.normal(size=(20, 4))))
        ratios.append(found.gap / (found.optimum_upper - found.lower))
    assert np.mean(ratios) < 0.95
    # A known range is where the other form wins: it cuts the optimum, and no difference.
    cs, _, rng = sequence(0, t=0, reward_range=(0.0, 0.1))
    found = certify(cs, mb.Arms(rng.normal(size=(5, 4))))
    assert (found.lower, found.optimum_upper, found.gap) == pytest.approx((0.0, 0.1, 0.1))


def inside(cs, rng, directions):
    """Parameters of the set, those at its border in many directions included."""
    border = cs.moment.exact.support(directions).points
    mixed = rng.dirichlet(np.ones(3), size=200)
    inner = np.einsum("nk,nkd->nd", mixed, border[rng.integers(0, len(border), size=(200, 3))])
    thetas = np.vstack((border, inner))
    assert all(cs.contains(theta, rtol=1e-6) for theta in thetas)
    return thetas


@pytest.mark.parametrize("epsilon", [0.0, 0.07])
def test_every_parameter_of_the_set_agrees_with_the_certificate_over_arms(epsilon):
    tightest = []
    for seed in range(10):
        cs, _, rng = sequence(seed, misspecification=epsilon)
        actions = 0.5 * rng.normal(size=(15, 4))
        found = certify(cs, mb.Arms(actions))
        best = int(np.flatnonzero((actions == found.action).all(axis=1))[0])
        # The worst that the expected rewards can do within ε: everything else is better, the choice is worse.
        worth = inside(cs, rng, np.vstack((actions, -actions, actions - found.action))) @ actions.T + epsilon
        worth[:, best] -= 2 * epsilon
        assert worth.max() <= found.optimum_upper + 1e-9
        assert worth[:, best].min() >= found.lower - 1e-9
        regret = worth.max(axis=1) - worth[:, best]
        assert regret.max() <= found.gap + 1e-9
        tightest.append(found.gap - regret.max())
    # The gap is attained, but for what an arm that is surely best has to spare.
    assert min(tightest) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.07])
def test_every_parameter_of_the_set_agrees_with_the_certificate_over_a_box(epsilon):
    points = np.vstack((UNIT2.sample(5000, np.random.default_rng(1)), [[0, 0], [0, 1], [1, 0], [1, 1]]))
    phi = FOURIER2(points)
    for seed in range(4):
        cs, theta, rng = sequence(seed, FOURIER2, misspecification=epsilon)
        found = certify(cs, UNIT2)
        own = FOURIER2(found.action)[0]
        thetas = inside(cs, rng, np.vstack((phi[:300], -phi[:300], phi[:300] - own)))
        worth = thetas @ phi.T + epsilon
        assert found.proof == "branch-and-bound"
        assert found.proven
        assert worth.max() <= found.optimum_upper + 1e-9
        assert (thetas @ own).min() - epsilon >= found.lower - 1e-9
        regret = worth.max(axis=1) - (thetas @ own - epsilon)
        assert regret.max() <= found.gap + 1e-9
        assert found.lower <= theta @ own <= found.upper
        assert cs.upper(points).max() <= found.optimum_upper + 1e-9
        assert found.gap <= found.optimum_upper - found.lower + 1e-12


def test_branch_and_bound_adds_little_and_is_never_below_what_the_search_found():
    for seed in range(4):
        cs, _, _ = sequence(seed, FOURIER2)
        found, searched = certify(cs, UNIT2), certify(cs, UNIT2, proof="search")
        assert searched.optimum_upper == searched.optimum_found == found.optimum_found
        assert found.optimum_found <= found.optimum_upper
        assert found.optimum_upper - found.optimum_found <= 0.05 * (found.optimum_found - found.lower) + 1e-8
        # The difference of one θ pays on a box, too.
        assert found.gap < searched.gap


def test_branch_and_bound_is_told_how_large_theta_can_be(monkeypatch):
    told = []

    def spy(h, reach, *rest, **options):
        told.append(reach)
        return bound_over_box(h, reach, *rest, **options)

    monkeypatch.setattr(mixbandit.certificates, "bound_over_box", spy)
    cs, _, rng = sequence(1, FOURIER2, t=200)
    certify(cs, UNIT2)
    axes = np.eye(10)
    thetas = inside(cs, rng, np.vstack((axes, -axes)))
    for reach in told:
        assert reach.norm >= np.linalg.norm(thetas, axis=1).max() * (1 - 1e-9)
        # Attained, on one side or the other.
        np.testing.assert_allclose(reach.entries, np.abs(thetas).max(axis=0), rtol=1e-6)
    assert len(told) == 2


def test_a_fixed_context_is_not_searched():
    cs, _, _ = sequence(0, FOURIER2)
    box = mb.Box([1 / 3, 0.0], [1 / 3, 1.0])
    found = certify(cs, box)
    line = np.column_stack((np.full(2001, 1 / 3), np.linspace(0.0, 1.0, 2001)))
    assert found.action[0] == 1 / 3
    assert found.lower == pytest.approx(cs.lower(line).max(), abs=1e-5)
    assert cs.upper(line).max() <= found.optimum_upper <= cs.upper(line).max() + 0.1 * found.gap


def test_in_eight_dimensions_a_range_proves_and_a_search_does_not():
    cs, _, _ = sequence(0, FOURIER8, t=100, reward_range=(-0.9, 0.9))
    found = certify(cs, UNIT8)
    assert (found.proof, found.proven, found.optimum_upper) == ("range", True, 0.9)
    assert found.gap == pytest.approx(0.9 - found.lower)
    cs, _, _ = sequence(0, FOURIER8, t=100)
    found = certify(cs, UNIT8)
    assert (found.proof, found.proven, found.trusted) == ("search", False, True)
    assert found.optimum_upper == found.optimum_found
    assert found.gap == pytest.approx(found.optimum_upper - found.lower)


def test_a_range_that_says_more_than_the_data_is_named_as_the_proof():
    # Two dimensions could be branched, but everything reaches the range.
    cs, _, _ = sequence(0, FOURIER2, t=0, reward_range=(-0.1, 0.1))
    found = certify(cs, UNIT2)
    assert (found.proof, found.optimum_upper, found.lower) == ("range", 0.1, -0.1)
    assert found.gap == pytest.approx(0.2)


def test_a_proof_can_be_insisted_on(monkeypatch):
    cs, _, _ = sequence(0, FOURIER2, reward_range=(-2.0, 2.0))
    for proof in ("branch-and-bound", "range", "search"):
        found = certify(cs, UNIT2, proof=proof)
        assert found.proof == proof
        assert found.proven == (proof != "search")
    assert certify(cs, UNIT2, proof="range").optimum_upper == 2.0
    assert certify(cs, mb.Arms([[0.1, 0.2], [0.3, 0.4]]), proof="enumerated").proof == "enumerated"
    # Where a Lipschitz constant is all there is it takes long and says little, but it says it.
    monkeypatch.setattr(mixbandit.certificates, "_MAX_EVALUATIONS", 2000)
    wide, _, _ = sequence(0, FOURIER8)
    proven, searched = (certify(wide, UNIT8, proof=proof) for proof in ("branch-and-bound", "search"))
    assert proven.proven
    assert proven.optimum_upper >= searched.optimum_upper


@pytest.mark.parametrize(
    ("features", "region", "proof", "says"),
    [
        (FOURIER2, UNIT2, "hope", "one of enumerated, branch-and-bound, range, search; got 'hope'"),
        (FOURIER2, UNIT2, "range", "bounded by search, not by range"),
        (FOURIER2, UNIT2, "enumerated", "bounded by search, not by enumerated"),
        (FOURIER2, mb.Arms([[0.1, 0.2]]), "range", "bounded by enumerated, not by range"),
        (
            mb.FromCallable(lambda a: a**2, 2, 2),
            UNIT2,
            "branch-and-bound",
            "bounded by search, not by branch-and-bound",
        ),
    ],
)
def test_a_proof_that_is_not_to_be_had_is_refused(features, region, proof, says):
    cs, _, _ = sequence(0, features, t=5)
    with pytest.raises(mb.InvalidInput, match=says):
        certify(cs, region, proof=proof)


def test_bayesian_bounds_prove_nothing():
    cs, _, rng = sequence(0, make=mb.BayesCredible)
    found = certify(cs, mb.Arms(rng.normal(size=(10, 4))))
    assert (found.proof, found.guarantee, found.proven) == ("enumerated", "bayesian", False)
    assert "not guaranteed for this problem" in str(found)
    boxed, _, _ = sequence(0, FOURIER2, make=mb.BayesCredible)
    assert certify(boxed, UNIT2).proof == "search"


def test_misspecification_counts_twice_in_a_difference():
    rng = np.random.default_rng(0)
    plain, _, _ = sequence(0, t=0)
    allowed, _, _ = sequence(0, t=0, misspecification=0.05)
    rows = rng.normal(size=(30, 4))
    # Without data both sets are the ball, so that only the 2ε differ.
    difference = largest_difference(plain.moment, rows, rows[3])
    assert difference == pytest.approx(max(np.linalg.norm(row - rows[3]) for row in rows))
    assert largest_difference(allowed.moment, rows, rows[3]) == pytest.approx(difference + 0.1)
    plain, _, _ = sequence(0, FOURIER2, t=0)
    allowed, _, _ = sequence(0, FOURIER2, t=0, misspecification=0.05)
    gaps = [certify(cs, UNIT2).gap for cs in (plain, allowed)]
    assert gaps[1] == pytest.approx(gaps[0] + 0.1, rel=0.1)
    assert gaps[1] > gaps[0] + 0.05


def test_the_bound_on_the_optimum_says_how_loose_it_may_be():
    cs, _, _ = sequence(0, FOURIER2)
    optimum = bound_optimum(cs.moment, UNIT2, np.random.default_rng(0), at_least=0.0)
    assert optimum.found <= optimum.upper <= optimum.found + optimum.tolerance + 1e-8
    assert optimum.found == pytest.approx(cs.upper(optimum.action)[0])


def test_a_certificate_reads_the_safe_thing_first():
    cs, _, rng = sequence(0)
    arms = mb.Arms(rng.normal(size=(4, 4)), labels=["red", "green", "blue", "white"])
    found = certify(cs, arms)
    text = str(found)
    assert found.interval == (found.lower, found.upper)
    assert text.startswith(f"Worth at least {found.lower:.4g}: {found.label!r}, based on 40 rewards.")
    assert "proven: every arm was checked" in text
    assert "probability at least 0.95" in text
    assert "NOT PROVEN" not in text
    assert "WARNING" not in text
    unlabelled = str(certify(cs, mb.Arms(arms.actions)))
    assert re.match(r"Worth at least [-\d.]+: \[.*\], based on 40 rewards\.", unlabelled)
    wide, _, _ = sequence(0, FOURIER8)
    text = str(certify(wide, UNIT8))
    assert text.startswith("Worth at least ")
    assert "NOT PROVEN: the largest a search found" in text
    boxed, _, _ = sequence(0, FOURIER2, reward_range=(-2.0, 2.0))
    assert "proven by branch and bound" in str(certify(boxed, UNIT2))
    assert "proven by the stated range" in str(certify(boxed, UNIT2, proof="range"))


REGIONS = [mb.Arms([[0.1, 0.2], [0.3, 0.4]]), UNIT2]


@pytest.mark.parametrize("region", REGIONS, ids=["arms", "box"])
def test_refuted_assumptions_raise_or_are_said_to_be(region):
    for on_empty in ("raise", "inflate"):
        cs = mb.MartingaleMixture(FOURIER2, sigma=0.05, norm_bound=0.1, delta=0.05, on_empty=on_empty)
        actions = np.random.default_rng(0).uniform(size=(30, 2))
        cs.update(actions, np.full(30, 3.0))
        assert cs.is_empty
        if on_empty == "raise":
            with pytest.raises(mb.AssumptionsRefuted):
                mb.UCB(cs, region).certificate()
            continue
        with pytest.warns(mb.AssumptionsRefutedWarning):
            found = mb.UCB(cs, region).certificate()
        assert not certify(cs, region).trusted
        assert (found.trusted, found.proven) == (False, False)
        assert "WARNING: the data refute the stated assumptions" in str(found)


def test_a_policy_certifies_what_its_sequence_does():
    cs, _, rng = sequence(0)
    actions = rng.normal(size=(10, 4))
    found, direct = mb.UCB(cs, actions=actions).certificate(), certify(cs, mb.Arms(actions))
    assert found.gap == direct.gap
    np.testing.assert_array_equal(found.action, direct.action)


def test_a_box_without_width_is_certified():
    cs = mb.MartingaleMixture(mb.RandomFourier(dim_in=2, dim=5, rng=0), sigma=0.2, norm_bound=1.0)
    found = certificate(cs.moment, mb.Box([0.3, 0.4], [0.3, 0.4]), np.random.default_rng(0))
    assert found.proof == "branch-and-bound"
    assert found.gap == pytest.approx(0.0, abs=1e-6)


def test_a_certificate_is_not_trusted_where_only_the_noise_is_refuted():
    cs = mb.MartingaleMixture(1, sigma=0.1, norm_bound=3.0).update([[1.0]] * 40, [0.5, -0.5] * 20)
    assert not cs.is_empty
    for region in (mb.Arms([[1.0], [0.5]]), mb.Box([0.0], [1.0])):
        found = certificate(cs.moment, region, np.random.default_rng(0))
        assert not found.trusted
        assert not found.proven


ORTHOGONAL = mb.Arms(np.eye(3))


def clicks(t, reward_range=(0.0, 1.0)):
    """A sequence that saw t yes-or-no results of three arms in turn, with rates of .3, .5 and .7."""
    cs = mb.MartingaleMixture(3, sigma=0.5, norm_bound=2.0, reward_range=reward_range)
    rows = np.eye(3)[np.arange(t) % 3]
    if t:
        cs.update(rows, np.random.default_rng(3).random(t) < rows @ [0.3, 0.5, 0.7])
    return cs


def test_a_vacuous_certificate_says_so_and_about_what_it_needs():
    nothing = certify(clicks(0), ORTHOGONAL)
    assert (nothing.vacuous, nothing.needs) == (True, None)
    assert str(nothing).startswith("Vacuous: as much was known without any reward. No reward has been told yet.\n")
    found = certify(clicks(9), ORTHOGONAL)
    assert (found.lower, found.gap, found.vacuous) == (0.0, 1.0, True)
    assert re.match(
        r"Vacuous: as much was known without any reward\. As a rough guide, about \d+00 more rewards would halve its "
        r"interval\.\nWorth at least 0: ",
        str(found),
    )
    # Roughly: half of the range is reached within a factor of three.
    needed = next(t for t in range(9, 2000, 9) if np.diff(certify(clicks(t), ORTHOGONAL).interval) <= 0.5)
    assert needed / 3 <= found.needs <= 3 * needed
    told = certify(clicks(600), ORTHOGONAL)
    assert (told.vacuous, told.needs) == (False, None)
    assert str(told).startswith("Worth at least")


def test_a_floor_or_a_gap_that_says_something_is_not_vacuous():
    # Nothing is known of the level of the rewards, but the difference of the two arms is known well.
    arms = mb.Arms([[1.0, 0.1], [1.0, -0.1]])
    cs = mb.MartingaleMixture(2, sigma=0.5, norm_bound=5.0, reward_range=(0.0, 1.0))
    cs.update([[0.0, 1.0]] * 500, np.zeros(500))
    found = certify(cs, arms)
    assert found.lower == 0.0
    assert found.gap < 0.2
    assert not found.vacuous
    # A norm bound alone: the set is the ball as long as nothing was told about an arm.
    ball = mb.MartingaleMixture(3, sigma=0.5, norm_bound=2.0)
    assert certify(ball, ORTHOGONAL).vacuous
    assert certify(ball.after([1.0, 0, 0], 1.0), mb.Arms([[0, 1.0, 0], [0, 0, 1.0]])).vacuous
    assert not certify(ball.after([1.0, 0, 0], 1.0), ORTHOGONAL).vacuous
    # An action without features is known exactly.
    assert not certify(ball.after([1.0, 0, 0], 1.0), mb.Arms([[0.0, 0.0, 0.0]])).vacuous


def test_vacuous_certificates_over_boxes_go_by_the_estimate():
    phi = mb.RandomFourier(dim_in=2, dim=10, lengthscale=0.5, rng=0)
    cs = mb.MartingaleMixture(phi, sigma=0.5, norm_bound=3.0, reward_range=(0.0, 1.0))
    rows = np.random.default_rng(0).uniform(size=(6, 2))
    cs.update(rows, rows[:, 0] > 0.6)
    found = certify(cs, UNIT2)
    assert (found.lower, found.vacuous) == (0.0, True)
    assert found.needs > 6
    points = UNIT2.sample(5000, np.random.default_rng(1))
    estimate = cs.moment.closed_form.scaled(0.0).maximum
    assert estimate(phi(found.action))[0] >= estimate(phi(points)).max() - 1e-9


@pytest.mark.parametrize("best", [0, 1, 3])
def test_arms_whose_floors_tie_at_the_end_of_the_range_go_by_the_estimate(best):
    bandit = mb.CMMUCB(4, actions=np.eye(4), sigma=0.5, norm_bound=1.0, reward_range=(0.0, 1.0), rng=0)
    bandit.learn(np.eye(4), 0.2 + 0.6 * np.eye(4)[best])
    found = bandit.certificate()
    assert found.lower == 0.0
    np.testing.assert_array_equal(found.action, np.eye(4)[best])


@pytest.mark.parametrize("region", [mb.Arms(np.eye(2)), mb.Box([0.0, 0.0], [1.0, 1.0])], ids=["arms", "box"])
def test_what_follows_from_the_range_alone_rules_nothing_out(region):
    cs = mb.MartingaleMixture(2, sigma=0.5, norm_bound=1.0, delta=0.05, reward_range=(0.0, 1.0))
    found = certify(cs.update(np.eye(2), [0.1, 0.2]), region)
    assert found.proof == "range"
    assert found.optimum_upper == 1.0
    lines = str(found).splitlines()
    assert "No action is worth more than 1 (proven by the stated range of rewards)." in lines
    assert "Nothing rules out a better one." in lines
    known = cs.update(np.repeat(np.eye(2), 2000, axis=0), np.repeat([0.2, 0.6], 2000))
    known = certify(known, mb.Arms(np.eye(2)))
    assert known.proof == "enumerated"
    assert "Nothing rules out" not in str(known)

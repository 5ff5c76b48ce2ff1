import copy

import numpy as np
import optuna
import pytest

import mixbandit as mb
from mixbandit.bandits import Optimism, Policy, Thompson, Uniformly
from mixbandit.tuning.default_model import default_features, default_kernel, default_suspects
from tests.helpers.runs import SPACE, noisy, worth
from tests.helpers.spaces import EVERYTHING

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}


def tuner(**options):
    return mb.Tuner(SPACE, **{**STATED, "rng": 0, **options})


def play(tuned, rounds, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = tuned.ask()
        value = noisy(trial.parameters, rng)
        tuned.tell(trial, value if tuned.assumptions.direction == "maximize" else 1.0 - value)
    return tuned


@pytest.fixture(scope="module")
def played():
    return play(tuner(), 80)


def test_it_finds_a_good_configuration_and_says_so(played):
    for by in ("lower", "mean"):
        found = played.recommend(by)
        assert found.parameters["kernel"] == "rbf"
        assert worth(found.parameters) > 0.78
        assert found.interval[0] <= worth(found.parameters) <= found.interval[1]
        assert found.by == by
    best = played.recommend("lower")
    # Of nearly the same guaranteed values, the one that was tried most often: within a tenth of the interval.
    slack = 0.1 * (best.interval[1] - best.interval[0])
    assert best.interval[0] >= played.recommend("mean").interval[0] - slack - 1e-9
    certificate = played.certificate()
    assert certificate.action == best.parameters
    assert certificate.interval == pytest.approx(best.interval)
    assert certificate.t == played.told == 80
    assert certificate.assumptions.startswith("values that average 100 independent results on new rows, expected")
    assert not played.audit().refuted


def test_what_was_told_is_kept(played, tmp_path):
    assert len(played.history) == played.told
    one = played.history[40]
    assert one.interval[0] <= worth(one.parameters) <= one.interval[1]
    again = mb.certify(played.to_frame(), **STATED)
    assert set(again.action) <= {"C", "kernel", "degree"}
    again = mb.certify(played.to_frame(), space=SPACE, **STATED)
    assert again.lower == pytest.approx(played.certificate().lower, abs=1e-3)
    played.plot().savefig(tmp_path / "tuner.png")
    assert (tmp_path / "tuner.png").stat().st_size > 5000
    assert played.interval(played.recommend().parameters) == pytest.approx(played.recommend().interval)
    assert played.audit().reward_range == (0.0, 1.0)
    for read in (tuner().recommend, tuner().certificate, tuner().plot):
        with pytest.raises(mb.InvalidInput, match="no value has been told"):
            read()
    tuned = tuner().learn([({"C": 1.0, "kernel": "rbf"}, 0.7)])
    tuned.tell(tuned.ask(), 0.6)
    tuned.save(tmp_path / "t")
    assert mb.Tuner.load(tmp_path / "t").history == tuned.history
    assert [told.value for told in tuned.history] == [0.7, 0.6]
    assert tuned.history[0].interval is None
    with pytest.raises(mb.InvalidInput):
        tuned.tell(tuned.ask(), 7.0)
    assert len(tuned.history) == 2


def test_reading_changes_nothing():
    one, two = play(tuner(), 5), play(tuner(), 5)
    one.recommend("mean")
    one.certificate()
    assert one.ask().parameters == two.ask().parameters


def test_the_certificate_is_that_of_the_same_run_certified_afterwards(played):
    rng, again = np.random.default_rng(0), tuner()
    history = []
    for _ in range(80):
        trial = again.ask()
        value = noisy(trial.parameters, rng)
        again.tell(trial, value)
        history.append((trial.parameters, value))
    later = mb.certify(history, space=SPACE, **STATED)
    mine = again.certificate()
    assert mine.lower == pytest.approx(later.lower, abs=1e-3)
    assert mine.optimum_upper == pytest.approx(later.optimum_upper, abs=1e-2)


def test_minimising_is_maximising_the_negative():
    up, down = play(tuner(), 12), play(tuner(direction="minimize"), 12)
    one, two = up.ask(), down.ask()
    assert one.parameters["kernel"] == two.parameters["kernel"]
    assert one.parameters["C"] == pytest.approx(two.parameters["C"])
    assert two.interval == pytest.approx((1.0 - one.interval[1], 1.0 - one.interval[0]))
    low, high = up.recommend().interval
    assert down.recommend().interval == pytest.approx((1.0 - high, 1.0 - low), abs=1e-6)


def test_batches_late_values_and_failures():
    tuned = tuner()
    trials = tuned.ask(6)
    assert len({str(trial.parameters) for trial in trials}) == 6
    assert [trial.id for trial in tuned.pending] == [trial.id for trial in trials]
    tuned.tell(trials[4], 0.7).tell(trials[0].id, 0.6).fail(trials[2])
    assert tuned.told == 2
    assert [trial.id for trial in tuned.pending] == [trials[i].id for i in (1, 3, 5)]
    for wrong in (trials[2], trials[0], 99):
        with pytest.raises(mb.InvalidInput, match=r"trial \S+ (has already been told or has failed|is unknown)"):
            tuned.tell(wrong, 0.5)
    with pytest.raises(mb.InvalidInput, match="value"):
        tuned.tell(trials[1], float("nan"))
    with pytest.raises(mb.InvalidInput, match="is unknown"):
        tuned.tell("first", 0.5)
    assert tuned.told == 2
    tuned.tell(trials[1], 0.5)


def test_a_warm_start_counts_like_values_of_its_own():
    rng = np.random.default_rng(5)
    history = [(p, noisy(p, rng)) for p in SPACE.sample(40, rng=6)]
    warm = tuner().learn(history)
    assert warm.told == 40
    assert warm.certificate().lower == pytest.approx(mb.certify(history, space=SPACE, **STATED).lower, abs=1e-3)
    study = optuna.create_study(direction="minimize")
    study.add_trial(
        optuna.create_trial(
            params={"C": 1.0, "kernel": "rbf"},
            distributions={
                "C": optuna.distributions.FloatDistribution(1e-2, 1e2, log=True),
                "kernel": optuna.distributions.CategoricalDistribution(["rbf", "poly"]),
            },
            value=0.4,
        )
    )
    with pytest.raises(mb.InvalidInput, match="the study is to minimize, but this tuner is to maximize"):
        tuner().learn(study)
    assert tuner(direction="minimize").learn(study).told == 1


@pytest.mark.parametrize("how", ["Tuner.load", "mb.load"])
def test_a_saved_tuner_goes_on_bit_for_bit(tmp_path, how):
    tuned = play(tuner(), 10)
    waiting = tuned.ask(2)
    tuned.save(tmp_path / "t")
    again = (mb.Tuner.load if how == "Tuner.load" else mb.load)(tmp_path / "t")
    assert again.space == SPACE
    assert again.objective == tuned.objective
    for one in (tuned, again):
        one.tell(waiting[1].id, 0.65)
    first, second = tuned.ask(), again.ask()
    assert (first.number, first.parameters, first.interval) == (second.number, second.parameters, second.interval)
    mb.save(tuned, tmp_path / "u")
    assert mb.load(tmp_path / "u").told == tuned.told


def test_a_damaged_file_is_refused(tmp_path):
    bandit = mb.CMMUCB(2, actions=mb.Arms(np.eye(2)), sigma=1.0, norm_bound=1.0)
    bandit.save(tmp_path / "b")
    with pytest.raises(mb.DamagedState, match="not of a Tuner"):
        mb.Tuner.load(tmp_path / "b")
    state = tuner().state_dict()
    del state["objective"]
    with pytest.raises(mb.DamagedState, match="objective"):
        mb.Tuner.from_state_dict(state)


def test_features_of_ones_own_are_given_again(tmp_path):
    phi = mb.FromCallable(lambda a: np.hstack((np.ones((len(a), 1)), a)), SPACE.dim, SPACE.dim + 1)
    tuned = tuner(features=phi, norm_bound=3.0)
    play(tuned, 3).save(tmp_path / "t")
    with pytest.raises(mb.InvalidInput, match="pass it again"):
        mb.Tuner.load(tmp_path / "t")
    assert mb.Tuner.load(tmp_path / "t", features=phi).ask().parameters == tuned.ask().parameters


def test_a_plain_dict_makes_a_space():
    tuned = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=2.0, rng=1)
    assert 0.0 <= tuned.ask().parameters["x"] <= 1.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reward_range": None, "samples": None}, mb.AssumptionsMissing, "nothing bounds the noise"),
        ({"reward_range": None, "samples": None, "sigma": 0.1}, mb.AssumptionsMissing, "norm_bound"),
        ({"sigma": 0.1}, mb.InvalidInput, "not both"),
        ({"direction": "up"}, mb.InvalidInput, "direction"),
        ({"exploration": -1.0}, mb.InvalidInput, "exploration"),
        ({"delta": 2.0}, mb.InvalidInput, "delta"),
        ({"samples": 0}, mb.InvalidInput, "samples"),
    ],
)
def test_bad_settings_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        tuner(**options)
    with pytest.raises(mb.InvalidInput, match="by"):
        tuner().recommend("luck")


def test_it_begins_with_trials_that_are_spread_over_the_space():
    tuned = tuner(initial=12)
    trials = [tuned.ask() for _ in range(4)] + tuned.ask(8)
    positions = np.sort([float(SPACE["C"].encode(t.parameters["C"], "C")[0]) for t in trials])
    assert np.diff(positions).max() < 0.3
    assert {t.parameters["kernel"] for t in trials} == {"rbf", "poly"}
    for trial in trials:
        tuned.tell(trial, 0.5)
    # Whoever goes on from the same values does not begin again with the same configurations.
    again = tuner(initial=16).learn([(t.parameters, 0.5) for t in trials])
    assert again.ask().parameters not in [t.parameters for t in trials]
    # A failed trial of the beginning is made up for by another configuration.
    failing = tuner(initial=3)
    first = failing.ask()
    failing.fail(first)
    assert failing.ask().parameters != first.parameters


def test_a_batch_may_be_larger_than_the_beginning():
    trials = tuner(initial=3).ask(7)
    assert [t.number for t in trials] == list(range(7))
    assert len({str(t.parameters) for t in trials}) == 7


def test_an_interrupted_batch_leaves_nothing_behind(monkeypatch):
    tuned, twin = tuner(initial=3, exploration=0.05), tuner(initial=3, exploration=0.05)

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Policy, "ask", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tuned.ask(5)
    assert tuned.pending == ()
    assert [t.parameters for t in tuned.ask(5)] == [t.parameters for t in twin.ask(5)]


def test_a_configuration_of_ones_own_is_a_trial_like_any_other():
    tuned = tuner()
    mine = tuned.adopt({"C": 1.0, "kernel": "rbf"})
    assert mine.parameters["C"] == pytest.approx(1.0)
    assert tuned.pending == (mine,)
    tuned.tell(mine, 0.7)
    assert tuned.told == 1
    by_hand = tuner().learn([({"C": 1.0, "kernel": "rbf"}, 0.7)])
    assert tuned.recommend().interval == pytest.approx(by_hand.recommend().interval, abs=1e-6)
    with pytest.raises(mb.InvalidInput, match="unknown"):
        tuned.adopt({"C": 1.0, "kernel": "rbf", "gamma": 2.0})


def test_a_trial_of_another_tuner_is_refused():
    one, two = tuner(rng=1), tuner(rng=2)
    trial = one.ask(2)[1]  # all begin in the centre
    two.ask(2)
    with pytest.raises(mb.InvalidInput, match="asked for elsewhere"):
        two.tell(trial, 0.5)
    assert two.told == 0


@pytest.mark.parametrize("value", [1.2, -0.1, float("inf"), "0.5", None])
def test_values_that_cannot_be_are_refused(value):
    tuned = tuner()
    trial = tuned.ask()
    with pytest.raises(mb.InvalidInput, match="value"):
        tuned.tell(trial, value)
    assert len(tuned.pending) == 1
    # With a noise level instead of a range for single results, values may lie beyond the range of expected ones.
    tuned = tuner(samples=None, sigma=0.1)
    tuned.tell(tuned.ask(), 1.05)


def test_exact_bounds_may_be_acted_on_as_well():
    found = play(tuner(exact=True), 25).recommend()
    assert found.interval[0] <= worth(found.parameters) <= found.interval[1]


def test_a_space_of_every_kind():
    space = EVERYTHING
    tuned, rng = mb.Tuner(space, **STATED, rng=0), np.random.default_rng(0)

    def chance(p):
        return 0.5 - (p["a"] - 0.7) ** 2 + 0.2 * (p["p"] == "x") + 0.1 * p["q"] - 0.01 * abs(p["i"] - 5)

    for _ in range(60):
        trial = tuned.ask()
        space.encode(trial.parameters)  # allowed, and complete
        tuned.tell(trial, float(rng.binomial(100, chance(trial.parameters))) / 100)
    found = tuned.certificate()
    assert chance(found.action) > 0.6
    assert found.interval[0] <= chance(found.action) <= found.interval[1]
    assert [part.name for part in found.possible] == list(space)
    history = [(t.parameters, 0.5) for t in tuned.ask(3)]
    assert mb.certify(history, space=space, **STATED).t == 3


@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_the_unit_of_values_does_not_matter(scale):
    one, other = tuner(), tuner(reward_range=(0.0, scale))
    rng = np.random.default_rng(0)
    for _ in range(25):
        trial, same = one.ask(), other.ask()
        assert SPACE.encode(trial.parameters) == pytest.approx(SPACE.encode(same.parameters), abs=1e-4)
        assert np.array(same.interval) == pytest.approx(scale * np.array(trial.interval), rel=1e-3, abs=1e-3 * scale)
        value = noisy(trial.parameters, rng)
        one.tell(trial, value)
        other.tell(same, scale * value)


def test_no_two_trials_of_the_beginning_are_the_same():
    space = mb.Space({"x": mb.Float(0.0, 1.0)})
    tuned = mb.Tuner(space, **STATED, rng=0).learn([({"x": x}, 0.5) for x in (0.1, 0.2, 0.3)])
    first, second = tuned.ask(), tuned.ask()
    tuned.fail(first)
    assert tuned.ask().parameters != second.parameters
    coming = mb.Tuner(space, **STATED, rng=0).ask(3)[2].parameters
    tuned = mb.Tuner(space, **STATED, rng=0)
    tuned.adopt({"x": 0.9})
    tuned.adopt(coming)
    assert len({t.parameters["x"] for t in (*tuned.ask(4), *tuned.pending[:2])}) == 6


def test_a_value_belongs_to_the_integer_that_was_tried():
    # More values than are listed: the search sees a continuum, and must not credit what lies between integers.
    space = mb.Space({"n": mb.Int(1, 100_000, log=True)})
    tuned = mb.Tuner(space, reward_range=(0, 1), samples=10**6, rows="fresh", rng=0, initial=4, exploration=1.0)
    history = []
    for _ in range(25):
        trial = tuned.ask()
        value = 0.9 - 0.05 * abs(np.log(trial.parameters["n"] / 2.0))
        tuned.tell(trial, value)
        history.append((trial.parameters, value))
    found = tuned.recommend()
    row = space.encode(found.parameters)
    known = {"norm_bound": 2.0, "delta": 0.018, "reward_range": (-0.5, 0.5), "samples": 10**6}
    model = mb.BoundedMixture(default_kernel(space), suspects=default_suspects(space), **known)
    model.update(space.encode_all([p for p, _ in history]), [value - 0.5 for _, value in history])
    tried = list(dict.fromkeys(p["n"] for p, _ in history))
    i = tried.index(found.parameters["n"]) + 1
    own = mb.MeanSequence((0.0, 1.0), 0.05 * 0.2 / (i * (i + 1)))
    own.update([value for p, value in history if p == found.parameters], samples=10**6)
    expected = (max(model.lower(row)[0] + 0.5, own.lower()), min(model.upper(row)[0] + 0.5, own.upper()))
    assert found.interval == pytest.approx(expected, abs=1e-8)
    assert found.tried == sum(p == found.parameters for p, _ in history)
    certificate = tuned.certificate()
    assert certificate.interval == pytest.approx(expected, abs=1e-6)


def test_what_is_refuted_is_not_trusted():
    tuned = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=1e-3, reward_range=(0, 1), initial=0, rng=0)
    history = [({"x": 0.5}, value) for value in (0.2, 0.9, 0.1, 0.8, 0.3, 0.7)]
    with pytest.warns(mb.AssumptionsRefutedWarning, match=r"expected values in \[0, 1\]"):
        tuned.learn(history).ask()
    assert not tuned.ask().trusted
    assert not tuned.recommend().trusted


def test_pairs_are_read_as_they_are():
    space = mb.Space({"value": mb.Categorical([None, "", 1]), "state": mb.Int(1, 3), "params_x": mb.Float(0, 1)})
    history = [({"value": v, "state": 2, "params_x": 0.5}, 0.5) for v in (None, "", 1)]
    assert mb.Tuner(space, **STATED).learn(history).told == 3


def refuted_tuner():
    """Values that refute what was stated, and later ones that hide it again."""
    tuned = mb.Tuner({"x": mb.Float(0.0, 1.0)}, reward_range=(0, 1), sigma=0.01, rng=0, initial=0)
    at = {"x": 0.5}
    tuned.learn([(at, value) for value in (0.2, 0.9, 0.1, 0.8, 0.3, 0.7)])
    return tuned, at


def test_a_refutation_stands_in_everything_that_is_said_later():
    tuned, at = refuted_tuner()
    with pytest.warns(mb.AssumptionsRefutedWarning) as caught:
        tuned.ask()
    assert [warning.filename for warning in caught] == [__file__]  # once, and at the line that asked
    tuned.learn([(at, 0.5)] * 20_000)
    assert not tuned.moment.is_refuted  # the data alone no longer say so
    assert not tuned.recommend().trusted
    assert not tuned.certificate().trusted
    assert tuned.refuted


def test_a_certificate_says_that_it_is_refuted_at_the_users_line():
    tuned, _ = refuted_tuner()
    with pytest.warns(mb.AssumptionsRefutedWarning) as caught:
        assert not tuned.certificate().trusted
    assert [warning.filename for warning in caught] == [__file__]


def test_a_range_is_about_expected_values_unless_nothing_else_states_the_noise():
    space = {"x": mb.Float(0.0, 1.0)}
    for stated in ({"samples": 10}, {}):
        tuned = mb.Tuner(space, reward_range=(0, 1), rng=0, **stated)
        with pytest.raises(mb.InvalidInput, match=r"value 1\.2 lies outside reward_range"):
            tuned.tell(tuned.ask(), 1.2)
    tuned = mb.Tuner(space, reward_range=(0, 1), sigma=0.2, rng=0)
    assert tuned.tell(tuned.ask(), 1.2).told == 1
    cs = mb.MartingaleMixture(2, sigma=0.2, norm_bound=1.0, reward_range=(0.0, 1.0))
    assert cs.update([[1.0, 0.0]], [1.2]).t == 1
    bandit = mb.CMMUCB(2, actions=[[1.0, 0.0]], sigma=0.2, norm_bound=1.0, reward_range=(0.0, 1.0), rng=0)
    assert bandit.tell(bandit.ask(), 1.2).moment.t == 1


@pytest.mark.parametrize("acting", [Thompson(), Uniformly(), Optimism(None, 1.0)], ids=lambda rule: rule.name)
def test_any_rule_may_act(acting, tmp_path):
    features = default_features(SPACE) if isinstance(acting, Thompson) else None
    tuned = tuner(acting=acting, initial=2, features=features)
    play(tuned, 12)
    tuned.save(tmp_path / "t")
    again = mb.Tuner.load(tmp_path / "t")
    assert again.ask().parameters == tuned.ask().parameters
    assert tuned.certificate().lower == pytest.approx(again.certificate().lower)
    with pytest.raises(mb.InvalidInput, match="not to `acting`"):
        tuner(acting=acting, exploration=0.3)


def test_what_is_known_is_stated_once():
    known = mb.Assumptions(reward_range=(0.0, 1.0), samples=100, rows="fresh")
    one, other = (
        mb.Tuner(SPACE, known, rng=0),
        mb.Tuner(SPACE, reward_range=(0.0, 1.0), samples=100, rows="fresh", rng=0),
    )
    assert one.assumptions == other.assumptions == one.objective
    assert one.ask().parameters == other.ask().parameters
    with pytest.raises(mb.InvalidInput, match="as one object or as keywords, not both"):
        mb.Tuner(SPACE, known, samples=3, rows="fresh")
    with pytest.raises(mb.InvalidInput, match="must be an Assumptions object"):
        mb.Tuner(SPACE, {"samples": 3})
    history = [(p, 0.5) for p in SPACE.sample(5, rng=0)]
    by_object, by_words = (
        mb.certify(history, known, space=SPACE),
        mb.certify(history, space=SPACE, reward_range=(0.0, 1.0), samples=100, rows="fresh"),
    )
    assert by_object.lower == by_words.lower


def test_a_contradicted_range_is_noticed_by_whatever_is_asked_first():
    looks = (
        lambda tuned: tuned.recommend(),
        lambda tuned: tuned.interval({"x": 0.5}),
        lambda tuned: tuned.certificate(),
    )
    for look in looks:
        tuned = mb.Tuner({"x": mb.Float(0.0, 1.0)}, reward_range=(0, 1), sigma=0.1, norm_bound=30.0, rng=0)
        tuned.learn([({"x": 0.5}, 3.0)] * 20)
        with pytest.warns(mb.AssumptionsRefutedWarning) as caught:
            look(tuned)
        assert [warning.filename for warning in caught] == [__file__]
        assert not tuned.recommend().trusted
        assert not tuned.certificate().trusted


def test_a_refutation_that_was_read_stands_though_later_values_hide_it():
    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=3.0, initial=0, rng=0)
    tuner.learn([({"x": 0.5}, value) for value in (0.4, -0.4)])
    assert tuner.refuted
    tuner.learn([({"x": 0.5}, 0.0)] * 40)
    assert not tuner.moment.is_refuted
    assert tuner.refuted
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not tuner.certificate().trusted


def test_an_interval_of_a_refuted_tuner_says_so():
    tuner, at = refuted_tuner()
    with pytest.warns(mb.AssumptionsRefutedWarning) as caught:
        found = tuner.interval(at)
    assert [warning.filename for warning in caught] == [__file__]
    assert not found.trusted
    low, high = found
    assert found == (low, high)
    assert repr(found) == f"({low!r}, {high!r}) NOT TRUSTED"
    assert not tuner.interval(at).trusted  # without another warning
    assert not copy.deepcopy(found).trusted
    fine = mb.Tuner({"x": mb.Float(0.0, 1.0)}, **STATED).interval(at)
    assert fine.trusted
    assert repr(fine) == repr(tuple(fine))
    tuner, _ = refuted_tuner()
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not tuner.recommend().trusted


def test_a_run_whose_first_trials_refute_the_assumptions_is_learnt_as_refuted():
    hiding = [({"x": 0.5}, value) for value in (0.4, -0.4, *[0.0] * 40)]
    tuner = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=3.0, initial=0, rng=0).learn(hiding)
    assert not tuner.moment.is_refuted
    assert tuner.refuted
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not tuner.ask().trusted
    other = mb.Tuner({"x": mb.Float(0.0, 1.0)}, sigma=0.1, norm_bound=3.0, initial=0, rng=0).learn(hiding[2:])
    assert not other.refuted

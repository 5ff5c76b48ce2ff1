import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import svm
from mixbandit.paper.svm import PAPER_ALGORITHMS, PAPER_DATASETS, SvmSettings, SvmTask, measure, simulate


def row(settings, repetition=0):
    """A repetition without its times, which differ from run to run."""
    values = dict(zip(svm.COLUMNS, simulate(settings, repetition), strict=True))
    return {name: value for name, value in values.items() if not name.endswith("_ms")}


@pytest.mark.parametrize("name", PAPER_DATASETS)
def test_accuracies_are_those_of_scikit_learn_with_its_own_kernel(name):
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    data = mb.load_dataset(name)
    task = SvmTask(data, np.random.default_rng(3))
    order = np.random.default_rng(3).permutation(len(data.y))
    train, rest = order[: len(order) // 2], order[len(order) // 2 :]
    scaler = StandardScaler().fit(data.X[train])
    corners = [np.zeros(task.dim), np.ones(task.dim), np.eye(task.dim)[0], 1.0 - np.eye(task.dim)[0]]
    differ = 0
    for action in (*corners, *np.random.default_rng(0).uniform(size=(4, task.dim))):
        scales = 10.0 ** (-2.0 + 3.0 * action[1:])
        machine = SVC(C=10.0 ** (-2.0 + 4.0 * action[0]), gamma=0.5)
        machine.fit(scaler.transform(data.X[train]) / scales, data.y[train])
        right = machine.predict(scaler.transform(data.X[rest]) / scales) == data.y[rest]
        validation, test = task.correct(action)
        assert len(validation) == len(order) // 4
        assert len(test) == task.test_size
        differ += int((np.concatenate((validation, test)) != right).sum())
    assert differ <= 1  # a row on the border of two classes may go either way by rounding


def test_training_rows_and_only_they_set_the_scale():
    data = mb.load_dataset("banknotes")
    changed = data.X.copy()
    order = np.random.default_rng(1).permutation(len(data.y))
    changed[order[-1]] *= 1e3  # a test row
    other = mb.Dataset(data.name, changed, data.y, data.features, data.classes)
    action = np.full(5, 0.5)
    one, two = (SvmTask(d, np.random.default_rng(1)).correct(action) for d in (data, other))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1][:-1], two[1][:-1])


@pytest.mark.parametrize("algorithm", PAPER_ALGORITHMS)
def test_a_repetition_depends_on_its_number_and_seed_only(algorithm):
    settings = SvmSettings("raisin", algorithm, rounds=4)
    first = row(settings)
    assert row(settings) == first
    assert row(settings, 1) != first
    assert row(SvmSettings("raisin", algorithm, rounds=4, seed=1)) != first
    assert len(first["test"].split()) == 4
    longer = row(SvmSettings("raisin", algorithm, rounds=6))
    assert longer["test"].split()[:4] == first["test"].split()


def spied(monkeypatch, settings, where):
    """The rewards that a policy is told that always plays one action."""
    told = []

    class Spy(mb.UniformSampling):
        def tell(self, choice, reward):
            told.append(reward)
            super().tell(choice, reward)

    def spying(features, *, actions, sigma, norm_bound, delta, on_empty, track_regret, rng):
        sequence = mb.MartingaleMixture(features, sigma=sigma, norm_bound=norm_bound, delta=delta, on_empty=on_empty)
        fixed = mb.Box(np.full(actions.dim, where), np.full(actions.dim, where))
        return Spy(sequence, fixed, rng=rng, track_regret=track_regret)

    monkeypatch.setitem(svm.ALGORITHMS, settings.algorithm, spying)
    accuracy = float(row(settings)["validation"])
    return np.array(told), accuracy


@pytest.mark.heavy
def test_rewards_are_accuracies_on_100_validation_points_drawn_with_replacement(monkeypatch):
    """On average the validation accuracy p; the variance p(1 − p)/100 tells that points are put back."""
    told, accuracy = spied(monkeypatch, SvmSettings("raisin", "Uniform", rounds=400), 0.5)
    np.testing.assert_allclose(told * 100, np.round(told * 100), atol=1e-9)
    variance = accuracy * (1.0 - accuracy) / 100
    assert told.mean() == pytest.approx(accuracy, abs=4 * np.sqrt(variance / 400))
    # Without replacement the variance would be 125/224 of that.
    assert told.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 400))
    assert told.var() > 0.75 * variance


def test_all_algorithms_meet_the_same_validation_points(monkeypatch):
    rewards = [spied(monkeypatch, SvmSettings("raisin", name, rounds=8), 0.6)[0] for name in ("OFUL", "IDS")]
    np.testing.assert_array_equal(*rewards)


def test_results_are_read_back(tmp_path):
    settings = SvmSettings("banknotes", "AMM-UCB", rounds=10)
    result = measure(settings, 2, folder=tmp_path)
    again = measure(settings, 2, folder=tmp_path)
    for name in ("accuracy", "validation", "refuted", "choosing_ms", "fitting_ms", "radius"):
        np.testing.assert_array_equal(getattr(result, name), getattr(again, name))
    assert result.accuracy.shape == (2, 10)
    assert result.radius.shape == (2, 2)
    np.testing.assert_array_equal(result.mean, result.accuracy.mean(axis=1))
    np.testing.assert_array_equal(result.maximum, result.accuracy.max(axis=1))
    assert measure(SvmSettings("banknotes", "OFUL", rounds=2), 1).radius is None


def test_the_radius_that_is_kept_is_that_of_the_closed_form(monkeypatch):
    """R² = σ² ln det(ΦᵀΦ/σ² + I) + σ²B² + 2σ² ln(1/δ), which does not depend on rewards."""
    rows = []
    tell = mb.UCB.tell

    def spying(self, choice, reward):
        rows.append(self.sequence.features(choice.action)[0])
        tell(self, choice, reward)

    monkeypatch.setattr(mb.UCB, "tell", spying)
    radii = [float(r) for r in row(SvmSettings("raisin", "AMM-UCB", rounds=7))["radius"].split()]
    assert svm.radius_rounds(7) == [5, 7]
    for t, radius in zip((5, 7), radii, strict=True):
        Phi = np.array(rows[:t])
        logdet = np.linalg.slogdet(Phi.T @ Phi / 0.05**2 + np.eye(20))[1]
        assert radius == pytest.approx(0.05 * np.sqrt(logdet + 100 + 2 * np.log(100)), rel=1e-5)


def test_candidates_and_shares_change_what_is_played():
    whole = row(SvmSettings("raisin", "IDS", rounds=3))
    assert row(SvmSettings("raisin", "IDS", rounds=3, candidates=5)) != whole
    assert row(SvmSettings("raisin", "IDS", rounds=3, training=0.6))["test_size"] == 180


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"algorithm": "UCB1"}, "algorithm"),
        ({"mixture": "both"}, "mixture"),
        ({"algorithm": "OFUL", "mixture": "adaptive"}, "OFUL has no mixture"),
        ({"rounds": 0}, "rounds"),
        ({"delta": 1.0}, "delta"),
        ({"training": 1.5}, "training"),
        ({"candidates": -1}, "candidates"),
    ],
)
def test_bad_settings_are_refused(wrong, named):
    with pytest.raises(mb.InvalidInput, match=named):
        SvmSettings(**wrong)

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.experiments import svm
from mixbandit.experiments.svm import PAPER_ALGORITHMS, PAPER_DATASETS, SvmSettings, SvmTask, measure, simulate


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


def test_the_action_means_what_the_paper_tunes():
    """Length-scales of a useless column do not matter once they are large; C does."""
    data = mb.load_dataset("raisin")
    task = SvmTask(data, np.random.default_rng(0))
    middle = np.full(task.dim, 0.7)
    accuracy = task.correct(middle)[1].mean()
    tiny_scales = np.concatenate(([0.7], np.zeros(task.dim - 1)))
    assert accuracy > 0.8
    assert task.correct(tiny_scales)[1].mean() < 0.6  # a kernel of needles knows nothing


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


def test_rewards_are_accuracies_on_100_validation_points_drawn_with_replacement(monkeypatch):
    """The same points for every algorithm; on average the validation accuracy, which is what bounds speak of."""
    told = []

    class Spy(mb.UniformSampling):
        def tell(self, choice, reward):
            told.append(reward)
            super().tell(choice, reward)

    def spying(features, *, actions, sigma, norm_bound, delta, on_empty, track_regret, rng):
        sequence = mb.MartingaleMixture(features, sigma=sigma, norm_bound=norm_bound, delta=delta)
        return Spy(sequence, actions, rng=rng, track_regret=track_regret)

    monkeypatch.setitem(svm.ALGORITHMS, "Uniform", spying)
    result = row(SvmSettings("maternal", "Uniform", rounds=60))
    np.testing.assert_allclose(np.array(told) * 100, np.round(np.array(told) * 100), atol=1e-9)
    assert np.mean(told) == pytest.approx(float(result["validation"]), abs=4 * 0.05 / np.sqrt(60))


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


def test_the_radius_that_is_kept_is_that_of_the_closed_form():
    """R² = σ² ln det(ΦᵀΦ/σ² + I) + σ²B² + 2σ² ln(1/δ), which does not depend on rewards."""
    settings = SvmSettings("raisin", "AMM-UCB", rounds=5)
    radius = float(row(settings)["radius"])
    least = np.sqrt(0.05**2 * 100 + 2 * 0.05**2 * np.log(100))
    most = np.sqrt(least**2 + 0.05**2 * 20 * np.log(1 + 5 / 0.05**2 / 20))
    assert least < radius < most


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

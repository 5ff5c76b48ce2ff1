"""The race over folds: what it asks for, in which order, and that its budget suffices for what it promises."""

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, uniform

import mixbandit as mb
from mixbandit.integrations.sklearn.certificate import fold_intervals
from mixbandit.integrations.sklearn.race import FoldRace, Pull, fold_effects
from mixbandit.integrations.sklearn.spaces import SearchSpace

FOLDS = 5
BOX = {"x": mb.Float(0, 1), "y": uniform(0, 1)}
EASE = np.array([0.0, 0.04, -0.03, 0.02, -0.05])  # how much better scores are on a fold


def raced(given=BOX, budget=50, finalists=3, seed=0, folds=FOLDS):
    space = SearchSpace(given, np.random.RandomState(seed))
    return FoldRace(space, folds, budget, finalists=finalists, rng=np.random.default_rng(seed))


def score(race, pull, noise=0.01):
    """Best at x = 0.7, y = 0.2."""
    at = race.candidates[pull.candidate].configuration
    rng = np.random.default_rng([pull.candidate, pull.fold])
    worth = 0.9 - (at["x"] - 0.7) ** 2 - (at["y"] - 0.2) ** 2
    return worth + EASE[pull.fold] + noise * rng.normal()


def played(race, batch=1, told=score):
    pulls = []
    while asked := race.ask(batch):
        for pull in asked:
            race.tell(pull, told(race, pull))
        pulls += asked
    return pulls


@pytest.mark.parametrize("batch", [1, 4, 7])
@pytest.mark.parametrize("budget", [3, 5, 6, 11, 50])
def test_the_budget_is_spent_once_on_every_fold_asked_for(budget, batch):
    race = raced(budget=budget)
    pulls = played(race, batch)
    assert len(pulls) == len(set(pulls)) == budget
    complete = [candidate for candidate in race.candidates if candidate.is_complete]
    assert bool(complete) == (budget >= FOLDS)


def test_it_finds_the_best_and_knows_its_mean():
    race = raced()
    played(race)
    complete = [candidate for candidate in race.candidates if candidate.is_complete]
    best = max(complete, key=lambda candidate: np.mean(candidate.in_order))
    assert np.hypot(best.configuration["x"] - 0.7, best.configuration["y"] - 0.2) < 0.15
    assert len(race.candidates) >= 20


def test_folds_come_in_an_order_that_is_drawn_for_each_configuration():
    """Uniformly, and whatever scores say: all orders of all races, whose scores differ, are counted together."""
    folds = 3
    orders = {}
    for seed in range(40):
        race = raced(seed=seed, folds=folds, budget=24)
        played(race, told=lambda race, pull: float(pull.fold == 1) + score(race, Pull(pull.candidate, 0)))
        for candidate in race.candidates:
            orders[candidate.order] = orders.get(candidate.order, 0) + 1
            assert list(candidate.scores) == list(candidate.order[: len(candidate.scores)])
    assert len(orders) == 6
    assert chisquare(list(orders.values())).pvalue > 1e-3


def test_a_failure_is_not_repeated():
    race = raced()
    played(race, told=lambda race, pull: score(race, pull) if pull.candidate % 2 else np.nan)
    for at, candidate in enumerate(race.candidates):
        assert candidate.failed == (at % 2 == 0)
        assert candidate.asked == 1 or not candidate.failed
    assert any(candidate.is_complete for candidate in race.candidates)


def test_if_everything_fails_it_goes_on_looking():
    race = raced(budget=20)
    assert len(played(race, told=lambda *_: np.nan)) == len(race.candidates) == 20


def test_a_small_space_is_evaluated_whole_and_no_more():
    race = raced({"x": [0.1, 0.7], "y": [0.2, 0.3, 0.9]}, budget=1000)
    assert race.budget == 30
    played(race, 4)
    assert all(candidate.is_complete for candidate in race.candidates)
    assert [candidate.configuration for candidate in race.candidates][:2] == [
        {"x": 0.1, "y": 0.2},
        {"x": 0.1, "y": 0.3},
    ]


@pytest.mark.parametrize("batch", [1, 5])
def test_nearly_the_whole_of_a_small_space(batch):
    """Less than everything: it chooses, and still finds something to evaluate until the budget is spent."""
    race = raced({"x": [0.1, 0.7], "y": [0.2, 0.3, 0.9]}, budget=29)
    assert len(played(race, batch)) == 29
    assert len(race.candidates) <= 6


def test_no_finalists_no_completion():
    race = raced(budget=6, finalists=0)
    played(race)
    assert not any(candidate.is_complete for candidate in race.candidates)


def test_the_effects_of_folds():
    """Configurations of any level, on the same folds or not: differences within them are what counts."""
    rng = np.random.default_rng(0)
    levels = rng.normal(size=300)
    told = [(Pull(i, int(f)), levels[i] + EASE[f]) for i in range(300) for f in rng.permutation(FOLDS)[:3]]
    effects = fold_effects(told, FOLDS)
    np.testing.assert_allclose(effects - effects.mean(), EASE - EASE.mean(), atol=1e-3)
    single = [(Pull(i, i % FOLDS), float(i)) for i in range(10)]
    np.testing.assert_array_equal(fold_effects(single, FOLDS), np.zeros(FOLDS))


@pytest.mark.heavy
def test_intervals_of_all_configurations_hold_together_whatever_the_race_goes_for():
    """Scores of folds scatter widely, so that the race goes for luck: the misses of whole races are counted."""
    folds, budget, delta, runs, missed = 40, 80, 0.2, 150, 0
    for run in range(runs):
        table = np.random.default_rng([7, run]).random((budget, folds)) < 0.9
        race = raced(seed=run, folds=folds, budget=budget, finalists=0)
        played(race, 8, told=lambda race, pull, table=table: float(table[pull]))
        ends = fold_intervals(race.candidates, (0.0, 1.0), delta / budget)
        truths = table.mean(axis=1)[: len(ends)]
        missed += bool(((truths < ends[:, 0] - 1e-12) | (truths > ends[:, 1] + 1e-12)).any())
    assert binomtest(missed, runs, delta, alternative="greater").pvalue > 1e-4, f"{missed} of {runs} races missed"

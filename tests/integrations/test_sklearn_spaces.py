"""Dictionaries as people write them for scikit-learn become spaces, and come back as they were."""

import numpy as np
import pytest
from scipy.stats import binom, expon, geom, loguniform, norm, poisson, randint, uniform
from sklearn.model_selection import ParameterGrid

import mixbandit as mb
from mixbandit.integrations.sklearn.spaces import SearchSpace


def spanned(given):
    return SearchSpace(given, np.random.RandomState(0))


def samples(space, n=600):
    rows = space.space.region.sample(n, np.random.default_rng(0))
    return [space.configuration(space.space.snapped(row)) for row in rows]


@pytest.mark.parametrize(
    "grid",
    [
        {"C": [10, 0.1, 1], "kernel": ["rbf", "linear"]},
        {"a": [1], "b": [None, 3, "x"], "c": (True, False)},
        [{"C": [1, 10]}, {"C": [1, 2, 3], "gamma": np.logspace(-3, 0, 4)}, {"kernel": ["linear"]}],
        {"hidden": [(10,), (10, 5)], "alpha": np.array([0.5, 0.25])},
        {"flag": [np.bool_(True), np.bool_(False)], "n": range(3)},
        {},
    ],
    ids=str,
)
def test_a_grid_is_the_grid_of_scikit_learn(grid):
    space, known = spanned(grid), list(ParameterGrid(grid))
    listed = list(space.configurations())
    assert listed == known
    assert space.size == len(known)
    if space.space is not None:
        assert all(any(found == each for each in known) for found in samples(space))
        assert {str(found) for found in samples(space)} == {str(each) for each in known}


def test_numbers_are_searched_in_their_order():
    space = spanned({"C": [100, 1, 10, 0.1]})
    assert space.space["C"] == mb.Int(0, 3)
    assert [space.configuration(np.array([row]))["C"] for row in (0.0, 1 / 3, 2 / 3, 1.0)] == [0.1, 1, 10, 100]
    assert spanned({"C": [1, 1, 2.0]}).size == 2


def test_values_are_handed_over_as_they_are():
    first, second = object(), object()
    found = samples(spanned({"estimator": [first, second]}))
    assert {id(each["estimator"]) for each in found} == {id(first), id(second)}


@pytest.mark.parametrize("law", [uniform(2, 3), loguniform(1e-3, 1e2), norm(1, 2), expon(scale=3)])
def test_continuous_distributions_are_searched_by_quantiles(law):
    """Uniform rows follow the distribution, up to the tails that are left out."""
    values = np.array([found["x"] for found in samples(spanned({"x": law}), 2000)])
    assert abs(law.cdf(values).mean() - 0.5) < 0.02
    assert law.ppf(0.0) <= values.min() <= values.max() <= law.ppf(1.0)
    assert np.isfinite(values).all()
    assert spanned({"x": law}).size is None


def test_discrete_distributions_are_integers():
    space = spanned({"n": randint(3, 9)})
    assert space.space["n"] == mb.Int(3, 8)
    assert space.size == 6
    assert spanned({"n": randint(3, 4)}).size == 1
    for law in (binom(10, 0.3), poisson(3), geom(0.5)):
        found = {each["n"] for each in samples(spanned({"n": law}))}
        assert all(isinstance(value, int) and law.pmf(value) > 0 for value in found)
    assert spanned({"n": randint(0, 10**9)}).size is None


def test_an_object_that_only_draws():
    class Odd:
        def rvs(self, random_state=None):
            return 2 * random_state.randint(10) + 1

    assert {found["n"] for found in samples(spanned({"n": Odd()}))} == set(range(1, 20, 2))


def test_parameters_and_spaces_of_ours():
    own = mb.Space(
        {"kernel": mb.Categorical(["rbf", "poly"]), "degree": mb.Int(2, 4)}, {"degree": ("kernel", ["poly"])}
    )
    space = spanned(own)
    expected = [{"kernel": "rbf"}, *({"degree": degree, "kernel": "poly"} for degree in (2, 3, 4))]
    for found in (list(space.configurations()), samples(space)):
        assert {str(each) for each in found} == {str(each) for each in expected}
    single = mb.Space({"kernel": mb.Categorical(["poly"]), "degree": mb.Int(2, 4)}, {"degree": ("kernel", ["poly"])})
    assert {str(each) for each in samples(spanned(single))} == {str(each) for each in expected[1:]}
    both = spanned([own, {"kernel": ["linear"]}])
    for found in (list(both.configurations()), samples(both)):
        assert {str(each) for each in found} == {str(each) for each in [*expected, {"kernel": "linear"}]}
    mixed = spanned({"C": mb.Float(0.1, 10, log=True), "kernel": ["rbf"], "gamma": uniform(0, 1)})
    assert set(samples(mixed)[0]) == {"C", "kernel", "gamma"}
    assert list(mixed.space) == ["C", "gamma"]


def test_a_distribution_without_finite_quantiles_is_refused():
    class Broken:
        def ppf(self, q):
            return np.nan

        def support(self):
            return 0.0, 1.0

    with pytest.raises(mb.InvalidInput, match="x must be a list, a distribution with finite quantiles"):
        spanned({"x": Broken()})
    with pytest.raises(mb.InvalidInput, match="x must be a list"):
        spanned({"x": uniform(0, 0)})

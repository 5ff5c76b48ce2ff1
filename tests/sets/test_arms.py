"""Sets of arms that have a parameter each, and their closed forms, against those of every arm alone."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.data import ArmDirections
from mixbandit.models import PerArm, as_model
from mixbandit.sets import Product, RidgeEllipsoids
from tests.helpers.arms import ARMS, DIM, EACH, blocks, log, rows

RNG = np.random.default_rng(0)
PROBES, NUMBERS = RNG.normal(size=(40, DIM)), RNG.integers(ARMS, size=40)


@pytest.fixture(params=["standard", "grid", "with data of its own"])
def belief(request):
    """Two arms without rewards, and of ridges one that has data of its own."""
    contexts, arms, values = log()
    found = blocks(EACH["grid" if request.param == "grid" else "standard"])
    found.update(rows(contexts, arms), values)
    if request.param == "with data of its own":
        found.update(rows(1e8 * np.eye(DIM), 3), np.zeros(DIM))
        assert set(found.moment.arms.own) == {3}
    return found.moment


def sets(belief):
    """All sets, with that of an arm alone: the exact one, closed forms, scores, and the estimate."""
    alone, alpha = belief.members.of, belief.alpha0
    yield belief.exact, lambda arm: alone(arm).exact
    yield belief.closed_form, lambda arm: alone(arm).closed_form
    yield belief.at(2.0), lambda arm: alone(arm).at(2.0)
    yield belief.at((alpha, 1.0)), lambda arm: alone(arm).at((alpha, 1.0))
    yield belief.estimate, lambda arm: alone(arm).estimate
    if isinstance(belief.closed_form, RidgeEllipsoids):
        yield belief.closed_form.scaled(0.3), lambda arm: alone(arm).closed_form.scaled(0.3)


def test_maxima_and_intervals_are_those_of_each_arm(belief):
    directions = belief.directions(rows(PROBES, NUMBERS))
    for found, alone in sets(belief):
        expected = np.array([alone(arm).interval(x[None]) for x, arm in zip(PROBES, NUMBERS, strict=True)])[..., 0]
        np.testing.assert_allclose(found.maximum(directions), expected[:, 1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.maximum(-directions), -expected[:, 0], rtol=1e-9, atol=1e-12)
        low, high = found.interval(directions)
        np.testing.assert_allclose([low, high], expected.T, rtol=1e-9, atol=1e-12)
        for place in (0, 7, -1):
            np.testing.assert_allclose(found.ends(directions[place]), expected[place], rtol=1e-9, atol=1e-12)
        assert found.maximum(directions[:0]).shape == (0,)


def test_arms_in_one_context_share_a_direction(belief):
    for numbers in (np.arange(ARMS), np.array([4, 1, 1, 5]), np.array([2])):
        directions = belief.directions(rows(np.tile(PROBES[0], (len(numbers), 1)), numbers))
        assert directions.is_shared
        for found, alone in sets(belief):
            expected = [alone(arm).maximum(PROBES[:1])[0] for arm in numbers]
            np.testing.assert_allclose(found.maximum(directions), expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.interval(directions)[1], expected, rtol=1e-9, atol=1e-12)


def test_differences_between_arms_add_up_and_those_within_an_arm_are_one_direction(belief):
    one = belief.directions(rows(PROBES, NUMBERS))
    other = belief.directions(rows(PROBES[::-1], NUMBERS[np.r_[0, 39:0:-1]]))
    shared = belief.directions(rows(np.tile(PROBES[1], (40, 1)), NUMBERS))
    for difference, less in ((one - other, other), (one - one[3], one[np.full(40, 3)]), (shared - one[3], one[3])):
        apart = np.broadcast_to(less.own, (40, DIM))
        whose = np.broadcast_to(less.arms, 40)
        mine = np.broadcast_to(difference.own, (40, DIM))
        for found, alone in sets(belief):
            expected = [
                alone(k).maximum((x - y)[None])[0]
                if k == other_arm
                else alone(k).maximum(x[None])[0] + alone(other_arm).maximum(-y[None])[0]
                for k, x, other_arm, y in zip(NUMBERS, mine, whose, apart, strict=True)
            ]
            np.testing.assert_allclose(found.maximum(difference), expected, rtol=1e-9, atol=1e-12)
            low, high = found.interval(difference)
            np.testing.assert_allclose(high, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(low, -found.maximum(-difference), rtol=1e-9, atol=1e-12)
    assert one[3] - one[3]
    np.testing.assert_allclose(belief.exact.maximum(one - one[3])[3], 0.0, atol=1e-9)


def test_the_best_of_the_closed_forms(belief):
    form = belief.closed_form
    for x in PROBES[:10]:
        directions = belief.directions(rows(np.tile(x, (ARMS, 1)), np.arange(ARMS)))
        values = belief.closed_form.maximum(directions)
        found = form.best(directions, 1e-9)
        if not isinstance(form, RidgeEllipsoids):
            assert found is None
            continue
        expected = int(values.argmax())
        if np.isclose(np.sort(values)[-2], values.max(), rtol=1e-9):
            assert found is None
        else:
            assert found == (expected, pytest.approx(values[expected], rel=1e-12))
        # Those of the best are known from before, those of other arms or in other contexts are not.
        other = belief.directions(rows(PROBES[20:21], expected))
        for each in (directions[expected], directions[expected - 1], other):
            np.testing.assert_allclose(form.ends(each), np.array(form.interval(each))[:, 0], rtol=1e-12)


def test_directions_beyond_squares(belief):
    """Lengths whose squares are no floats, one by one and shared."""
    for size in (1e-200, 1e-160, 1e160):
        contexts = size * PROBES[:6]
        for directions in (
            ArmDirections(np.arange(ARMS), contexts),
            ArmDirections(np.arange(ARMS), contexts[:1]),
        ):
            own = np.broadcast_to(directions.own, (ARMS, DIM)) / size
            for found, alone in sets(belief):
                expected = [alone(arm).maximum(x[None])[0] for arm, x in enumerate(own)]
                np.testing.assert_allclose(found.maximum(directions) / size, expected, rtol=1e-7, atol=1e-9)


def test_a_parameter_outside_of_one_set_is_outside():
    found = blocks().update(rows(*log()[:2]), log()[2])
    centres = np.array([found.of(arm).moment.closed_form.centre for arm in range(ARMS)])
    assert found.contains(centres)
    for arm in range(ARMS):
        moved = centres.copy()
        moved[arm] += 9.0
        assert not found.contains(moved)
        assert not found.moment.closed_form.contains(moved, 0.0)
    product = found.moment.exact
    assert isinstance(product, Product)
    with pytest.raises(mb.InvalidInput, match="row for each of 6 arms, got 5"):
        product.contains(centres[:5], 0.0)


def test_nothing_is_in_sets_of_which_one_is_empty():
    contexts = np.random.default_rng(0).normal(size=(50, DIM))
    found = blocks().update(rows(contexts, 2), contexts @ [9.0, 9.0, 9.0])
    assert found.is_empty
    # The set that bounds come from is a larger one, which does have parameters.
    inside = np.zeros((ARMS, DIM))
    inside[2] = found.moment.members.of(2).exact.support(np.eye(DIM)[:1]).points[0]
    assert found.moment.exact.contains(inside, 1e-6)
    assert not found.contains(inside, rtol=1e-6)


def test_arms_of_directions():
    directions = ArmDirections(np.array([2, 0, 2, 1]), np.arange(8.0).reshape(4, 2))
    assert [(arm, places.tolist()) for arm, places in directions.by_arm()] == [(0, [1]), (1, [3]), (2, [0, 2])]
    assert [(arm, places.tolist()) for arm, places in directions[-1].by_arm()] == [(1, [0])]
    assert directions[:0].by_arm() == []
    for index in range(-4, 4):
        one = directions[index]
        assert (len(one), one.arms[0], one.own.tolist()) == (
            1,
            directions.arms[index],
            [directions.own[index].tolist()],
        )
    assert not directions.are_increasing
    assert directions[[1, 3, 2]].are_increasing


def test_rows_of_a_model_of_arms():
    model = PerArm(as_model(2), 3)
    assert model.dim_in == 3
    directions = model.directions(np.array([[0.1, 0.2, 0.0], [0.3, 0.4, 2.0]]))
    assert directions.arms.tolist() == [0, 2]
    assert directions.own.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    same = model.directions(np.array([[0.1, 0.2, 0.0], [0.1, 0.2, 2.0]]))
    assert same.own.tolist() == [[0.1, 0.2]]
    alike = model.directions(np.array([[0.1, 0.2, 0.0], [0.1, 0.4, 2.0]]))
    assert alike.own.tolist() == [[0.1, 0.2], [0.1, 0.4]]
    arms = np.array([[0.0], [2.0]])
    in_context = model.in_context(np.array([0.1, 0.2]), arms)
    assert in_context.arms.tolist() == [0, 2]
    assert in_context.own.tolist() == same.own.tolist()
    for context, offered in (
        ([0.1], arms),
        ([0.1, 0.2], arms + 1),
        ([0.1, 0.2], arms + 0.5),
        ([0.1, 0.2], 1e200 * arms),
    ):
        assert model.in_context(np.array(context), np.array(offered)) is None
    assert "for every arm" in model.claim

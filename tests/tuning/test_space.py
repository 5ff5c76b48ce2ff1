import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixbandit as mb
from mixbandit.actions import REGIONS, Box, MixedBox
from mixbandit.simulate.environments import largest_expected
from mixbandit.tuning import Categorical, Float, Int, Space
from tests.helpers.scores import linear, search_box

SPACE = Space(
    {
        "rate": Float(1e-4, 1e-1, log=True),
        "kernel": Categorical(["rbf", "poly", None]),
        "layers": Int(1, 5),
        "share": Float(0.0, 1.0, step=0.25),
        "width": Int(8, 512, log=True),
        "momentum": Float(-1.0, 2.0),
    }
)


def test_rows_have_a_coordinate_per_number_and_one_per_choice():
    assert SPACE.dim == 1 + 3 + 1 + 1 + 1 + 1
    assert list(SPACE.columns("kernel")) == [1, 2, 3]
    row = SPACE.encode({"rate": 1e-2, "kernel": "poly", "layers": 2, "share": 0.5, "width": 64, "momentum": 0.5})
    np.testing.assert_allclose(row, [2 / 3, 0, 1, 0, 0.25, 0.5, 0.5, 0.5], atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_what_is_decoded_is_encoded_to_the_same_and_allowed(seed):
    (parameters,) = SPACE.sample(1, rng=seed)
    row = SPACE.encode(parameters)  # raises if anything is not allowed
    again = SPACE.decode(row)
    assert again.keys() == parameters.keys()
    for name, value in parameters.items():
        assert type(again[name]) is type(value)
        assert again[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
    np.testing.assert_allclose(SPACE.region.snapped(row[None])[0], row, atol=1e-12)


@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_the_ends_are_exact(corner):
    parameters = SPACE.decode(np.full(SPACE.dim, corner))
    assert parameters["rate"] == (1e-1 if corner else 1e-4)
    assert parameters["width"] == (512 if corner else 8)
    assert parameters["momentum"] == (2.0 if corner else -1.0)
    assert SPACE.encode(parameters)[0] == corner


def test_every_value_of_a_discrete_parameter_is_reached():
    values = {(p["layers"], p["share"], p["kernel"]) for p in SPACE.sample(3000, rng=0)}
    assert len(values) == 5 * 5 * 3
    assert {type(p["layers"]) for p in SPACE.sample(10, rng=1)} == {int}


def test_steps_end_before_the_high_end_where_they_do_not_fit():
    parameter = Float(0.0, 1.0, step=0.3)
    assert parameter.decode(np.array([1.0])) == pytest.approx(0.9)
    np.testing.assert_allclose(parameter.levels[:, 0], [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(parameter.encode(0.6, "x"), [2 / 3])
    assert Int(1, 10, step=4).decode(np.array([1.0])) == 9
    assert len(Int(1, 10, step=4).levels) == 3


def test_a_logarithmic_integer_is_spaced_by_ratios():
    parameter = Int(1, 100, log=True)
    assert parameter.decode(np.array([0.5])) == 10
    assert parameter.encode(10, "n")[0] == pytest.approx(0.5)
    assert len(parameter.levels) == 100
    assert (np.diff(parameter.levels[:, 0]) > 0).all()


def test_very_many_integers_are_rounded_and_not_listed():
    space = Space({"n": Int(0, 10**9)})
    assert type(space.region) is Box
    (parameters,) = space.sample(1, rng=0)
    assert isinstance(parameters["n"], int)
    assert space.decode(space.encode(parameters)) == parameters


@given(st.data())
def test_every_integer_comes_back_wherever_its_range_lies(data):
    digits = data.draw(st.integers(0, 299))
    low = data.draw(st.integers(-(10**digits), 10**digits))
    step = data.draw(st.integers(1, max(10 ** (digits // 2), 1)))
    count = data.draw(st.integers(1, 60))
    log = low > 0 and data.draw(st.booleans())
    parameter = Int(low, low + count * step + data.draw(st.integers(0, step - 1)), log=log, step=step)
    values = [low + i * step for i in range(count + 1)]
    coordinates = [parameter.encode(value, "n") for value in values]
    assert [parameter.decode(coordinate) for coordinate in coordinates] == values
    assert parameter.last == values[-1]
    positions = np.concatenate(coordinates)
    assert (positions[0], positions[-1]) == (0.0, 1.0)
    assert (np.diff(positions) > 0.0).all()
    np.testing.assert_array_equal(parameter.levels[:, 0], positions)


def test_an_integer_next_to_2_to_the_60_is_tuned():
    space = Space({"n": Int(2**60, 2**60 + 10)})
    tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rows="fresh", rng=0)
    for i in range(11):
        tuner.tell(tuner.adopt({"n": 2**60 + i}), 1.0 - 0.05 * abs(i - 7))
    assert tuner.recommend().parameters["n"] in range(2**60, 2**60 + 11)
    assert len({told.parameters["n"] for told in tuner.history}) == 11
    assert {p["n"] for p in space.sample(300, rng=0)} == set(range(2**60, 2**60 + 11))
    with pytest.raises(mb.InvalidInput, match="n must lie between"):
        space.encode({"n": 2**60 + 11})
    with pytest.raises(mb.InvalidInput, match="plus a multiple"):
        Space({"n": Int(2**60, 2**60 + 10, step=5)}).encode({"n": 2**60 + 6})


@pytest.mark.parametrize(
    "parameter",
    [
        Int(-(2**63), 2**63 - 1),
        Int(0, 10**30),
        Int(1, 10**30, log=True),
        Float(-1.7e308, 1.7e308),
        Float(0.0, 5e-324),
        Float(5e-324, 1.7976931348623157e308, log=True),
        Float(1.0, 1.0 + 2.3e-16),
        Float(1.0, 1.0 + 2.3e-16, log=True),
        Float(1e300, math.nextafter(1e300, math.inf)),
        Float(0.0, 1.0, step=1e-15),
    ],
    ids=repr,
)
def test_ranges_of_any_size_have_values_inside(parameter):
    for position in (0.0, 1e-17, 0.3, 0.5, math.nextafter(1.0, 0.0), 1.0):
        value = parameter.decode(np.array([position]))
        assert parameter.low <= value <= parameter.high
        assert 0.0 <= parameter.encode(value, "x")[0] <= 1.0
    assert parameter.decode(np.array([0.0])) == parameter.low
    assert parameter.decode(np.array([1.0])) == parameter.high
    space = Space({"x": parameter})
    assert all(parameter.low <= p["x"] <= parameter.high for p in [*space.sample(5, rng=0), *space.spread(5, rng=0)])


def test_positions_on_a_range_that_overflows_are_in_order():
    parameter = Float(-1.7e308, 1.7e308)
    values = [parameter.decode(np.array([q])) for q in (0.0, 0.25, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(values, [-1.7e308, -0.85e308, 0.0, 0.85e308, 1.7e308], atol=1e293)
    np.testing.assert_allclose([parameter.encode(v, "x")[0] for v in values], [0.0, 0.25, 0.5, 0.75, 1.0])


class Counted(str):
    """A choice that counts how often choices are compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_choices_are_found_without_comparing_all_of_them():
    Counted.compared = 0
    parameter = Categorical([Counted(i) for i in range(1000)])
    assert [parameter.index(Counted(i), "x") for i in range(1000)] == list(range(1000))
    assert Counted.compared < 10_000
    space = Space({"x": parameter, "y": Float(0, 1)}, {"y": ("x", parameter.choices[::2])})
    Counted.compared = 0
    assert [space.is_active("y", {"x": choice}) for choice in parameter.choices[:4]] == [True, False, True, False]
    assert Counted.compared < 100


@pytest.mark.parametrize("twice", [math.nan, [1], {"a": 1}, "a"], ids=repr)
def test_choices_of_any_kind_must_differ(twice):
    other = float("nan") if isinstance(twice, float) else copy.deepcopy(twice)
    with pytest.raises(mb.InvalidInput, match="occurs more than once"):
        Categorical(["b", twice, 1, other])
    assert Categorical(["b", twice, 1]).index(other, "x") == 1


def test_what_cannot_be_compared_is_no_choice():
    for value in (np.zeros(2), [0.0], {}, object()):
        with pytest.raises(mb.InvalidInput, match="x must be one of"):
            Categorical(["a", 1, (2, 3)]).index(value, "x")
    with pytest.raises(mb.InvalidInput, match=r"x must be one of \['c0', .*\.\.\., got 'd'"):
        Categorical([f"c{i}" for i in range(500)]).index("d", "x")


def test_floats_alone_make_a_plain_box():
    assert type(Space({"x": Float(0, 1), "y": Float(1, 2, log=True)}).region) is Box
    assert isinstance(SPACE.region, MixedBox)


def test_equal_choices_of_different_types_are_different():
    parameter = Categorical([1, True, 1.0, "1"])
    assert [parameter.encode(v, "x").argmax() for v in (1, True, 1.0, "1")] == [0, 1, 2, 3]
    assert Categorical(["a", 2]).encode(2.0, "x").argmax() == 1  # read back from a file as a float


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(1.0, 1.0), "low must be less than high"),
        (lambda: Float(2, 1), "low=2, high=1"),
        (lambda: Int(3, 3), "low must be less than high"),
        (lambda: Float(0.0, 1.0, log=True), "low > 0"),
        (lambda: Int(0, 9, log=True), "low > 0"),
        (lambda: Float(math.nan, 1.0), "finite"),
        (lambda: Float("0", 1.0), "low must be a (finite )?number"),
        (lambda: Float(0.0, 1.0, step=0.0), "step"),
        (lambda: Float(0.0, 1.0, step=2.0), "step"),
        (lambda: Float(1.0, 2.0, log=True, step=0.1), "no steps"),
        (lambda: Int(0.5, 3), "low must be an integer"),
        (lambda: Int(0, 3, step=0), "step"),
        (lambda: Int(0, 3, step=0.5), "step must be an integer"),
        (lambda: Int(False, True), "low must be an integer"),
        (lambda: Int(10**301, 10**302), "at most 1e300"),
        (lambda: Int(0, 10, step=10**5000), "at most 1e300"),
        (lambda: Float(0, 10**400), "high must be a number"),
        (lambda: Float(-1e308, 1e308, step=1.0), "at most 9.0072e\\+15 steps"),
        (lambda: Float(0.0, 1e300, step=1e-300), "at most 9.0072e\\+15 steps"),
        (lambda: Categorical([]), "empty"),
        (lambda: Categorical("rbf"), "list of values"),
        (lambda: Categorical(["a", "b", "a"]), "'a' occurs more than once"),
        (lambda: Space({}), "at least one"),
        (lambda: Space([("x", Float(0, 1))]), "dict"),
        (lambda: Space({1: Float(0, 1)}), "names must be non-empty text"),
        (lambda: Space({"x": (0, 1)}), "x must be a Float, Int or Categorical"),
    ],
)
def test_bad_spaces_are_refused(make, message):
    with pytest.raises(mb.InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rate": 1.0}, "rate must lie between 0.0001 and 0.1, got 1.0"),
        ({"rate": math.nan}, "rate must lie"),
        ({"rate": "fast"}, "rate must be a number"),
        ({"rate": True}, "rate must be a number"),
        ({"kernel": "linear"}, "kernel must be one of"),
        ({"layers": 10**5000}, "layers must lie between 1 and 5, got an integer of"),
        ({"layers": 6}, "layers must lie between 1 and 5"),
        ({"layers": math.inf}, "layers must lie between 1 and 5"),
        ({"rate": 10**5000}, "rate must be a number"),
        ({"layers": 2.5}, "layers must be 1 plus a multiple of 1"),
        ({"share": 0.3}, "share must be 0.0 plus a multiple of 0.25"),
        ({"depth": 3}, "'depth' unknown"),
    ],
)
def test_values_that_are_not_allowed_are_refused(changed, message):
    parameters = SPACE.sample(1, rng=0)[0]
    with pytest.raises(mb.InvalidInput, match=message):
        SPACE.encode({**parameters, **changed})
    del parameters["layers"]
    with pytest.raises(mb.InvalidInput, match="'layers' missing"):
        SPACE.encode(parameters)
    with pytest.raises(mb.InvalidInput, match="no parameter 'depth'"):
        SPACE.columns("depth")


CONDITIONAL = Space(
    {
        "kernel": Categorical(["rbf", "poly", "linear"]),
        "gamma": Float(1e-3, 1e3, log=True),
        "degree": Int(2, 5),
        "extra": Categorical(["a", "b"]),
        "C": Float(0.1, 10.0),
        "depth": Int(1, 100),
    },
    {"depth": ("extra", ["b"]), "gamma": ("kernel", ["rbf", "poly"]), "extra": ("kernel", ["poly"])},
)


def test_parameters_that_do_not_matter_are_neither_needed_nor_returned():
    linear = {"kernel": "linear", "degree": 3, "C": 1.0}
    row = CONDITIONAL.encode(linear)
    assert CONDITIONAL.decode(row) == linear
    # Whatever else is said of them has no effect.
    np.testing.assert_array_equal(CONDITIONAL.encode({**linear, "gamma": 7.0, "extra": None, "depth": "x"}), row)
    poly = {"kernel": "poly", "gamma": 1.0, "degree": 3, "extra": "a", "C": 1.0}
    assert CONDITIONAL.decode(CONDITIONAL.encode(poly)) == poly
    with pytest.raises(mb.InvalidInput, match="'depth' missing"):
        CONDITIONAL.encode({**poly, "extra": "b"})
    with pytest.raises(mb.InvalidInput, match="'gamma' missing"):
        CONDITIONAL.encode({"kernel": "rbf", "degree": 3, "C": 1.0})


def test_every_row_of_a_conditional_space_stands_for_one_configuration():
    region = CONDITIONAL.region
    rows = region.sample(500, np.random.default_rng(0))
    np.testing.assert_allclose(region.snapped(rows), rows, atol=1e-12)
    for row in rows:
        np.testing.assert_allclose(CONDITIONAL.encode(CONDITIONAL.decode(row)), row, atol=1e-9)
    assert {tuple(sorted(CONDITIONAL.decode(row))) for row in rows} == {
        ("C", "degree", "kernel"),
        ("C", "degree", "gamma", "kernel"),
        ("C", "degree", "extra", "gamma", "kernel"),
        ("C", "degree", "depth", "extra", "gamma", "kernel"),
    }


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([("a", "b")], "conditions must be a dict"),
        ({"degree": "kernel"}, "must be \\(name, values\\)"),
        ({"degree": ("kernel",)}, "must be \\(name, values\\)"),
        ({"degree": ("kernel", "poly")}, "list of its values"),
        ({"degree": ("kernel", [])}, "list of its values"),
        ({"degree": ("kernel", ["sigmoid"])}, "must be one of"),
        ({"degree": ("C", [1.0])}, "Categorical"),
        ({"nothing": ("kernel", ["poly"])}, "no parameter 'nothing'"),
        ({"degree": ("nothing", ["poly"])}, "no parameter 'nothing'"),
        ({"kernel": ("extra", ["a"]), "extra": ("kernel", ["poly"])}, "must not be circular"),
    ],
)
def test_bad_conditions_are_refused(conditions, message):
    with pytest.raises(mb.InvalidInput, match=message):
        Space(dict(CONDITIONAL), conditions)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_over_a_conditional_space_returns_what_is_allowed_and_best(seed):
    region, phi = CONDITIONAL.region, mb.RandomFourier(CONDITIONAL.dim, 40, 1.5, rng=seed)
    theta = np.random.default_rng(seed).normal(size=40)
    score = linear(theta)
    found = search_box(score, phi, region, np.random.default_rng(0))
    np.testing.assert_allclose(region.snapped(found.action[None])[0], found.action, atol=1e-12)
    rows = region.sample(20_000, np.random.default_rng(1))
    assert found.value >= score.maximum(phi(rows)).max() - 1e-3
    value, proven = largest_expected(phi, theta, region)
    assert proven
    assert value >= found.value - 1e-6
    assert value <= found.value + 0.05 * abs(found.value)


def test_it_comes_back_from_its_state():
    assert Space.from_state_dict(CONDITIONAL.state_dict()) == CONDITIONAL
    assert Space(dict(CONDITIONAL)) != CONDITIONAL
    assert REGIONS.load(CONDITIONAL.region.state_dict()) == CONDITIONAL.region
    again = Space.from_state_dict(SPACE.state_dict())
    assert again == SPACE
    assert list(again) == list(SPACE)
    with pytest.raises(mb.NotStorable, match="object"):
        Space({"x": Categorical([object()])}).state_dict()
    with pytest.raises(mb.DamagedState):
        Space.from_state_dict({"parameters": [{"name": "x", "type": "Complex"}]})
    with pytest.raises(mb.DamagedState):
        Space.from_state_dict({})


def test_a_spread_covers_every_parameter_evenly():
    space = Space({"x": Float(0.0, 1.0), "n": Int(1, 5), "k": Categorical(["a", "b", "c"])})
    found = space.spread(30, rng=0)
    assert np.diff(np.sort([p["x"] for p in found])).max() < 0.1
    for name, values in (("n", range(1, 6)), ("k", "abc")):
        counts = [sum(p[name] == v for p in found) for v in values]
        assert max(counts) - min(counts) <= 3
    # Any beginning of it is spread, too, and the same whatever its length.
    assert space.spread(10, rng=0) == found[:10]
    assert len({p["k"] for p in found[:4]}) >= 2
    for p in CONDITIONAL.spread(20, rng=1):
        CONDITIONAL.encode(p)


def test_a_spread_is_even_on_the_scale_of_a_parameter():
    space = Space({"n": Int(1, 64, log=True), "x": Float(1e-3, 1e3, log=True), "m": Int(1, 64)})
    found = space.spread(64, rng=0)
    assert np.median([p["n"] for p in found]) == pytest.approx(8, abs=2)
    assert np.median([np.log10(p["x"]) for p in found]) == pytest.approx(0.0, abs=0.2)
    assert np.median([p["m"] for p in found]) == pytest.approx(32.5, abs=2)


PARAMETERS = [
    mb.Int(2, 9),
    mb.Int(2, 900_000, log=True),
    mb.Float(0, 1),
    mb.Float(1e-2, 1, log=True),
    mb.Float(0, 1, step=0.1),
    mb.Categorical(["a", "b"]),
]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=str)
def test_odd_quantiles_and_coordinates_are_refused(parameter):
    for odd in (None, "x", math.nan, math.inf, -0.1, 2, 10**400, [], {}, 1j, object(), np.ones((2, 2))):
        with pytest.raises(mb.InvalidInput):
            parameter.at(odd)
    for odd in (None, "x", [math.nan] * parameter.width, [], {}, 1j, object(), np.ones((2, 2, 2)), np.ones(5), ["x"]):
        with pytest.raises(mb.InvalidInput):
            parameter.decode(odd)
    first, last = ("a", "b") if isinstance(parameter, Categorical) else (parameter.low, parameter.last)
    assert (parameter.decode(parameter.at(0.0)), parameter.decode(parameter.at(1.0))) == (first, last)

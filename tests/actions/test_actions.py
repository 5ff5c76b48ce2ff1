"""What may be chosen: arms and boxes, and the errors that name what was given instead."""

import datetime

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.actions import REGIONS, as_context, as_region


def test_rows_are_arms():
    arms = mb.Arms([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    assert (len(arms), arms.dim, arms.labels) == (3, 2, None)
    assert arms.actions.dtype == np.float64
    assert repr(arms) == "Arms(3 of dimension 2)"


@pytest.mark.parametrize("actions", [[0, 1, 2], range(3), np.arange(3), (0.0, 1.0, 2.0)])
def test_numbers_are_arms_of_dimension_one(actions):
    arms = mb.Arms(actions)
    np.testing.assert_array_equal(arms.actions, [[0.0], [1.0], [2.0]])
    assert arms.labels is None


def test_labels_come_in_any_iterable_and_any_hashable():
    assert mb.Arms([1, 2], labels=(name for name in ("a", "b"))).labels == ("a", "b")
    assert mb.Arms([1, 2], labels=[("x", 1), None]).labels == (("x", 1), None)
    assert repr(mb.Arms([1, 2], labels="ab")) == "Arms(2 of dimension 1, labelled)"


class Counted:
    """A label that counts how often labels are compared."""

    compared = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        Counted.compared += 1
        return self.number == other.number


def test_a_repeated_label_is_found_without_comparing_all_pairs():
    n = 2000
    Counted.compared = 0
    with pytest.raises(mb.InvalidInput, match="occurs more than once"):
        mb.Arms(np.zeros((n, 1)), labels=[Counted(i) for i in [*range(n - 1), n - 2]])
    assert Counted.compared < 5 * n


def test_labels_of_numpy_become_pythons_own():
    # They must survive a file, in which numpy's types have no place.
    labels = mb.Arms([1, 2, 3], labels=[np.int64(3), np.str_("q"), np.float64(0.5)]).labels
    assert labels == (3, "q", 0.5)
    assert [type(label) for label in labels] == [int, str, float]


def test_the_index_of_a_frame_labels_its_rows_unless_it_only_counts():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["first", "second"])
    assert mb.Arms(frame).labels == ("first", "second")
    np.testing.assert_array_equal(mb.Arms(frame).actions, [[1.0, 3.0], [2.0, 4.0]])
    assert mb.Arms(frame.reset_index(drop=True)).labels is None
    assert mb.Arms(frame.set_axis([7, 8])).labels == (7, 8)
    assert all(type(label) is int for label in mb.Arms(frame.set_axis([7, 8])).labels)
    assert mb.Arms(frame["x"]).labels == ("first", "second")
    assert mb.Arms(frame, labels=["p", "q"]).labels == ("p", "q")
    with pytest.raises(mb.InvalidInput, match="'twice' occurs more than once"):
        mb.Arms(frame.set_axis(["twice", "twice"]))


def test_arms_share_nothing_with_the_caller_and_cannot_be_written_to():
    rows = np.ones((2, 2))
    arms = mb.Arms(rows)
    rows[:] = 7.0
    np.testing.assert_array_equal(arms.actions, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        arms.actions[0, 0] = 7.0
    arms.state_dict()["actions"][:] = 7.0
    np.testing.assert_array_equal(arms.actions, 1.0)


def test_a_box_shares_nothing_with_the_caller_and_cannot_be_written_to():
    low, high = np.zeros(2), np.ones(2)
    box = mb.Box(low, high)
    low[:] = high[:] = 7.0
    assert box == mb.Box([0.0, 0.0], [1.0, 1.0])
    for end in (box.low, box.high):
        with pytest.raises(ValueError, match="read-only"):
            end[0] = 7.0
    box.state_dict()["low"][:] = 7.0
    assert box == mb.Box([0.0, 0.0], [1.0, 1.0])


def test_a_context_goes_before_the_action():
    context = np.array([8.0, 9.0])
    arms = mb.Arms([1.0, 2.0], labels="ab").given(context)
    np.testing.assert_array_equal(arms.actions, [[8.0, 9.0, 1.0], [8.0, 9.0, 2.0]])
    assert (arms.labels, arms.dim, len(arms)) == (("a", "b"), 3, 2)
    box = mb.Box([0.0], [1.0]).given(context)
    assert box == mb.Box([8.0, 9.0, 0.0], [8.0, 9.0, 1.0])
    np.testing.assert_array_equal(box.width, [0.0, 0.0, 1.0])
    context[:] = 0.0
    assert arms.actions[0, 0] == box.low[0] == 8.0


def test_a_context_may_come_as_one_row():
    np.testing.assert_array_equal(as_context([[1.0, 2.0]], 2), [1.0, 2.0])
    np.testing.assert_array_equal(as_context(3.0, 1), [3.0])
    for wrong, says in (([1.0, 2.0, 3.0], r"\(2,\), got \(3,\)"), ([1.0, np.nan], "finite"), (["a", "b"], "numbers")):
        with pytest.raises(mb.InvalidInput, match=rf"context.*{says}"):
            as_context(wrong, 2)


@pytest.mark.parametrize(
    "region",
    [
        mb.Arms([[0.1, 0.2], [0.3, 0.4]]),
        mb.Arms([1, 2, 3, 4], labels=["a", 2, 0.5, None]),
        mb.Box([-1.0, 0.1], [1.0, 0.1]),
        mb.Box(0.0, 1.0),
    ],
    ids=repr,
)
def test_state_dict_gives_the_same_region(region):
    again = REGIONS.load(region.state_dict())
    assert again == region
    assert type(again) is type(region)


@pytest.mark.parametrize("label", [("x", 1), datetime.date(2020, 1, 1), b"bytes", frozenset()])
def test_only_text_and_numbers_are_stored_as_labels(label):
    arms = mb.Arms([1, 2], labels=["a", label])
    with pytest.raises(mb.NotStorable, match=type(label).__name__):
        arms.state_dict()


def test_an_unknown_region_is_damaged():
    with pytest.raises(mb.DamagedState, match="'Ring'"):
        REGIONS.load({"type": "Ring"})


def test_regions_are_equal_when_everything_in_them_is():
    arms = mb.Arms([1, 2], labels="ab")
    assert arms == mb.Arms([[1.0], [2.0]], labels=["a", "b"])
    assert all(arms != other for other in (mb.Arms([1, 2]), mb.Arms([1, 3], labels="ab"), mb.Arms([1]), [[1], [2]]))
    box = mb.Box([0.0, 0.0], [1.0, 1.0])
    assert box == mb.Box(np.zeros(2), np.ones(2))
    assert all(box != other for other in (mb.Box([0.0, 0.0], [1.0, 2.0]), mb.Box(0.0, 1.0), arms, "box"))
    for region in (arms, box):
        with pytest.raises(TypeError, match="unhashable"):
            hash(region)


def test_as_region_takes_regions_as_they_are_and_rows_as_arms():
    arms, box = mb.Arms([1, 2]), mb.Box(0.0, 1.0)
    assert as_region(arms) is arms
    assert as_region(box) is box
    assert as_region([[1], [2]]) == arms
    with pytest.raises(mb.InvalidInput, match=r"over must be Arms, a Box or rows of numbers.*'everything'"):
        as_region("everything", "over")


@pytest.mark.parametrize(
    ("low", "high"),
    [([0.0, 0.0], [1.0, 1.0]), ([-100.0, 1e-3], [3.0, 2e-3]), ([5.0, 0.0], [5.0, 1e9]), ([-1e-9], [1e-9])],
)
def test_unit_coordinates_go_there_and_back(low, high):
    box = mb.Box(low, high)
    rng = np.random.default_rng(0)
    actions = box.sample(200, rng)
    assert ((actions >= box.low) & (actions <= box.high)).all()
    unit = box.unit(actions)
    assert ((unit >= 0.0) & (unit <= 1.0)).all()
    np.testing.assert_allclose(box.at(unit), actions, rtol=0.0, atol=1e-15 * np.abs([low, high]).max())
    free = box.width > 0.0
    assert np.ptp(unit[:, free], axis=0).min() > 0.9
    np.testing.assert_array_equal(box.unit(actions)[:, ~free], 0.0)
    np.testing.assert_array_equal(box.at(np.vstack((np.zeros(box.dim), np.ones(box.dim)))), [box.low, box.high])


def test_actions_outside_the_box_have_the_nearest_unit_coordinates():
    box = mb.Box([0.0, 2.0], [10.0, 4.0])
    np.testing.assert_array_equal(
        box.unit(np.array([[-5.0, 3.0], [25.0, 9.0], [5.0, 2.0]])), [[0, 0.5], [1, 1], [0.5, 0]]
    )


def test_rounding_never_leaves_the_box():
    rng = np.random.default_rng(1)
    for _ in range(200):
        ends = np.sort(rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-8, 8, size=3), axis=0)
        box = mb.Box(*ends)
        actions = box.at(np.vstack((rng.uniform(size=(20, 3)), np.nextafter(np.ones(3), 0.0), np.ones(3))))
        assert ((actions >= box.low) & (actions <= box.high)).all()


def test_samples_are_uniform_and_reproducible():
    box = mb.Box([-2.0, 1.0], [2.0, 1.0])
    first, second = (box.sample(4000, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[:, 1], 1.0)
    # Five standard errors of the mean of a uniform variable of width 4.
    assert abs(first[:, 0].mean()) < 5 * 4 / np.sqrt(12 * 4000)
    assert first[:, 0].var() == pytest.approx(16 / 12, rel=0.1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: mb.Arms([]), r"n ≥ 1.*got \(0,\)"),
        (lambda: mb.Arms(np.empty((0, 3))), r"n ≥ 1.*got \(0, 3\)"),
        (lambda: mb.Arms(np.empty((3, 0))), r"dim ≥ 1.*got \(3, 0\)"),
        (lambda: mb.Arms(5.0), r"got \(\)"),
        (lambda: mb.Arms(np.ones((2, 2, 2))), r"got \(2, 2, 2\)"),
        (lambda: mb.Arms([[1.0], [2.0, 3.0]]), r"numbers, got \[\[1.0\], \[2.0, 3.0\]\]"),
        (lambda: mb.Arms(["a", "b"]), r"numbers, got \['a', 'b'\]"),
        (lambda: mb.Arms([[1.0, 2.0], [3.0, np.nan]]), r"actions\[1, 1\] must be finite .* got nan"),
        (lambda: mb.Arms([[1.0, np.inf]]), r"actions\[0, 1\] must be finite .* got inf"),
        (lambda: mb.Arms([1, 2, 3], labels="ab"), "one label per action, got 2 for 3"),
        (lambda: mb.Arms([1, 2], labels=[]), "got 0 for 2"),
        (lambda: mb.Arms([1, 2, 3], labels=["a", "b", "a"]), "must differ, but 'a' occurs"),
        (lambda: mb.Arms([1, 2], labels=[1, np.float64(1.0)]), "must differ, but 1 occurs"),
        (lambda: mb.Arms([1, 2], labels=[["a"], ["b"]]), "hashable.*list"),
        (lambda: mb.Box([0.0, 2.0], [1.0, 1.0]), r"low\[1\]=2, high\[1\]=1"),
        (lambda: mb.Box([0.0, 0.0], [1.0]), r"the same length ≥ 1, got \(2,\), \(1,\)"),
        (lambda: mb.Box([0.0, 0.0], 1.0), r"got \(2,\), \(\)"),
        (lambda: mb.Box([], []), r"got \(0,\), \(0,\)"),
        (lambda: mb.Box([[0.0]], [[1.0]]), r"got \(1, 1\), \(1, 1\)"),
        (lambda: mb.Box([0.0, np.nan], [1.0, 1.0]), r"low\[1\] must be finite .* got nan"),
        (lambda: mb.Box([0.0], [np.inf]), r"high\[0\] must be finite .* got inf"),
        (lambda: mb.Box([[0.0], [1.0, 2.0]], [1.0]), "low must be numbers"),
        (lambda: mb.Box("a", "b"), "low must be numbers, got 'a'"),
    ],
)
def test_bad_input_is_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()


def test_corners_of_the_unit_box_give_the_corners_exactly():
    assert mb.Box([-0.4], [1.0]).at(np.ones((1, 1)))[0, 0] == 1.0
    assert mb.Box([0.0, 2.0], [10.0, 2.0]).unit(np.array([[5.0, 9.0]]))[0, 1] == 0.0


def test_labels_that_are_no_list_are_named():
    with pytest.raises(mb.InvalidInput, match="labels"):
        mb.Arms([1, 2], labels=5)


def test_arms_of_a_context_cannot_be_written_to():
    assert not mb.Arms([1, 2]).given(np.array([5.0])).actions.flags.writeable


@pytest.mark.parametrize("state", [{"type": "Box", "low": [0.0]}, {"type": "Arms"}])
def test_an_incomplete_region_is_damaged(state):
    with pytest.raises(mb.DamagedState):
        REGIONS.load(state)

"""Named contexts as rows: scales, categories, missing values, and the exact map from old rows to new ones."""

import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixbandit._files import from_line, to_line
from mixbandit.data import Ridges
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import ContextFeatures, NamedContexts, as_context_features
from mixbandit.features.columns import digest


def folded(features, contexts):
    """The features after some contexts, and the contexts as they were read."""
    seen = []
    for context in contexts:
        seen.append(features.read(context))
        features = features.after(seen[-1])
    return features, seen


def columns(features):
    return [features.name(i) for i in range(features.dim)]


def by_name(features, context):
    """The columns of a context that are not 0."""
    row = features.row(features.read(context))
    return {features.name(i): float(x) for i, x in enumerate(row) if x}


VALUES = st.one_of(
    st.none(), st.booleans(), st.sampled_from(["code", "chat", "poem", "3"]), st.integers(-3, 3),
    st.floats(-1e6, 1e6), st.sampled_from([1e50, -1e50, 1e-50, 1e-300, 5e-324]),
)  # fmt: skip
CONTEXTS = st.one_of(st.none(), st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4))
SETTINGS = st.sampled_from(
    [{}, {"own_columns": 3, "hashed_columns": 2}, {"numbers": ["a"], "categories": {"b": ["code", True]}}]
)


def close(found, expected, sizes):
    """Equal up to rounding, relative to the numbers that a column was computed from."""
    return np.all(np.abs(found - expected) <= 1e-9 * (1.0 + sizes))


@settings(max_examples=200)
@given(given=SETTINGS, contexts=st.lists(CONTEXTS, max_size=20))
def test_rows_follow_exactly_when_scales_and_columns_change(given, contexts):
    features = NamedContexts(**given)
    chain, seen = [features], []
    for context in contexts:
        seen.append(features.read(context))
        features = features.after(seen[-1])
        chain.append(features)
    for count, earlier in enumerate(chain):
        change = features.change(earlier)
        old, new = earlier.rows(seen[:count]), features.rows(seen[:count])
        if change is None:
            assert old.tolist() == new.tolist()
        else:
            assert change.shape == (features.dim, earlier.dim)
            assert close(old @ change.T, new, np.abs(old) @ np.abs(change).T)


@settings(max_examples=100)
@given(given=SETTINGS, contexts=st.lists(CONTEXTS, max_size=20))
def test_rows_at_once_are_the_single_rows(given, contexts):
    features, seen = folded(NamedContexts(**given), contexts)
    rows = features.rows(seen)
    assert rows.tolist() == [features.row(read).tolist() for read in seen]
    assert rows.shape == (len(contexts), features.dim)


def test_statistics_follow_when_scales_change():
    """Ridge regressions on old rows, mapped, are those on new rows; that checks the map against the data's own."""
    rng = np.random.default_rng(0)
    features, ridges = NamedContexts(), Ridges(0.1, 1).extended(1)
    rewards, seen, changes = [], [], 0
    for number in range(70):
        context = {
            "tokens": float(rng.lognormal(5.0)), "topic": str(rng.choice(["code", "chat", "poem"])),
            "age": None if rng.random() < 0.2 else float(rng.normal(40.0, 5.0)), "new": bool(rng.random() < 0.5),
        }  # fmt: skip
        read = features.read(context)
        before, features = features, features.after(read)
        change = features.change(before) if number else np.eye(features.dim, 1)
        if change is not None:
            ridges, changes = ridges.mapped(change), changes + 1
        seen.append(read)
        rewards.append(float(rng.random()))
        ridges = ridges.learnt(0, features.row(read), rewards[-1])[0]
    assert changes < 15
    fresh = Ridges(0.1, features.dim).extended(1)
    for read, reward in zip(seen, rewards, strict=True):
        fresh = fresh.learnt(0, features.row(read), reward)[0]
    for read in seen[:5]:
        found, expected = ridges.measured(features.row(read)), fresh.measured(features.row(read))
        assert np.allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("total", [2, 3, 4, 100, 128, 300])
def test_numbers_have_the_mean_and_the_spread_at_the_last_power_of_two(total):
    rng = np.random.default_rng(total)
    contexts = rng.normal(size=(total, 3)) * [1.0, 1e-6, 1e9] + [0.0, 1.0, 1e3]
    features, _ = folded(NamedContexts(reach=None), contexts)
    until = contexts[: 2 ** int(math.log2(total))]
    means = [statistics.fmean(column) for column in until.T.tolist()]
    # Spreads are no smaller than 2^−count of the numbers' size.
    sizes = [math.sqrt(statistics.fmean([x * x for x in column])) for column in until.T.tolist()]
    spreads = [
        max(statistics.pstdev(column), size * 2.0 ** -min(len(until), 40))
        for column, size in zip(until.T.tolist(), sizes, strict=True)
    ]
    for context in contexts:
        row = features.row(features.read(context))
        assert row[0] == 1.0
        assert np.allclose(row[1:], (context - means) / spreads, rtol=1e-6, atol=1e-9)


def test_scales_change_at_powers_of_two_only():
    contexts = np.random.default_rng(0).normal(size=(300, 4))
    features, versions = NamedContexts(), []
    for context in contexts:
        features = features.after(features.read(context))
        versions.append(features.version)
    changed = [i + 1 for i in range(1, 300) if versions[i] != versions[i - 1]]
    assert changed == [2, 4, 8, 16, 32, 64, 128, 256]


def test_the_same_stream_in_every_form_makes_the_same_rows():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    matrix = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 1e5, 1e-3]
    matrix[7, 1], matrix[20, 2] = 1e9, np.nan
    frame = pd.DataFrame(matrix, columns=["x", "a", "m"])
    streams = {
        "vectors": list(matrix),
        "lists": matrix.tolist(),
        "columns": list(np.asfortranarray(matrix)),
        "dicts": [dict(zip("xam", row, strict=True)) for row in matrix.tolist()],
        "shuffled": [
            dict(zip("xam", row, strict=True)) if not i else {k: row["xam".index(k)] for k in "max"}
            for i, row in enumerate(matrix.tolist())
        ],
        "Series": [frame.iloc[i] for i in range(150)],
        "frames": [frame.iloc[i : i + 1] for i in range(150)],
        "polars": pl.DataFrame(matrix, schema=["x", "a", "m"]).rows(named=True),
    }
    rows = {}
    for form, stream in streams.items():
        features, rows[form] = NamedContexts(), []
        for context in stream:
            read = features.read(context)
            features = features.after(read)
            rows[form].append(features.row(read).tolist())
    assert all(found == rows["vectors"] for found in rows.values())


def test_texts_truth_values_and_missing_ones_have_columns():
    contexts = [
        {"topic": "code", "new": True, "age": None, "tokens": 5},
        {"topic": "chat", "new": False, "age": 3, "tokens": -5},
    ]
    features, _ = folded(NamedContexts(), contexts)
    assert by_name(features, contexts[0]) == {
        "intercept": 1.0, "tokens": 1.0, "topic=code": 1.0, "new=True": 1.0, "age missing": 1.0,
    }  # fmt: skip
    assert by_name(features, contexts[1]) == {"intercept": 1.0, "tokens": -1.0, "topic=chat": 1.0, "new=False": 1.0}
    assert by_name(features, {"topic": "never seen", "new": True}) == {
        "intercept": 1.0,
        "new=True": 1.0,
        "age missing": 1.0,
    }


def test_the_first_value_decides_what_a_name_has():
    features, _ = folded(NamedContexts(), [{"a": None, "b": 1.0, "c": "x"}, {"a": 5.0, "b": "odd", "c": 3}])
    assert by_name(features, {"a": 5.0, "b": "odd", "c": 3}) == {
        "intercept": 1.0, "b missing": 1.0, "b=odd": 1.0, "c=3": 1.0,
    }  # fmt: skip
    assert by_name(features, {"a": 5.0, "b": 1, "c": "3"}) == {"intercept": 1.0, "c=3": 1.0}
    # Numbers among categories are not scaled.
    later, _ = folded(features, [{"c": 3e5}, {"c": 2}] * 20)
    assert {"c=300000", "c=2"} <= set(columns(later))


def test_names_are_learnt_from_the_first_context_that_has_any():
    features, _ = folded(NamedContexts(), [None, {}])
    assert columns(features) == ["intercept"]
    assert features.version == 0
    later, _ = folded(features, [{"a": 1.0, "b": "x"}])
    change = later.change(features)
    old = features.read(None)
    assert by_name(later, None) == {"intercept": 1.0, "a missing": 1.0, "b missing": 1.0}
    assert (change @ features.row(old)).tolist() == later.row(old).tolist()


def test_unknown_names_are_ignored_and_counted_or_refused():
    first = {"a": 1.0}
    features, _ = folded(NamedContexts(), [first, {"a": 2.0, "b": 3.0, "c": "x"}])
    assert (features.names, features.ignored, features.dim) == (("a",), 2, 2)
    read = features.read({"a": 2.0, "b": 3.0})
    assert features.plain(read) == {"a": 2.0, "b": 3.0}
    assert features.plain(features.unplain({"a": 2.0, "b": 3.0})) == {"a": 2.0, "b": 3.0}
    strict, _ = folded(NamedContexts(unknown="raise"), [first])
    with pytest.raises(InvalidInput, match="unknown name 'b'; known are the names 'a'"):
        strict.read({"a": 2.0, "b": 3.0})
    assert by_name(strict, {}) == {"intercept": 1.0}  # nothing is known of it yet
    with pytest.raises(InvalidInput, match=r"context\['b'\]"):  # values that are ignored are kept, and so are checked
        features.read({"b": [1]})


def test_vectors_keep_their_length():
    features, _ = folded(NamedContexts(), [[1.0, 2.0]])
    for wrong in ([1.0], [1.0, 2.0, 3.0], np.zeros(3)):
        with pytest.raises(InvalidInput, match="must have 2 numbers, as a vector"):
            features.read(wrong)
    named, _ = folded(NamedContexts(), [{"a": 1.0, "b": 2.0}])
    with pytest.raises(InvalidInput, match="must have the names 'a', 'b', got a vector of 2"):
        named.read([1.0, 2.0])


def test_listed_categories_have_fixed_columns():
    features = NamedContexts(numbers=["tokens"], categories={"topic": ["code", "chat"], "stars": [1, 2, True]})
    names = ["intercept", "tokens", "topic=code", "topic=chat", "topic other", "stars=1", "stars=2", "stars=True"]
    assert columns(features) == [*names, "stars other"]
    features, _ = folded(
        features, [{"topic": "chat", "stars": 2.0, "tokens": 3}, {"topic": "?", "stars": "1", "tokens": 1}]
    )
    assert features.dim == 9
    assert by_name(features, {"topic": "chat", "stars": 2.0, "tokens": 2}) == {
        "intercept": 1.0, "topic=chat": 1.0, "stars=2": 1.0,
    }  # fmt: skip
    assert by_name(features, {"topic": "?", "stars": "1", "tokens": 2}) == {
        "intercept": 1.0, "topic other": 1.0, "stars=1": 1.0,
    }  # fmt: skip
    with_more, _ = folded(NamedContexts(numbers=["tokens"]), [{"tokens": 1, "age": 2}])
    assert with_more.names == ("tokens", "age")


def test_columns_of_their_own_are_shared_evenly_and_the_rest_is_hashed():
    rng = np.random.default_rng(0)
    contexts = [{"user": f"u{i}", "topic": str(rng.choice(list("wxyz")))} for i in range(60)]
    features, seen = folded(NamedContexts(own_columns=12, hashed_columns=5), contexts)
    own = [name for name in columns(features) if "=" in name]
    assert sum(name.startswith("user=") for name in own) == 6
    assert sum(name.startswith("topic=") for name in own) == 4
    assert columns(features)[-5:] == [f"hashed {i}" for i in range(5)]
    # The same counts, slowly: users from the seventh on, by the column that each shares.
    first, collisions = {}, 0
    for i in range(6, 60):
        column = digest("user", f"u{i}") % 5
        collisions += first.setdefault(column, i) != i
        assert by_name(features, contexts[i])[f"hashed {column}"] == 1.0
    assert features.collisions == collisions
    assert features.rows(seen).sum() == 60 * 3


def test_hashes_are_the_same_in_every_process():
    assert [digest("topic", "code"), digest("topic", True), digest(0, "True")] == [
        23486684347406285, 10692575950917085, 12556625559925083,
    ]  # fmt: skip


def test_columns_come_in_lots_so_that_there_are_few_changes():
    features, _ = folded(NamedContexts(), [{"user": f"u{i}"} for i in range(200)])
    assert features.version == 8  # at 1, 2, 4, …, 64 columns of their own, and once for those that are shared
    assert features.dim == 1 + 64 + 16


def test_numbers_far_outside_are_taken_as_the_limit():
    rng = np.random.default_rng(0)
    features, _ = folded(NamedContexts(), rng.normal(size=(70, 2)))
    wild = features.read([1e12, 0.0])
    row = features.row(wild)
    assert 8.0 < row[1] < 20.0
    assert features.plain(wild) == [1e12, 0.0]
    after = features.after(wild)
    # One wild number moves the scale little, and rows follow it exactly.
    later, seen = folded(after, rng.normal(size=(60, 2)))
    change = later.change(after)
    assert np.allclose(change @ after.row(wild), later.row(wild))
    ordinary = np.array([later.row(read) for read in seen])[:, 1]
    assert 0.3 < ordinary.std() < 1.5
    # What comes again and again is believed.
    again, _ = folded(features, [[1e12, 0.0]] * 50)
    assert again.read([1e12, 0.0]).given is None


def test_reach_none_takes_numbers_as_they_are():
    features, _ = folded(NamedContexts(reach=None), [[0.0], [1.0]])
    assert features.row(features.read([1e9])).tolist() == [1.0, (1e9 - 0.5) / 0.5]


@pytest.mark.parametrize("constant", [0.0, 5.0, 0.1, 1e50, -1e-50])
def test_a_number_that_never_varied_is_0_and_the_first_other_value_sets_its_scale(constant):
    features, seen = folded(NamedContexts(), [[constant, i] for i in range(100)])
    assert all(features.row(read)[1] == 0.0 for read in seen)
    other = -constant if constant else 7.0
    read = features.read([other, 0.0])
    after = features.after(read)
    assert after.version == features.version
    if abs(constant) > 1e-49 or not constant:
        assert abs(after.row(read)[1]) == 1.0
    assert [after.row(each)[1] for each in seen] == [0.0] * 100


@pytest.mark.parametrize("size", [1e50, 1e30, 1e-30, 1e-45])
def test_numbers_of_any_size_make_ordinary_rows(size):
    matrix = np.random.default_rng(0).normal(size=(200, 2)) * size
    features, _ = folded(NamedContexts(), np.clip(matrix, -1e50, 1e50))
    rows = np.array([features.row(features.read(each)) for each in np.clip(matrix, -1e50, 1e50)])
    assert np.isfinite(rows).all()
    assert 0.3 < rows[:, 1:].std() < 3.0
    with np.errstate(all="raise"):
        again, _ = folded(NamedContexts(), np.clip(matrix, -1e50, 1e50))
        assert (
            again.row(again.read(matrix[0] * 1e-3)).tolist() == features.row(features.read(matrix[0] * 1e-3)).tolist()
        )


def test_numbers_that_differ_by_less_than_rounding_can_tell_do_not_explode():
    features, _ = folded(NamedContexts(), [[1.7e18 + 256.0 * (i % 2)] for i in range(100)])
    rows = [features.row(features.read([1.7e18 + 256.0 * i]))[1] for i in range(-1, 3)]
    assert np.abs(rows).max() < 10.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numbers": "ab"}, "numbers must be a list"),
        ({"numbers": ["a", "a"]}, "more than once"),
        ({"numbers": ["a"], "categories": {"a": ["x"]}}, "more than once"),
        ({"numbers": [1.5]}, "text or integers"),
        ({"categories": ["a"]}, "categories must be a mapping"),
        ({"categories": {"a": []}}, "at least one"),
        ({"categories": {"a": "code"}}, "must be a list"),
        ({"categories": {"a": ["x", "x"]}}, "more than once"),
        ({"categories": {"a": [3, "3"]}}, "more than once"),
        ({"categories": {"a": [None]}}, "at least one text"),
        ({"unknown": "drop"}, "unknown must be one of ignore, raise"),
        ({"reach": 0}, "reach must be positive"),
        ({"own_columns": 0}, "own_columns"),
        ({"hashed_columns": 1.5}, "hashed_columns"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InvalidInput, match=message):
        NamedContexts(**settings)


def test_columns_have_names_in_range():
    features, _ = folded(NamedContexts(), [[1.0]])
    assert (features.name(0), features.name(1)) == ("intercept", "0")
    for wrong in (2, -1, True, "a"):
        with pytest.raises(InvalidInput, match="column must be an integer from 0 to 1"):
            features.name(wrong)


def test_rows_and_contexts_cannot_be_changed_from_outside():
    features, _ = folded(NamedContexts(), [np.ones(2)])
    own = np.array([1.0, 2.0])
    read = features.read(own)
    own[0] = 99.0
    assert read.numbers.tolist() == [1.0, 2.0]
    for array in (read.numbers, features.row(read), features.after(read).row(read)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_old_values_stay_as_they_were():
    rng = np.random.default_rng(0)
    features, _ = folded(NamedContexts(), rng.normal(size=(5, 2)))
    before, row = to_line(features.state_dict()), features.row(features.read([0.5, 0.5])).tolist()
    left, _ = folded(features, rng.normal(size=(200, 2)))
    right, _ = folded(features, 100.0 * rng.normal(size=(200, 2)))
    assert to_line(features.state_dict()) == before
    assert features.row(features.read([0.5, 0.5])).tolist() == row
    assert left.row(left.read([0.5, 0.5])).tolist() != right.row(right.read([0.5, 0.5])).tolist()


@settings(max_examples=60)
@given(given=SETTINGS, before=st.lists(CONTEXTS, max_size=12), after=st.lists(CONTEXTS, max_size=12))
def test_a_stored_value_comes_back_and_goes_on_alike(given, before, after):
    features, _ = folded(NamedContexts(**given), before)
    state = features.state_dict()
    again = NamedContexts.from_state_dict(from_line(to_line(state)))
    assert to_line(again.state_dict()) == to_line(state)
    for context in after:
        read, same = features.read(context), again.read(context)
        features, again = features.after(read), again.after(same)
        assert again.row(same).tolist() == features.row(read).tolist()
        assert (again.version, again.ignored, again.collisions) == (
            features.version,
            features.ignored,
            features.collisions,
        )
    assert to_line(again.state_dict()) == to_line(features.state_dict())


def test_reading_again_from_a_journal_leads_to_the_same_value():
    rng = np.random.default_rng(3)
    contexts = [
        {"a": float(rng.standard_cauchy()), "b": str(rng.integers(100)), "c": None if rng.random() < 0.3 else 1.0}
        for _ in range(300)
    ]
    features, seen = folded(NamedContexts(own_columns=8), contexts)
    again = NamedContexts(own_columns=8)
    for read in seen:
        again = again.after(again.unplain(json.loads(json.dumps(NamedContexts().plain(read)))))
    assert to_line(again.state_dict()) == to_line(features.state_dict())


INTERCEPT, NUMBER = ["intercept", 0, None], ["number", 0, None]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("names", ["a", "a"]), ("names", ["a"]), ("kinds", ["number"]), ("kinds", ["number", "colour"]),
        ("columns", []), ("columns", [NUMBER]), ("columns", [INTERCEPT, ["number", 7, None]]),
        ("columns", [INTERCEPT, ["number", 0, "x"]]), ("columns", [["intercept"]]),
        ("columns", [INTERCEPT, NUMBER, NUMBER]), ("columns", [INTERCEPT, ["hashed", 0, None]]),
        ("columns", [INTERCEPT, ["hashed", 0, None], NUMBER, ["hashed", 1, None]]),
        ("moments", [[1.0]]), ("moments", [[-1.0] * 2] * 5), ("scale", [[1.0, 2.0]]), ("scale", [[-1.0] * 2] * 4),
        ("pending", [[1.0, 2.0, 3.0]]), ("pending", [["x"]]), ("owners", [[1]]), ("count", -1), ("is_open", 1),
    ],
)  # fmt: skip
def test_damaged_states_are_refused(field, value):
    features, _ = folded(NamedContexts(), [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}, {"a": 3.0, "b": "x"}])
    state = features.state_dict() | {field: value}
    with pytest.raises(DamagedState):
        ContextFeatures.family.load(state)


def test_named_contexts_are_the_default():
    assert isinstance(as_context_features(None), NamedContexts)
    own = NamedContexts(unknown="raise")
    assert as_context_features(own) is own

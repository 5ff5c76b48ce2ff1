"""Contexts in every form that users pass, read into one checked form."""

import datetime
import decimal
import json
import typing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixbandit.errors import InvalidInput
from mixbandit.features import NamedContexts, contexts_of


def cells_of(context):
    """What was read, by name; NaN stands for None here, so that dicts can be compared."""
    items = NamedContexts().read(context).items()
    return {name: None if isinstance(cell, float) and np.isnan(cell) else cell for name, cell in items.items()}


class Request(typing.NamedTuple):
    tokens: int
    topic: str


@pytest.mark.parametrize(
    "context",
    [
        {"tokens": 3, "topic": "code"},
        {"tokens": np.float32(3), "topic": np.str_("code")},
        {"tokens": decimal.Decimal(3), "topic": "code"},
        {"tokens": Fraction(3), "topic": "code"},
        {"tokens": np.array(3), "topic": "code"},
        Request(3, "code"),
        np.array([(3, "code")], dtype=[("tokens", "i4"), ("topic", "U8")])[0],
        np.array([(3, "code")], dtype=[("tokens", "f8"), ("topic", "O")])[0],
    ],
)
def test_a_context_with_names_may_have_many_forms(context):
    assert cells_of(context) == {"tokens": 3.0, "topic": "code"}


def test_frames_and_series_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "whole": pd.array([7, None], dtype="Int64"),
            "real": [0.5, np.nan],
            "truth": pd.array([True, None], dtype="boolean"),
            "text": ["code", None],
            "string": pd.array(["chat", pd.NA], dtype="string"),
            "level": pd.Categorical(["low", None]),
            "code": pd.Categorical([3, None]),
            "when": [pd.NaT, pd.NaT],
        }
    )
    first = {
        "whole": 7.0, "real": 0.5, "truth": True, "text": "code", "string": "chat", "level": "low", "code": "3",
        "when": None,
    }  # fmt: skip
    assert cells_of(frame.iloc[:1]) == first
    assert cells_of(frame.iloc[1:]) == dict.fromkeys(frame.columns)
    assert [cells_of(context) for context in contexts_of(frame)] == [first, dict.fromkeys(frame.columns)]
    numbers = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert cells_of(numbers.iloc[1]) == {"a": 2.0, "b": 1.5}  # a Series
    assert cells_of(pd.Series([1.0, 2.0])) == {0: 1.0, 1: 2.0}
    with pytest.raises(InvalidInput, match="must have one row, got 2"):
        cells_of(frame)
    with pytest.raises(InvalidInput, match="more than once"):
        cells_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidInput, match="several levels"):
        cells_of(pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])))
    with pytest.raises(InvalidInput, match="pass what matters about the time"):
        cells_of(pd.DataFrame({"when": [pd.Timestamp("2024-01-01")]}))


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None], "text": ["x", None], "truth": [True, None], "level": ["u", "v"]})
    frame = frame.with_columns(pl.col("level").cast(pl.Categorical))
    first, second = {"a": 1.0, "text": "x", "truth": True, "level": "u"}, dict.fromkeys(frame.columns) | {"level": "v"}
    assert [cells_of(context) for context in contexts_of(frame)] == [first, second]
    assert cells_of(frame[:1]) == cells_of(frame.row(0, named=True)) == first
    assert cells_of(pl.Series([1.0, 2.0])) == {0: 1.0, 1: 2.0}


@pytest.mark.parametrize(
    "vector",
    [
        [1, 2.5],
        (1.0, 2.5),
        np.array([1, 2.5]),
        np.array([[1, 2.5]]),
        np.array([1, 2.5], dtype=np.float32),
        np.array([1, 2.5], dtype=">f8"),
        np.array([0, 1, 9, 2.5])[1::2],
        np.array([1, 2.5], dtype=object),
        np.ma.array([1, 2.5]),
        {0: 1, 1: 2.5},
    ],
)
def test_a_vector_has_positions_for_names(vector):
    assert cells_of(vector) == {0: 1.0, 1: 2.5}


def test_vectors_may_have_texts_truth_values_and_gaps():
    assert cells_of(["code", None, True, float("nan"), 2]) == {0: "code", 1: None, 2: True, 3: None, 4: 2.0}
    assert cells_of(np.array([True, False])) == {0: True, 1: False}
    assert cells_of(np.array([1.0, np.nan])) == {0: 1.0, 1: None}
    assert cells_of(np.ma.array([1.0, 2.0], mask=[False, True])) == {0: 1.0, 1: None}
    assert cells_of({"a": np.float64("nan"), "b": decimal.Decimal("NaN"), "c": np.datetime64("NaT")}) == {
        "a": None, "b": None, "c": None,
    }  # fmt: skip


def test_none_and_empty_contexts_have_no_values():
    assert cells_of(None) == cells_of({}) == {}


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("code", "a context must be a dict"),
        (b"code", "a context must be a dict"),
        (3, r"pass a single number as \[3\]"),
        ([], "at least one entry"),
        (np.empty(0), "at least one entry"),
        (np.zeros((2, 2)), r"must have shape \(d,\), got \(2, 2\): ask_many"),
        ([np.inf], r"context\[0\] must be finite"),
        ({"a": 1e60}, r"context\['a'\] must be finite and at most 1e\+50"),
        ({"a": 10**400}, "at most 1e"),
        ({"a": 1j}, "must be a number, text, True, False or missing"),
        ({"a": [1, 2]}, "give every number in it a name"),
        ({"a": np.zeros(2)}, "give every number in it a name"),
        ({"a": datetime.datetime(2024, 1, 1)}, "such as the hour"),
        ({"a": np.datetime64("2024-01-01")}, "such as the hour"),
        ({"a": b"x"}, "decode it"),
        ({1.5: 1}, "names in a context must be text or integers"),
        ({True: 1}, "names in a context must be text or integers"),
        (object(), "a context must be a dict"),
        ({1, 2}, "a context must be a dict"),
        (np.array(["2024-01-01"], dtype="M8[D]"), "such as the hour"),
        (np.array([("2024-01-01",)], dtype=[("a", "M8[D]")])[0], "such as the hour"),
    ],
)
def test_what_is_no_context_is_refused(context, message):
    with pytest.raises(InvalidInput, match=message):
        NamedContexts().read(context)


def test_sparse_rows_are_refused_with_advice():
    sparse = pytest.importorskip("scipy.sparse")
    row = sparse.csr_matrix([[1.0, 0.0]])
    with pytest.raises(InvalidInput, match="toarray"):
        NamedContexts().read(row)
    with pytest.raises(InvalidInput, match="toarray"):
        contexts_of(row)


def test_several_contexts():
    matrix = np.arange(6.0).reshape(3, 2)
    assert [context.tolist() for context in contexts_of(matrix)] == matrix.tolist()
    assert contexts_of([{"a": 1}, {"a": 2}]) == [{"a": 1}, {"a": 2}]
    assert contexts_of({"a": i} for i in range(2)) == [{"a": 0}, {"a": 1}]
    assert contexts_of([]) == []
    structured = np.array([(1, "x"), (2, "y")], dtype=[("a", "f8"), ("b", "U1")])
    assert [cells_of(context) for context in contexts_of(structured)] == [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]
    assert contexts_of([None, {"a": 1}]) == [None, {"a": 1}]


@pytest.mark.parametrize("contexts", [{"a": [1, 2]}, "ab", 3, np.zeros(3), np.zeros((1, 2, 3)), [1.0, 2.0], ["a"]])
def test_what_is_not_several_contexts_is_refused(contexts):
    with pytest.raises(InvalidInput, match="for a single context there is ask"):
        contexts_of(contexts)


NAMES = st.one_of(st.text(max_size=5), st.integers(-3, 3))
ODD = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5), st.just(10**400), st.binary(max_size=3),
    st.complex_numbers(), st.decimals(), st.fractions(), st.lists(st.floats(), max_size=2), st.dates(),
    st.floats(width=32).map(np.float32), st.booleans().map(np.bool_), st.integers(0, 9).map(np.uint8),
    st.just(np.ma.masked), st.just(np.datetime64("NaT")), st.just(object()),
)  # fmt: skip


@given(contexts=st.lists(st.one_of(st.dictionaries(NAMES, ODD, max_size=4), st.lists(ODD, max_size=4)), max_size=6))
def test_odd_values_are_read_or_refused_and_rows_are_finite(contexts):
    features = NamedContexts()
    for context in contexts:
        try:
            read = features.read(context)
        except InvalidInput:
            continue
        features = features.after(read)
        row = features.row(read)
        assert row.shape == (features.dim,)
        assert np.isfinite(row).all()
        assert row[0] == 1.0


@given(
    values=st.dictionaries(
        st.text(max_size=3),
        st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.floats(-1e50, 1e50)),
        max_size=5,
    )
)
def test_a_context_comes_back_from_a_journal_as_it_was_given(values):
    features = NamedContexts()
    stored = features.plain(features.read(values))
    assert stored == values
    again = features.unplain(json.loads(json.dumps(stored)))
    assert features.plain(again) == stored
    assert features.row(again).tolist() == features.row(features.read(values)).tolist()


@pytest.mark.parametrize(
    ("context", "plain"),
    [
        ([1, 2.5, None, "x"], [1.0, 2.5, None, "x"]),
        ({0: 1, "a": True}, [[0, 1.0], ["a", True]]),
        ({3: 1}, [[3, 1.0]]),
        (None, {}),
    ],
)
def test_how_contexts_are_written(context, plain):
    features = NamedContexts()
    read = features.read(context)
    assert features.plain(read) == plain
    assert features.unplain(plain).items().keys() == read.items().keys()


@pytest.mark.parametrize(
    "stored", [3, "x", None, [[1, 2, 3]], [], {"a": [1]}, [["a", 1], ["a", 2]], {"a": "x" * 3, 1.5: 2}]
)
def test_damaged_contexts_of_a_journal_are_refused(stored):
    with pytest.raises(InvalidInput):
        NamedContexts().unplain(stored)

"""Fitted transformers and feature maps as context features."""

import functools
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from mixbandit._files import from_line, to_line
from mixbandit.errors import InvalidInput
from mixbandit.features import (
    ContextFeatures,
    FromCallable,
    Identity,
    MappedContexts,
    NamedContexts,
    RandomFourier,
    TransformedContexts,
    as_context_features,
    context_features_from,
)
from mixbandit.features.fingerprint import fingerprint

sklearn = pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")


def again(features, given=None):
    """The features from their stored state."""
    stored = ContextFeatures.family(from_line(to_line(features.state_dict())), "features")
    return context_features_from(stored, given)


FIT = """
    import numpy as np
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    FRAME = pd.DataFrame({
        "topic": ["code", "chat", "code", "poem"], "tokens": [3.0, np.nan, 5.0, 9.0], "new": [True, False, True, True],
        "unused": [1, 2, 3, 4],
    })
    transformer = ColumnTransformer([
        ("texts", OneHotEncoder(handle_unknown="ignore"), ["topic", "new"]),
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["tokens"]),
    ]).fit(FRAME)
"""


@pytest.fixture
def fitted():
    names = {}
    exec(textwrap.dedent(FIT), names)
    return names["transformer"], names["FRAME"]


def test_a_transformer_that_was_fitted_to_a_frame(fitted):
    transformer, frame = fitted
    features = as_context_features(transformer)
    expected = transformer.transform(frame)
    expected = np.column_stack((np.ones(4), expected.toarray() if hasattr(expected, "toarray") else expected))
    contexts = frame.to_dict("records")
    rows = np.array([features.row(features.read(context)) for context in contexts])
    assert np.allclose(rows, expected, atol=1e-12)
    assert features.rows([features.read(context) for context in contexts]).tolist() == rows.tolist()
    for context in (frame.iloc[0], frame.iloc[:1], list(contexts[0].values()), dict(reversed(contexts[0].items()))):
        assert features.row(features.read(context)).tolist() == rows[0].tolist()
    # What it was not fitted to is kept for the journal.
    read = features.read({**contexts[0], "more": 1.0, "tokens": None})
    assert np.isfinite(features.row(read)).all()
    assert features.plain(read) == {**contexts[0], "tokens": None, "more": 1.0}
    assert features.row(features.unplain(features.plain(read))).tolist() == features.row(read).tolist()
    assert features.after(read) is features
    assert (features.version, features.change(features)) == (0, None)
    assert [features.name(0), features.name(1)] == ["intercept", "texts__topic_chat"]
    assert features.dim == 7
    # What it drops, it does without.
    assert features.row(features.read({"topic": "code", "tokens": 3, "new": True})).tolist() == rows[0].tolist()
    with pytest.raises(
        InvalidInput, match=r"ColumnTransformer failed on the context .*columns are missing: \{'tokens'\}"
    ):
        features.row(features.read({"topic": "code", "new": True}))
    with pytest.raises(InvalidInput, match="got a vector of 2"):
        features.read([1.0, 2.0])


def test_a_transformer_that_was_fitted_to_a_matrix():
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

    X = np.random.default_rng(0).normal(size=(20, 3))
    scaler = StandardScaler().fit(X)
    features = as_context_features(scaler)
    assert np.allclose(features.row(features.read(X[0])), [1.0, *scaler.transform(X[:1])[0]])
    assert features.plain(features.read(X[0])) == X[0].tolist()
    for wrong in ([1.0], {"a": 1, "b": 2, "c": 3}):
        with pytest.raises(InvalidInput, match="the context must be a vector of 3"):
            features.read(wrong)
    sparse = as_context_features(OneHotEncoder().fit([["a"], ["b"]]))
    assert sparse.row(sparse.read(["b"])).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(InvalidInput, match="OneHotEncoder failed on the context"):
        sparse.row(sparse.read(["c"]))
    assert as_context_features(PolynomialFeatures(2).fit(X)).dim == 11


class Tripled:
    """A transformer of the user's own, which says nothing about its output."""

    def __init__(self, factor=3.0):
        self.factor = factor

    def transform(self, X):
        return np.asarray(X) * self.factor


def test_a_transformer_that_says_nothing_needs_an_example_or_a_width():
    with pytest.raises(InvalidInput, match="does not say how many columns it returns"):
        as_context_features(Tripled())
    features = TransformedContexts(Tripled(), example=[1.0, 2.0])
    assert features.row(features.read([1.0, 2.0])).tolist() == [1.0, 3.0, 6.0]
    assert TransformedContexts(Tripled(), outputs=2).dim == features.dim == 3
    assert features.name(2) == "Tripled 1"
    with pytest.raises(InvalidInput, match="must return 2 columns, got 3"):
        features.row(features.read([1.0, 2.0, 3.0]))
    with pytest.raises(InvalidInput, match="outputs"):
        TransformedContexts(Tripled(), outputs=0)
    restored = again(features, Tripled())
    assert restored.row(restored.read([1.0, 2.0])).tolist() == [1.0, 3.0, 6.0]
    with pytest.raises(InvalidInput, match="differs from the transformer Tripled"):
        again(features, Tripled(4.0))


class Wrong:
    def __init__(self, output):
        self.output = output

    def transform(self, X):
        return self.output


@pytest.mark.parametrize("output", [np.zeros((2, 1)), np.zeros(1), [[np.nan]], [["x"]], None, [[1e60]], [[1e300]]])
def test_outputs_are_checked(output):
    features = TransformedContexts(Wrong(output), outputs=1)
    with pytest.raises(InvalidInput, match="Wrong"):
        features.row(features.read([1.0]))


def test_what_is_not_fitted_is_refused():
    from sklearn.preprocessing import StandardScaler

    for wrong in (StandardScaler(), StandardScaler):
        with pytest.raises(InvalidInput):
            as_context_features(wrong)


def test_a_transformer_is_passed_again_and_verified(fitted):
    transformer, frame = fitted
    features = as_context_features(transformer)
    context = frame.to_dict("records")[0]
    for given in (transformer, features):
        restored = again(features, given)
        assert restored.row(restored.read(context)).tolist() == features.row(features.read(context)).tolist()
    with pytest.raises(InvalidInput, match="pass it again"):
        again(features)
    names = {}
    exec(textwrap.dedent(FIT).replace("9.0", "9.5"), names)
    with pytest.raises(InvalidInput, match="differs from the transformer ColumnTransformer"):
        again(features, names["transformer"])
    with pytest.raises(InvalidInput, match="must be a fitted transformer"):
        again(features, 3)


def test_fingerprints_are_the_same_in_every_process_and_after_use(fitted):
    transformer, frame = fitted
    before = fingerprint(transformer)
    transformer.transform(frame)
    transformer.get_feature_names_out()
    code = (
        textwrap.dedent(FIT)
        + "\nfrom mixbandit.features.fingerprint import fingerprint\nprint(fingerprint(transformer))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert found.stdout.strip() == before == fingerprint(transformer)


class Holder:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size

    def scaled(self, x):
        return self.size * x


def scaling(by):
    def scaled(x, start=by + 1):
        return by * x + start

    return scaled


@pytest.mark.parametrize(
    "made",
    [
        lambda k: functools.partial(np.clip, a_min=0, a_max=k),
        lambda k: functools.partial(scaling(1), start=k),
        Slotted,
        lambda k: Slotted(k).scaled,
        scaling,
        lambda k: re.compile(f"x{k}"),
        np.random.RandomState,
        lambda k: [1, k].count,
    ],
    ids=["partial", "partial of a function", "slots", "method", "closure", "pattern", "RandomState", "built-in method"],
)
def test_fingerprints_look_into_objects_without_attributes(made):
    assert fingerprint(made(1)) == fingerprint(made(1)) != fingerprint(made(2))


def test_fingerprints_tell_values_apart():
    loop = Holder()
    loop.own = loop
    values = [
        None, True, 1, 1.0, "1", b"1", 1j, [1], [[1]], [1, 1], [[1], 1], {"a": 1}, {"a": 2}, {"b": 1}, {1}, {1, 2},
        np.arange(3), np.arange(3.0), np.arange(3.0).reshape(1, 3), np.array(["a"], dtype=object), np.array(["a", "b"]),
        Holder(), Holder(a=1), Holder(a=[1]), Holder(b=1), np.mean, np.median, Holder, loop, pd.Index(["a"]),
        np.array([np.nan]), float("nan"), pd.Series([1.0]),
    ]  # fmt: skip
    found = [fingerprint(value) for value in values]
    assert len(set(found)) == len(values)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"x", "y", "z"}) == fingerprint({"z", "y", "x"})
    assert fingerprint(np.arange(6).reshape(2, 3)) == fingerprint(np.asfortranarray(np.arange(6).reshape(2, 3)))
    sparse = pytest.importorskip("scipy.sparse")
    assert fingerprint(sparse.csr_matrix([[0.0, 1.0]])) != fingerprint(sparse.csr_matrix([[1.0, 0.0]]))


def test_features_are_as_small_as_predictors_can_square():
    mapped = MappedContexts(2)
    with pytest.raises(InvalidInput, match=r"features\[0\] must be finite and at most 1e\+50"):
        mapped.row(mapped.read([1e60, 1.0]))


def test_feature_maps_make_rows_without_an_intercept_of_their_own():
    features = as_context_features(3)
    assert isinstance(features, MappedContexts)
    read = features.read([1.0, 2.0, 3.0])
    assert features.row(read).tolist() == features.plain(read) == [1.0, 2.0, 3.0]
    assert (features.dim, features.version, features.name(2)) == (3, 0, "feature 2")
    assert features.after(read) is features
    for wrong in ([1.0], {"a": 1.0}, None, [np.nan, 1.0, 2.0]):
        with pytest.raises(InvalidInput):
            features.read(wrong)
    assert features.unplain([1.0, 2.0, 3.0]).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidInput):
        features.unplain("x")
    restored = again(features)
    assert restored.features.dim == 3
    fourier = as_context_features(RandomFourier(dim_in=2, dim=5, rng=0))
    point = fourier.read([0.3, 0.4])
    assert fourier.row(point).tolist() == fourier.features(np.array([[0.3, 0.4]]))[0].tolist()
    assert again(fourier).row(point).tolist() == fourier.row(point).tolist()


def test_a_map_that_is_code_is_passed_again_and_verified():
    squares = FromCallable(lambda x: x * x, 2, 2)
    features = as_context_features(squares)
    assert features.row(features.read([2.0, 3.0])).tolist() == [4.0, 9.0]
    for given in (squares, features):
        assert again(features, given).row(np.array([2.0, 3.0])).tolist() == [4.0, 9.0]
    with pytest.raises(InvalidInput, match="pass it again"):
        again(features)
    with pytest.raises(InvalidInput, match="differ"):
        again(features, FromCallable(lambda x: x, 2, 2))
    with pytest.raises(InvalidInput, match="dimension"):
        again(features, Identity(3))


def test_named_contexts_need_nothing_again():
    features = NamedContexts()
    assert isinstance(again(features), NamedContexts)
    assert isinstance(again(features, NamedContexts()), NamedContexts)
    with pytest.raises(InvalidInput, match="need no others"):
        again(features, 3)


@pytest.mark.parametrize("features", ["topic", 0, 1.5, lambda context: [1.0], {"a": 1}, NamedContexts])
def test_other_things_are_no_context_features(features):
    with pytest.raises(InvalidInput, match="features must be None, NamedContexts"):
        as_context_features(features)

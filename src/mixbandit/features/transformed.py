"""Context features that a user brings along: a fitted scikit-learn transformer, or a feature map."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mixbandit._checks import LARGEST_DATUM, Array, as_float_array, as_text, as_vector, check_finite, dimension, shown
from mixbandit._extras import import_extra
from mixbandit._schema import integer, record
from mixbandit.errors import InvalidInput
from mixbandit.features.base import FeatureMap, as_feature_map
from mixbandit.features.context import features_from_state_dict
from mixbandit.features.contexts import (
    ContextFeatures,
    Name,
    Parts,
    Reader,
    Values,
    frozen,
    of_cells,
    plain_reader,
    plain_values,
    positions,
    read_cell,
    read_names,
    split,
    unplain_parts,
)
from mixbandit.features.fingerprint import fingerprint
from mixbandit.features.named import NamedContexts
from mixbandit.storage import Stored


class TransformedContexts(ContextFeatures):
    """An intercept, and what a fitted scikit-learn transformer makes of a context.

    One that was fitted to a DataFrame is given a DataFrame with its columns, where missing values are NaN. Another one
    is given a matrix, and contexts are vectors. The transformer is not stored: pass the same one again at load, which
    its parameters and fitted attributes prove. Where it does not say how many columns it returns, state their number as
    `outputs`, or an `example` of a context.
    """

    kind = "TransformedContexts"
    schema = record({"transformer": as_text, "fingerprint": as_text, "outputs": integer(1)})

    def __init__(self, transformer: Any, example: Any = None, *, outputs: int | None = None) -> None:
        if isinstance(transformer, type) or not callable(getattr(transformer, "transform", None)):
            raise InvalidInput(f"features must be a fitted transformer, with transform, got {shown(transformer)}")
        self._transformer = transformer
        names = getattr(transformer, "feature_names_in_", None)
        self._columns: tuple[Name, ...] | None = None if names is None else read_names(names, "the transformer")
        width = getattr(transformer, "n_features_in_", None)
        self._width = None if width is None else int(width)
        self.transformer, self.fingerprint = type(transformer).__name__, fingerprint(transformer)
        self.outputs = self._find_outputs(example) if outputs is None else dimension(outputs, "outputs")
        self.dim = 1 + self.outputs

    def _find_outputs(self, example: Any) -> int:
        """How many columns the transformer returns."""
        if example is not None:
            return len(self._transformed(self.read(example)))
        try:
            return len(self._transformer.get_feature_names_out())
        except Exception as error:  # a transformer may lack it, not be fitted, or raise anything else
            raise InvalidInput(
                f"{shown(self._transformer)} does not say how many columns it returns ({error}): is it fitted? If so, "
                "pass TransformedContexts(transformer, example=context), with a context"
            ) from error

    def read(self, context: Any) -> Values:
        return self._read(split(context), read_cell)

    def _read(self, parts: Parts, reader: Reader) -> Values:
        names, cells = parts
        if self._columns is None:
            names = positions(len(cells)) if names is None else names
            if names != positions(len(cells)) or self._width not in (None, len(cells)):
                length = "a vector" if self._width is None else f"a vector of {self._width}"
                raise InvalidInput(
                    f"{self.transformer} was fitted without names of columns: the context must be {length}, got "
                    f"{shown(list(names))}"
                )
        elif names is None:
            names = self._columns
            if len(cells) != len(names):
                raise InvalidInput(f"the context must have {shown(list(names))}, got a vector of {len(cells)}")
        return of_cells(names, [reader(cell, name) for cell, name in zip(cells, names, strict=True)])

    def row(self, context: Values) -> Array:
        found = self._transformed(context)
        if len(found) != self.outputs:
            raise InvalidInput(f"{self.transformer} must return {self.outputs} columns, got {len(found)}")
        return frozen([1.0, *found])

    def _transformed(self, context: Values) -> Array:
        try:
            found = self._transformer.transform(self._given(context))
        except Exception as error:  # a user's transformer may raise anything, such as an unknown category
            raise InvalidInput(f"{self.transformer} failed on the context {shown(context.items())}: {error}") from error
        if hasattr(type(found), "toarray"):
            found = found.toarray()
        array = as_float_array(found, f"the output of {self.transformer}")
        if array.ndim != 2 or len(array) != 1:
            raise InvalidInput(f"{self.transformer} must return one row, got shape {array.shape}")
        check_finite(array, f"the output of {self.transformer}", LARGEST_DATUM)
        row: Array = array[0]
        return row

    def _given(self, context: Values) -> Any:
        """The context as the transformer was fitted to it."""
        cells = context.items()
        if self._columns is None:
            return np.array([list(cells.values())], dtype=object if context.categories else np.float64)
        # The transformer may do without some columns, which it drops.
        return import_extra("pandas", extra="frames").DataFrame(
            {name: [cells[name]] for name in self._columns if name in cells}
        )

    def after(self, context: Values) -> Self:
        return self

    def name(self, column: int) -> str:
        if self.check_column(column) == 0:
            return "intercept"
        try:
            return str(self._transformer.get_feature_names_out()[column - 1])
        except Exception:  # names are for people: a transformer may have none
            return f"{self.transformer} {column - 1}"

    def plain(self, context: Values) -> Any:
        return plain_values(context)

    def unplain(self, value: Any) -> Values:
        return self._read(unplain_parts(value), plain_reader)

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        what = f"the transformer {stored['transformer']}, which is code"
        if features is None:
            raise InvalidInput(f"{what} and is not stored: pass it again as `features`")
        given = features if isinstance(features, cls) else cls(features, outputs=stored["outputs"])
        if given.fingerprint != stored["fingerprint"]:
            raise InvalidInput(f"the given {given.transformer} differs from {what}: parameters or fitted attributes do")
        return given


class MappedContexts(ContextFeatures):
    """What a feature map makes of contexts that are vectors; an intercept is a matter of the map."""

    kind = "MappedContexts"
    schema = record({"features": FeatureMap.family})

    def __init__(self, features: FeatureMap | int) -> None:
        self.features = as_feature_map(features)
        self.dim = self.features.dim

    def read(self, context: Any) -> Array:
        return frozen(as_vector(context, self.features.dim_in, "context"))

    def row(self, context: Array) -> Array:
        row = self.features.evaluate(context[None])[0]
        check_finite(row, "features", LARGEST_DATUM)
        return frozen(row)

    def after(self, context: Array) -> Self:
        return self

    def name(self, column: int) -> str:
        return f"feature {self.check_column(column)}"

    def plain(self, context: Array) -> Any:
        return context.tolist()

    def unplain(self, value: Any) -> Array:
        return self.read(value)

    @classmethod
    def restored(cls, stored: Stored, features: Any = None) -> Self:
        if isinstance(features, cls):
            features = features.features
        return cls(features_from_state_dict(stored["features"], features))


def as_context_features(features: Any) -> ContextFeatures:
    """Context features from what users pass: None, `NamedContexts`, a fitted transformer, a feature map or an int d."""
    if features is None:
        return NamedContexts()
    if isinstance(features, ContextFeatures):
        return features
    if callable(getattr(features, "transform", None)):
        return TransformedContexts(features)
    try:
        return MappedContexts(features)
    except InvalidInput as error:
        raise InvalidInput(
            "features must be None, NamedContexts(…), a fitted scikit-learn transformer, a feature map or an integer d "
            f"(vectors of length d, unchanged), got {shown(features)}"
        ) from error


def context_features_from(stored: Stored, given: Any = None) -> ContextFeatures:
    """The context features of a checked state; `given` are the user's transformer or feature map, passed again."""
    found: ContextFeatures = stored.build(given)
    return found

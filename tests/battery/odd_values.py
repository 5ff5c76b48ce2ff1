"""Values that users pass by mistake, by habit from another library, or out of malice: fresh ones for every case."""

import datetime
import importlib.util
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb


class Thing:
    """An object that is nothing in particular; calling the class with anything makes one."""

    def __init__(self, *arguments, **options):
        pass

    def __repr__(self):
        return "<a thing>"


def raising(*methods):
    """An object that raises from these methods."""

    def fail(self, *arguments, **options):
        raise ZeroDivisionError("raised by the object itself")

    return type("Hostile", (), dict.fromkeys(methods, fail))()


class Sly(str):
    """Text that compares with nothing."""

    __slots__ = ()

    def __eq__(self, other):
        raise ZeroDivisionError("raised by the object itself")

    def __hash__(self):
        raise ZeroDivisionError("raised by the object itself")


def _nested():
    inside: list[Any] = []
    inside.append(inside)
    return inside


def _masked():
    return np.ma.array([0.3, 0.4], mask=[False, True])


def _choice():
    policy = mb.CMMUCB(2, actions=np.eye(2), sigma=0.1, norm_bound=2.0, rng=5)
    policy.ask(n=40)
    return policy.ask()


# Of Python alone: the page of errors quotes only these, so that it does not depend on the versions of other packages.
PLAIN: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "'x'": lambda: "x",
    "''": lambda: "",
    "'0.5'": lambda: "0.5",
    "b'x'": lambda: b"x",
    "bytearray": lambda: bytearray(b"0.5"),
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "-0.5": lambda: -0.5,
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "5e-324": lambda: 5e-324,
    "1e300": lambda: 1e300,
    "-1e300": lambda: -1e300,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "1+2j": lambda: 1 + 2j,
    "Decimal": lambda: Decimal("0.5"),
    "Decimal NaN": lambda: Decimal("NaN"),
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "Decimal 1e5000": lambda: Decimal("1e5000"),
    "Fraction": lambda: Fraction(1, 2),
    "Fraction 10**400": lambda: Fraction(10**400),
    "[]": lambda: [],
    "[0.3, 0.4]": lambda: [0.3, 0.4],
    "[0.4, nan]": lambda: [0.4, math.nan],
    "[[0.1, 0.2], [0.3, 0.4]]": lambda: [[0.1, 0.2], [0.3, 0.4]],
    "ragged": lambda: [[0.1, 0.2], [0.3]],
    "['a', 'b']": lambda: ["a", "b"],
    "[['a'], ['b']]": lambda: [["a"], ["b"]],
    "[None, 1.0]": lambda: [None, 1.0],
    "[10**400]": lambda: [10**400],
    "[Decimal]": lambda: [Decimal("0.1"), Decimal("0.2")],
    "list in itself": _nested,
    "(0, 1)": lambda: (0, 1),
    "(1, 0)": lambda: (1, 0),
    "range": lambda: range(2),
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1.0},
    "{}": lambda: {},
    "generator": lambda: (i for i in (0.3, 0.4)),
    "endless": itertools.count,
    "dict values": {"a": 0.3, "b": 0.4}.values,
    "lambda": lambda: lambda *arguments, **options: None,
    "class": lambda: Thing,
    "object": Thing,
    "date": lambda: datetime.datetime(2024, 1, 1),
    "path": lambda: Path("x"),
    "long text": lambda: "x" * 100_000,
    "sly text": lambda: Sly("x"),
}

OTHERS: dict[str, Callable[[], Any]] = {
    "np.bool_": lambda: np.bool_(True),
    "np.float16": lambda: np.float16(0.5),
    "np.longdouble": lambda: np.longdouble("0.5"),
    "np.longdouble 1e4000": lambda: np.longdouble("1e4000"),
    "np.uint8": lambda: np.uint8(3),
    "np.int64 least": lambda: np.iinfo(np.int64).min,
    "np.complex128": lambda: np.complex128(0.5 + 2j),
    "np.complex64": lambda: np.complex64(0.5),
    "np.datetime64": lambda: np.datetime64("2024-01-01"),
    "np.timedelta64": lambda: np.timedelta64(3, "s"),
    "np.timedelta64 without a unit": lambda: np.timedelta64(3),
    "np.str_": lambda: np.str_("x"),
    "array ()": lambda: np.array(0.5),
    "array () of int": lambda: np.array(2),
    "array () of bool": lambda: np.array(True),
    "array (1,)": lambda: np.array([0.5]),
    "array (2,)": lambda: np.array([0.3, 0.4]),
    "array (2,) of int": lambda: np.array([0, 1]),
    "array (2,) of bool": lambda: np.array([True, False]),
    "array (2,) of float32": lambda: np.array([0.3, 0.4], dtype=np.float32),
    "array (2,) of 1e4000": lambda: np.array([1, 2]) * np.longdouble("1e4000"),
    "array (0,)": lambda: np.array([]),
    "array (0, 2)": lambda: np.empty((0, 2)),
    "array (2, 0)": lambda: np.empty((2, 0)),
    "array (2, 2)": lambda: np.array([[0.1, 0.2], [0.3, 0.4]]),
    "array (1, 2)": lambda: np.array([[0.3, 0.4]]),
    "array (2, 1)": lambda: np.array([[0.3], [0.4]]),
    "array (1, 2, 2)": lambda: np.zeros((1, 2, 2)),
    "array of inf": lambda: np.array([0.3, np.inf]),
    "array of complex": lambda: np.array([0.3, 0.4 + 1j]),
    "array of text": lambda: np.array(["a", "b"]),
    "array of dates": lambda: np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"),
    "array of records": lambda: np.zeros(2, dtype=[("a", float)]),
    "array of Decimal": lambda: np.array([Decimal("0.3"), Decimal("0.4")], dtype=object),
    "array of objects": lambda: np.array([0.3, Thing()], dtype=object),
    "array of complex objects": lambda: np.array([0.3, np.complex64(0.4)], dtype=object),
    "array () of an object": lambda: np.array(Thing(), dtype=object),
    "np.matrix": lambda: np.asmatrix([[0.3, 0.4]]),
    "masked": lambda: np.ma.masked,
    "masked array": _masked,
    "masked array ()": lambda: np.ma.array(0.5, mask=True),
    "masked array (1, 2)": lambda: _masked().reshape(1, 2),
    "masked array without masked entries": lambda: np.ma.array([0.3, 0.4]),
    "list of masked arrays": lambda: [_masked(), _masked()],
    "list with masked": lambda: [0.3, np.ma.masked],
    "Generator": lambda: np.random.default_rng(0),
    "RandomState": lambda: np.random.RandomState(0),
    "SeedSequence": lambda: np.random.SeedSequence(0),
    "raises from __repr__": lambda: raising("__repr__"),
    "raises from __float__": lambda: raising("__float__", "__index__"),
    "raises from __array__": lambda: raising("__array__"),
    "raises from __eq__": lambda: raising("__eq__", "__ne__", "__lt__", "__hash__"),
    "raises from __bool__": lambda: raising("__bool__"),
    "raises from __len__": lambda: raising("__len__", "__getitem__"),
    "raises from __iter__": lambda: raising("__iter__"),
    "raises from __call__": lambda: raising("__str__", "__fspath__"),
    "Arms": lambda: mb.Arms([[0.1, 0.2], [0.3, 0.4]]),
    "Box": lambda: mb.Box([0.0, 0.0], [1.0, 1.0]),
    "Choice of another": _choice,
    "sequence": lambda: mb.MartingaleMixture(2, sigma=0.1, norm_bound=2.0),
    "mixture": mb.Standard,
}


def _pandas() -> dict[str, Callable[[], Any]]:
    import pandas as pd

    return {
        "pandas.NA": lambda: pd.NA,
        "pandas.NaT": lambda: pd.NaT,
        "pandas.Series": lambda: pd.Series([0.3, 0.4]),
        "pandas.Series with NA": lambda: pd.Series([1, None], dtype="Int64"),
        "pandas.DataFrame": lambda: pd.DataFrame({"a": [0.1, 0.3], "b": [0.2, 0.4]}),
        "pandas.DataFrame, columns 0 and 1": lambda: pd.DataFrame([[0.3, 0.4]]),
        "pandas.DataFrame of objects": lambda: pd.DataFrame({"a": [0.1, "x"], "b": [0.2, None]}),
    }


def _polars() -> dict[str, Callable[[], Any]]:
    import polars as pl

    return {
        "polars.Series": lambda: pl.Series([0.3, 0.4]),
        "polars.Series with null": lambda: pl.Series([0.3, None]),
        "polars.DataFrame": lambda: pl.DataFrame({"a": [0.1, 0.3], "b": [0.2, 0.4]}),
        "polars.DataFrame of text": lambda: pl.DataFrame({"a": ["x", "y"], "b": [0.2, 0.4]}),
        "polars.LazyFrame": lambda: pl.LazyFrame({"a": [0.1]}),
    }


def _torch() -> dict[str, Callable[[], Any]]:
    import torch

    return {
        "torch scalar": lambda: torch.tensor(0.5),
        "torch integer": lambda: torch.tensor(2),
        "torch bool": lambda: torch.tensor(True),
        "torch (1,)": lambda: torch.tensor([0.5]),
        "torch (2,)": lambda: torch.tensor([0.3, 0.4]),
        "torch (2, 2)": lambda: torch.tensor([[0.1, 0.2], [0.3, 0.4]]),
        "torch scalar with gradient": lambda: torch.tensor(0.5, requires_grad=True),
        "torch (2,) with gradient": lambda: torch.tensor([0.3, 0.4], requires_grad=True),
        "list of torch with gradient": lambda: [torch.tensor(0.3, requires_grad=True), torch.tensor(0.4)],
        "torch bfloat16": lambda: torch.tensor([0.3, 0.4], dtype=torch.bfloat16),
        "torch complex": lambda: torch.tensor(0.5 + 1j),
    }


def _scipy() -> dict[str, Callable[[], Any]]:
    import scipy.sparse

    return {
        "sparse matrix": lambda: scipy.sparse.csr_matrix([[0.3, 0.4]]),
        "sparse array": lambda: scipy.sparse.coo_array([[0.1, 0.2], [0.3, 0.4]]),
    }


_PACKAGES = {"pandas": _pandas, "polars": _polars, "torch": _torch, "scipy": _scipy}
MISSING = tuple(name for name in _PACKAGES if importlib.util.find_spec(name) is None)
"""Packages that are not installed here: their values are not tried."""


# What must never be taken for something else: masked entries have no value, imaginary parts and gradients would be
# lost.
MASKED = frozenset(
    {
        "masked",
        "masked array",
        "masked array ()",
        "masked array (1, 2)",
        "list of masked arrays",
        "list with masked",
    }
)
LOSSY = frozenset(
    {
        "1+2j",
        "np.complex128",
        "np.complex64",
        "array of complex",
        "array of complex objects",
        "torch complex",
        "torch scalar with gradient",
        "torch (2,) with gradient",
        "list of torch with gradient",
    }
)
TEXT = frozenset({"'x'", "''", "'0.5'", "b'x'", "bytearray", "long text", "sly text", "np.str_", "array of text"})
BOOLEANS = frozenset({"True", "False", "np.bool_"})


def values() -> dict[str, Callable[[], Any]]:
    """All values, by name: factories, since some cannot be used twice."""
    found = {**PLAIN, **OTHERS}
    for name, make in _PACKAGES.items():
        if name not in MISSING:
            found |= make()
    return found

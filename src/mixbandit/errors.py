"""What can go wrong, as types: one base class, few children."""

import contextlib
import sys
import warnings
from collections.abc import Iterator


class MixbanditError(Exception):
    """Base class of every error that mixbandit raises on purpose."""


class InvalidInput(MixbanditError, ValueError):
    """An argument has a value, a shape or a type that cannot be used; nothing was changed."""


class AssumptionsRefuted(MixbanditError):
    """The confidence set is empty: at level δ the data refute σ, the norm bound or linearity."""


class AssumptionsMissing(InvalidInput):
    """Nothing was stated that bounds the noise or the function: a guarantee would rest on nothing."""


class NotMergeable(MixbanditError):
    """Two sequences differ in more than their data, or remember more than can be put together."""


class NotStorable(MixbanditError):
    """Code that the user gave, such as a forecaster, cannot be part of a saved state."""


class DamagedState(MixbanditError, ValueError):
    """A saved state is incomplete, inconsistent, or written by a newer version."""


class MissingDependency(MixbanditError, ImportError):
    """An optional part needs a package that is not installed."""


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever goes wrong while a stored state is read becomes a DamagedState, unless it has a name already."""
    try:
        yield
    except KeyError as error:
        raise DamagedState(f"the state of {what} lacks {error}") from error
    except MixbanditError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise DamagedState(f"the state of {what} cannot be read: {error}") from error


class AssumptionsRefutedWarning(UserWarning):
    """Bounds come from an inflated set, because the true one is empty; they carry no guarantee."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into the package, however deep the call went."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("mixbandit"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

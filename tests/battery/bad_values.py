"""Every public callable × each of its arguments × a table of odd values: it works, or one of our errors names the value.

A foreign exception, a hang, a NaN, an object that fails in use, or changed state after an error is a failure. Errors of
the operating system are its own, where a path is given. `page` writes the errors that users see to docs/errors.md.
"""

import contextlib
import dataclasses
import io
import math
import os
import re
import shutil
import signal
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mixbandit as mb
from mixbandit._files import digest
from mixbandit.errors import NotStorable
from tests.battery.odd_values import BOOLEANS, LOSSY, MASKED, MISSING, PLAIN, TEXT, values
from tests.battery.public_calls import CALLS, Call, fingerprint
from tests.battery.tally import Progress, Tally, silent
from tests.helpers import sequences as problem
from tests.helpers.worlds import ARMS, PHI

SECONDS = 30
"""A call that takes longer hangs."""
_PATHS = ("path", "checkpoint", "name")


class Hung(BaseException):
    """The call took longer than `SECONDS`."""


class Case(NamedTuple):
    call: Call
    argument: str
    value: str

    def __str__(self) -> str:
        return f"{self.call.label}({self.argument}=<{self.value}>)"


class Outcome(NamedTuple):
    what: str  # "worked", the name of an error, or "failed"
    message: str = ""


def cases() -> list[Case]:
    """All combinations; a budget of at least their number tries each once."""
    table = values()
    with _somewhere_else():
        return [Case(call, argument, value) for call in CALLS for argument in call.parameters for value in table]


def run(budget: int, seed: int, progress: Progress = silent) -> Tally:
    """Try `budget` combinations drawn at random, or all if there are no more."""
    tally, everything, table = Tally("bad values"), cases(), values()
    complete = budget >= len(everything)
    with _somewhere_else():
        for number in range(len(everything) if complete else budget):
            pick = number if complete else int(np.random.default_rng([seed, number]).integers(len(everything)))
            outcome = tried(everything[pick], table)
            if outcome.what == "failed":
                tally.fail(f"seed {seed}, case {number}: {everything[pick]}: {outcome.message}")
            else:
                tally.note("worked" if outcome.what == "worked" else "refused")
            progress(number + 1)
    for package in MISSING:
        tally.note(f"values of {package} left out, which is not installed")
    return tally


@contextlib.contextmanager
def _somewhere_else() -> Iterator[None]:
    """In an empty folder, without bars on the terminal."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
        yield


def tried(case: Case, table: dict[str, Callable[[], Any]]) -> Outcome:
    """Call with one bad argument, and judge what happens."""
    call = case.call
    if case.argument in _PATHS:
        _empty(Path.cwd())
    subject = None if call.subject is None else call.subject()
    before = None if subject is None else fingerprint(subject)
    valid = call.arguments()
    arguments = {**valid, case.argument: table[case.value]()}
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # overflow, or a lost imaginary part
            result = call(subject, arguments)
            wrong = misread(case, valid[case.argument]) or nonsense(result) or use(result)
    except mb.AssumptionsRefuted as error:
        return Outcome(type(error).__name__, str(error))  # data that contradict what was stated are learnt, and said
    except mb.MixbanditError as error:
        if subject is not None and fingerprint(subject) != before:
            return Outcome("failed", f"the state changed, although {error!r}")
        if len(str(error)) > 1000:
            return Outcome("failed", f"a message of {len(str(error))} characters: {str(error)[:100]}…")
        return Outcome(type(error).__name__, str(error))
    except OSError as error:
        if case.argument in _PATHS:
            return Outcome("OSError", str(error))
        return Outcome("failed", _located(error))
    except Hung:
        return Outcome("failed", f"took longer than {SECONDS} seconds")
    except Exception as error:
        changed = "; the state changed" if subject is not None and fingerprint(subject) != before else ""
        return Outcome("failed", _located(error) + changed)
    return Outcome("failed", wrong) if wrong else Outcome("worked")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _located(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "mixbandit" in frame.filename]
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    try:
        text = str(error)
    except Exception:  # 10**5000 has no digits to show
        text = "…"
    return f"{type(error).__name__}: {text[:150]}{where}"


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def misread(case: Case, valid: Any) -> str:
    """Why the value should not have been accepted where `valid` is meant."""
    if (case.call.name.rpartition(".")[2], case.argument) in _IGNORED:
        return ""
    if case.value in MASKED or (case.value in LOSSY and case.argument not in _ANY_VALUE):
        return "accepted"
    if isinstance(valid, bool) and case.value not in BOOLEANS:
        return "accepted as True or False"
    if isinstance(valid, int | float | np.ndarray) and case.value in TEXT:
        return "accepted as a number"
    return ""


# The round, where rewards do not depend on it; a name that is only for messages.
_IGNORED = {*((method, "t") for method in ("offer", "reward", "expected", "best")), ("encode", "name")}
_ANY_VALUE = ("labels", "choices")


def nonsense(result: Any) -> str:
    """What no answer may contain, in words."""
    if isinstance(result, float | np.floating) and math.isnan(result):
        return "the answer is NaN"
    if isinstance(result, np.ndarray) and result.dtype.kind == "f" and np.isnan(result).any():
        return "the answer contains NaN"
    if isinstance(result, list | tuple):
        return next(filter(None, map(nonsense, result)), "")
    if isinstance(result, mb.Choice):
        ordered = result.lower <= result.upper
        return nonsense([result.action, result.lower, result.upper]) or ("" if ordered else "lower exceeds upper")
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        parts = [getattr(result, field.name) for field in dataclasses.fields(result) if field.name != "optimum_found"]
        return nonsense([part for part in parts if isinstance(part, float | np.ndarray)])
    return ""


_ROW = np.array([[0.3, 0.4]])


def use(made: Any) -> str:
    """Use what was made, as its owner would next; errors are those of the call that made it."""
    repr(made)
    if hasattr(made, "state_dict"):
        with contextlib.suppress(NotStorable):
            digest(made.state_dict())
    if isinstance(made, mb.Policy):
        copy = made.at(made.state)
        features = copy.sequence.features
        context = None if copy.actions is None else np.full(features.dim_in - copy.actions.dim, 0.3)
        arms = np.eye(features.dim_in) if copy.actions is None else None
        choice = copy.ask(arms, context=context if context is not None and len(context) else None)
        copy.tell(choice, 0.1)
        return nonsense(choice)
    if isinstance(made, mb.ConfidenceSequence):
        row = np.full((1, made.features.dim_in), 0.3)
        return nonsense(made.after(row, [0.1]).upper(row))
    if isinstance(made, mb.FeatureMap):
        return nonsense(made(made.probes()))
    if isinstance(made, mb.Mixture | mb.FromRegressor):
        features = 2 if isinstance(made, mb.Linear) else PHI
        mixed = mb.MartingaleMixture(features, sigma=0.1, norm_bound=2.0, mixture=made)
        return nonsense(mixed.update(np.vstack((_ROW,) * 3), [0.1, 0.2, 0.1]).upper(_ROW))
    if isinstance(made, mb.RBF | mb.Matern):
        return nonsense(made(_ROW, _ROW))
    if isinstance(made, mb.Space):
        return nonsense(made.encode_all(made.sample(2, rng=0)))
    if isinstance(made, mb.Float | mb.Int | mb.Categorical):
        return nonsense(made.encode(made.decode(made.at(0.5)), "parameter"))
    if isinstance(made, mb.Tuner):
        copy = made.copy()
        copy.tell(copy.ask(), 0.5)
    if isinstance(made, mb.Environment):
        return _played(made)
    if isinstance(made, mb.Arms | mb.Box):
        return nonsense(made.given(np.array([0.5])).state_dict())
    return ""


def _played(environment: mb.Environment) -> str:
    offer = environment.offer(0)
    features = getattr(environment, "features", PHI)
    policy = mb.AMMUCB(features, actions=environment.actions, sigma=0.1, norm_bound=5.0, rng=0)
    arms = (ARMS if environment.actions is None else None) if offer.arms is None else offer.arms
    choice = policy.ask(arms, context=offer.context)
    return nonsense([environment.reward(0, choice), environment.expected(0, choice), environment.best(0)])



"""Every public callable × each of its arguments × a table of odd values: it works, or our error names the value.

A foreign exception, a hang, a NaN, an object that fails in use, or changed state after an error is a failure. Errors of
the operating system are its own, where a path is given. `page` writes the errors that users see to
docs/reference/errors.md.
"""

import contextlib
import copy
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
from mixbandit.bandits.contextual import ContextualChoice
from mixbandit.errors import NotStorable
from mixbandit.features import MappedContexts
from mixbandit.features.contexts import Values
from tests.battery.call import Call
from tests.battery.odd_values import BOOLEANS, LOSSY, MASKED, MISSING, PLAIN, TEXT, values
from tests.battery.public_calls import CALLS, fingerprint
from tests.battery.tally import Progress, Tally, silent
from tests.helpers.worlds import ARMS, PHI

SECONDS = 30
"""A call that takes longer hangs."""
_PATHS = ("path", "checkpoint", "name")
_LONGEST_ERROR = 1000


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy about its own matrices
        arguments = {**valid, case.argument: table[case.value]()}
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # overflow, or a lost imaginary part
            result = call(subject, arguments)
            wrong = misread(case, valid[case.argument]) or nonsense(result) or use(result)
    except (Exception, Hung) as error:
        # Data that contradict what was stated are learnt, and said.
        kept = subject is None or isinstance(error, mb.AssumptionsRefuted) or fingerprint(subject) == before
        return judged(error, path=case.argument in _PATHS, kept=kept)
    return Outcome("failed", wrong) if wrong else Outcome("worked")


def judged(error: BaseException, *, path: bool, kept: bool) -> Outcome:
    """The outcome of a call that raised: refused, unless it is foreign or came too late."""
    if isinstance(error, Hung):
        return Outcome("failed", f"took longer than {SECONDS} seconds")
    ours = isinstance(error, mb.MixbanditError) or (path and isinstance(error, OSError))
    problem = "" if ours else _located(error)
    if not kept:
        problem += f"; the state changed, although {type(error).__name__} was raised"
    if isinstance(error, mb.MixbanditError) and len(str(error)) > _LONGEST_ERROR:
        problem += f"; a message of {len(str(error))} characters: {str(error)[:100]}…"
    if problem:
        return Outcome("failed", problem)
    return Outcome("OSError" if isinstance(error, OSError) else type(error).__name__, str(error))


def _empty(folder: Path) -> None:
    # Whoever calls `tried` from a checkout would lose it.
    assert Path(tempfile.gettempdir()).resolve() in folder.resolve().parents, f"{folder} is no temporary folder"
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
    if case.call.name.partition(".")[0] in _GAPS and case.argument.startswith("context") and case.value in MASKED:
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
_GAPS = ("ContextualBandit", "NamedContexts", "TransformedContexts")  # whose contexts may have missing values


def nonsense(result: Any) -> str:
    """What no answer may contain, in words."""
    if isinstance(result, float | np.floating) and math.isnan(result):
        return "the answer is NaN"
    if isinstance(result, np.ndarray) and result.dtype.kind == "f" and np.isnan(result).any():
        return "the answer contains NaN"
    if isinstance(result, list | tuple) and not isinstance(result, Values):  # of a context, where NaN is a gap
        return next(filter(None, map(nonsense, result)), "")
    if isinstance(result, mb.Choice | ContextualChoice):
        return _nonsense_of_a_choice(result)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        parts = [getattr(result, field.name) for field in dataclasses.fields(result) if field.name != "optimum_found"]
        return nonsense([part for part in parts if isinstance(part, float | np.ndarray)])
    return ""


def _nonsense_of_a_choice(choice: mb.Choice | ContextualChoice) -> str:
    if isinstance(choice, ContextualChoice):
        shares = np.asarray(choice.probabilities)
        fits = abs(float(shares.sum()) - 1.0) < 1e-9 and (shares >= 0.0).all() and choice.probability > 0.0
        return "" if fits else "the probabilities do not add up to 1"
    ordered = choice.lower <= choice.upper
    return nonsense([choice.action, choice.lower, choice.upper]) or ("" if ordered else "lower exceeds upper")


def use(made: Any) -> str:
    """Use what was made, as its owner would next; errors are those of the call that made it."""
    repr(made)
    if hasattr(made, "state_dict"):
        with contextlib.suppress(NotStorable):
            digest(made.state_dict())
    return next((try_out(made) for kinds, try_out in _USES.items() if isinstance(made, kinds)), "")


_ROW = np.array([[0.3, 0.4]])


def _asked_and_told(policy: mb.Policy) -> str:
    copy = policy.at(policy.state)
    width = copy.sequence.dim_in
    context = None if copy.actions is None else np.full(width - copy.actions.dim, 0.3)
    arms = np.eye(width) if copy.actions is None else None
    choice = copy.ask(arms, context=context if context is not None and len(context) else None)
    copy.tell(choice, 0.1)
    return nonsense(choice)


def _informed(sequence: mb.ConfidenceSequence) -> str:
    row = np.full((1, sequence.dim_in or 2), 0.3)
    return nonsense(sequence.after(row, [0.1]).upper(row))


def _one_of_several(blocks: mb.Blocks) -> str:
    copy, width = blocks.copy(), blocks.dim_in - 1
    if copy.growing:
        copy.add()
    copy.update([[*np.full(width, 0.3), 0]], [0.1])
    return nonsense(list(copy.interval(np.full(width, 0.3))))


def _decided(bandit: mb.ContextualBandit) -> str:
    twin, features = copy.copy(bandit), bandit.state.features
    choice = twin.ask(np.full(features.features.dim_in, 0.3) if isinstance(features, MappedContexts) else {})
    twin.tell(choice, sum(twin.reward_range) / 2.0)
    digest(twin.state_dict())
    return nonsense(choice)


def _mixed(mixture: Any) -> str:
    if isinstance(mixture, mb.Bank):  # which is for values in a range only
        bounded = mb.BoundedMixture(PHI, norm_bound=2.0, mixture=mixture)
        return nonsense(bounded.update(np.vstack((_ROW,) * 3), [0.1, 0.2, 0.1]).upper(_ROW))
    features = 2 if isinstance(mixture, mb.Linear) else PHI
    sequence = mb.MartingaleMixture(features, sigma=0.1, norm_bound=2.0, mixture=mixture)
    return nonsense(sequence.update(np.vstack((_ROW,) * 3), [0.1, 0.2, 0.1]).upper(_ROW))


def _tuned(tuner: mb.Tuner) -> str:
    copy = tuner.copy()
    copy.tell(copy.ask(), 0.5)
    return ""


def _played(environment: mb.Environment) -> str:
    offer = environment.offer(0)
    features = getattr(environment, "features", PHI)
    policy = mb.AMMUCB(features, actions=environment.actions, sigma=0.1, norm_bound=5.0, rng=0)
    arms = (ARMS if environment.actions is None else None) if offer.arms is None else offer.arms
    choice = policy.ask(arms, context=offer.context)
    return nonsense([environment.reward(0, choice), environment.expected(0, choice), environment.best(0)])


_USES: dict[Any, Callable[[Any], str]] = {
    mb.Policy: _asked_and_told,
    mb.ContextualBandit: _decided,
    mb.Blocks: _one_of_several,
    mb.ConfidenceSequence: _informed,
    mb.FeatureMap: lambda features: nonsense(features(features.probes())),
    (mb.Mixture, mb.FromRegressor): _mixed,
    mb.Kernel: lambda kernel: nonsense(kernel(_ROW, _ROW)),
    mb.Space: lambda space: nonsense(space.encode_all(space.sample(2, rng=0))),
    (mb.Float, mb.Int, mb.Categorical): lambda made: nonsense(made.encode(made.decode(made.at(0.5)), "parameter")),
    mb.Tuner: _tuned,
    mb.Environment: _played,
    mb.Arms: lambda arms: nonsense(arms.given(np.array([0.5])).actions),
    mb.Box: lambda box: nonsense([box.given(np.array([0.5])).low, box.width]),
}


# --- the page

_INTRODUCTION = """# Errors

Every error that mixbandit raises on purpose is a `MixbanditError`. Wrong arguments raise `InvalidInput`, which is also
a `ValueError`: the message names the argument, what was given and what is expected, and nothing has changed. Numbers
and arrays of numpy, pandas, polars and torch (without a gradient), `Decimal` and `Fraction` are accepted wherever they
mean one thing. Masked entries, complex numbers, text and sets are refused, and options take `True` or `False` only.
Errors of the operating system, as for a folder that does not exist, are passed on.

| error | when |
|---|---|
"""
_EXAMPLES = """
## Examples, by callable

What happens to wrong values, argument by argument: one or two errors for each, as examples. Arguments that accept
everything are left out. Generated by `python -m tests.battery.bad_values`, which calls everything public with odd
values.
"""
_LONGEST_MESSAGE, _MOST_KINDS = 150, 2


def page(path: Path) -> None:
    """Write the errors of every public callable to a page, one line per argument and kind of error."""
    kinds = [kind for kind in vars(mb.errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    table = "".join(f"| `{kind.__name__}` | {(kind.__doc__ or '').splitlines()[0]} |\n" for kind in kinds)
    path.write_text(_INTRODUCTION + table + _EXAMPLES + "".join(section(name) for name in callables()), "utf-8")


def callables() -> dict[str, Call]:
    """One call of every callable, by the name that defines it: methods and constructors are inherited by many."""
    calls: dict[Any, Call] = {}
    names: dict[Any, list[str]] = {}
    for call in CALLS:
        shared = call.target.__init__ if isinstance(call.target, type) else call.target
        calls.setdefault(shared, call)
        owner, _, method = shared.__qualname__.partition(".")
        inherited = call.subject is not None and hasattr(mb, owner)
        name = f"{owner}.{method}" if inherited else call.name
        if name not in names.setdefault(shared, []):
            names[shared].append(name)
    found = {", ".join(sorted(names[shared])).replace(".__call__", "(…)"): call for shared, call in calls.items()}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def section(name: str) -> str:
    """The part of the page about one callable."""
    call = callables()[name]
    lines = []
    with _somewhere_else():
        for argument in call.parameters:
            for kind, message in examples(call, argument):
                lines.append(f"| `{argument}` | `{kind}` | {_quoted(message)} |\n")
    return f"\n### {name}\n\n| argument | error | example |\n|---|---|---|\n{''.join(lines)}" if lines else ""


def examples(call: Call, argument: str) -> list[tuple[str, str]]:
    """Different errors for plain values of one argument: their type, and the first message of each kind."""
    found: dict[tuple[str, str], str] = {}
    for value in PLAIN:
        what, message = tried(Case(call, argument, value), PLAIN)
        if what not in ("worked", "failed", "OSError") and " at 0x" not in message:
            found.setdefault((what, re.split(r"got |: |, not ", message)[0]), message)
    return [(what, message) for (what, _), message in found.items()][:_MOST_KINDS]


def _quoted(message: str) -> str:
    line = " ".join(message.split()).replace("|", "\\|").replace("`", "'")
    return f"`{line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + '…'}`"


if __name__ == "__main__":
    page(Path("docs/reference/errors.md").resolve())

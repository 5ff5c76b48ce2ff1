"""Confirming a study's finalists from within `study.optimize`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import positive_int
from mixbandit.errors import MixbanditError
from mixbandit.integrations.optuna.certifying import Rest
from mixbandit.integrations.optuna.confirming import marked, nomination_of, spare_confirmations
from mixbandit.integrations.optuna.saying import Said
from mixbandit.integrations.optuna.stopping import as_space
from mixbandit.integrations.optuna.storage import enqueue, identity, is_withdrawn, queue_safely, withdraw
from mixbandit.sequences import Moment
from mixbandit.tuning import Assumptions, Parameter, Space
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.certification import judged
from mixbandit.tuning.confirming import Finalist, most_promising, nominated, possibly_best
from mixbandit.tuning.marks import by_completion
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.selection import NOMINATION

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)
# Seconds to wait at the end until those who enqueued the last confirmations have begun to run them.
_PATIENCE, _LOOK_EVERY = 1.0, 0.01


class Step(Enum):
    """What came of the attempt to enqueue a confirmation."""

    EARLY = "the search goes on"
    ENQUEUED = "a confirmation waits to be run"
    DONE = "nothing is left to confirm"
    FAILED = "too many confirmations have failed"
    IMPOSSIBLE = "the study cannot be certified, or its values contradict what was stated"


class _Round(NamedTuple):
    """The finalists, which follow from the trials that had been completed when the search ended."""

    key: tuple[Any, int, Space]  # the study, the last trial of the search, the space
    finalists: tuple[Finalist, ...]
    model: Moment


class _Found(NamedTuple):
    """What earlier processes left in a study: numbers of confirmations."""

    study: Any
    waiting: frozenset[int]
    failed: frozenset[int]  # whatever made them fail may have been mended since


class ConfirmFinalists:
    """A callback for `study.optimize`: after a search of `after` completed trials, the next n confirm the finalists.

    `study.optimize(objective, n_trials=60, callbacks=[ConfirmFinalists(20, after=40, reward_range=(0, 1),
    samples=100)])`. Finalists are up to `finalists` configurations with the best guaranteed values at the end of the
    search. Each confirmation is chosen when it is needed, from what is known by then, and enqueued with the user
    attribute `mixbandit_nomination`, which `mixbandit.certify` reads. The study stops after n confirmations, or as soon
    as all finalists but one are known to be worse. Leave room in `n_trials` for both, or leave it out.

    It works with any sampler, with threads, and with several processes on one storage, each with a callback of the same
    settings. If another worker has taken the enqueued trial, Optuna makes one more trial of the search instead. All its
    state is in the study, so an interrupted study resumes where it was. Confirmations that fail are made up for; after
    n failures the callback warns and stops the study, and a new callback starts counting them afresh.

    State the same assumptions as for `mixbandit.certify`. It never ends a study with an error: if values contradict the
    assumptions, or if the study cannot be certified, it warns once and lets the study run on as if it were not there.
    """

    def __init__(
        self,
        n: int,
        *,
        after: int,
        finalists: int = 3,
        assumptions: Assumptions | None = None,
        space: Space | dict[str, Parameter] | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        self.n, self.after = positive_int(n, "n"), positive_int(after, "after")
        self.finalists = positive_int(finalists, "finalists")
        self._stated = Assumptions.of(assumptions, stated)
        self._stated.check_rows_vary()
        self._stated.check_complete()  # report missing assumptions here
        self._space = as_space(space)
        self._said = Said()
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._round: _Round | None = None
        self._found = _Found(None, frozenset(), frozenset())

    def __getstate__(self) -> dict[str, Any]:
        # The rest is recovered from the study.
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_round", "_found")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Enqueue the next confirmation, or stop the study if there is nothing left to confirm."""
        if self.enqueue(study) not in (Step.DONE, Step.FAILED):
            return
        # Threads share the flag that stops a study, and a trial that waits for one of them would be lost.
        until = time.monotonic() + _PATIENCE
        while _waiting(study.get_trials(deepcopy=False)):
            if time.monotonic() > until:  # whoever enqueued it has ended: it is ours to run
                return
            time.sleep(_LOOK_EVERY)
        study.stop()

    def enqueue(self, study: Study) -> Step:
        """Enqueue the next confirmation, if it is time for one: every worker that needs a trial calls this once."""
        which = identity(study)
        with self._lock:  # each thread has to see what the others enqueued
            try:
                return self._step(study, which)
            except MixbanditError as error:
                self._say(study, type(error).__name__, f"cannot confirm finalists, and the study runs on: {error}")
                return Step.IMPOSSIBLE

    def _step(self, study: Study, which: Any) -> Step:
        queue_safely(study)
        trials = study.get_trials(deepcopy=False)
        searched = _searched(trials)
        if self._found.study != which:
            waiting = frozenset(trial.number for trial in _waiting(trials))
            self._found = _Found(which, waiting, frozenset(failed_confirmations(trials)))
        if len(searched) < self.after:
            return Step.EARLY
        spare_confirmations(study)  # others may have enqueued the one that is run next here
        if any(trial.number in self._found.waiting for trial in _waiting(trials)):
            return Step.ENQUEUED  # left by a process that ended: it is run next
        last = searched[self.after - 1].number
        counted, failed = _counted(trials, last), failed_confirmations(trials) - self._found.failed
        if len(counted) >= self.n:
            return Step.DONE
        if len(failed) >= self.n:
            self._say(study, "failed", f"confirms no more: {len(failed)} confirmations have failed.")
            return Step.FAILED
        return self._next(study, (which, last), self.n - len(counted))

    def _next(self, study: Study, search: tuple[Any, int], unused: int) -> Step:
        """Choose a confirmation and enqueue it."""
        assumptions, last = self._stated.towards(study.directions[0].name.lower()), search[1]
        rest = Rest.of(study, assumptions)
        if rest.contradicting:
            told = ", ".join(f"{count} {why}" for why, count in rest.contradicting.items())
            self._say(study, "refuted", f"confirms nothing, because values contradict the assumptions: {told}.")
            return Step.IMPOSSIBLE
        run = read_run(rest, space=self._space)
        key = (*search, run.space)
        if self._round is None or self._round.key != key:
            self._round = self._nominated(rest, key, assumptions)
        judgement = judged(run, assumptions, model=self._round.model)
        finalist = most_promising(judgement, self._round.finalists, unused)
        if finalist is None:
            if judgement.trusted:
                return Step.DONE
            self._say(study, "refuted", f"does not stop the study: {judgement.refutation}.")
            return Step.IMPOSSIBLE
        mine = enqueue(study, judgement.given(finalist.row), {NOMINATION: finalist.number})
        # Another process may have enqueued one at the same time; the numbers of trials say who was first.
        first = _counted(study.get_trials(deepcopy=False), last)[: self.n]
        surplus = mine.number not in first and withdraw(study, mine)
        return Step.DONE if surplus else Step.ENQUEUED

    def _nominated(self, rest: Rest, key: tuple[Any, int, Space], assumptions: Assumptions) -> _Round:
        """The finalists of the search: the same in all processes, because they go by the same trials."""
        (_, last, space), trials = key, rest.trials
        search = {trial.number for trial in _searched(trials)[: self.after]}
        earlier = [t for t in trials if t.number in search or (t.number < last and nomination_of(t) is not None)]
        judgement = judged(read_run(rest.only(earlier), space=space), assumptions)
        found = possibly_best(judgement, nominated(judgement, self.finalists, marked(earlier, space)))
        # Should clocks differ so much that processes do not see the same search, those that came first count.
        begun = {each.number: each for each in marked((t for t in trials if t.number > last), space)}
        return _Round(key, tuple(begun.get(each.number, each) for each in found), judgement.moment)

    def _say(self, study: Study, what: str, text: str) -> None:
        if self._said.is_new(study, what):
            _logger.warning(f"ConfirmFinalists {text}")


def _searched(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Completed trials that confirm nothing, in the order in which they were completed."""
    found = [t for t in trials if t.state == TrialState.COMPLETE and nomination_of(t) is None]
    return by_completion(found)


def _counted(trials: Sequence[FrozenTrial], last: int) -> list[int]:
    """The numbers of confirmations after the search that have not failed, in order."""
    found = [trial for trial in trials if trial.number > last and nomination_of(trial) is not None]
    return sorted(trial.number for trial in found if trial.state != TrialState.FAIL)


def failed_confirmations(trials: Sequence[FrozenTrial]) -> set[int]:
    """The numbers of confirmations that were run and failed."""
    failed = [trial for trial in trials if trial.state == TrialState.FAIL and nomination_of(trial) is not None]
    return {trial.number for trial in failed if not is_withdrawn(trial)}


def _waiting(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Confirmations that wait to be run."""
    return [t for t in trials if t.state == TrialState.WAITING and nomination_of(t) is not None]

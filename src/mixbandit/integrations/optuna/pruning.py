"""A pruner for repeated measurements, whose error holds however often it looks."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import as_range, error_probability, positive, positive_int
from mixbandit.errors import STATEMENTS, InvalidInput
from mixbandit.integrations.optuna.saying import Said
from mixbandit.integrations.optuna.storage import attach, identity
from mixbandit.means.challenge import Bets, Challenge, LevelBets, RangeBets, SymmetricBets
from mixbandit.tuning.marks import may_be_recommended
from mixbandit.tuning.selection import LEFT_OUT, NOMINATION, PRUNED

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)
# How many trials to keep in memory per storage; others are worked out again from what they reported.
_MOST_KEPT = 256


@dataclass
class _Running:
    """A trial on its way: what it was compared with so far."""

    others: list[FrozenTrial]  # those that had ended when it began
    challenge: Challenge
    seen: set[int] = field(default_factory=set)  # the steps that were looked at

    @property
    def in_words(self) -> str:
        """What the trial lost against, for those who wonder why it was pruned."""
        leader, steps = self.challenge.leader, self.challenge.steps
        who = "those before it" if leader is None else f"trial {self.others[leader].number}, which led"
        return f"worse than {who} (p = {self.challenge.pvalue:.4g} after {steps} step{'' if steps == 1 else 's'})"


class CertifiedPruner(BasePruner):
    """Prune a trial once its measurements show that another trial is better; wrong with probability at most `delta`.

    For repeated measurements of one thing, not for learning curves: report the result of each fold, seed, instance or
    prompt as a separate step, `trial.report(score, step)`, and return their mean. Shuffle them once, before the study,
    and number the steps in that order. A trial that is at least as good as each one before it, such as the best of the
    study, is pruned with probability at most `delta`, however many steps there are, however often `should_prune` is
    called, and however many trials came before.

    At each step a trial is compared with the earlier one that leads on the steps before. The scale of values need not
    be known. It assumes that steps are independent of each other; that differences between two trials are symmetric
    around the difference of their worths, as they are if both are equally good and have the same kind of noise; and
    that neither the sampler nor anything else picks trials by the luck of single steps. Where rare large values, such
    as time-outs, decide which of two trials is better, differences are not symmetric. To compare means whatever the
    shapes, state

    - `reward_range=(low, high)`, in which all values lie, and `samples` if each is the mean of this many independent
      results in it; or
    - `sigma`, if values are sub-Gaussian of this level, and those of different trials at a step are independent.

    A value that contradicts this ends its trial, not the study: the trial is pruned, with the reason as user attribute
    `mixbandit_left_out`. For other pruned trials, `mixbandit_pruned` says what they lost against. Confirmations
    (`sampler.confirm`) are never pruned; after a pruning, certificates use them alone.
    """

    def __init__(
        self,
        delta: float = 0.05,
        *,
        reward_range: tuple[float, float] | None = None,
        samples: int | None = None,
        sigma: float | None = None,
    ) -> None:
        self._delta = error_probability(delta, "delta")
        self._range = None if reward_range is None else as_range(reward_range, "reward_range")
        self._samples = None if samples is None else positive_int(samples, "samples")
        self._sigma = None if sigma is None else positive(sigma, "sigma")
        if self._samples is not None and self._range is None:
            raise InvalidInput(
                f"samples needs reward_range: each value is the mean of that many results in it; {STATEMENTS}"
            )
        if self._sigma is not None and self._samples is not None:
            raise InvalidInput("state samples or sigma, not both")
        self._said = Said()
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        # By storage, which must not be kept alive, and then by study and trial number.
        self._running: WeakKeyDictionary[Any, OrderedDict[tuple[int, int], _Running]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_running")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether to prune the trial; Optuna calls this from `trial.should_prune()`."""
        if NOMINATION in trial.user_attrs:
            return False
        with self._lock:
            running = self._known(study, trial)
            for step, value in sorted(trial.intermediate_values.items()):  # storages may return them in any order
                if step in running.seen:
                    continue
                wrong = self._objection(value)
                if wrong is not None:
                    return self._give_up(study, trial, step, value, wrong)
                running.seen.add(step)
                self._compare(study, running, step, value)
            found = running.challenge.pvalue
            if found > self._delta:
                return False
            _mark(study, trial, PRUNED, running.in_words)
            return True

    def _known(self, study: Study, trial: FrozenTrial) -> _Running:
        """What is known of a trial. Its opponents stay the same, so that every look continues one history."""
        storage, study_id = identity(study)
        kept, key = self._running.setdefault(storage, OrderedDict()), (study_id, trial.number)
        if key not in kept:
            others = _opponents(study, trial)
            kept[key] = _Running(others, Challenge(len(others), *self._bets()))
            if len(kept) > _MOST_KEPT:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]

    def _bets(self) -> list[Bets]:
        if self._sigma is not None:
            return [LevelBets(math.sqrt(2.0) * self._sigma)]
        if self._range is None:
            return [SymmetricBets()]
        if self._samples is None:
            return [RangeBets(self._range)]
        low, high = self._range
        # Values of two trials on the same rows may be as far from independent as they like.
        return [RangeBets(self._range), LevelBets((high - low) / math.sqrt(self._samples))]

    def _compare(self, study: Study, running: _Running, step: int, value: float) -> None:
        if not math.isfinite(value):
            if self._said.is_new(study, "infinite"):
                _logger.warning(f"Step {step} is left out, because its value is {value:g}; the trial is not pruned.")
            return
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        others = [_usable(other.intermediate_values.get(step), self._objection) for other in running.others]
        running.challenge.step(sign * value, sign * np.array(others))

    def _objection(self, value: float) -> str | None:
        """How a value contradicts what was stated; None if it does not."""
        if self._range is None and self._sigma is None:
            return None
        if not math.isfinite(value):
            return "with a value that is not finite"
        # With a sigma the range is about expected values, and single ones may lie outside.
        if self._range is None or self._sigma is not None:
            return None
        low, high = self._range
        return None if low <= value <= high else "with a value outside reward_range"

    def _give_up(self, study: Study, trial: FrozenTrial, step: int, value: float, wrong: str) -> bool:
        _mark(study, trial, LEFT_OUT, f"{wrong}, {value:g} at step {step}")
        _logger.warning(f"Trial {trial.number} is pruned, {wrong}: {value:g} at step {step}.")
        return True


def _opponents(study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
    """Trials that had ended when this one began, and could be used instead of it."""
    trials = study.get_trials(deepcopy=False)
    first = trial
    while "failed_trial" in first.system_attrs:  # it goes on from the steps of a trial that failed
        first = trials[first.system_attrs["failed_trial"]]
    began = first.datetime_start
    return [
        other
        for other in trials
        if other.number != trial.number
        and other.state in (TrialState.COMPLETE, TrialState.PRUNED)
        and other.intermediate_values
        and began is not None
        and other.datetime_complete is not None
        and other.datetime_complete <= began
        and may_be_recommended([other])
    ]


def _mark(study: Study, trial: FrozenTrial, name: str, text: str) -> None:
    with contextlib.suppress(UpdateFinishedTrialError):  # somebody else has ended it
        attach(study, trial, {name: text})


def _usable(value: float | None, objection: Callable[[float], str | None]) -> float:
    usable = value is not None and math.isfinite(value) and objection(value) is None
    return float(value) if usable and value is not None else math.nan

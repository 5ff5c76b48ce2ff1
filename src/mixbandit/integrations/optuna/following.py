"""A study, followed by a tuner: what is new is learnt, what is under way is pending."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from mixbandit._validation import Array
from mixbandit.errors import InvalidInput
from mixbandit.objective import Objective
from mixbandit.space import Categorical, Float, Int, Space
from mixbandit.tuner import Trial, Tuner

if TYPE_CHECKING:
    from optuna.study import Study

# The attribute of a trial that tells other processes its parameters, before the objective has asked for all of them.
_CHOSEN = "mixbandit:parameters"
_LONGEST_ATTRIBUTE = 2045  # of a database
# The range of values seen so far is taken a little larger, so that not every new best value changes it.
_MARGIN = 0.25
# Values beyond this, infinite ones too, are taken as this.
_LARGEST = 1e50


@dataclass(frozen=True)
class Scale:
    """The range of values that are taken as 0 to 1 where nobody says anything about them; others are cut to it."""

    low: float
    high: float
    values: int  # of so many

    @classmethod
    def of(cls, values: Array, direction: str, before: Scale | None) -> Scale:
        """A range that holds the good values, with a margin; `before` as long as it does."""
        gains = np.clip(values if direction == "maximize" else -values, -_LARGEST, _LARGEST)
        best = float(gains.max(initial=-_LARGEST))
        if before is not None:
            top = before.high if direction == "maximize" else -before.low
            if best <= top and len(values) < 2 * max(before.values, 1):
                return before
        if not len(values):
            return cls(0.0, 1.0, 0)
        # Far worse values than most would leave the others no resolution.
        middle = float(np.median(gains))
        worst = max(float(gains.min()), middle - 3.0 * (best - middle)) if best > middle else float(gains.min())
        width = best - worst
        if width <= 1e-12 * (1.0 + abs(best)):
            width = 1.0 + abs(best)
        low, high = best - width, best + _MARGIN * width
        return cls(*((low, high) if direction == "maximize" else (-high, -low)), len(values))

    def __call__(self, value: float) -> float:
        """A value, between 0 and 1."""
        return min(max((min(max(value, -_LARGEST), _LARGEST) - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass
class Following:
    """A tuner that has seen the trials of a study, and which of them."""

    distributions: dict[str, BaseDistribution]
    tuner: Tuner
    scale: Scale | None
    followed: dict[int, Trial] = field(default_factory=dict)  # trials under way, by number
    done: set[int] = field(default_factory=set)
    constants: dict[str, Any] = field(default_factory=dict)  # of parameters that are not in the space
    beyond: tuple[int, str] | None = None  # the first trial with parameters beyond the space, and their names

    @property
    def is_whole(self) -> bool:
        """Whether the space has all parameters that trials vary."""
        return self.beyond is None

    def follow(self, trials: Iterable[FrozenTrial], current: int) -> None:
        """Learn what is new: trials that began elsewhere, that ended, that failed."""
        learnt = []
        for trial in trials:
            if trial.number in self.done or trial.number == current:
                continue
            if trial.state == TrialState.COMPLETE:
                self.done.add(trial.number)
                learnt += self._ended(trial)
            elif trial.state in (TrialState.FAIL, TrialState.PRUNED):
                self.done.add(trial.number)
                self._forget(self.followed.pop(trial.number, None))
            elif trial.state == TrialState.RUNNING:
                self._under_way(trial)
        if learnt:
            self.tuner.learn(learnt)

    def _under_way(self, trial: FrozenTrial) -> None:
        """Count a running trial as pending, where it is now: whoever chose it may have thought better of it."""
        fixed = trial.system_attrs.get("fixed_params", {})
        known = self.parameters({**self._published(trial), **fixed, **trial.params})
        pending = self.followed.get(trial.number)
        if known is None or (pending is not None and self.tuner.space.same(pending.parameters, known)):
            return
        self._forget(pending)
        self.followed[trial.number] = self.tuner.adopt(known)

    def _ended(self, trial: FrozenTrial) -> list[tuple[dict[str, Any], float]]:
        """Learn from a completed trial that was chosen here; return it if it was not."""
        known, pending = self.parameters(trial.params), self.followed.pop(trial.number, None)
        whole = known is not None and self.covers(trial)
        if self.is_whole and not whole:
            self.beyond = (trial.number, ", ".join(trial.params))
        if known is None or trial.value is None:
            self._forget(pending)
            return []
        value = trial.value if self.scale is None else self.scale(trial.value)
        try:
            self.tuner.objective.reward(np.array([value]))
        except InvalidInput as error:
            raise InvalidInput(f"trial {trial.number}: {error}") from error
        if pending is not None and self.tuner.space.same(pending.parameters, known):
            self.tuner.tell(pending, value)
            return []
        self._forget(pending)  # somebody else chose, or changed, its parameters
        return [(known, value)]

    def is_taken(self, number: int) -> bool:
        """Whether another trial that is under way has the same parameters as this one."""
        mine, same = self.followed[number].parameters, self.tuner.space.same
        if not self.tuner.space.region.continuous.any():
            return False  # there may be nothing else
        return any(n != number and same(other.parameters, mine) for n, other in self.followed.items())

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """The parameters as the tuner has them; None if they are not all there, or beyond its space."""
        space = self.tuner.space
        try:
            return space.decode(space.encode({name: value for name, value in given.items() if name in space}))
        except InvalidInput:
            return None

    def covers(self, trial: FrozenTrial) -> bool:
        """Whether a trial differs from others in parameters of the space only."""
        others = {name: value for name, value in trial.params.items() if name not in self.tuner.space}
        single = all(trial.distributions[name].single() for name in others)
        return single and all(self.constants.setdefault(name, value) == value for name, value in others.items())

    def internal(self, parameters: Mapping[str, Any]) -> dict[str, float]:
        """Parameters as Optuna stores them: numbers only, whatever choices are."""
        known = {n: v for n, v in parameters.items() if n in self.distributions}
        return {name: float(self.distributions[name].to_internal_repr(value)) for name, value in known.items()}

    def _published(self, trial: FrozenTrial) -> dict[str, Any]:
        """The parameters that a sampler of this kind chose for a trial."""
        parts = {k: v for k, v in trial.system_attrs.items() if k.startswith(f"{_CHOSEN}:")}
        if not parts:
            return {}
        found: dict[str, float] = json.loads("".join(parts[f"{_CHOSEN}:{i}"] for i in range(len(parts))))
        return {n: self.distributions[n].to_external_repr(v) for n, v in found.items() if n in self.distributions}

    def _forget(self, pending: Trial | None) -> None:
        if pending is not None:
            self.tuner.fail(pending)


def publish(study: Study, trial: FrozenTrial, parameters: dict[str, float]) -> None:
    """Let other processes know what was chosen."""
    text = json.dumps(parameters)
    for i, start in enumerate(range(0, len(text), _LONGEST_ATTRIBUTE)):
        part = text[start : start + _LONGEST_ATTRIBUTE]
        study._storage.set_trial_system_attr(trial._trial_id, f"{_CHOSEN}:{i}", part)


def as_distribution(space: Space, name: str) -> BaseDistribution:
    """Optuna's distribution of a parameter."""
    kind = space[name]
    if isinstance(kind, Categorical):
        return CategoricalDistribution(kind.choices)
    if isinstance(kind, Int):
        return IntDistribution(kind.low, int(kind.last), log=kind.log, step=kind.step)
    assert isinstance(kind, Float)
    return FloatDistribution(kind.low, kind.last, log=kind.log, step=kind.step)


def keywords(objective: Objective) -> dict[str, Any]:
    """What an objective states, but for the direction."""
    return {name: value for name, value in objective.state_dict().items() if name != "direction"}

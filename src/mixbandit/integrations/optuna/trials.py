"""A study's trials as a tuner sees them: rows and rewards of completed trials, rows of running ones.

Nothing is mirrored. Each choice starts from the study's trials; only the encoded rows of completed trials, which are
costly and cannot change, are cached by trial number.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from mixbandit._checks import Array, shown
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.integrations.optuna.storage import published
from mixbandit.means import are_comparable
from mixbandit.sequences import Moment
from mixbandit.tuning import Categorical, Float, Int, Parameter, Space, Tuner
from mixbandit.tuning.marks import by_completion, is_given_up, is_level
from mixbandit.tuning.runs import as_parameter
from mixbandit.tuning.selection import SIGMA
from mixbandit.tuning.space import same_row

_logger = logging.getLogger(__name__)

# Attribute of a trial, which users set: the standard error of its value.
SEM = "mixbandit_sem"
# A margin on the range of values so far, so that not every new best value changes it.
_MARGIN = 0.25
# Values beyond this, including infinite ones, are clipped to it.
_LARGEST = 1e50
# A trial without a usable value counts, for choosing, as this quantile of the values so far. With the worst value an
# optimum at the border of a region where trials fail is missed; with the median most trials go on failing there.
_POOR = 0.25
# At how many moments of a study that is opened again the assumptions are tested.
_MOST_LOOKS = 50


def value_of(trial: FrozenTrial) -> float | None:
    """The value of a completed trial; None for others, and for what is not the value of a single objective."""
    values = trial.values
    complete = trial.state == TrialState.COMPLETE and values is not None and len(values) == 1
    return values[0] if complete else None


@dataclass(frozen=True)
class Scale:
    """Without assumptions about values: the range that is mapped to [0, 1]; values outside are clipped."""

    low: float
    high: float
    values: int  # how many there were when it was chosen

    @classmethod
    def of(cls, values: Array, direction: str, before: Scale | None) -> Scale:
        """A range that contains the good values, with a margin; `before` as long as that does."""
        gains = np.clip(values if direction == "maximize" else -values, -_LARGEST, _LARGEST)
        best = float(gains.max(initial=-_LARGEST))
        if before is not None:
            top = before.high if direction == "maximize" else -before.low
            if best <= top and len(values) < 2 * max(before.values, 1):
                return before
        if not len(values):
            return cls(0.0, 1.0, 0)
        # Extremely bad values would leave the others no resolution.
        middle = float(np.median(gains))
        worst = max(float(gains.min()), middle - 3.0 * (best - middle)) if best > middle else float(gains.min())
        width = best - worst
        if width <= 1e-12 * (1.0 + abs(best)):
            width = 1.0 + abs(best)
        low, high = best - width, best + _MARGIN * width
        return cls(*((low, high) if direction == "maximize" else (-high, -low)), len(values))

    def __call__(self, value: float) -> float:
        """The value, scaled to [0, 1]."""
        return min(max((min(max(value, -_LARGEST), _LARGEST) - self.low) / (self.high - self.low), 0.0), 1.0)


class Seen(NamedTuple):
    """A finished trial: its row, None if its parameters do not fit the space; its reward, None if it has none."""

    row: Array | None
    reward: float | None
    level: float | None = None  # its noise level, where it is not the stated one


@dataclass
class Reading:
    """How the trials of one study are read: in this space, on this scale."""

    distributions: dict[str, BaseDistribution]
    tuner: Tuner  # without any data
    scale: Scale | None
    seen: dict[int, Seen] = field(default_factory=dict)  # finished trials, by number
    constants: dict[str, Any] = field(default_factory=dict)  # of parameters that are not in the space
    beyond: tuple[int, str] | None = None  # the first trial with parameters beyond the space, and their names
    refuted: bool = False  # whether the values have been seen to refute what was stated
    warm: Array | None = None  # where the last search ended: a hint for the next one
    learnt: tuple[tuple[int, ...], Moment] | None = None  # the last moment, and the trials it includes, in order
    pruned: bool = False  # whether trials were pruned because of their own values: the others are lucky ones
    left_out: dict[int, float] = field(default_factory=dict)  # values that cannot be learnt from, by trial number
    valueless: dict[int, Array] = field(default_factory=dict)  # rows of finished trials without a usable value
    damaged: set[int] = field(default_factory=set)  # trials whose published parameters make no sense

    @property
    def space(self) -> Space:
        return self.tuner.space

    @property
    def is_whole(self) -> bool:
        """Whether the space has all parameters that trials vary."""
        return self.beyond is None

    def moment(self, trials: Iterable[FrozenTrial]) -> Moment:
        """What is known from the completed trials."""
        # In the order in which values came, so that whoever opens the study again goes the same way.
        complete = {t.number: t for t in by_completion(t for t in trials if t.state is TrialState.COMPLETE)}
        known, moment = self.learnt or ((), self.tuner.moment)
        included = set(known)
        if not complete.keys() >= included:  # a trial has changed
            known, moment, included = (), self.tuner.moment, set()
        usable = ((number, self._seen(trial)) for number, trial in complete.items() if number not in included)
        rows = {n: (row, reward, level) for n, (row, reward, level) in usable if row is not None and reward is not None}
        added, new = tuple(rows), list(rows.values())
        # A refutation stands, so that whoever opens the study looks at earlier moments, too.
        step = max(1, math.ceil(len(new) / _MOST_LOOKS))
        for part in (new[i : i + step] for i in range(0, len(new), step)):
            seen, rewards, levels = zip(*part, strict=True)
            moment = moment.after(np.array(seen), np.array(rewards), self._weights(levels))
            self.refuted |= self.scale is None and moment.is_refuted
        self.learnt = known + added, moment
        return moment

    def _weights(self, levels: Sequence[float | None]) -> Array | None:
        """The weights of values of these noise levels; None if all have the stated one."""
        stated = self.tuner.assumptions.sigma
        if stated is None or all(level is None for level in levels):
            return None
        return self.tuner.moment.rule.weights(np.array([stated if level is None else level for level in levels]))

    def running(self, trials: Iterable[FrozenTrial], but: int | None = None) -> dict[int, Array]:
        """Rows of running trials but one, by number, if their parameters are known and in the space."""
        found = {}
        for trial in trials:
            if trial.state is TrialState.RUNNING and trial.number != but:
                row = self.row({**self._intended(trial), **trial.params})
                if row is not None:
                    found[trial.number] = row
        return found

    def _intended(self, trial: FrozenTrial) -> dict[str, Any]:
        """The parameters that a trial was to run with: chosen by such a sampler, or fixed by the user."""
        fixed = trial.system_attrs.get("fixed_params")
        fixed = fixed if isinstance(fixed, Mapping) else {}
        try:
            return {**published(trial, self.distributions), **fixed}
        except DamagedState as error:
            if trial.number not in self.damaged:
                self.damaged.add(trial.number)
                _logger.warning(
                    f"Trial {trial.number}: {error}; the parameters that the sampler published are ignored."
                )
            return dict(fixed)

    def tuner_knowing(self, trials: list[FrozenTrial], but: int | None = None) -> Tuner:
        """A tuner with these trials, except `but`, which is about to be chosen."""
        running, moment = self.running(trials, but).values(), self.moment(trials)
        begun, acting = len(trials) if but is None else but, self._imagined(moment, trials)
        options: dict[str, Any] = {"begun": begun, "acting": acting, "refuted": self.refuted, "warm": self.warm}
        return self.tuner.knowing(moment, running, **options, errors=self._errors(trials))

    def _errors(self, trials: Iterable[FrozenTrial]) -> dict[int, float]:
        """Standard errors that users attached to trials, by the places of their values in the moment."""
        assert self.learnt is not None
        attached = {trial.number: trial.user_attrs.get(SEM) for trial in trials if SEM in trial.user_attrs}
        places = enumerate(self.learnt[0]) if attached else ()
        found = {i: attached[number] for i, number in places if number in attached}
        plain = {i: e for i, e in found.items() if isinstance(e, int | float) and not isinstance(e, bool)}
        return {i: float(e) for i, e in plain.items() if 0.0 < e < _LARGEST}  # whatever else was attached says nothing

    def _imagined(self, moment: Moment, trials: Iterable[FrozenTrial]) -> Moment | None:
        """The moment as if finished trials without a usable value had returned a poor one; None without such trials.

        Otherwise a choice that always fails would be made again for ever.
        """
        for trial in trials:
            if trial.state is not TrialState.COMPLETE and trial.state.is_finished():  # completed ones have been seen
                self._seen(trial)
        without = [self.valueless[number] for number in sorted(self.valueless)]
        if not without:
            return None
        rewards = [each.reward for each in self.seen.values() if each.reward is not None]
        poor = np.quantile(rewards, _POOR) if rewards else 0.0
        return moment.after(np.array(without), np.full(len(without), poor))

    def remember(self, tuner: Tuner) -> None:
        """Keep what a tuner that was asked found on the way."""
        self.refuted |= tuner.refuted
        self.warm = tuner.state.bandit.warm

    def is_taken(self, parameters: Mapping[str, Any], others: Iterable[Array]) -> bool:
        """Whether one of the other rows has the same parameters, and there is something else to choose."""
        row = self.space.encode(parameters)
        return bool(self.space.region.continuous.any()) and any(same_row(row, other) for other in others)

    def row(self, given: Mapping[str, Any]) -> Array | None:
        """The row of these parameters; None if some are missing or outside the space."""
        try:
            return self.space.encode({name: value for name, value in given.items() if name in self.space})
        except InvalidInput:
            return None

    def covers(self, trial: FrozenTrial) -> bool:
        """Whether a trial differs from others in parameters of the space only."""
        others = {name: value for name, value in trial.params.items() if name not in self.space}
        single = all(trial.distributions[name].single() for name in others)
        return single and all(
            same_value(self.constants.setdefault(name, value), value) for name, value in others.items()
        )

    def internal(self, parameters: Mapping[str, Any]) -> dict[str, float]:
        """Parameters as Optuna stores them: numbers, even for choices."""
        known = {n: v for n, v in parameters.items() if n in self.distributions}
        return {name: float(self.distributions[name].to_internal_repr(value)) for name, value in known.items()}

    def _seen(self, trial: FrozenTrial) -> Seen:
        known = self.seen.get(trial.number)
        if known is None:
            value = value_of(trial)
            row = self.row(trial.params if value is not None else {**self._intended(trial), **trial.params})
            reward = None if value is None else self._reward(trial.number, value)
            level = trial.user_attrs.get(SIGMA) if self.scale is None else None
            if level is not None and reward is not None:
                reward = self._of_level(trial.number, reward, level)
            known = self.seen[trial.number] = Seen(row, reward, level)
            self.pruned |= is_given_up(trial)
            if row is not None and reward is None:
                self.valueless[trial.number] = row
            if value is not None and self.is_whole and (row is None or not self.covers(trial)):
                self.beyond = (trial.number, ", ".join(trial.params))
        return known

    def _of_level(self, number: int, reward: float, level: Any) -> float | None:
        """The reward, if its noise level can be used; None if not, because the stated one may be wrong for it."""
        stated = self.tuner.assumptions.sigma
        if stated is not None and is_level(level) and are_comparable(stated, np.array([level], dtype=float)).all():
            return reward
        _logger.warning(
            f"Trial {number} is ignored: its attribute {SIGMA} is {shown(level)}, but must be a positive noise level "
            "beside a stated sigma."
        )
        return None

    def _reward(self, number: int, value: float) -> float | None:
        """The reward of a completed trial; None if its value contradicts what was stated."""
        assumptions = self.tuner.assumptions
        if self.scale is not None and not math.isnan(value):
            value = self.scale(value)
        if assumptions.objection(value) is None:
            return float(assumptions.reward(np.array([value]))[0])
        self.left_out[number] = value
        self.refuted |= self.scale is None
        return None


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are equal; NaN is equal to itself here."""
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124


def modelled(name: str, distribution: BaseDistribution) -> Parameter | None:
    """The parameter of a distribution; None if it has a single value, InvalidInput if it cannot be modelled."""
    parameter = as_parameter(name, distribution)
    return None if parameter is None else Space({name: parameter})[name]


def as_distribution(space: Space, name: str) -> BaseDistribution:
    """Optuna's distribution of a parameter."""
    space.columns(name)  # InvalidInput for an unknown name
    kind = space[name]
    if isinstance(kind, Categorical):
        return CategoricalDistribution(kind.choices)
    if isinstance(kind, Int):
        return IntDistribution(kind.low, int(kind.last), log=kind.log, step=kind.step)
    assert isinstance(kind, Float)
    return FloatDistribution(kind.low, kind.last, log=kind.log, step=kind.step)


def suggest(trial: Trial, space: Space) -> dict[str, Any]:
    """The parameters of a trial: those of the space that matter, as Optuna's `suggest_…` gives them."""
    found: dict[str, Any] = {}
    for name in (*(name for name in space if name not in space.conditions), *space.conditions):  # parents come first
        if space.is_active(name, found):
            kind = as_distribution(space, name)
            if isinstance(kind, CategoricalDistribution):
                found[name] = trial.suggest_categorical(name, kind.choices)
            elif isinstance(kind, IntDistribution):
                found[name] = trial.suggest_int(name, kind.low, kind.high, log=kind.log, step=kind.step)
            else:
                assert isinstance(kind, FloatDistribution)
                found[name] = trial.suggest_float(name, kind.low, kind.high, log=kind.log, step=kind.step)
    return {name: found[name] for name in space if name in found}

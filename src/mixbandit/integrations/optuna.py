"""Optuna: a sampler that acts on confidence bounds, and a callback that stops a study once enough is proven.

The sampler keeps nothing that the study does not hold: whoever opens the study, in whatever process, goes on from its
trials. What it keeps in memory is only a cache, brought up to date by the trials that are new.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit._validation import nonnegative_int, positive, positive_int
from mixbandit.certify import StudyCertificate, certify
from mixbandit.errors import InvalidInput, MissingDependency
from mixbandit.histories import as_parameter
from mixbandit.objective import Objective
from mixbandit.policies.acting import quiet
from mixbandit.space import Categorical, Float, Int, Space
from mixbandit.tuner import EXPLORATION, INITIAL, Trial, Tuner

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise MissingDependency("this needs optuna: pip install 'mixbandit[optuna]'") from error

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)

# Attributes of a trial: the interval of its expected value when it was chosen, for people; and its parameters, for
# other processes, which see them before the objective has asked for all of them.
LOWER, UPPER = "mixbandit_lower", "mixbandit_upper"
_CHOSEN = "mixbandit:parameters"
_LONGEST_ATTRIBUTE = 2045  # of a database
# Where nobody says how noisy values are, the sampler acts as if it were so large a share of the values' range.
_GUESSED_NOISE, _DETERMINISTIC_NOISE = 0.1, 0.01
# So often a choice is made anew because another process made the same one.
_MOST_ATTEMPTS = 5
# The range of values seen so far is taken a little larger, so that not every new best value changes it.
_MARGIN = 0.25


class MixBanditSampler(BaseSampler):
    """Optuna's trials chosen by mixbandit's `Tuner`: optimism under noise, with intervals that hold.

    State what you know about values, as for `mixbandit.certify`: `reward_range` and `samples`, or `sigma` and a
    `norm_bound`. Then every trial carries the interval that its expected value lies in as user attributes
    `mixbandit_lower` and `mixbandit_upper`, and `certificate(study)` says what is guaranteed. Without it, the sampler
    goes by the range of the values so far, and certifies nothing.

    Parameters that not every trial has are sampled by `independent_sampler`, unless the whole `space`, with its
    conditions, is given. `n_startup_trials` are spread over the space, or left to an `independent_sampler` that is
    given. RUNNING trials, of other threads and processes too, count as pending.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        n_startup_trials: int = INITIAL,
        deterministic_objective: bool = False,
        warn_independent_sampling: bool = True,
        reward_range: tuple[float, float] | None = None,
        samples: int | None = None,
        sigma: float | None = None,
        norm_bound: float | None = None,
        delta: float = 0.05,
        misspecification: float = 0.0,
        exploration: float = EXPLORATION,
        space: Space | None = None,
    ) -> None:
        if space is not None and not isinstance(space, Space):
            raise InvalidInput(f"space must be a Space, got {space!r}")
        stated = Objective(reward_range, samples, sigma, norm_bound, delta, misspecification)
        self._stated = stated if reward_range is not None or sigma is not None else None
        if self._stated is None and (samples is not None or norm_bound is not None):
            raise InvalidInput("samples and norm_bound say nothing without reward_range or sigma")
        if self._stated is not None:
            if deterministic_objective:
                raise InvalidInput("deterministic_objective says that there is no noise; reward_range or sigma do not")
            _ = self._stated.noise, self._stated.norm  # what is missing is said here, not in the first trial
        self._space = space
        self._n_startup_trials = nonnegative_int(n_startup_trials, "n_startup_trials")
        self._guessed_noise = _DETERMINISTIC_NOISE if deterministic_objective else _GUESSED_NOISE
        self._exploration = exploration
        self._warn_independent_sampling = bool(warn_independent_sampling)
        self._spreads = independent_sampler is None
        self._independent_sampler = independent_sampler or RandomSampler(seed=seed)
        self._rng = np.random.default_rng(seed)
        self._intersection = optuna.search_space.IntersectionSearchSpace()
        self._cache: _Cache | None = None
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        # What is left out is found again in the study.
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_cache")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._cache = threading.RLock(), None

    def reseed_rng(self) -> None:
        """Forget the seed: called in every process but one."""
        self._rng = np.random.default_rng()
        self._cache = None
        self._independent_sampler.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The whole space where it was given, else what all completed trials share."""
        if self._space is not None:
            return {name: as_distribution(self._space, name) for name in self._space}
        with self._lock:
            shared = self._intersection.calculate(study)
        return {name: distribution for name, distribution in shared.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose the parameters of a trial together."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        # One thread at a time: the next one must see what this one chose.
        with self._lock:
            cache = self._up_to_date(study, trial, search_space)
            if not self._spreads and cache.tuner.told < self._n_startup_trials:
                return {}
            certified = self._stated is not None and cache.is_whole
            with quiet(not certified):  # what was only guessed, or leaves out parameters, may well be refuted
                chosen = self._chosen(study, trial, cache, certified)
        return dict(chosen.parameters)

    def _chosen(self, study: Study, trial: FrozenTrial, cache: _Cache, certified: bool) -> Trial:
        """What the tuner asks for, unless another process is at it already."""
        for attempts_left in reversed(range(_MOST_ATTEMPTS)):
            chosen = cache.tuner.ask()
            cache.followed[trial.number] = chosen
            self._publish(study, trial, chosen, certified=certified)
            # Two processes that chose the same at the same time both see it now, and the later trial gives way.
            running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            cache.follow(running, trial.number)
            if not (attempts_left and cache.is_taken(trial.number)):
                break
            cache.tuner.fail(cache.followed.pop(trial.number))
        return chosen

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose one parameter by itself: in the first trial, and where it is not part of every trial."""
        self._raise_error_if_multi_objective(study)
        if self._warn_independent_sampling:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= max(self._n_startup_trials, 1):
                _logger.warning(
                    f"The parameter {param_name!r} of trial {trial.number} is sampled by "
                    f"{type(self._independent_sampler).__name__}: not every trial so far has it, with the same range. "
                    "State the whole space, with its conditions, as space=mixbandit.Space({…}, {…}) to have it chosen "
                    "with the others, or pass warn_independent_sampling=False."
                )
        return self._independent_sampler.sample_independent(study, trial, param_name, param_distribution)

    def certificate(self, study: Study) -> StudyCertificate:
        """What is guaranteed of the study's best configuration; AssumptionsMissing if nothing was stated."""
        return certify(study, space=self._space, **_stated(self._stated or Objective()))

    # ---- the study, followed

    def _up_to_date(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> _Cache:
        trials = study.get_trials(deepcopy=False)
        complete = [t for t in trials if t.state == TrialState.COMPLETE]
        cache = self._cache
        if cache is None or cache.study != study._study_id or cache.distributions != search_space:
            cache = None
        objective = self._objective(study, complete, cache)
        if cache is None or cache.tuner.objective != objective:
            cache = self._cache = self._started(study, search_space, objective)
        with quiet(True):
            cache.follow(trials, trial.number)
        return cache

    def _started(self, study: Study, search_space: dict[str, BaseDistribution], objective: Objective) -> _Cache:
        space = self._space or Space({n: p for n, d in search_space.items() if (p := as_parameter(n, d)) is not None})
        tuner = Tuner(
            space,
            **_stated(objective),
            direction=objective.direction,
            exploration=self._exploration,
            initial=self._n_startup_trials if self._spreads else 0,
            rng=int(self._rng.integers(2**63)),
        )
        clip = None if self._stated is not None else objective.reward_range
        return _Cache(study._study_id, search_space, tuner, clip)

    def _objective(self, study: Study, complete: list[FrozenTrial], cache: _Cache | None) -> Objective:
        """What was stated, or else a guess from the values so far: the same one for as long as it does."""
        direction = study.direction.name.lower()
        if self._stated is not None:
            return Objective(**_stated(self._stated), direction=direction)
        values = np.array([t.value for t in complete if t.value is not None and math.isfinite(t.value)])
        if cache is not None and cache.tuner.objective.reward_range is not None:
            low, high = cache.tuner.objective.reward_range
            best_is_inside = not len(values) or (
                low <= values.min() if direction == "minimize" else values.max() <= high
            )
            if best_is_inside and len(values) < 2 * max(cache.values_then, 1):
                return cache.tuner.objective
        low, high = _range_of(values, direction)
        return Objective((low, high), sigma=self._guessed_noise * (high - low), direction=direction)

    def _publish(self, study: Study, trial: FrozenTrial, chosen: Trial, *, certified: bool) -> None:
        storage = study._storage
        text = json.dumps(chosen.parameters)
        for i, start in enumerate(range(0, len(text), _LONGEST_ATTRIBUTE)):
            part = text[start : start + _LONGEST_ATTRIBUTE]
            storage.set_trial_system_attr(trial._trial_id, f"{_CHOSEN}:{i}", part)
        if certified:
            for name, bound in zip((LOWER, UPPER), chosen.interval, strict=True):
                storage.set_trial_user_attr(trial._trial_id, name, bound)


@dataclass
class _Cache:
    """A tuner that has seen the trials of a study, and which of them."""

    study: int
    distributions: dict[str, BaseDistribution]
    tuner: Tuner
    clip: tuple[float, float] | None  # values beyond are taken as these
    followed: dict[int, Trial] = field(default_factory=dict)  # trials under way, by number
    done: set[int] = field(default_factory=set)
    values_then: int = 0  # how many values there were when the tuner was made
    is_whole: bool = True  # whether the space has all parameters that trials have

    def follow(self, trials: Iterable[FrozenTrial], current: int) -> None:
        """Learn what is new: trials that began elsewhere, that ended, that failed."""
        learnt = []
        for trial in trials:
            if trial.number in self.done or trial.number == current:
                continue
            if trial.state == TrialState.COMPLETE:
                self.done.add(trial.number)
                known = self._parameters(trial.params)
                self.is_whole &= known is not None and not self._others(trial)
                pending = self.followed.pop(trial.number, None)
                if known is None or trial.value is None:
                    self._forget(pending)
                elif pending is not None and self.tuner.space.same(pending.parameters, known):
                    self.tuner.tell(pending, self._clipped(trial.value))
                else:  # somebody else chose, or changed, its parameters
                    self._forget(pending)
                    learnt.append((known, self._clipped(trial.value)))
            elif trial.state in (TrialState.FAIL, TrialState.PRUNED):
                self.done.add(trial.number)
                self._forget(self.followed.pop(trial.number, None))
            elif trial.state == TrialState.RUNNING and trial.number not in self.followed:
                known = self._parameters({**_chosen(trial), **trial.params})
                if known is not None:
                    self.followed[trial.number] = self.tuner.adopt(known)
        if learnt:
            self.tuner.learn(learnt)
        self.values_then = self.values_then or self.tuner.told

    def is_taken(self, number: int) -> bool:
        """Whether an earlier trial that is under way has the same parameters as this one."""
        mine, same = self.followed[number].parameters, self.tuner.space.same
        if not self.tuner.space.region.continuous.any():
            return False  # there may be nothing else
        return any(n < number and same(other.parameters, mine) for n, other in self.followed.items())

    def _parameters(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """The parameters as the tuner has them; None if they are not all there, or beyond its space."""
        space = self.tuner.space
        try:
            return space.decode(space.encode({name: value for name, value in given.items() if name in space}))
        except InvalidInput:
            return None

    def _others(self, trial: FrozenTrial) -> bool:
        space = self.tuner.space
        return any(name not in space and not d.single() for name, d in trial.distributions.items())

    def _forget(self, pending: Trial | None) -> None:
        if pending is not None:
            self.tuner.fail(pending)

    def _clipped(self, value: float) -> float:
        return value if self.clip is None else min(max(value, self.clip[0]), self.clip[1])


class StopOnGap:
    """A callback for `study.optimize`: stop once no configuration can be better than the recommended one by `gap`.

    It looks after every `every` completed trials. `certificate` is what it saw last. State the same about values as for
    `mixbandit.certify`.
    """

    def __init__(self, gap: float, *, every: int = 10, **stated: Any) -> None:
        self.gap, self.every = positive(gap, "gap"), positive_int(every, "every")
        self._stated = stated
        self.certificate: StudyCertificate | None = None

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Look, now and then."""
        complete = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        if not complete or complete % self.every:
            return
        self.certificate = certify(study, **self._stated)
        if self.certificate.proven and self.certificate.trusted and self.certificate.gap <= self.gap:
            study.stop()


def as_distribution(space: Space, name: str) -> BaseDistribution:
    """Optuna's distribution of a parameter."""
    kind = space[name]
    if isinstance(kind, Categorical):
        return CategoricalDistribution(kind.choices)
    if isinstance(kind, Int):
        return IntDistribution(kind.low, kind.high, log=kind.log, step=kind.step)
    assert isinstance(kind, Float)
    return FloatDistribution(kind.low, kind.high, log=kind.log, step=kind.step)


def _stated(objective: Objective) -> dict[str, Any]:
    """What an objective states, but for the direction."""
    return {name: value for name, value in objective.state_dict().items() if name != "direction"}


def _range_of(values: np.ndarray[Any, Any], direction: str) -> tuple[float, float]:
    """A range that holds the good values, with a margin; far worse ones than most would leave it no resolution."""
    if not len(values):
        return 0.0, 1.0
    gains = values if direction == "maximize" else -values
    best, middle = float(gains.max()), float(np.median(gains))
    worst = max(float(gains.min()), middle - 3.0 * (best - middle)) if best > middle else float(gains.min())
    width = best - worst
    if width <= 1e-12 * (1.0 + abs(best)):
        width = 1.0 + abs(best)
    low, high = best - width, best + _MARGIN * width
    return (low, high) if direction == "maximize" else (-high, -low)


def _chosen(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters that some sampler of this kind chose for a trial."""
    parts = {k: v for k, v in trial.system_attrs.items() if k.startswith(f"{_CHOSEN}:")}
    if not parts:
        return {}
    found: dict[str, Any] = json.loads("".join(parts[f"{_CHOSEN}:{i}"] for i in range(len(parts))))
    return found

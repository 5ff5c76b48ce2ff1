"""The sampler.

It keeps nothing that the study does not hold: whoever opens the study, in whatever process, goes on from its trials.
What it keeps in memory is only a cache, brought up to date by the trials that are new.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from mixbandit._validation import nonnegative, nonnegative_int
from mixbandit.certify import StudyCertificate, certify
from mixbandit.errors import InvalidInput
from mixbandit.histories import as_parameter
from mixbandit.integrations.optuna.following import Following, Scale, as_distribution, keywords, publish
from mixbandit.integrations.optuna.stopping import StopOnGap
from mixbandit.objective import Objective
from mixbandit.policies.acting import quiet
from mixbandit.space import Parameter, Space
from mixbandit.tuner import EXPLORATION, INITIAL, Trial, Tuner

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)

# Attributes of a trial: the interval of its expected value when it was chosen.
LOWER, UPPER = "mixbandit_lower", "mixbandit_upper"
# Where nobody says how noisy values are, the sampler acts as if it were so large a share of the values' range.
_GUESSED_NOISE, _DETERMINISTIC_NOISE = 0.1, 0.01
# So often a choice is made anew because another process made the same one.
_MOST_ATTEMPTS = 5


class MixBanditSampler(BaseSampler):
    """Optuna's trials chosen by mixbandit's `Tuner`: optimism under noise, with intervals that hold.

    State what you know about values, as for `mixbandit.certify`: `reward_range` and `samples`, or `sigma` and a
    `norm_bound`. Then trials that were chosen as a whole carry the interval that their expected value lies in, as user
    attributes `mixbandit_lower` and `mixbandit_upper`, and `certificate(study)` says what is guaranteed. Otherwise the
    sampler goes by the range of the values so far, and certifies nothing.

    Parameters that not every trial has are sampled by `independent_sampler`, unless the whole `space`, with its
    conditions, is given. `n_startup_trials` are spread over the space, or left to an `independent_sampler` that is
    given. RUNNING trials, of other threads and processes too, count as pending. Trials that are pruned or fail do not
    count; for intervals to hold, that must have nothing to do with the noise of their values.
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
        space: Space | dict[str, Parameter] | None = None,
    ) -> None:
        stated = Objective(reward_range, samples, sigma, norm_bound, delta, misspecification)
        self._stated = stated if reward_range is not None or sigma is not None else None
        if self._stated is None and (samples is not None or norm_bound is not None):
            raise InvalidInput("samples and norm_bound say nothing without reward_range or sigma")
        if self._stated is not None:
            if deterministic_objective:
                raise InvalidInput("deterministic_objective says that there is no noise; reward_range or sigma do not")
            _ = self._stated.noise, self._stated.norm  # what is missing is said here, not in the first trial
        self._space = Space(space) if isinstance(space, dict) else space
        if self._space is not None and not isinstance(self._space, Space):
            raise InvalidInput(f"space must be a Space or a dict of parameters, got {space!r}")
        self._n_startup_trials = nonnegative_int(n_startup_trials, "n_startup_trials")
        self._guessed_noise = _DETERMINISTIC_NOISE if deterministic_objective else _GUESSED_NOISE
        self._exploration = nonnegative(exploration, "exploration")
        self._warn_independent_sampling = bool(warn_independent_sampling)
        self._independent_sampler = independent_sampler
        self._seed = int(np.random.default_rng(seed).integers(2**63))
        self._intersection = optuna.search_space.IntersectionSearchSpace()
        self._followed: tuple[Any, int] | None = None  # the storage and the id of the study
        self._cache: Following | None = None
        self._said: set[str] = set()  # what was warned of
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        # What is left out is found again in the study.
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_cache", "_followed", "_intersection")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._cache, self._followed = threading.RLock(), None, None
        self._intersection = optuna.search_space.IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        """Forget the seed, not what was learnt: Optuna calls this for every trial of a thread of its own."""
        with self._lock:
            self._seed = int(np.random.default_rng().integers(2**63))
            if self._cache is not None:
                self._cache.tuner.reseed(self._seed)
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The whole space where it was given, else what all completed trials share."""
        if self._space is not None:
            return {name: as_distribution(self._space, name) for name in self._space}
        with self._lock:
            self._turn_to(study)
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
            self._turn_to(study)
            try:
                cache = self._up_to_date(study, trial, search_space)
                self._say_what_is_missing(cache)
                if self._independent_sampler is not None and cache.tuner.told < self._n_startup_trials:
                    return {}
                # What was only guessed, or leaves out parameters, may well be refuted.
                with quiet(not self._certifies(cache)):
                    chosen = self._chosen(study, trial, cache)
            except BaseException:  # half of what is new may have been learnt: the next one begins with the study again
                self._cache = None
                raise
        return {name: value for name, value in chosen.parameters.items() if name in search_space}

    def _chosen(self, study: Study, trial: FrozenTrial, cache: Following) -> Trial:
        """What the tuner asks for, unless another process is at it already."""
        for attempts_left in reversed(range(_MOST_ATTEMPTS)):
            chosen = cache.tuner.ask()
            cache.followed[trial.number] = chosen
            publish(study, trial, cache.internal(chosen.parameters))
            # Of two processes that chose the same at the same time, at least the later one sees it now.
            running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            cache.follow(running, trial.number)
            if not (attempts_left and cache.is_taken(trial.number)):
                break
            cache.tuner.fail(cache.followed.pop(trial.number))
            # If both give way, they must not go the same way.
            cache.tuner.reseed(np.random.default_rng((self._seed, trial.number, attempts_left)))
        return chosen

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose one parameter by itself: in the first trial, and where it is not part of every trial."""
        self._raise_error_if_multi_objective(study)
        if self._warn_independent_sampling and param_name not in self._said:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= max(self._n_startup_trials, 1):
                self._said.add(param_name)
                _logger.warning(
                    f"The parameter {param_name!r} is sampled independently, first in trial {trial.number}: not every "
                    "trial so far has it, with the same range. State the whole space, with its conditions, as "
                    "space=mixbandit.Space({…}, {…}) to have it chosen with the others, or pass "
                    "warn_independent_sampling=False."
                )
        # Processes with the same seed must not draw the same numbers for different trials.
        entropy = (self._seed, trial.number, zlib.crc32(param_name.encode()))
        sampler = self._independent_sampler or RandomSampler(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Nothing of ours; the independent sampler may want to know."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Attach the interval that was known when the trial was chosen, if it was played as it was chosen."""
        with self._lock:
            cache = self._cache
            ours = cache is not None and self._followed == (study._storage, study._study_id)
            chosen = cache.followed.get(trial.number) if cache is not None and ours else None
            if cache is not None and chosen is not None and self._certifies(cache) and chosen.trusted:
                played = cache.parameters(trial.params)
                if played is not None and cache.tuner.space.same(played, chosen.parameters) and cache.covers(trial):
                    for name, bound in zip((LOWER, UPPER), chosen.interval, strict=True):
                        study._storage.set_trial_user_attr(trial._trial_id, name, bound)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def stop_on_gap(self, gap: float, *, every: int = 10) -> StopOnGap:
        """A callback for `study.optimize` that stops once the gap is proven, with what this sampler was told."""
        return StopOnGap(gap, every=every, space=self._space, **keywords(self._stated or Objective()))

    def certificate(self, study: Study) -> StudyCertificate:
        """What is guaranteed of the study's best configuration; AssumptionsMissing if nothing was stated."""
        return certify(study, space=self._space, **keywords(self._stated or Objective()))

    def _say_what_is_missing(self, cache: Following) -> None:
        if self._stated is None or cache.beyond is None or "" in self._said:
            return
        self._said.add("")
        number, has = cache.beyond
        advice = "is that what you mean?" if self._space else "state all of it as space=mixbandit.Space({…}, {…})."
        _logger.warning(
            f"Trials carry no intervals: trial {number} has the parameters {has}, the space has "
            f"{', '.join(cache.tuner.space)}; {advice}"
        )

    def _certifies(self, cache: Following) -> bool:
        return self._stated is not None and cache.is_whole

    # ---- the study, followed

    def _turn_to(self, study: Study) -> None:
        """Forget what belongs to another study."""
        now = (study._storage, study._study_id)
        if self._followed is None or self._followed[0] is not now[0] or self._followed[1] != now[1]:
            self._followed, self._cache = now, None
            self._intersection = optuna.search_space.IntersectionSearchSpace()

    def _up_to_date(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> Following:
        trials = study.get_trials(deepcopy=False)
        cache = self._cache
        if cache is not None and cache.distributions != search_space:
            cache = None
        scale: Scale | None = None
        if self._stated is None:
            values = np.array([t.value for t in trials if t.state == TrialState.COMPLETE and t.value is not None])
            scale = Scale.of(values, study.direction.name.lower(), None if cache is None else cache.scale)
            if cache is not None and cache.scale != scale:
                cache = None
        if cache is None:
            cache = self._cache = self._started(study.direction.name.lower(), search_space, scale)
        with quiet(True):
            cache.follow(trials, trial.number)
        return cache

    def _started(self, direction: str, search_space: dict[str, BaseDistribution], scale: Scale | None) -> Following:
        guess = Objective((0.0, 1.0), sigma=self._guessed_noise)
        tuner = Tuner(
            self._space or Space({n: p for n, d in search_space.items() if (p := as_parameter(n, d)) is not None}),
            **keywords(self._stated or guess),
            direction=direction,
            exploration=self._exploration,
            initial=self._n_startup_trials if self._independent_sampler is None else 0,
            # Whoever begins with the study again goes on with the same beginning.
            rng=self._seed,
        )
        return Following(search_space, tuner, scale)

"""The sampler.

It keeps nothing that is not in the study: any process that opens the study continues from its trials.
"""

from __future__ import annotations

import logging
import math
import threading
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from mixbandit._checks import as_generator, flag, nonnegative, nonnegative_int, positive_int, shown
from mixbandit.errors import STATEMENTS, AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.integrations.optuna.certifying import certify_study
from mixbandit.integrations.optuna.confirming import confirmation
from mixbandit.integrations.optuna.finalists import ConfirmFinalists
from mixbandit.integrations.optuna.saying import Said
from mixbandit.integrations.optuna.stopping import StopOnGap, as_space
from mixbandit.integrations.optuna.storage import attach, identity, publish
from mixbandit.integrations.optuna.trials import Reading, Scale, as_distribution, modelled, value_of
from mixbandit.tuning import Assumptions, Parameter, Space, StudyCertificate, Trial, Tuner
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.confirming import Confirmation
from mixbandit.tuning.finals import SETTLED
from mixbandit.tuning.ledgers import refuted_in_words
from mixbandit.tuning.selection import LEFT_OUT
from mixbandit.tuning.space import same_row
from mixbandit.tuning.tuner import INITIAL

if TYPE_CHECKING:
    from optuna.study import Study

_logger = logging.getLogger(__name__)

# Attributes of a trial: the interval of its expected value, known when it was chosen.
LOWER, UPPER = "mixbandit_lower", "mixbandit_upper"
# Attribute of a trial that was chosen after the values had refuted the assumptions.
REFUTED = "mixbandit_refuted"
# If the noise is not stated, the sampler acts as if it were this share of the values' range.
_GUESSED_NOISE, _DETERMINISTIC_NOISE = 0.1, 0.01
# How often to choose again because another process made the same choice.
_MOST_ATTEMPTS = 5


class MixBanditSampler(BaseSampler):
    """Optuna's trials, chosen by mixbandit's `Tuner`, with intervals for their expected values.

    State what you know about values, as `mixbandit.Assumptions` or its keywords: `reward_range` and `samples`, or
    `sigma` and a `norm_bound`. Then trials whose parameters were all chosen together carry an interval for their
    expected value, as user attributes `mixbandit_lower` and `mixbandit_upper`, and `certificate(study)` says what is
    guaranteed. Once values have refuted the assumptions, trials carry `mixbandit_refuted` instead. If nothing is
    stated, the sampler uses the range of the values so far and certifies nothing.

    State `n_trials`, the number of trials the study will have, if you know it: the last quarter of them then repeats
    the best so far until its worth is known, which `certificate` and a later `confirm` build on. A trial may have the
    standard error of its value as user attribute `mixbandit_sem`: precise values count for more in choosing. Or it may
    have a noise level that was known before the value, as `mixbandit_sigma`, which counts in bounds too.

    Parameters that only some trials have are sampled by `independent_sampler`, unless the whole `space`, with its
    conditions, is given. The first `n_startup_trials` are spread over the space, or left to `independent_sampler` if
    given. RUNNING trials, including those of other threads and processes, count as pending.

    Pruned and failed trials have no value; for intervals to hold, the reason must not depend on the noise of their
    values. A value that contradicts the assumptions, infinite or outside `reward_range`, does not stop the study. Its
    trial is left out, with the reason as user attribute `mixbandit_left_out`; from then on no trial carries an
    interval, and certificates are not trusted. For choosing only, trials without a usable value count as poor ones, so
    that the sampler moves on.

    Constraints (`trial.set_constraint`, or `constraints_func` of other samplers) are ignored for choosing: the sampler
    learns from infeasible trials like from any others. `certificate` recommends none of them.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        n_startup_trials: int = INITIAL,
        deterministic_objective: bool = False,
        warn_independent_sampling: bool = True,
        assumptions: Assumptions | None = None,
        exploration: float | None = None,
        space: Space | dict[str, Parameter] | None = None,
        n_trials: int | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        known = Assumptions.of(assumptions, stated)
        self._stated = known if known.is_stated else None
        if self._stated is None and (known.samples is not None or known.norm_bound is not None):
            raise InvalidInput(f"samples and norm_bound need reward_range or sigma; {STATEMENTS}")
        for name, choice in (
            ("deterministic_objective", deterministic_objective),
            ("warn_independent_sampling", warn_independent_sampling),
        ):
            flag(choice, name)
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise InvalidInput(f"independent_sampler must be an Optuna sampler, got {shown(independent_sampler)}")
        if self._stated is not None:
            if deterministic_objective:
                raise InvalidInput("deterministic_objective means no noise, but reward_range and sigma imply noise")
            self._stated.check_rows_vary()
            self._stated.check_complete()  # report missing assumptions here, not in the first trial
        self._space = as_space(space)
        self._n_startup_trials = nonnegative_int(n_startup_trials, "n_startup_trials")
        self._guessed_noise = _DETERMINISTIC_NOISE if deterministic_objective else _GUESSED_NOISE
        self._n_trials = None if n_trials is None else positive_int(n_trials, "n_trials")
        self._exploration = None if exploration is None else nonnegative(exploration, "exploration")
        self._warn_independent_sampling = warn_independent_sampling
        self._independent_sampler = independent_sampler
        self._seed = int(as_generator(seed, "seed").integers(2**63))
        self._said = Said()
        self._forget()

    def _forget(self) -> None:
        """Start afresh from the study."""
        self._lock = threading.RLock()
        self._study: tuple[Any, int] | None = None
        self._reading: Reading | None = None
        self._chosen: dict[int, Trial] = {}  # by number, until their trials end
        self._intersection = optuna.search_space.IntersectionSearchSpace()

    def __getstate__(self) -> dict[str, Any]:
        # The rest is recovered from the study.
        gone = ("_lock", "_study", "_reading", "_chosen", "_intersection")
        return {k: v for k, v in self.__dict__.items() if k not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Forget the seed, not what was learnt: Optuna calls this for trials that run in their own threads."""
        with self._lock:
            self._seed = int(np.random.default_rng().integers(2**63))
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The whole space if given, otherwise what all completed trials share."""
        with self._lock:
            self._turn_to(study)
            return self._search_space(study)

    def _search_space(self, study: Study) -> dict[str, BaseDistribution]:
        if self._space is not None:
            return {name: as_distribution(self._space, name) for name in self._space}
        shared = self._intersection.calculate(study)
        known = {} if self._reading is None else self._reading.distributions
        found = {}
        for name, distribution in shared.items():
            try:
                if known.get(name) == distribution or modelled(name, distribution) is not None:
                    found[name] = distribution
            except InvalidInput as error:
                if self._said.is_new(study, f"parameter {name}"):
                    _logger.warning(f"The parameter {name!r} is sampled independently: {error}")
        return found

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose the parameters of a trial together."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        # One thread at a time: each must see what the previous one chose.
        with self._lock:
            self._turn_to(study)
            chosen = self._choose(study, trial, search_space)
        return {} if chosen is None else {n: v for n, v in chosen.parameters.items() if n in search_space}

    def _choose(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> Trial | None:
        """The tuner's choice, unless another process already has it; None in a startup phase that is not ours."""
        trials = study.get_trials(deepcopy=False)
        reading = self._read(study, trials, search_space)
        tuner = reading.tuner_knowing(trials, but=trial.number)
        self._report(study, reading)
        if self._independent_sampler is not None and tuner.told < self._n_startup_trials:
            return None
        if self._stated is not None and reading.is_whole and tuner.refuted and self._said.is_new(study, "refuted"):
            tuner.say_refuted()
        budget = self._n_trials
        settling = budget is not None and (1.0 - SETTLED) * budget <= trial.number < budget
        searching = budget is not None and trial.number < budget
        for attempt in range(_MOST_ATTEMPTS):
            # Seed and trial number: processes with the same seed must not all make the same choice.
            asked = tuner.copy().reseed(np.random.default_rng((self._seed, trial.number, attempt)))
            chosen = asked.settle() if settling else asked.search() if searching else asked.ask()
            reading.remember(asked)
            publish(study, trial, reading.internal(chosen.parameters))
            # If two processes made the same choice at the same time, at least the later one sees it now.
            trials = study.get_trials(deepcopy=False)
            if settling or not reading.is_taken(chosen.parameters, reading.running(trials, but=trial.number).values()):
                break
            # The others' choices are pending now, so the next one avoids them.
            tuner = reading.tuner_knowing(trials, but=trial.number)
        self._chosen[trial.number] = chosen
        return chosen

    def tuner(self, study: Study) -> Tuner:
        """A tuner with the completed and running trials of the study.

        It ignores constraints; `certificate` does not, and recommends no trial that violates them.
        """
        with self._lock:
            self._turn_to(study)
            trials, search_space = study.get_trials(deepcopy=False), self._search_space(study)
            if not search_space:
                raise InvalidInput(
                    "no parameter that can be modelled is in all completed trials, so there is no space yet"
                )
            return self._read(study, trials, search_space).tuner_knowing(trials)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose one parameter on its own: in the first trial, and if only some trials have it."""
        self._raise_error_if_multi_objective(study)
        if self._warn_independent_sampling:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= max(self._n_startup_trials, 1) and self._said.is_new(study, f"parameter {param_name}"):
                _logger.warning(
                    f"The parameter {shown(param_name)} is sampled independently from trial {trial.number} on: not "
                    "every trial so far has it with the same range. State the whole space, with its conditions, as "
                    "space=mixbandit.Space({…}, {…}) to have it chosen with the others, or pass "
                    "warn_independent_sampling=False."
                )
        # Processes with the same seed must not draw the same numbers for different trials.
        entropy = (self._seed, trial.number, zlib.crc32(param_name.encode(errors="surrogatepass")))
        sampler = self._independent_sampler or RandomSampler(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Only passed on to the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Attach the interval known when the trial was chosen, if it ran with the chosen parameters.

        A trial chosen after a refutation is marked as `mixbandit_refuted` instead, and one whose value contradicts what
        was stated with what is wrong, as `mixbandit_left_out`.
        """
        wrong = None
        if state == TrialState.COMPLETE and values and self._stated is not None:
            wrong = self._stated.objection(values[0])
        with self._lock:
            if wrong is not None and values:
                _say_left_out(self._said, self._stated, study, trial.number, values[0])
                attach(study, trial, {LEFT_OUT: wrong})
            ours = self._study == identity(study)
            reading, chosen = self._reading, self._chosen.pop(trial.number, None) if ours else None
            if (
                reading is not None
                and chosen is not None
                and wrong is None
                and self._stated is not None
                and reading.is_whole
                and not reading.pruned
            ):
                played = reading.row(trial.params)
                as_chosen = played is not None and same_row(played, chosen.choice.action)
                if not chosen.trusted:
                    attach(study, trial, {REFUTED: True})
                elif as_chosen and reading.covers(trial):
                    attach(study, trial, dict(zip((LOWER, UPPER), chosen.interval, strict=True)))
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def stop_on_gap(self, gap: float, *, every: int = 10) -> StopOnGap:
        """A callback for `study.optimize` that stops once the gap is proven, under this sampler's assumptions."""
        return StopOnGap(gap, every=every, space=self._space, assumptions=self._stated or Assumptions())

    def confirm_finalists(self, n: int, *, after: int, finalists: int = 3) -> ConfirmFinalists:
        """A callback for `study.optimize` that confirms finalists after a search, under this sampler's assumptions."""
        stated = self._stated or Assumptions()
        return ConfirmFinalists(n, after=after, finalists=finalists, space=self._space, assumptions=stated)

    def certificate(self, study: Study, *, warn: bool = True) -> StudyCertificate:
        """What is guaranteed about the study's best configuration; AssumptionsMissing if nothing was stated.

        Trials whose values contradict the assumptions are left out and counted, and nothing is guaranteed then. The
        certificate says so; `warn` says whether to issue a warning as well.
        """
        aloud = flag(warn, "warn")
        which, stated = identity(study), self._stated or Assumptions()
        stated.check_complete()
        with self._lock:
            reading = self._reading if self._study == which else None
            refuted = reading is not None and reading.is_whole and reading.refuted
        found = certify_study(study, stated.towards(study.directions[0].name.lower()), self._space, refuted=refuted)
        if not found.trusted and aloud:
            warn_user(refuted_in_words(found, found.assumptions), AssumptionsRefutedWarning)
        return found

    def confirm(self, study: Study, n: int, finalists: int = 3) -> Confirmation[optuna.Trial]:
        """Up to n more trials of the configurations that look best: an iterator of Optuna trials, to be run and told.

        `for trial in sampler.confirm(study, 20): study.tell(trial, objective(trial))`. Each is chosen when it is
        requested. Confirmations have their own share of δ, so they raise the certified value far more than other trials
        do; the user attribute `mixbandit_nomination` says which finalist a trial confirms.
        """
        stated = self._stated or Assumptions()
        stated.check_complete()
        count, most = positive_int(n, "n"), positive_int(finalists, "finalists")
        return confirmation(study, stated.towards(study.direction.name.lower()), self._space, count, most)

    def _report(self, study: Study, reading: Reading) -> None:
        """Say, once, what is left out and what carries no guarantee."""
        for number, value in reading.left_out.items():
            _say_left_out(self._said, self._stated, study, number, value)
        if self._stated is None or reading.beyond is None or not self._said.is_new(study, "beyond"):
            return
        number, has = reading.beyond
        advice = "is that intended?" if self._space else "state the whole space as space=mixbandit.Space({…}, {…})."
        _logger.warning(
            f"Trials carry no intervals: trial {number} has the parameters {has}, but the space has "
            f"{', '.join(reading.space)}; {advice}"
        )

    def _turn_to(self, study: Study) -> None:
        """Forget everything about another study."""
        now = identity(study)
        if self._study is None or self._study[0] is not now[0] or self._study[1] != now[1]:
            self._study, self._reading, self._chosen = now, None, {}
            self._intersection = optuna.search_space.IntersectionSearchSpace()

    def _read(self, study: Study, trials: list[FrozenTrial], search_space: dict[str, BaseDistribution]) -> Reading:
        """How to read the study's trials: as before, unless its space or the scale of its values changed."""
        direction, reading = study.direction.name.lower(), self._reading
        if reading is not None and reading.distributions != search_space:
            reading = None
        scale: Scale | None = None
        if self._stated is None:
            known = [value for trial in trials if (value := value_of(trial)) is not None]
            values = np.array([value for value in known if not math.isnan(value)])
            scale = Scale.of(values, direction, None if reading is None else reading.scale)
        if reading is None or reading.scale != scale:
            space = self._space or Space({n: p for n, d in search_space.items() if (p := modelled(n, d)) is not None})
            guess = Assumptions((0.0, 1.0), sigma=self._guessed_noise)
            assumptions = (self._stated or guess).towards(direction)
            initial = self._n_startup_trials if self._independent_sampler is None else 0
            # The same seed each time: a restarted process continues the same initial sequence.
            tuner = Tuner(space, assumptions, exploration=self._exploration, initial=initial, rng=self._seed)
            reading = self._reading = Reading(search_space, tuner, scale)
        return reading


def _say_left_out(said: Said, stated: Assumptions | None, study: Study, number: int, value: float) -> None:
    if said.is_new(study, f"trial {number}"):
        why = (stated or Assumptions()).objection(value)
        nothing = "" if stated is None else " Nothing is guaranteed about this study any longer."
        _logger.warning(f"Trial {number} is left out, {why}: {value:g}.{nothing}")

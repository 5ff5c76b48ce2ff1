"""Tuning under noise: ask for configurations, tell their values, and get an answer that carries a certificate."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from mixbandit import plots
from mixbandit._extras import import_extra
from mixbandit._statefile import read_state, write_state
from mixbandit._validation import Array, as_generator, as_number, nonnegative_int, one_of, positive_int
from mixbandit.acquisition import Optimism, Pessimism, search_box
from mixbandit.certify import StudyCertificate, study_certificate
from mixbandit.confidence import Audit, MartingaleMixture
from mixbandit.errors import AssumptionsRefutedWarning, DamagedState, InvalidInput, reading, warn_user
from mixbandit.features import FeatureMap
from mixbandit.forecasters import Forecaster, Mixture
from mixbandit.histories import read_history
from mixbandit.objective import Objective
from mixbandit.policies import UCB, Choice
from mixbandit.policies.acting import nudged, quiet
from mixbandit.space import Space

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Chosen by measurement (docs/tuning.md): acting on a twentieth of the half-width earns more than on all of it, once a
# few trials are spread over the space. Bounds that are reported are never scaled.
EXPLORATION, INITIAL = 0.05, 10
# What only reads searches with a seed of its own: to look must not change what is asked next.
_READING_SEED = 0


@dataclass(frozen=True)
class Trial:
    """A configuration to try, and the interval that its expected value was known to lie in when it was chosen."""

    id: int
    parameters: dict[str, Any]
    interval: tuple[float, float]
    trusted: bool = True  # False: the values refute what was stated, and nothing is guaranteed


@dataclass(frozen=True)
class Told:
    """A value that came in, with the interval of its trial; what was learnt from elsewhere has none."""

    parameters: dict[str, Any]
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Recommendation:
    """A configuration, and the interval that its expected value lies in with probability 1 − δ."""

    parameters: dict[str, Any]
    interval: tuple[float, float]
    by: str
    trusted: bool = True  # False: the values refute what was stated, and nothing is guaranteed


class Tuner:
    """Choose configurations of a space by noisy values, one at a time or in batches, and certify the answer.

    State what you know about values, as for `certify`: `reward_range` and `samples`, or `sigma` and a `norm_bound`. The
    noise of different trials must be independent: draw new validation data for every trial.
    After `initial` trials that are spread over the space, the tuner plays optimism on closed-form bounds whose width is
    scaled by `exploration`, or on `exact` ones, which takes longer; how it acts never changes what it guarantees.
    Values may come late and in any order; trials that fail are given up with `fail`.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        *,
        reward_range: tuple[float, float] | None = None,
        samples: int | None = None,
        sigma: float | None = None,
        norm_bound: float | None = None,
        delta: float = 0.05,
        direction: str = "maximize",
        features: FeatureMap | None = None,
        mixture: Mixture | Forecaster | None = None,
        misspecification: float = 0.0,
        exploration: float = EXPLORATION,
        initial: int = INITIAL,
        exact: bool = False,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.space = space if isinstance(space, Space) else Space(space)
        self.objective = Objective(reward_range, samples, sigma, norm_bound, delta, misspecification, direction)
        sequence = self.objective.sequence(self.space, features, mixture)
        self.initial = nonnegative_int(initial, "initial")
        self._spread_used = 0
        self._said_refuted = False
        self._history: list[Told] = []
        generator = as_generator(rng)
        self._spread_seed = int(generator.integers(2**32))
        self._policy = UCB(
            sequence,
            self.space.region,
            None if exact else sequence.alpha0,
            exploration,
            rng=generator,
            track_regret=False,
            quick=True,
        )

    def __repr__(self) -> str:
        return f"Tuner({list(self.space)}, {self.objective}, told={self.told}, pending={len(self.pending)})"

    @property
    def told(self) -> int:
        """How many values it has learnt from."""
        return self._sequence.t

    @property
    def pending(self) -> tuple[Trial, ...]:
        """Trials that were asked for, and neither told nor failed."""
        return tuple(map(self._trial, self._policy.pending))

    @property
    def history(self) -> tuple[Told, ...]:
        """All values so far, in the order in which they came."""
        return tuple(self._history)

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """What to try next; with `n`, a list of as many, in which no two are equal where a parameter is continuous."""
        count = 1 if n is None else positive_int(n, "n")
        spread = min(max(self.initial - self.told - len(self._policy.pending), 0), count)
        before, used, choices = self._policy._before_asking(), self._spread_used, []
        try:
            with self._own_words():
                for row in self._spread(spread):
                    choices += [self._policy.adopt(row)]
                if spread < count:
                    choices += [self._as_configuration(choice) for choice in self._policy.ask(n=count - spread)]
        except BaseException:  # also an interrupt: what nobody was given is not pending
            self._policy._take_back(before, choices)
            self._spread_used = used
            raise
        trials = [self._trial(choice) for choice in choices]
        return trials[0] if n is None else trials

    @contextlib.contextmanager
    def _own_words(self) -> Iterator[None]:
        """If assumptions turn out to be refuted meanwhile, say so once, in the user's units."""
        with quiet(True):
            yield
        if not self._said_refuted and self._policy.refuted:
            self._said_refuted = True
            warn_user(
                f"at level {self.objective.delta:g} the values refute {self.objective}, or that expected values are "
                "linear in the features: nothing is guaranteed any more; audit() tells more",
                AssumptionsRefutedWarning,
            )

    def _spread(self, count: int) -> Iterator[Array]:
        """The next rows of the beginning, none of which is pending."""
        if not count:
            return
        # Past what was learnt elsewhere, too: that may have begun with the same configurations.
        first = max(self._spread_used, self.told + len(self._policy.pending))
        region = self.space.region
        for row in self.space.encode_all(self.space.spread(first + count, rng=self._spread_seed)[first:]):
            pending = [choice.action for choice in self._policy.pending]
            yield self.space.snapped(nudged(row, region, pending, self._policy._rng))
        self._spread_used = first + count

    def _as_configuration(self, choice: Choice) -> Choice:
        """The choice at a row that stands for a configuration, where a parameter has too many values to list them."""
        row = self.space.snapped(choice.action)
        if row is choice.action:
            return choice
        self._policy.cancel(choice)
        return self._policy.adopt(row)

    def adopt(self, parameters: Mapping[str, Any]) -> Trial:
        """Count a configuration of somebody else's as a trial, to be told like any other: what is tried already."""
        with self._own_words():
            choice = self._policy.adopt(self.space.encode(parameters))
        return dataclasses.replace(self._trial(choice), parameters=dict(parameters))

    def tell(self, trial: Trial | int, value: float) -> Self:
        """The value of a trial, by itself or its id."""
        number = as_number(value, "value")
        reward = float(self.objective.reward(np.array([number]))[0])
        choice = self._waiting(trial)
        known = self._trial(choice)
        with self._recorded([Told(known.parameters, number, known.interval)]):
            self._policy.tell(choice, reward)
        return self

    def fail(self, trial: Trial | int) -> Self:
        """Give up a trial that brings no value. What made it fail must have nothing to do with its noise."""
        self._policy.cancel(self._waiting(trial))
        return self

    def learn(self, history: Any, *, value: str | None = None) -> Self:
        """Learn from a run that is there already: whatever `certify` reads, of this space and direction.

        An Optuna study says its direction, which must be the tuner's; a table does not.
        """
        run = read_history(history, space=self.space, value=value)
        if getattr(history, "directions", None) is not None and run.direction != self.objective.direction:
            raise InvalidInput(f"the study wants to {run.direction}, this tuner to {self.objective.direction}")
        rewards = self.objective.reward(run.values)
        values = zip(run.configurations, run.values.tolist(), strict=True)
        with self._recorded([Told(dict(configuration), number) for configuration, number in values]):
            self._policy.learn(run.rows, rewards)
        return self

    @contextlib.contextmanager
    def _recorded(self, told: list[Told]) -> Iterator[None]:
        """Keep what is about to be learnt, unless that fails."""
        before = len(self._history)
        self._history += told
        try:
            yield
        except BaseException:
            del self._history[before:]
            raise

    def recommend(self, by: str = "lower") -> Recommendation:
        """The configuration with the best guaranteed value (by "lower"), or with the best estimate (by "mean")."""
        one_of(by, ("lower", "mean"), "by")
        self._check_told()
        rng = np.random.default_rng(_READING_SEED)
        with quiet(True):
            # What the certificate begins with, so that it is about the same configuration.
            score = Pessimism(self._sequence, None) if by == "lower" else Optimism(self._sequence, None, 0.0)
            row = search_box(score, self._sequence.features, self.space.region, rng, warm=self._policy._warm).action
            row = self.space.snapped(row)
            interval, trusted = self._interval_at(row), not self._policy.refuted
        return Recommendation(self.space.decode(row), interval, by, trusted)

    def certificate(self) -> StudyCertificate:
        """What is guaranteed of the recommended configuration, and which ones can still be better."""
        self._check_told()
        rng = np.random.default_rng(_READING_SEED)
        return study_certificate(self._sequence, self.objective, self.space, rng, warm=self._policy._warm)

    def reseed(self, rng: int | np.random.Generator | None) -> Self:
        """Go on with other random numbers: for copies that must not all choose the same."""
        self._policy._rng = as_generator(rng)
        return self

    def audit(self) -> Audit:
        """What the values say about what was stated."""
        return dataclasses.replace(self._sequence.audit(), reward_range=self.objective.reward_range)

    def interval(self, parameters: Mapping[str, Any]) -> tuple[float, float]:
        """Between what the expected value of a configuration lies, tried or not."""
        with quiet(True):
            return self._interval_at(self.space.encode(parameters))

    def _interval_at(self, row: Array) -> tuple[float, float]:
        return self.objective.interval(float(self._sequence.lower(row)[0]), float(self._sequence.upper(row)[0]))

    def _check_told(self) -> None:
        if not self.told:
            raise InvalidInput("there is nothing to recommend: no value has been told yet")

    def to_frame(self) -> pd.DataFrame:
        """The history as a pandas DataFrame with columns named as Optuna's, which `certify` reads."""
        rows = [
            {
                "value": told.value,
                **{f"params_{name}": value for name, value in told.parameters.items()},
                **dict(zip(("lower", "upper"), told.interval or (), strict=False)),
            }
            for told in self._history
        ]
        frame: pd.DataFrame = import_extra("pandas", extra="frames").DataFrame(rows)
        return frame

    def plot(self) -> Figure:
        """Values as they came, with the intervals that were known before, and that of the recommended configuration."""
        self._check_told()
        fig, (ax,) = plots.figure(width=6.0)
        nothing = (math.nan, math.nan)
        ends = np.array([told.interval or nothing for told in self._history]).reshape(-1, 2)
        values = np.array([told.value for told in self._history])
        t = np.arange(1.0, len(values) + 1.0)
        plots.outcomes(ax, t, ends[:, 0], ends[:, 1], values, np.full(len(values), math.nan))
        low, high = self.recommend().interval
        for end, label in ((low, "the recommended one's interval"), (high, None)):
            ax.axhline(end, color=plots.COLOURS[1], linestyle="--", linewidth=1.5, label=label)
        margin = 0.05 * (max(high, values.max()) - min(low, values.min()))
        bottom, top = min(low, values.min()) - margin, max(high, values.max()) + margin
        ax.set(xlabel="trial, in the order of values", ylabel="value", ylim=(bottom, top))
        ax.legend(fontsize="small", loc="best")
        return fig

    @property
    def _sequence(self) -> MartingaleMixture:
        sequence = self._policy.sequence
        assert isinstance(sequence, MartingaleMixture)
        return sequence

    def _waiting(self, trial: Trial | int) -> Choice:
        """The pending choice that a trial, or its id, stands for; InvalidInput for any other."""
        number = trial.id if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InvalidInput(f"a trial is given by itself or its id, got {trial!r}")
        pending = self._policy.pending
        known = next((choice for choice in pending if choice.id == number), None)
        if known is None:
            waiting = ", ".join(str(choice.id) for choice in pending[:5]) or "none"
            problem = "has been told or has failed already" if 0 <= number < self._policy.rounds else "is unknown"
            raise InvalidInput(f"trial {number} {problem}; waiting for values: {waiting}")
        if isinstance(trial, Trial) and not self.space.same(trial.parameters, self.space.decode(known.action)):
            raise InvalidInput(f"trial {number} was asked of another tuner: here it is {self._trial(known)}")
        return known

    def _trial(self, choice: Choice) -> Trial:
        interval = self.objective.interval(choice.lower, choice.upper)
        return Trial(choice.id, self.space.decode(choice.action), interval, choice.trusted)

    # ---- files

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "type": "Tuner",
            "space": self.space.state_dict(),
            "objective": self.objective.state_dict(),
            "policy": self._policy.state_dict(),
            "initial": self.initial,
            "spread_seed": self._spread_seed,
            "spread_used": self._spread_used,
            "history": [dataclasses.asdict(told) for told in self._history],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], features: FeatureMap | None = None) -> Self:
        """The tuner that `state_dict` described; `features` again if they are a user's function."""
        if state.get("type") != "Tuner":
            raise DamagedState(f"this is the state of a {state.get('type')!r}, not of a Tuner")
        new = cls.__new__(cls)
        with reading("the tuner"):
            new.space = Space.from_state_dict(state["space"])
            new.objective = Objective.from_state_dict(state["objective"])
            new.initial = int(state["initial"])
            new._spread_seed, new._spread_used = int(state["spread_seed"]), int(state["spread_used"])
            new._said_refuted = False
            new._history = [
                Told(part["parameters"], part["value"], part["interval"] and tuple(part["interval"]))
                for part in state["history"]
            ]
            new._policy = UCB.from_state_dict(state["policy"], features)
        return new

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically; pending trials are part of it."""
        write_state(path, self.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], features: FeatureMap | None = None) -> Self:
        """Go on from a file, bit for bit."""
        return cls.from_state_dict(read_state(path), features)

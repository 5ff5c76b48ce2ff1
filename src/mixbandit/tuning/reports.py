"""What a tuner knows: recommendations, intervals, certificates, tables and pictures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixbandit import bandits, plots
from mixbandit._checks import Array, flag, one_of
from mixbandit._extras import import_extra
from mixbandit._locks import Lock, locked
from mixbandit.bandits import persistent
from mixbandit.bandits.choosing import READING_SEED
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import Audit, Moment, as_moment
from mixbandit.tuning.assumptions import Assumptions, ModelLike, check_values
from mixbandit.tuning.comparing import Comparison, compare
from mixbandit.tuning.confirming import Finalist
from mixbandit.tuning.default_model import in_words
from mixbandit.tuning.evidence import Trials
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.ledgers import alarms_in_words, of_alarms
from mixbandit.tuning.modelling import certifying
from mixbandit.tuning.recommending import certificate_fields, likeliest, safest
from mixbandit.tuning.selection import NOMINATION, SIGMA
from mixbandit.tuning.space import Space
from mixbandit.tuning.study_certificate import StudyCertificate
from mixbandit.tuning.trials import Recommendation, Told, TrustedInterval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_IGNORED = {"sem": "standard errors are estimates and bound nothing: they only affect what is tried next"}


class Note(NamedTuple):
    """What is known of a pending trial beyond its choice."""

    parameters: Mapping[str, Any] | None = None  # as they were given
    nomination: int = 0  # the number of the finalist that it confirms; 0 if none


class Failed(NamedTuple):
    """A trial that returned no value."""

    row: Array
    told: int  # the number of values told before


class TunerState(NamedTuple):
    """The whole mutable state of a tuner: one frozen value, replaced on every change."""

    bandit: bandits.State
    history: persistent.Map = persistent.EMPTY  # values, in the order in which they came
    spread_used: int = 0  # initial configurations asked for so far
    said_refuted: bool = False  # whether the user has been told that the values refute the assumptions
    nominated: tuple[Finalist, ...] = ()  # finalists, in the order of their nomination
    notes: persistent.Map = persistent.EMPTY  # about pending trials, by id
    ordered: bool = True  # whether values came in the order of play
    errors: persistent.Map = persistent.EMPTY  # standard errors of values, by their places in the history
    failed: tuple[Failed, ...] = ()  # the latest failures


def values_of(state: TunerState) -> tuple[Told, ...]:
    """All values, not to be handed out: their parameters are shared with the state."""
    return tuple(persistent.values(state.history))


class Reports:
    """The reading half of a tuner."""

    space: Space
    assumptions: Assumptions
    state: TunerState
    lock: Lock  # held while the state changes
    model: tuple[ModelLike | None, Mixture | Forecaster | None]  # features and mixture, where they were given
    _judged: tuple[Any, Judgement] | None = None

    @property
    def moment(self) -> Moment:
        """What the tuner acts on, in terms of rewards."""
        return as_moment(self.state.bandit.moment)

    @property
    def history(self) -> tuple[Told, ...]:
        """All values so far, in the order in which they came."""
        return tuple(dataclasses.replace(told, parameters=dict(told.parameters)) for told in values_of(self.state))

    @property
    def _levels(self) -> Array | None:
        """The noise levels of the values in the history, (t,); None if they are all the stated one."""
        told = [each.sigma for each in persistent.values(self.state.history)]
        if all(level is None for level in told):
            return None
        return np.array([self.assumptions.sigma if level is None else level for level in told], dtype=float)

    @property
    def refuted(self) -> bool:
        """Whether the values have refuted the assumptions at any time."""
        return self.state.bandit.refuted or self.moment.is_refuted

    @property
    def _hints(self) -> Array | None:
        """Rows from which searches for the best bounds start, besides random ones."""
        return self.state.bandit.warm

    @property
    def judgement(self) -> Judgement:
        """All that is known about configurations, from the model and from their own trials."""
        now = self.state.history, self.state.bandit.moment, self.refuted
        judged = self._judged
        if judged is None or judged[0] != now:
            judged = self._judged = now, self._judge()
        return judged[1]

    def _judge(self, model: Moment | None = None) -> Judgement:
        """With an earlier `model`, what it says still holds, and need not be made again."""
        history, known = values_of(self.state), self.assumptions
        if len(history) != self.moment.t:  # values that came without their trials, as through the sampler
            return Judgement(self.space, known, self.moment, None, self.refuted)
        configurations = [told.parameters for told in history]
        values = np.array([told.value for told in history])
        check_values(known, values)
        nominations = np.array([told.nomination for told in history], dtype=np.int64)
        ordered, rows = self.state.ordered, self.space.encode_all(configurations)
        levels = self._levels
        trials = Trials(configurations, rows, values, nominations if ordered else 0 * nominations, ordered, levels)
        if model is None:
            rewards, how = known.reward(values), {"ordered": ordered, "levels": levels}
            model = certifying(known, self.space, *self.model, rows, rewards, **how)  # type: ignore[arg-type]
        return Judgement(self.space, known, model, trials, self.refuted)

    def recommend(self, by: str = "lower", *, tried: bool = False) -> Recommendation:
        """The configuration with the best guaranteed value (by "lower"), or with the best estimate (by "mean").

        `tried=True` recommends only configurations that were tried. The recommendation says whether it was.
        """
        one_of(by, ("lower", "mean"), "by")
        only = flag(tried, "tried")
        self._check_told()
        judgement = self._examined()
        row = safest(judgement, self._hints, only) if by == "lower" else likeliest(judgement, only)
        worth = judgement.of_row(row)
        return Recommendation(
            judgement.given(row), worth.interval, by, worth.trusted and not self.refuted, worth.trials, worth.evidence
        )

    def certificate(self, *, tried: bool = False) -> StudyCertificate:
        """What is guaranteed about the recommended configuration, and how much better any other can be.

        `tried=True` recommends only configurations that were tried.
        """
        only = flag(tried, "tried")
        self._check_told()
        rng = np.random.default_rng(READING_SEED)
        fields = certificate_fields(self._examined(), rng, warm=self._hints, tried=only)
        found = StudyCertificate(
            **fields,
            unused=_IGNORED if any(persistent.items(self.state.errors)) else {},
            lost=self.state.bandit.cancelled,
            unmeasured=max(self.state.bandit.rounds - self.moment.t, 0),
        )
        if not found.trusted:  # bounds can contradict the range even if the set and the noise do not
            self._note_refuted()
        return found

    def audit(self) -> Audit:
        """What the values say about the assumptions."""
        return self.judgement.audit()

    def interval(self, parameters: Mapping[str, Any]) -> TrustedInterval:
        """An interval for the expected value of any configuration, tried or not, under the assumptions.

        Its `trusted` is False once the values have refuted the assumptions.
        """
        self.space.encode(parameters)
        worth = self._examined().of(parameters)
        return TrustedInterval(worth.interval, worth.trusted and not self.refuted)

    def improvement(self, over: Mapping[str, Any]) -> Comparison:
        """How much better the recommended configuration is than another; larger is better in either direction."""
        self.space.encode(over)
        return self.certificate().improvement(over)

    def compare(
        self, one: Mapping[str, Any], other: Mapping[str, Any], pairs: Sequence[tuple[float, float]] | None = None
    ) -> Comparison:
        """How much larger the expected value of one configuration is than that of another.

        `pairs` are paired values of both, such as results on the same rows; the interval then rests on them alone, at
        its own δ.
        """
        for parameters in (one, other):
            self.space.encode(parameters)
        return compare(self._examined(), one, other, pairs)

    def to_frame(self) -> pd.DataFrame:
        """The history as a pandas DataFrame with Optuna's column names, which `certify` can read."""
        rows = [
            {
                "number": number,
                "value": told.value,
                **{f"params_{name}": value for name, value in told.parameters.items()},
                **dict(zip(("lower", "upper"), told.interval or (), strict=False)),
                **({NOMINATION: told.nomination} if told.nomination else {}),
                **({SIGMA: told.sigma} if told.sigma is not None else {}),
            }
            for number, told in enumerate(self.history)
        ]
        frame: pd.DataFrame = import_extra("pandas", extra="frames").DataFrame(rows)
        return frame

    def plot(self) -> Figure:
        """Values in order, with the intervals known beforehand and that of the recommended configuration."""
        self._check_told()
        history, nothing = self.history, (math.nan, math.nan)
        ends = np.array([told.interval or nothing for told in history]).reshape(-1, 2)
        values = np.array([told.value for told in history])
        return plots.tuning(values, ends[:, 0], ends[:, 1], self.recommend().interval)

    def _examined(self) -> Judgement:
        """The judgement, after testing the assumptions; says so once if the values refute them."""
        judgement = self.judgement
        if self.refuted or not self.moment.is_trusted or not judgement.trusted:
            self._note_refuted()
        return judgement

    def _say_if_refuted(self) -> None:
        """If the values refute the assumptions, say so once, in the user's units."""
        if self.refuted:
            self._note_refuted()

    @locked
    def _note_refuted(self) -> None:
        """Remember that the values refute what was stated, and say so once."""
        said = self.state.said_refuted
        self.state = self.state._replace(said_refuted=True, bandit=self.state.bandit._replace(refuted=True))
        if not said:
            self.say_refuted()

    def say_refuted(self) -> None:
        """Warn that the values refute the assumptions."""
        alarms = alarms_in_words(of_alarms(self.assumptions, self.space, self.moment.model))
        warn_user(
            f"at level {self.assumptions.delta:g} the values refute {self.assumptions}, or "
            f"{in_words(self.moment.model, self.space)}: nothing is guaranteed any longer; see audit(). "
            f"{alarms.capitalize()}.",
            AssumptionsRefutedWarning,
        )

    def _check_told(self) -> None:
        if not self.moment.t:
            raise InvalidInput("nothing to recommend: no value has been told yet")

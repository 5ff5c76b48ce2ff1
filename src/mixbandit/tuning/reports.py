"""What a tuner knows: recommendations, intervals, certificates, tables and pictures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixbandit import bandits, plots
from mixbandit._checks import Array, one_of
from mixbandit._extras import import_extra
from mixbandit.bandits import persistent
from mixbandit.bandits.choosing import READING_SEED
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.search import Pessimism, search_box
from mixbandit.sequences import Audit, Moment
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.certification import StudyCertificate, study_certificate
from mixbandit.tuning.space import Space
from mixbandit.tuning.trials import Interval, Recommendation, Told

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class TunerState(NamedTuple):
    """The whole mutable state of a tuner: one frozen value, replaced on every change."""

    bandit: bandits.State
    history: persistent.Map = persistent.EMPTY  # values, in the order in which they came
    spread_used: int = 0  # initial configurations asked for so far
    said_refuted: bool = False  # whether the user has been told that the values refute the assumptions


class Reports:
    """The reading half of a tuner."""

    space: Space
    assumptions: Assumptions
    state: TunerState

    @property
    def moment(self) -> Moment:
        """What is known from the told values, in terms of rewards."""
        return self.state.bandit.moment

    @property
    def history(self) -> tuple[Told, ...]:
        """All values so far, in the order in which they came."""
        return tuple(persistent.values(self.state.history))

    @property
    def refuted(self) -> bool:
        """Whether the values have ever refuted the assumptions."""
        return self.state.bandit.refuted or self.moment.is_refuted

    def recommend(self, by: str = "lower") -> Recommendation:
        """The configuration with the best guaranteed value (by "lower"), or with the best estimate (by "mean")."""
        one_of(by, ("lower", "mean"), "by")
        self._check_told()
        moment, rng = self.moment, np.random.default_rng(READING_SEED)
        # The certificate starts here too, so that it is about the same configuration.
        score = Pessimism(moment.exact) if by == "lower" else moment.exact.scaled(0.0)
        row = search_box(score, moment.model, self.space.region, rng, warm=self.state.bandit.warm).action
        row = self.space.snapped(row)
        return Recommendation(self.space.decode(row), self._interval_at(row), by, not self.refuted)

    def certificate(self) -> StudyCertificate:
        """What is guaranteed about the recommended configuration, and which ones can still be better."""
        self._check_told()
        self._say_if_refuted()
        rng = np.random.default_rng(READING_SEED)
        warm, refuted = self.state.bandit.warm, self.refuted
        found = study_certificate(self.moment, self.assumptions, self.space, rng, warm=warm, refuted=refuted)
        if not found.trusted:  # bounds can contradict the range even if the set and the noise do not
            self._note_refuted()
        return found

    def audit(self) -> Audit:
        """What the values say about the assumptions."""
        return dataclasses.replace(self.moment.audit(), reward_range=self.assumptions.reward_range)

    def interval(self, parameters: Mapping[str, Any]) -> Interval:
        """An interval for the expected value of any configuration, tried or not, under the assumptions."""
        return self._interval_at(self.space.encode(parameters))

    def to_frame(self) -> pd.DataFrame:
        """The history as a pandas DataFrame with Optuna's column names, which `certify` reads."""
        rows = [
            {
                "value": told.value,
                **{f"params_{name}": value for name, value in told.parameters.items()},
                **dict(zip(("lower", "upper"), told.interval or (), strict=False)),
            }
            for told in self.history
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

    def _say_if_refuted(self) -> None:
        """If the values refute the assumptions, say so once, in the user's units."""
        if self.refuted:
            self._note_refuted()

    def _note_refuted(self) -> None:
        """Remember that the values refute what was stated, and say so once."""
        said = self.state.said_refuted
        self.state = self.state._replace(said_refuted=True, bandit=self.state.bandit._replace(refuted=True))
        if not said:
            self.say_refuted()

    def say_refuted(self) -> None:
        """Warn that the values refute the assumptions."""
        warn_user(
            f"at level {self.assumptions.delta:g} the values refute {self.assumptions}, or that expected values are "
            "linear in the features: nothing is guaranteed any more; see audit()",
            AssumptionsRefutedWarning,
        )

    def _interval_at(self, row: Array) -> Interval:
        ends = self.moment.interval(self.moment.directions(row[None]))
        if ends.contradicts:
            self._note_refuted()
        return self.assumptions.interval(float(ends.lower[0]), float(ends.upper[0]))

    def _check_told(self) -> None:
        if not self.moment.t:
            raise InvalidInput("nothing to recommend: no value has been told yet")

"""What a contextual bandit knows: a value that follows from its settings and the events since."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.bandits.contextual import waiting
from mixbandit.bandits.contextual.roster import Numbers, Roster
from mixbandit.bandits.contextual.waiting import Open, Waiting
from mixbandit.features import ContextFeatures
from mixbandit.predictors import Predictor
from mixbandit.search import ArmsOffer


class Counts(NamedTuple):
    """How often what happened."""

    decided: int = 0
    told: int = 0
    cancelled: int = 0


class State(NamedTuple):
    """Everything that changes."""

    roster: Roster
    features: ContextFeatures
    predictor: Predictor
    open: Open = waiting.NONE
    counts: Counts = Counts()
    reordered: bool = False  # whether a reward came before that of an earlier decision
    seen: int = 0  # events that led to this state

    @classmethod
    def start(cls, roster: Roster, features: ContextFeatures, predictor: Predictor) -> State:
        """Before any event."""
        new = cls(roster, features, predictor.for_arms(len(roster.labels)))
        return new._rescaled(np.eye(features.dim, 1), np.eye(_width(roster), 1))

    def offer(self, x: Array, numbers: Numbers, labels: tuple[Hashable, ...]) -> ArmsOffer:
        """These arms in the context with features x."""
        of_arms = self.roster.rows

        def rows() -> Array:
            if of_arms is None:
                return np.column_stack((np.tile(x, (len(numbers), 1)), numbers))
            return (x[:, None] * of_arms[numbers][:, None, :]).reshape(len(numbers), -1)

        return ArmsOffer(rows, labels=labels, context=x, arms=numbers)

    def seeing(self, features: ContextFeatures) -> State:
        """Ready to decide by features that have seen more contexts: scales may have changed, and columns may be new."""
        if features.version == self.features.version:
            return self  # `deciding` keeps them
        new = self._replace(features=features)
        change = features.change(self.features)
        return new if change is None else new._rescaled(change, np.eye(_width(self.roster)))

    def deciding(self, features: ContextFeatures, decisions: Sequence[Waiting]) -> State:
        """With decisions in contexts, all of which the features have seen."""
        roster, _, predictor, still, counts, reordered, seen = self
        number = counts.decided
        for each in decisions:
            still = waiting.put(still, number, each)
            number += 1
        counts = Counts(number, counts.told, counts.cancelled)
        return State(roster, features, predictor, still, counts, reordered, seen + len(decisions))

    def rewarded(self, number: int, decided: Waiting, reward: float) -> State:
        """After the reward of an open decision."""
        roster, features, predictor, still, counts, reordered, seen = self
        predictor = predictor.after(self._offer_of(decided), 0, reward)
        still = waiting.drop(still, number)
        reordered = reordered or waiting.overtakes(still, number)
        counts = Counts(counts.decided, counts.told + 1, counts.cancelled)
        return State(roster, features, predictor, still, counts, reordered, seen + 1)

    def rewarded_many(self, rewards: Sequence[tuple[int, Waiting, float]]) -> State:
        """After several rewards, one after the other: the same, bit for bit."""
        roster, features, predictor, still, counts, reordered, seen = self
        predictor = predictor.after_many(
            [self._offer_of(decided) for _, decided, _ in rewards], [reward for _, _, reward in rewards]
        )
        for number, _, _ in rewards:
            still = waiting.drop(still, number)
            reordered = reordered or waiting.overtakes(still, number)
        counts = Counts(counts.decided, counts.told + len(rewards), counts.cancelled)
        return State(roster, features, predictor, still, counts, reordered, seen + len(rewards))

    def _offer_of(self, decided: Waiting) -> ArmsOffer:
        """The arm that was chosen, as an offer of one."""
        decision, row, version = decided
        x = row if row is not None and version == self.features.version else self.features.row(decision.context)
        return self.offer(x, *self.roster.alone(decision.arm))

    def giving_up(self, number: int) -> State:
        """After a decision whose reward will never come."""
        counts = self.counts._replace(cancelled=self.counts.cancelled + 1)
        return self._replace(open=waiting.drop(self.open, number), counts=counts, seen=self.seen + 1)

    def with_roster(self, roster: Roster) -> State:
        """After arms came or went."""
        new = self._replace(roster=roster, seen=self.seen + 1)
        if len(roster.labels) > len(self.roster.labels):
            new = new._replace(predictor=new.predictor.for_arms(len(roster.labels)))
        if roster.features is None or self.roster.features is None:
            return new
        change = roster.features.encoder.change(self.roster.features.encoder)
        return new if change is None else new._rescaled(np.eye(self.features.dim), change)

    def _rescaled(self, of_context: Array, of_arms: Array) -> State:
        """Once features of contexts, and of arms, changed by these matrices."""
        rows: Array = np.kron(of_context, of_arms).astype(np.float64, copy=False)
        if self.roster.features is None:  # rows end with the number of the arm
            n, m = of_context.shape
            rows = np.zeros((n + 1, m + 1))
            rows[:n, :m], rows[n, m] = of_context, 1.0
        return self._replace(predictor=self.predictor.rescaled(of_context, rows))


def _width(roster: Roster) -> int:
    """How many features arms have, the intercept included."""
    return 1 if roster.features is None else roster.features.encoder.dim

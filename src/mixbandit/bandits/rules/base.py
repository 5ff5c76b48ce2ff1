"""What every acting rule is: settings of a way to act, given what is known at a moment. Bounds hold whatever acts."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mixbandit._checks import Array, shown
from mixbandit.errors import InvalidInput, NoTheory
from mixbandit.predictors import Prediction, Predictor, checked_prediction
from mixbandit.search import ArmsOffer, Offer, Selection, Selections, Shares
from mixbandit.sequences import Belief
from mixbandit.sets import ConfidenceSet
from mixbandit.storage import Family, Storable


class NoBelief:
    """In place of a belief where nothing is proven: whatever a rule asks of it is refused."""

    def __getattr__(self, name: str) -> Any:
        raise InvalidInput("this rule acts on proven bounds, which a ContextualBandit does not keep: use a policy")


NO_BELIEF: Any = NoBelief()


class View(NamedTuple):
    """What a rule may look at: pending choices count as if they had returned what is expected of them."""

    belief: Belief[Any]  # NO_BELIEF where nothing is proven
    round: int = 1  # from 1
    predictor: Predictor | None = None  # what the policy predicts rewards with, if it was given anything

    def predict(self, offer: Offer) -> Prediction:
        """What the predictor expects of every arm; InvalidInput if the policy has none, or if it is asked of a box."""
        if self.predictor is None or not isinstance(offer, ArmsOffer):
            raise InvalidInput("this rule acts on predictions for arms: give the policy arms and a predictor")
        return checked_prediction(self.predictor.predict(offer), (len(offer),))

    def predict_many(self, offers: Sequence[Offer]) -> Prediction:
        """The same for several offers of the same arms, with a row for each."""
        if self.predictor is None or not isinstance(offers[0], ArmsOffer):
            raise InvalidInput("this rule acts on predictions for arms: give the policy arms and a predictor")
        found = self.predictor.predict_many(offers)  # type: ignore[arg-type]
        return checked_prediction(found, (len(offers), len(offers[0])))


class ActingRule(Storable, abc.ABC):
    """Frozen settings of a way to act. Your own need no more than `select`."""

    family = Family("an acting rule", "rule")

    name: ClassVar[str] = "your rule"
    randomised: ClassVar[bool] = False
    """Whether it draws at random, apart from breaking ties."""
    bounds_optimum: ClassVar[bool] = False
    """Whether `Selection.optimum` is the largest upper bound of the set that bounds come from; others are computed."""
    takes: ClassVar[str | None] = None
    """The sequences that it has a theory for, in words: it refuses those that do not support it by its name. None: it
    acts on all of them."""

    def check(self, belief: Belief[Any]) -> None:
        """Refuse a kind of sequence for which there is no theory."""
        if self.takes is not None and self.name not in belief.theories:
            raise NoTheory(f"{self.name} needs {self.takes}: there is no theory for {belief.kind!r} sequences")

    def reported(self, belief: Belief[Any]) -> ConfidenceSet:
        """The set that bounds of choices come from."""
        return belief.exact

    def prepare(self, belief: Belief[Any]) -> None:
        """Compute what `select` needs anyway, which makes it cheap to check whether the data refute the assumptions."""

    @abc.abstractmethod
    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        """With what probability to play each arm of the offer; or the action, where it is a box.

        The policy draws. `rng` has the methods of a numpy Generator, for this decision alone, for rules that need
        random numbers to find the probabilities. A rule that draws the arm itself says so (`Selection.marginal`).
        """

    def select_many(self, view: View, rows: Array, directions: Any, arms: int, rng: Any) -> Selections:
        """The same for many decisions, each among `arms` of the rows (n·arms, dim_in), as arrays."""
        chances, marginal = [], True
        for first in range(0, len(rows), arms):
            part = slice(first, first + arms)
            found = self.select(view, ArmsOffer(rows[part], directions[part]), rng)
            chances.append(as_shares(found, arms).array())
            marginal &= found.marginal
        return Selections(np.array(chances), marginal=marginal)

    def select_each(self, view: View, offers: Sequence[Offer], rngs: Sequence[Any]) -> list[Selection]:
        """`select` for decisions with random numbers of their own, the first in round `view.round`; the same, bit for
        bit. All offer the same arms, in different contexts.
        """
        views = (view._replace(round=view.round + i) for i in range(len(offers)))
        return [self.select(each, offer, rng) for each, offer, rng in zip(views, offers, rngs, strict=True)]

    def worst_case(self, belief: Belief[Any]) -> str:
        """Whether a regret bound is known in advance, in words."""
        return f"No a priori regret bound is computed for {self.name}."


def as_shares(found: Selection, arms: int) -> Shares:
    """The probabilities of a selection among arms, checked."""
    if not isinstance(found, Selection):
        raise InvalidInput(f"select must return a Selection, got {shown(found)}")
    given = found.probabilities
    return given.fitting(arms) if isinstance(given, Shares) else Shares.checked(given, arms)  # type: ignore[arg-type]

"""Acting rules decide what to play from what is known at a moment. Bounds hold whatever rule acts.

| symbol | meaning |
|---|---|
| Δ(a) = max_{a'} UCB(a') − LCB(a) | a bound on the regret of a |
| w = φᵀV_α⁻¹φ, I(a) = ln(1 + w) | the information gained from a |
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mixbandit._checks import Array, multiplier, multipliers, nonnegative, shown
from mixbandit._schema import list_of, optional, real, record
from mixbandit.errors import InvalidInput, NoTheory
from mixbandit.predictors import Prediction, Predictor
from mixbandit.search import (
    ArmsOffer,
    InformationPerRegret,
    Offer,
    Selection,
    Selections,
    Shares,
    best_arms,
)
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
        return _checked(self.predictor.predict(offer), (len(offer),))

    def predict_many(self, offers: Sequence[Offer]) -> Prediction:
        """The same for several offers of the same arms, with a row for each."""
        if self.predictor is None or not isinstance(offers[0], ArmsOffer):
            raise InvalidInput("this rule acts on predictions for arms: give the policy arms and a predictor")
        found = self.predictor.predict_many(offers)  # type: ignore[arg-type]
        return _checked(found, (len(offers), len(offers[0])))


def _checked(found: Prediction, shape: tuple[int, ...]) -> Prediction:
    """A prediction of this shape; InvalidInput if it is something else, or not finite."""
    fits = isinstance(found, Prediction) and getattr(found.mean, "shape", None) == shape
    fits = fits and getattr(found.spread, "shape", None) == shape
    # NaN and infinity in either make the product of both so; a product that overflows is looked at again.
    if not fits or not (math.isfinite(np.vdot(found.mean, found.spread)) or np.isfinite(found).all()):
        raise InvalidInput(
            f"a predictor must return a Prediction of {' × '.join(map(str, shape))} finite means and spreads, got "
            f"{shown(found)}"
        )
    return found


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


def _multipliers(value: Any, where: str) -> float | list[float]:
    """One multiplier, or several."""
    one = real(multiplier)
    several: list[float] = list_of(one, least=1)(value, where) if isinstance(value, list | tuple) else []
    return several or one(value, where)


def as_shares(found: Selection, arms: int) -> Shares:
    """The probabilities of a selection among arms, checked."""
    if not isinstance(found, Selection):
        raise InvalidInput(f"select must return a Selection, got {shown(found)}")
    given = found.probabilities
    return given.fitting(arms) if isinstance(given, Shares) else Shares.checked(given, arms)  # type: ignore[arg-type]


class Optimism(ActingRule):
    """Play the largest estimate + `exploration`·(upper bound − estimate); at 1, the upper bound.

    Estimates are those of ridge regression. A known range of rewards limits what is reported, and not these scores.

    With `alpha` it acts on closed-form bounds at that multiplier, or, given a list, on the best such bound for each
    action; with None, on exact bounds.
    """

    name = "optimism"
    bounds_optimum = True
    kind = "Optimism"
    schema = record({"alpha": optional(_multipliers), "exploration": real(nonnegative)})

    def __init__(self, alpha: float | Sequence[float] | None = None, exploration: float = 1.0) -> None:
        self.alpha = None if alpha is None else multipliers(alpha, "alpha")
        self.exploration = nonnegative(exploration, "exploration")

    def check(self, belief: Belief[Any]) -> None:
        _ = belief.at  # or an error, where there is no belief
        if self.alpha is not None:
            belief.check_multiplier(self.alpha)

    def reported(self, belief: Belief[Any]) -> ConfidenceSet:
        return belief.at(self.alpha)

    def prepare(self, belief: Belief[Any]) -> None:
        belief.at(self.alpha)

    def score(self, belief: Belief[Any]) -> Any:
        """What it maximises."""
        within = belief.at(self.alpha)
        if self.exploration == 1.0:
            return within
        return within.scaled(self.exploration, belief.estimate)

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        found = offer.maximise(self.score(view.belief), rng)
        if self.exploration != 1.0:
            return found
        return Selection(found.probabilities, found.score, found.row, found.score)

    def select_many(self, view: View, rows: Array, directions: Any, arms: int, rng: Any) -> Selections:
        tied, best = best_arms(self.score(view.belief), directions, arms)
        return Selections(tied, best if self.exploration == 1.0 else None)

    def worst_case(self, belief: Belief[Any]) -> str:
        if self.exploration < 1.0:
            return (
                f"With exploration={self.exploration:g} < 1 no regret bound is known in advance: an action that may "
                "be the best can be ignored forever."
            )
        theorem = belief.regret_theorem_alpha
        # The best of several closed forms is at most that of the theorem, if it is among them.
        acts_on = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,)
        if theorem is None or not {None, theorem} & set(acts_on):
            return "No a priori regret bound is computed for these settings."
        factor = "" if self.exploration == 1.0 else f", times {0.5 * (1.0 + self.exploration):g}"
        return (
            f"`regret.worst_case` bounds the regret in advance{factor}, provided the largest upper bound is found and "
            "rewards are told before the next choice."
        )


class Optimistic(ActingRule):
    """Play the largest mean + `scale`·spread of what the predictor expects; at 0, the largest mean.

    Nothing is proven about predictions. They often earn more than proven bounds do.
    """

    name = "optimism about predictions"
    kind = "Optimistic"
    schema = record({"scale": real(nonnegative)})

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = nonnegative(scale, "scale")

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        arms: Any = offer  # the view would have refused a box
        return arms.largest(self._scores(view.predict(offer)))  # type: ignore[no-any-return]

    def select_each(self, view: View, offers: Sequence[Offer], rngs: Sequence[Any]) -> list[Selection]:
        scores = self._scores(view.predict_many(offers))
        arms: Any = offers
        return [each.largest(own) for each, own in zip(arms, scores, strict=True)]

    def _scores(self, predicted: Prediction) -> Array:
        mean, spread = predicted
        return mean + (spread if self.scale == 1.0 else self.scale * spread)


class LeastRegretPerInformation(ActingRule):
    """Play argmin Δ²/I with OFUL's bounds (Kirschner & Krause 2018): little regret for much information.

    On a box this takes two searches: the largest upper bound, then 2 ln Δ − ln I.
    """

    name = "information-directed sampling"
    kind = "LeastRegretPerInformation"
    schema = record({})
    bounds_optimum = True
    takes = "an OFULSequence"

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        ellipsoid = view.belief.closed_form
        optimum = offer.maximise(ellipsoid, rng).score
        return offer.maximise(InformationPerRegret(ellipsoid, optimum), rng)._replace(optimum=optimum)

    def select_many(self, view: View, rows: Array, directions: Any, arms: int, rng: Any) -> Selections:
        ellipsoid = view.belief.closed_form
        optimum = ellipsoid.maximum(directions).reshape(-1, arms).max(axis=1)
        score = InformationPerRegret(ellipsoid, np.repeat(optimum, arms))
        return Selections(best_arms(score, directions, arms)[0], optimum)


class Thompson(ActingRule):
    """Draw θ̃ ~ N(θ̂_α, v²V_α⁻¹), v = σ√(9 d ln(t/δ)), and play argmax φᵀθ̃, in round t, at α = α₀.

    How probable each arm was before the draw is not computed, so that choices have no probabilities.
    """

    name = "Thompson sampling"
    kind = "Thompson"
    schema = record({})
    randomised = True
    takes = "a MartingaleMixture, GeneralLambda or OFULSequence"

    def check(self, belief: Belief[Any]) -> None:
        super().check(belief)
        if belief.model.dim is None:
            raise NoTheory(
                f"{self.name} draws a parameter vector, which kernel models do not have: use features, such as a "
                "RandomFourier map"
            )

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        found = offer.maximise(self.drawn(view, rng), rng)
        return Selection(found.probabilities, None, found.row, found.score, marginal=False)

    def drawn(self, view: View, rng: Any) -> Any:
        """A random parameter, as a score."""
        belief, dim = view.belief, view.belief.model.dim
        assert dim is not None
        return belief.sampled(rng, math.sqrt(9.0 * dim * math.log(view.round / belief.delta)))

    def worst_case(self, belief: Belief[Any]) -> str:
        return "Its regret is O(d^{3/2}√T) up to logarithms (Agrawal & Goyal 2013); the constant is not computed."


class Uniformly(ActingRule):
    """Play actions uniformly at random."""

    name = "uniform sampling"
    kind = "Uniformly"
    schema = record({})
    randomised = True

    def select(self, view: View, offer: Offer, rng: Any) -> Selection:
        return offer.uniform(rng)

    def worst_case(self, belief: Belief[Any]) -> str:
        return "Its regret grows linearly in time."

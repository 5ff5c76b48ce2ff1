"""Optimism in the face of uncertainty, with proven bounds: the rule of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixbandit._checks import Array, multiplier, multipliers, nonnegative
from mixbandit._schema import list_of, optional, real, record
from mixbandit.bandits.rules.base import ActingRule, View
from mixbandit.search import Offer, Selection, Selections, best_arms
from mixbandit.sequences import Belief
from mixbandit.sets import ConfidenceSet


def _multipliers(value: Any, where: str) -> float | list[float]:
    """One multiplier, or several."""
    one = real(multiplier)
    several: list[float] = list_of(one, least=1)(value, where) if isinstance(value, list | tuple) else []
    return several or one(value, where)


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

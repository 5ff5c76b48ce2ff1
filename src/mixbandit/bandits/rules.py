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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, multiplier, multipliers, nonnegative
from mixbandit._schema import list_of, optional, real, record
from mixbandit.errors import NoTheory
from mixbandit.search import ArmsField, Field, Found, InformationPerRegret, best_arms
from mixbandit.sequences import Moment
from mixbandit.sets import ConfidenceSet, Point
from mixbandit.storage import Family, Storable

# The kinds of sequences that an acting rule has a theory for, by the `kind` of their rules; others raise NoTheory.
# Acting rules not listed here act on all of them.
THEORY: dict[str, tuple[str, ...]] = {
    # Agrawal & Goyal (2013) draw around a ridge estimate, with a spread that needs σ.
    "Thompson sampling": ("martingale", "general lambda", "oful"),
    # Kirschner & Krause (2018) analyse OFUL's bounds.
    "information-directed sampling": ("oful",),
}
_TAKES = {
    "Thompson sampling": "a MartingaleMixture, GeneralLambda or OFULSequence",
    "information-directed sampling": "an OFULSequence",
}


Selection = tuple[Found, float | None]
"""What a rule wants to play, and the largest upper bound if it was computed."""


class ActingRule(Storable, abc.ABC):
    """Frozen settings of a way to act."""

    family = Family("an acting rule", "rule")

    name: ClassVar[str]
    randomised: ClassVar[bool] = False
    """Whether it draws at random, apart from breaking ties."""

    def check(self, moment: Moment) -> None:
        """Refuse a kind of sequence for which there is no theory."""
        known = THEORY.get(self.name)
        if known is not None and moment.rule.kind not in known:
            raise NoTheory(
                f"{self.name} needs {_TAKES[self.name]}: there is no theory for {moment.rule.kind!r} sequences"
            )

    def reported(self, moment: Moment) -> ConfidenceSet:
        """The set that bounds of choices come from."""
        return moment.exact

    def prepare(self, moment: Moment) -> None:
        """Compute what `select` needs anyway, which makes it cheap to check whether the data refute the assumptions."""

    @abc.abstractmethod
    def select(self, moment: Moment, field: Field, round_: int) -> Selection:
        """What to play in `round_` ≥ 1, from a moment that anticipates pending rewards."""

    def select_many(
        self, moment: Moment, rows: Array, directions: Any, arms: int, round_: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array | None]:
        """For each group of `arms` rows (n·arms, dim_in) the index of what to play, (n,), and the largest upper bounds.

        The latter are None if the rule did not compute them.
        """
        chosen = []
        for first in range(0, len(rows), arms):
            part = slice(first, first + arms)
            found, _ = self.select(moment, ArmsField(rows[part], directions[part], rng), round_)
            chosen.append(found.arm)
        return np.array(chosen, dtype=np.int64), None

    @abc.abstractmethod
    def worst_case(self, moment: Moment) -> str:
        """Whether a regret bound is known in advance, in words."""


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
    kind = "Optimism"
    schema = record({"alpha": optional(_multipliers), "exploration": real(nonnegative)})

    def __init__(self, alpha: float | Sequence[float] | None = None, exploration: float = 1.0) -> None:
        self.alpha = None if alpha is None else multipliers(alpha, "alpha")
        self.exploration = nonnegative(exploration, "exploration")

    def check(self, moment: Moment) -> None:
        if self.alpha is not None:
            moment.check_multiplier(self.alpha)

    def reported(self, moment: Moment) -> ConfidenceSet:
        return moment.at(self.alpha)

    def prepare(self, moment: Moment) -> None:
        moment.at(self.alpha)

    def score(self, moment: Moment) -> Any:
        """What it maximises."""
        within = moment.at(self.alpha)
        if self.exploration == 1.0:
            return within
        return within.scaled(self.exploration, moment.estimate)

    def select(self, moment: Moment, field: Field, round_: int) -> Selection:
        found = field.maximise(self.score(moment))
        return found, found.value if self.exploration == 1.0 else None

    def select_many(
        self, moment: Moment, rows: Array, directions: Any, arms: int, round_: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array | None]:
        indices, best = best_arms(self.score(moment), directions, arms, rng)
        return indices, best if self.exploration == 1.0 else None

    def worst_case(self, moment: Moment) -> str:
        if self.exploration < 1.0:
            return (
                f"With exploration={self.exploration:g} < 1 no regret bound is known in advance: an action that may "
                "be the best can be ignored forever."
            )
        theorem = moment.rule.regret_theorem_alpha
        # The best of several closed forms is at most that of the theorem, if it is among them.
        acts_on = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,)
        if theorem is None or not {None, theorem} & set(acts_on):
            return "No a priori regret bound is computed for these settings."
        factor = "" if self.exploration == 1.0 else f", times {0.5 * (1.0 + self.exploration):g}"
        return (
            f"`regret.worst_case` bounds the regret in advance{factor}, provided the largest upper bound is found and "
            "rewards are told before the next choice."
        )


class LeastRegretPerInformation(ActingRule):
    """Play argmin Δ²/I with OFUL's bounds (Kirschner & Krause 2018): little regret for much information.

    On a box this takes two searches: the largest upper bound, then 2 ln Δ − ln I.
    """

    name = "information-directed sampling"
    kind = "LeastRegretPerInformation"
    schema = record({})

    def select(self, moment: Moment, field: Field, round_: int) -> Selection:
        ellipsoid = moment.closed_form
        optimum = field.maximise(ellipsoid).value
        return field.maximise(InformationPerRegret(ellipsoid, optimum)), optimum

    def select_many(
        self, moment: Moment, rows: Array, directions: Any, arms: int, round_: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array | None]:
        ellipsoid = moment.closed_form
        optimum = ellipsoid.maximum(directions).reshape(-1, arms).max(axis=1)
        score = InformationPerRegret(ellipsoid, np.repeat(optimum, arms))
        return best_arms(score, directions, arms, rng)[0], optimum

    def worst_case(self, moment: Moment) -> str:
        return "No a priori regret bound is computed for information-directed sampling."


class Thompson(ActingRule):
    """Draw θ̃ ~ N(θ̂_α, v²V_α⁻¹), v = σ√(9 d ln(t/δ)), and play argmax φᵀθ̃, in round t, at α = α₀."""

    name = "Thompson sampling"
    kind = "Thompson"
    schema = record({})
    randomised = True

    def check(self, moment: Moment) -> None:
        super().check(moment)
        if moment.rule.dim is None:
            raise NoTheory(
                f"{self.name} draws a parameter vector, which kernel models do not have: use features, such as a "
                "RandomFourier map"
            )

    def select(self, moment: Moment, field: Field, round_: int) -> Selection:
        return field.maximise(Point(self.draw(moment, field.rng, round_))), None

    def draw(self, moment: Moment, rng: np.random.Generator, round_: int) -> Array:
        """A random parameter, (d,)."""
        rule = moment.rule
        assert rule.sigma is not None
        assert rule.dim is not None
        spread = rule.sigma * math.sqrt(9.0 * rule.dim * math.log(round_ / rule.delta))
        return moment.closed_form.sample(rng, spread)

    def worst_case(self, moment: Moment) -> str:
        return "Its regret is O(d^{3/2}√T) up to logarithms (Agrawal & Goyal 2013); the constant is not computed."


class Uniformly(ActingRule):
    """Play actions uniformly at random."""

    name = "uniform sampling"
    kind = "Uniformly"
    schema = record({})
    randomised = True

    def select(self, moment: Moment, field: Field, round_: int) -> Selection:
        return field.sample(), None

    def worst_case(self, moment: Moment) -> str:
        return "Its regret grows linearly in time."

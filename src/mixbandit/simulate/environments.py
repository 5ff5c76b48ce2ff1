"""Environments: synthetic problems with a known optimum, changing arms, a user's function.

Round t of an environment depends only on its seed and t, not on earlier choices. So every policy gets the same arms
and, for the same action, the same noise, and an interrupted run continues as if nothing had happened.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    Array,
    as_function,
    as_number,
    as_vector,
    dimension,
    finite,
    instance_of,
    nonnegative_int,
    one_of,
    positive,
)
from mixbandit._files import digest
from mixbandit.actions import Arms, Region, as_region
from mixbandit.bandits import Choice
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap, as_feature_map
from mixbandit.models import FeatureModel
from mixbandit.search import MOST_CORNERS, THOROUGH, Reach, bound_over_box, can_bound, free_dimensions, search_box
from mixbandit.sets import Point

RANGED = ("bernoulli", "beta", "two-point")
"""Noise laws of rewards that are means of results in [0, 1]."""
NOISES = ("gaussian", "rademacher", "uniform", *RANGED)
# One reward takes 1/4σ² results.
_LEAST_RANGED_SIGMA = 1e-4
_BETA_CONCENTRATION = 2.0
_ROUNDING = 1e-9
# The optimum over a box is searched with this many times the usual effort, then proven to this share of its size.
_EFFORT, _PROVEN_TO = THOROUGH.times(8.0), 1e-6


@dataclass(frozen=True)
class Offer:
    """What a round offers before the choice; None means the policy's own actions, or no context."""

    arms: Region | None = None
    context: Array | None = None


class Environment(abc.ABC):
    """Subclasses implement `reward`; the other methods describe what is known about the problem."""

    actions: Region | None = None

    def offer(self, t: int) -> Offer:
        """The offer of round t = 0, 1, …"""
        return Offer()

    @abc.abstractmethod
    def reward(self, t: int, choice: Choice) -> float:
        """The noisy reward of playing `choice` in round t."""

    def expected(self, t: int, choice: Choice) -> float | None:
        """Its expectation, if known."""
        return None

    def best(self, t: int) -> float | None:
        """The largest expected reward of round t, if known."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Identifies this environment, so that a run is not continued on the wrong one."""
        return {
            "type": type(self).__name__,
            "actions": None if self.actions is None else digest(self.actions.state_dict()),
        }


class _LinearRewards(Environment):
    """Rewards φ(a)ᵀθ* + noise."""

    def __init__(self, features: FeatureMap | int, theta: ArrayLike, *, sigma: float, noise: str, seed: int) -> None:
        self.features = as_feature_map(features)
        self.theta = as_vector(theta, self.features.dim, "theta").copy()
        self.sigma, self.noise = positive(sigma, "sigma"), one_of(noise, NOISES, "noise")
        self.seed = nonnegative_int(seed, "seed")

    def reward(self, t: int, choice: Choice) -> float:
        return noisy(self.expected(t, choice), self.noise, self.sigma, self._stream(t, 0))

    def expected(self, t: int, choice: Choice) -> float:
        instance_of(choice, Choice, "choice", "a Choice")
        row = choice.action if choice.context is None else np.concatenate((choice.context, choice.action))
        return float(self.features(row)[0] @ self.theta)

    def fingerprint(self) -> dict[str, Any]:
        known = {"seed": self.seed, "sigma": self.sigma, "noise": self.noise, "theta": digest(self.theta)}
        return {**super().fingerprint(), **known, "features": digest(self.features.state_dict())}

    def _stream(self, t: int, kind: int) -> np.random.Generator:
        """The generator of round t: for the noise (kind 0), and for the offer (1)."""
        return np.random.default_rng([self.seed, nonnegative_int(t, "t"), kind])


class LinearEnvironment(_LinearRewards):
    """Rewards φ(a)ᵀθ* + noise on fixed arms or a box; with `context`, a function of a Generator, on rows (x, a).

    `noise` is one of `NOISES`, all σ-sub-Gaussian, as `noisy` describes them. The optimum is known by enumeration, or
    from a thorough search that branch and bound confirms in low dimensions (`optimum_proven`).
    """

    actions: Region

    def __init__(
        self,
        features: FeatureMap | int,
        theta: ArrayLike,
        actions: Region | ArrayLike,
        *,
        sigma: float,
        noise: str = "gaussian",
        context: Callable[[np.random.Generator], ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(features, theta, sigma=sigma, noise=noise, seed=seed)
        self.actions = as_region(actions)
        self._context = None if context is None else as_function(context, "context")
        self._best: tuple[int, float, bool] | None = None  # round, optimum, whether proven
        self._context_dim = self.features.dim_in - self.actions.dim
        if self._context_dim < 0 or (self._context_dim > 0) != (context is not None):
            raise InvalidInput(
                f"actions of dimension {self.actions.dim} and features of {self.features.dim_in} inputs "
                f"{'need' if self._context_dim > 0 else 'leave no room for'} a context"
            )

    def offer(self, t: int) -> Offer:
        if self._context is None:
            return Offer()
        return Offer(context=as_vector(self._context(self._stream(t, 1)), self._context_dim, "context"))

    def best(self, t: int) -> float:
        return self._optimum(t)[0]

    @property
    def optimum_proven(self) -> bool:
        """Whether the optimum of the last requested round is proven, and not only found by search."""
        return self._optimum(0 if self._best is None else self._best[0])[1]

    def _optimum(self, t: int) -> tuple[float, bool]:
        if self._best is None or (self._context is not None and self._best[0] != t):
            context = self.offer(t).context
            region = self.actions if context is None else self.actions.given(context)
            self._best = (t, *largest_expected(self.features, self.theta, region))
        return self._best[1], self._best[2]


class ChangingArms(_LinearRewards):
    """Rewards φ(a)ᵀθ* + noise on arms drawn afresh every round.

    `draw` makes the rows from a Generator; without it there are `arms` vectors N(0, 1)/√dim_in.
    """

    def __init__(
        self,
        features: FeatureMap | int,
        theta: ArrayLike,
        *,
        arms: int = 10,
        sigma: float,
        noise: str = "gaussian",
        draw: Callable[[np.random.Generator], ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(features, theta, sigma=sigma, noise=noise, seed=seed)
        self.arms = dimension(arms, "arms")
        self._draw = None if draw is None else as_function(draw, "draw")
        self._arms: tuple[int, Arms] | None = None  # of the last requested round

    def offer(self, t: int) -> Offer:
        return Offer(arms=self._drawn(t))

    def best(self, t: int) -> float:
        return largest_expected(self.features, self.theta, self._drawn(t))[0]

    def fingerprint(self) -> dict[str, Any]:
        draw = None if self._draw is None else getattr(self._draw, "__qualname__", type(self._draw).__name__)
        return {**super().fingerprint(), "arms": self.arms, "draw": draw}

    def _drawn(self, t: int) -> Arms:
        if self._arms is None or self._arms[0] != t:
            rng, k = self._stream(t, 1), self.features.dim_in
            rows = rng.normal(size=(self.arms, k)) / math.sqrt(k) if self._draw is None else self._draw(rng)
            self._arms = (t, Arms(rows))
        return self._arms[1]


class FunctionEnvironment(Environment):
    """Rewards from your own function: `function(action)`, noise included.

    With `expected(action)` and `best`, if you know them, regret is recorded.
    """

    def __init__(
        self,
        function: Callable[[Array], float],
        actions: Region | ArrayLike | None = None,
        *,
        expected: Callable[[Array], float] | None = None,
        best: float | None = None,
    ) -> None:
        self._function = as_function(function, "function")
        self._expected = None if expected is None else as_function(expected, "expected")
        self.actions = None if actions is None else as_region(actions)
        self._best = None if best is None else finite(best, "best")

    def reward(self, t: int, choice: Choice) -> float:
        instance_of(choice, Choice, "choice", "a Choice")
        return as_number(self._function(choice.action.copy()), "the reward that the function returned")

    def expected(self, t: int, choice: Choice) -> float | None:
        instance_of(choice, Choice, "choice", "a Choice")
        if self._expected is None:
            return None
        return as_number(self._expected(choice.action.copy()), "the expected reward that the function returned")

    def best(self, t: int) -> float | None:
        return self._best


def noisy(expected: float, law: str, sigma: float, rng: np.random.Generator) -> float:
    """A reward with this expectation and σ-sub-Gaussian noise.

    "gaussian"; "rademacher" (±σ); "uniform" (on ±√3σ, whose variance is σ² and which is strictly sub-Gaussian);
    The others are means of `results_per_reward(sigma)` results in [0, 1] whose expectation p is that of the reward:
    "bernoulli" (1 with chance p, else 0), "beta" (of concentration 2: uniform for p = ½, most results near 0 and 1
    otherwise), "two-point" (√p with chance √p, else 0).
    """
    if law in RANGED:
        if sigma < _LEAST_RANGED_SIGMA:
            raise InvalidInput(
                f"{law} noise of sigma={sigma:g} would take {1 / (4 * sigma**2):.1g} "
                f"{'coin flips' if law == 'bernoulli' else 'results'} per reward; the smallest sigma allowed is "
                f"{_LEAST_RANGED_SIGMA:g}"
            )
        if not -_ROUNDING <= expected <= 1.0 + _ROUNDING:
            kind = "probabilities" if law == "bernoulli" else "in [0, 1]"
            raise InvalidInput(f"with {law} noise expected rewards are {kind}, got {expected:g}")
        return _mean_of_results(min(max(expected, 0.0), 1.0), law, results_per_reward(sigma), rng)
    if law == "gaussian":
        return expected + sigma * float(rng.normal())
    if law == "rademacher":
        return expected + sigma * float(rng.choice((-1.0, 1.0)))
    return expected + math.sqrt(3.0) * sigma * float(rng.uniform(-1.0, 1.0))


def results_per_reward(sigma: float) -> int:
    """⌈1/4σ²⌉: the mean of this many results in [0, 1] is σ-sub-Gaussian by Hoeffding's lemma."""
    return math.ceil(1.0 / (4.0 * sigma**2))


def _mean_of_results(p: float, law: str, m: int, rng: np.random.Generator) -> float:
    if law == "bernoulli":
        return float(rng.binomial(m, p)) / m
    if law == "two-point":
        return math.sqrt(p) * float(rng.binomial(m, math.sqrt(p))) / m
    a, b = _BETA_CONCENTRATION * p, _BETA_CONCENTRATION * (1.0 - p)
    return float(rng.beta(a, b, size=m).mean()) if min(a, b) > 0.0 else p


def largest_expected(features: FeatureMap, theta: Array, region: Region) -> tuple[float, bool]:
    """The maximum of φ(a)ᵀθ over a region, and whether it is proven."""
    if region.rows is not None:
        return float((features(region.rows) @ theta).max()), True
    score, model = Point(theta), FeatureModel(features)
    found = search_box(score, model, region, np.random.default_rng(0), effort=_EFFORT)
    if free_dimensions(region) > MOST_CORNERS or not can_bound(model, region):
        return found.value, False
    tolerance = _PROVEN_TO * max(abs(found.value), 1e-3)
    reach = Reach(float(np.linalg.norm(theta)), np.abs(theta))
    bounded = bound_over_box(score.maximum, reach, model, region, start=found.action, tolerance=tolerance)
    return bounded.attained, bounded.upper - bounded.attained <= 2.0 * tolerance

"""The paper's synthetic functions: random Fourier features, θ* ~ N(0, I) scaled down to norm B if needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import numpy as np

from mixbandit._checks import Array
from mixbandit.features import RandomFourier
from mixbandit.sequences import ConfidenceSequence

AnySequence = TypeVar("AnySequence", bound=ConfidenceSequence)


@dataclass(frozen=True)
class NoisyFunction:
    """A function on the unit box, and rewards at uniform points of it."""

    features: RandomFourier
    theta: Array
    actions: Array  # (n, dim_in)
    rewards: Array  # (n,)

    def __call__(self, x: Array) -> Array:
        return np.asarray(self.features(x) @ self.theta)

    def seen_by(self, sequence: AnySequence) -> AnySequence:
        """The sequence, after all rewards."""
        sequence.update(self.actions, self.rewards)
        return sequence


class Known(TypedDict):
    """What a confidence sequence is told about a function and its noise."""

    sigma: float
    norm_bound: float
    delta: float


@dataclass(frozen=True)
class FunctionSettings:
    """Functions of one input, as in Figures 1, 4 and 5."""

    dim: int = 20
    points: int = 30
    lengthscale: float = 0.15
    size: float = 1.0  # of θ* before it is scaled down to norm B
    sigma: float = 0.1
    norm_bound: float = 10.0
    delta: float = 0.01
    seed: int = 0

    @property
    def known(self) -> Known:
        return {"sigma": self.sigma, "norm_bound": self.norm_bound, "delta": self.delta}

    def function(self, repetition: int | None = None) -> NoisyFunction:
        """The function of the seed, or one of a series."""
        key = () if repetition is None else (repetition,)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
        kind = {"dim_in": 1, "dim": self.dim, "lengthscale": self.lengthscale, "size": self.size}
        return noisy_function(rng, self.points, self.known, **kind)


def noisy_function(rng: np.random.Generator, points: int, known: Known, **kind: Any) -> NoisyFunction:
    """A function with rewards at uniform actions; `kind` is what `random_function` takes."""
    features, theta = random_function(rng, norm_bound=known["norm_bound"], **kind)
    actions = rng.uniform(size=(points, features.dim_in))
    rewards = features(actions) @ theta + known["sigma"] * rng.normal(size=points)
    return NoisyFunction(features, theta, actions, rewards)


def random_function(
    rng: np.random.Generator, *, dim_in: int, dim: int, lengthscale: float, norm_bound: float, size: float = 1.0
) -> tuple[RandomFourier, Array]:
    """Features, and a parameter of norm at most B."""
    features = RandomFourier(dim_in, dim, lengthscale, rng=rng)
    theta = size * rng.normal(size=dim)
    return features, theta * min(1.0, norm_bound / float(np.linalg.norm(theta)))

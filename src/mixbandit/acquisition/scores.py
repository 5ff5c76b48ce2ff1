"""Scores: what a policy maximises, as a function of features, on one scale with the bounds they are made of."""

from __future__ import annotations

import abc

import numpy as np

from mixbandit._validation import LARGEST_MULTIPLIER, SMALLEST_MULTIPLIER, Array
from mixbandit.confidence import ConfidenceSequence
from mixbandit.confidence.base import FixedMultiplier


class Score(abc.ABC):
    """What a policy maximises, as a function of features."""

    @abc.abstractmethod
    def values(self, phi: Array) -> Array:
        """Scores (n,) of feature rows (n, d)."""

    @abc.abstractmethod
    def slopes(self, phi: Array) -> tuple[Array, Array]:
        """Scores (n,) and their gradients in φ, (n, d)."""

    def ceilings(self, phi: Array, guess: float | None = None) -> Array | None:
        """Cheap upper bounds on the scores, `guess` being a multiplier that may suit; None where there are none."""
        return None

    def multiplier(self, phi: Array) -> float | None:
        """The multiplier at which the score of one row is attained, if the score has such a thing."""
        return None


class Optimism(Score):
    """Centre + exploration·half-width of the interval [lower, upper] of a sequence; the upper bound at 1.

    Known ranges do not cap it: arms beyond the cap would tie, and a box would have no gradient there.
    """

    def __init__(self, sequence: ConfidenceSequence, alpha: float | None, exploration: float = 1.0) -> None:
        self._sequence, self._alpha = sequence, alpha
        self._on_upper, self._on_lower = 0.5 * (1.0 + exploration), 0.5 * (1.0 - exploration)
        # With a centre that is linear in φ, one bound says it all.
        self._centre = None if exploration == 1.0 else sequence._centre(alpha)
        self._exploration = exploration

    def values(self, phi: Array) -> Array:
        if self._centre is not None:
            upper = self._sequence._maximum(phi, self._alpha, with_theta=False).value
            return np.asarray(self._exploration * upper + (1.0 - self._exploration) * (phi @ self._centre))
        value = self._on_upper * self._sequence._maximum(phi, self._alpha, with_theta=False).value
        if self._on_lower:
            value -= self._on_lower * self._sequence._maximum(-phi, self._alpha, with_theta=False).value
        return np.asarray(value)

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        upper = self._sequence._maximum(phi, self._alpha, with_theta=True)
        assert upper.theta is not None
        if not self._on_lower:
            return upper.value, upper.theta
        if self._centre is not None:
            most, least = self._exploration, 1.0 - self._exploration
            return most * upper.value + least * (phi @ self._centre), most * upper.theta + least * self._centre
        lower = self._sequence._maximum(-phi, self._alpha, with_theta=True)
        assert lower.theta is not None
        value = self._on_upper * upper.value - self._on_lower * lower.value
        return value, self._on_upper * upper.theta + self._on_lower * lower.theta

    def ceilings(self, phi: Array, guess: float | None = None) -> Array | None:
        if self._alpha is not None or self._on_lower or isinstance(self._sequence, FixedMultiplier):
            return None  # nothing is cheaper than the score itself
        at = self._sequence.alpha0 if guess is None else guess
        return self._sequence._maximum(phi, at, with_theta=False).value

    def multiplier(self, phi: Array) -> float | None:
        alpha = float(self._sequence._maximum(phi, self._alpha, with_theta=False).alpha[0])
        return alpha if SMALLEST_MULTIPLIER < alpha < LARGEST_MULTIPLIER else None


class Pessimism(Score):
    """The lower bound of a sequence: what an action is worth at least."""

    def __init__(self, sequence: ConfidenceSequence, alpha: float | None) -> None:
        self._sequence, self._alpha = sequence, alpha

    def values(self, phi: Array) -> Array:
        return -self._sequence._maximum(-phi, self._alpha, with_theta=False).value

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        lower = self._sequence._maximum(-phi, self._alpha, with_theta=True)
        assert lower.theta is not None
        return -lower.value, lower.theta


class Advantage(Score):
    """How much more than features `own` (d,), or than 0, an action can be worth, for one parameter at a time."""

    def __init__(self, sequence: ConfidenceSequence, own: Array | float) -> None:
        self._sequence, self._own = sequence, own

    def values(self, phi: Array) -> Array:
        return self._sequence._maximum(phi - self._own, None, with_theta=False).value

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        found = self._sequence._maximum(phi - self._own, None, with_theta=True)
        assert found.theta is not None
        return found.value, found.theta


class Linear(Score):
    """φᵀθ for one parameter."""

    def __init__(self, theta: Array) -> None:
        self._theta = theta

    def values(self, phi: Array) -> Array:
        return np.asarray(phi @ self._theta)

    def slopes(self, phi: Array) -> tuple[Array, Array]:
        return phi @ self._theta, np.broadcast_to(self._theta, phi.shape)

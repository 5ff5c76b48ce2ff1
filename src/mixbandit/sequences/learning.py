"""Rewards from users, checked before anything is learnt."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import LARGEST_DATUM, Array, as_vector, check_finite, check_within, positive_array
from mixbandit.errors import InvalidInput
from mixbandit.sequences.belief import Belief

B = TypeVar("B", bound=Belief[Any])


class Rewards(NamedTuple):
    """Rewards that can be learnt: the arguments of `Belief.after`."""

    rows: Array  # (n, dim_in)
    values: Array  # (n,)
    weights: Array | None = None  # (n,), σ/σ_k


def checked_rewards(
    belief: Belief[Any], actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None
) -> Rewards:
    """Rewards (n,) of actions (n, dim_in), with noise levels where they are known."""
    rows = belief.model.checked(actions)
    values = as_vector(rewards, len(rows), "rewards")
    check_within(values, belief.value_range, "rewards")
    if sigma is None:
        check_finite(values, "rewards", LARGEST_DATUM)
        return Rewards(rows, values)
    weights = np.broadcast_to(belief.weights(_levels(sigma, len(rows))), (len(rows),))
    check_finite(weights * values, "rewards", LARGEST_DATUM)
    return Rewards(rows, values, weights)


def checked_again(belief: Belief[Any], rewards: Rewards) -> Rewards:
    """Rewards that come from elsewhere as if they had been checked."""
    rows = belief.model.checked(rewards.rows)
    values = as_vector(rewards.values, len(rows), "rewards")
    check_within(values, belief.value_range, "rewards")
    check_finite(values, "rewards", LARGEST_DATUM)
    if rewards.weights is None:
        return Rewards(rows, values)
    weights = as_vector(rewards.weights, len(rows), "weights")
    if not (weights > 0.0).all():
        raise InvalidInput(f"weights must be positive, got {weights.min():g}")
    check_finite(weights * values, "rewards", LARGEST_DATUM)
    return Rewards(rows, values, weights)


def learnt(belief: B, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> B:
    """The belief after these rewards; the arguments are checked first."""
    return belief.after(*checked_rewards(belief, actions, rewards, sigma))


def _levels(sigma: ArrayLike, n: int) -> Array:
    """Noise levels as one number or one per reward."""
    levels = positive_array(sigma, "sigma")
    if levels.shape == (n, 1):  # a one-column DataFrame
        levels = levels[:, 0]
    if levels.shape not in ((), (n,)):
        raise InvalidInput(f"sigma must be one number or have shape ({n},), got {levels.shape}")
    return levels

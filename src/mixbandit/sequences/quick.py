"""The paper's set from ridge regression alone, for the few directions that a decision needs.

With a mixture N(0, cΦΦᵀ), and L = σ² ln det(ΦᵀΦ/α₀ + I) + 2σ² ln(1/δ), R² is L plus the ridge loss at α₀ = σ²/c, and

    ρ(α) = L + αB² + (α₀ − α)θ̂_{α₀}ᵀθ̂_α.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.data import Factor, Folded, Ridge, widened
from mixbandit.sets import KrylovBall, Near, ResidualBall, RidgeEllipsoid, typical_multiplier

# If the closed form at α₀ is larger than typical maxima by more than this many half-widths, multipliers are best found
# from a typical one, and those smaller than that share of it from α₀.
_LOOSE, _MUCH_SMALLER = 0.15, 0.02
# Bounds keep ten digits up to this ratio of the largest entry of the triangular factor of ΦᵀΦ + α₀I to √α₀.
_WELL_CONDITIONED = 1e4
# Rounding leaves M uncertain by about eps/(s + a), s at most the smallest eigenvalue of ΦᵀΦ, and ρ(α) by h‖q‖² times
# that, next to αB². Measured, bounds are off by at most 15 eps times the ratio of ‖q‖² to (s + a)B²: up to this ratio
# they keep ten digits. At a larger a it is smaller.
_MOST_EXPLAINED = 3e4
_ROUND_UP = 1e-14


class Stated(NamedTuple):
    """What is assumed."""

    sigma: float
    delta: float
    norm_bound: float

    def allowed(self, ridge: Ridge) -> float:
        """L, from ridge regression at α₀."""
        return self.sigma**2 * (ridge.log_det - 2.0 * math.log(self.delta))


class _Typical(NamedTuple):
    """What the rows folded in say about those added since.

    It rarely changes, and a run loaded from a file finds the same.
    """

    multiplier: float  # that of the norm bound in some direction, at least α₀
    excess: float  # how loose the closed form at α₀ is there, in half-widths
    least_eigenvalue: float  # at most the smallest of ΦᵀΦ


def krylov_ball(
    data: Factor, own: Ridge, allowed: float, stated: Stated, whole: Callable[[], ResidualBall]
) -> KrylovBall | None:
    """The set, given ridge regression at α₀ and L, which it allows for; None where that is not enough.

    The set must not be empty; `whole` makes it by decomposition.
    """
    folded = data.folded
    if not folded.count or own.peak2 > _WELL_CONDITIONED**2 * own.alpha:
        return None
    # Where roundings count they must be added to R, whose square is L or more.
    least = math.sqrt(allowed)
    if widened(least, data.rounding(stated.norm_bound)) > least:
        return None
    start, excess, smallest = _typical(folded, own.alpha, stated)
    view = _view(own, own, allowed, stated.norm_bound, smallest, start, 0.0)
    nearest, views = own, [view] if _keeps_digits(view) else []
    if start > own.alpha and (excess > _LOOSE or not views) and folded.is_at_hand:
        nearest = data.ridge(start)
        view = _view(nearest, own, allowed, stated.norm_bound, smallest, start, _MUCH_SMALLER)
        views = [view, *views] if _keeps_digits(view) else []
    if not views:
        return None
    radius2 = view.rho + nearest.alpha * stated.norm_bound**2
    if not radius2 > 0.0:
        return None
    spread = None if folded.is_scarce else folded.spread
    outer = RidgeEllipsoid(nearest, radius2, lambda: whole().closed_form(nearest.alpha), spread)
    return KrylovBall(views, outer, whole, scarce=folded.count < data.dim)


def _view(ridge: Ridge, own: Ridge, allowed: float, bound: float, smallest: float, start: float, least: float) -> Near:
    """The set from ridge regression at any α, with ρ − αB² rounded up; `allowed` is L."""
    shift = 0.0 if ridge is own else (own.alpha - ridge.alpha) * float(own.theta @ ridge.theta)
    rho = allowed + shift + _ROUND_UP * (allowed + abs(shift))
    return Near(ridge.alpha, ridge.root, ridge.white, rho, bound, smallest, start, least, {})


def _keeps_digits(view: Near) -> bool:
    """Whether the rounding of M leaves ten digits of bounds."""
    explained = float(view.rewards @ view.rewards)
    return explained <= _MOST_EXPLAINED * (view.least_eigenvalue + view.alpha) * view.norm_bound**2


def _typical(folded: Folded, alpha0: float, stated: Stated) -> _Typical:
    known: _Typical | None = folded.derived.get((stated, alpha0))
    if known is None:
        ridge = folded.ridge(alpha0)
        smallest = folded.known_eigenvalue(alpha0)
        view = _view(ridge, ridge, stated.allowed(ridge), stated.norm_bound, 0.0, alpha0, 0.0)
        found = typical_multiplier(view, _some_direction(len(ridge.theta)) @ ridge.root)
        multiplier, excess = (alpha0, 0.0) if found is None else (max(found[0], alpha0), found[1])
        known = folded.derived[stated, alpha0] = _Typical(multiplier, excess, smallest)
    return known


@functools.cache
def _some_direction(dim: int) -> Array:
    """A unit vector without a preference for any coordinate."""
    return np.asarray(np.random.default_rng(0).choice((-1.0, 1.0), dim) / math.sqrt(dim))

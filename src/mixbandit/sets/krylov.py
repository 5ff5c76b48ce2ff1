"""The exact bounds of one direction from ridge regression, without a decomposition of all rows.

With ridge regression at a multiplier a, V = ΦᵀΦ + aI, WWᵀ = V⁻¹, and in the coordinates of W:

| symbol | meaning | shape |
|---|---|---|
| M = WᵀW | so that (ΦᵀΦ + αI)⁻¹ = W(I + hM)⁻¹Wᵀ, h = α − a | (d, d) |
| p = Wᵀφ, q = WᵀΦᵀr | the direction, of length 1, and the rewards | (d,) |
| μ, E | eigenvalues and eigenvectors of M restricted to the span of p, q, Mp, Mq, … | (m,), (m, m) |
| v = 1/(1 + hμ) | so that w = Σ p²v, φᵀθ̂_α = Σ pqv, ‖u‖² = Σ p²μv², … | (m,) |
| ρ(α) = ρ₀ + αB² − h Σ q²μv | squared radius of the analytic bound at α (label thm:analytic_ucb) | |

Every multiplier needs only these few dimensions, because rational functions of M applied to p and q are found in them
to many digits (Lanczos): five or six multiplications with M do where there are more rewards than dimensions, since
I + hM is then close to a multiple of I. What is left out is known, too: if x solves (I + hM)x = p up to a residual e,
then pᵀ(I + hM)⁻¹p exceeds pᵀx by at most ‖e‖²/min(1, (s + α)/(s + a)), s at most the smallest eigenvalue of ΦᵀΦ. It is
added to bounds; where it is not negligible, the caller decomposes after all.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.data import SAFE_SIZE, are_safe
from mixbandit.sets.projected import CANCELLED, LEAST, LEFT_OUT, MOST, STEPS, TOLERANCE, End, Near, Projected, spans

# Multiplications with M after which bounds are looked at. With numpy alone looking costs more than multiplying; rough
# values need few.
_LOOKS, _NUMPY_LOOKS, _ROUGH_LOOKS = (5, 6, 8, 11, 14, 18), (7, 12, 18), (3,)
# Vectors shorter than this, relative to what they were formed from, are left out.
_NOTHING = 1e-9


def interval(near: Near, p: Array) -> tuple[float, float] | None:
    """The minimum and maximum in the unit direction with coordinates p (d,); None if this takes a decomposition."""
    compiled = _compiled_kernel()
    return interval_by_numpy(near, p) if compiled is None else _solved(compiled, near, p)


def best(near: Near, directions: Array, theta: Array, radius: float, tie: float) -> tuple[int, float, float] | None:
    """The direction (n, d) with the largest maximum: its index, minimum and maximum; None if that takes another look.

    `theta` and `radius` are those of the closed form at a.
    """
    half = directions @ near.root
    compiled = kernel("mixbandit.sets._compiled_krylov.best", _check_best)
    if compiled is None:
        return _best(near, directions, half, theta, radius, tie)
    rows = np.ascontiguousarray(directions)
    index, low, high = compiled(rows, half, theta, radius, tie, SAFE_SIZE, near.root, *_arguments(near))
    return None if index < 0 else (index, low, high)


def _best(
    near: Near, directions: Array, half: Array, theta: Array, radius: float, tie: float
) -> tuple[int, float, float] | None:
    """With numpy alone; `half` are the coordinates of the directions."""
    sizes2, w = np.einsum("nd,nd->n", directions, directions), np.einsum("nd,nd->n", half, half)
    if not (are_safe(sizes2, SAFE_SIZE**2) and are_safe(w, SAFE_SIZE**2)):
        return None
    ceilings = directions @ theta + radius * np.sqrt(w)
    leader = int(ceilings.argmax())
    size = math.sqrt(sizes2[leader])
    found = _solution(near, half[leader] / size)
    if found is None:
        return None
    winner, low, high = leader, size * found.low, size * found.high
    others = (ceilings >= high - tie * abs(high)).nonzero()[0]
    others = others[others != leader]
    if not len(others):
        return winner, low, high
    # Multipliers are similar: the leader's gives tighter ceilings.
    ceilings = np.minimum(ceilings[others], found.ceilings(half[others]))
    for place in np.argsort(-ceilings).tolist():
        if ceilings[place] < high - tie * abs(high):
            break
        index = int(others[place])
        size = math.sqrt(sizes2[index])
        found = _solution(near, half[index] / size)
        if found is None or abs(size * found.high - high) <= tie * max(abs(size * found.high), abs(high)):
            return None
        if size * found.high > high:
            winner, low, high = index, size * found.low, size * found.high
    return winner, low, high


def _check_best(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code finds the best of a few directions; the first call compiles it."""
    near, directions = example()
    theta, radius = near.root @ near.rewards, math.sqrt(near.rho + near.alpha * near.norm_bound**2)
    ends = [interval_by_numpy(near, row @ near.root / np.linalg.norm(row)) for row in directions]
    expected = max(math.sqrt(row @ row) * end[1] for row, end in zip(directions, ends, strict=True) if end is not None)
    found = compiled(directions, directions @ near.root, theta, radius, 1e-9, 1e-100, near.root, *_arguments(near))
    if not math.isclose(found[2], expected, rel_tol=1e-9):
        raise RuntimeError(f"compiled code finds {found[2]}, numpy {expected}")


def typical_multiplier(near: Near, p: Array) -> tuple[float, float] | None:
    """The multiplier of the maximum in the unit direction with coordinates p (d,), roughly; None if it is extreme.

    Also, how much larger the closed form at a is than the maximum, in its half-widths.
    """
    alpha, value = _rough(near, p)
    radius2 = near.rho + near.alpha * near.norm_bound**2
    if not (radius2 > 0.0 and 2.0 * LEAST < alpha / near.alpha < 0.5 * MOST):
        return None
    half = math.sqrt(radius2 * float(p @ p))
    return alpha, (float(p @ near.rewards) + half - value) / half


def _rough(near: Near, p: Array) -> tuple[float, float]:
    """The multiplier and the maximum."""
    compiled = _compiled_kernel()
    if compiled is not None:
        _, high, alpha = compiled(near.root, p, *_arguments(near), -math.inf)
        if not math.isnan(high):
            return alpha, high
    found = Projected(near, p, next(spans(near, p, _ROUGH_LOOKS)))
    (end,) = found.roots((1.0,), (near.start,))
    return end.alpha, found.closed_form(end)


def _compiled_kernel() -> Kernel | None:
    return kernel("mixbandit.sets._compiled_krylov.interval", _check_agreement)


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code solves a small problem as numpy does; the first call compiles it."""
    near, directions = example()
    p = (directions[0] / np.linalg.norm(directions[0])) @ near.root
    found, expected = _solved(compiled, near, p), interval_by_numpy(near, p)
    if found is None or expected is None or not np.allclose(found, expected, rtol=1e-9, atol=0.0):
        raise RuntimeError(f"compiled code gives {found}, numpy {expected}")


def example() -> tuple[Near, Array]:
    """A small problem, and some directions."""
    d = 12
    root = np.asfortranarray(np.diag(np.linspace(0.2, 1.0, d)) + 0.1 * np.sin(np.arange(d * d)).reshape(d, d))
    return Near(0.3, root, np.linspace(-1.0, 1.0, d) @ root, -0.4, 1.5, 0.0, 0.5, 0.0, {}), np.cos(
        np.arange(3.0 * d)
    ).reshape(3, d)


def _solved(compiled: Kernel, near: Near, p: Array) -> tuple[float, float] | None:
    low, high, _ = compiled(near.root, p, *_arguments(near), -math.inf)
    return None if math.isnan(low) else (low, high)


def _arguments(near: Near) -> tuple[Any, ...]:
    """What compiled code needs to know besides the root and directions."""
    alpha, _, q, rho, norm_bound, smallest, start, least, _ = near
    return (
        q, alpha, rho, norm_bound, smallest, start, _LOOKS, least, LEAST, MOST, LEFT_OUT, TOLERANCE, STEPS,
        CANCELLED, _NOTHING,
    )  # fmt: skip


def interval_by_numpy(near: Near, p: Array) -> tuple[float, float] | None:
    """With numpy alone."""
    found = _solution(near, p)
    return None if found is None else (found.low, found.high)


def _solution(near: Near, p: Array) -> _Solution | None:
    """The minimum and maximum in the unit direction with coordinates p (d,); None if this takes a decomposition."""
    starts: tuple[float, ...] = (near.start, near.start)
    for span in spans(near, p, _NUMPY_LOOKS):
        projected = Projected(near, p, span)
        ends = projected.roots((1.0, -1.0), starts)
        starts = tuple(end.alpha for end in ends)
        if not (near.least <= min(starts) / near.alpha and max(starts) / near.alpha <= 0.5 * MOST):
            return None
        high, low = projected.bounds(ends)
        if not (math.isnan(high) or math.isnan(low)):
            return _Solution(max(-low, -near.norm_bound), min(high, near.norm_bound), projected, ends[0])
    return None


class _Solution(NamedTuple):
    """The minimum and maximum in a direction, and where the latter came from."""

    low: float
    high: float
    projected: Projected
    end: End

    def ceilings(self, others: Array) -> Array:
        """At least the maxima in other directions, of any length, with coordinates (n, d)."""
        return self.projected.ceilings(self.end, others)

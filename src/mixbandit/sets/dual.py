"""The one-dimensional dual of max {φᵀθ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B}, solved for many directions at once.

In the singular basis of Φ and in units in which B, the largest singular value and ‖φ‖ are 1:

| symbol | meaning | shape |
|---|---|---|
| s, z | eigenvalues of ΦᵀΦ in (0, 1], rewards in the same coordinates | (rank,) |
| G | R² minus the least-squares residual, the *excess* | |
| p, ν | a direction inside the range of Φᵀ, norm of its part outside | (n, rank), (n,) |
| α | multiplier of the norm constraint | (n,) |
| v = 1/(s+α) | so that θ̂ = √s z v, u = p v, w = Σ p²v + ν²/α | |
| ρ(α) = G + α − Σ α z²v | squared radius of the analytic bound (label thm:analytic_ucb) | |
| κ = √(ρ/w) | so that θ*(α) = θ̂ + κu | |

For every α > 0, g(α) = pᵀθ̂ + √(ρw) bounds the maximum from above; while the set is not empty the maximum
is min g. g is quasi-convex, with g' = ½√(w/ρ) H for H(α) = 1 − ‖θ*(α)‖², so that the best α is the root of
H; θ*(α) is the gradient of g in φ. Any α gives a valid bound, so that stopping early is safe.

The vectorised solver here needs numpy only. Where numba is installed its compiled twin in `_compiled` does
the same steps row by row, twice as fast for a thousand actions and more so for ten; MIXBANDIT_COMPILED=0 in the
environment turns it off.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.sets.base import BALL, ELLIPSOID, INTERIOR, IntArray

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# ρ is rounded up by this much of the terms it sums: where it is a small difference, rounding it down would pull
# bounds below the truth.
ROUND_UP = 8.0 * _EPS
# The last Newton step in ln α leaves an error of about its square. Bounds are at the minimum of g, which
# squares that error once more; maximisers feel it directly.
_VALUE_TOLERANCE, _THETA_TOLERANCE = 1e-4, 1e-7
MAX_STEPS = 100
ATTAINING = (_THETA_TOLERANCE, ROUND_UP, MAX_STEPS)
"""Arguments of the compiled solver where maximisers are wanted."""
# Converged directions are dropped from the iteration when fewer than this share are left.
_COMPACT_BELOW = 0.6


class Problem:
    """The set, in normalised units."""

    def __init__(self, root_s: Array, z: Array, excess: float) -> None:
        self.root_s, self.s, self.z, self.excess = root_s, root_s**2, z, excess
        # Bounds on α: an interior multiplier lies between them, or beyond where it makes no difference.
        least = min(float(self.s[-1]) if len(self.s) else 1.0, excess)
        self.bracket = max(_EPS * least, 1e-300), max(excess, 1.0) / _EPS


class Solution(NamedTuple):
    """The maxima in normalised units, one row per direction."""

    value: Array  # (n,)
    alpha: Array  # (n,), inf for the ball alone and 0 for the ellipsoid alone
    case: IntArray  # (n,)
    inside: Array | None  # maximiser in the range of Φᵀ, (n, rank), if asked for
    along_null: Array  # the maximiser's multiple of the direction's null part, (n,)


def rho(problem: Problem, alpha: Array | float, v: Array) -> tuple[Array, Array]:
    """ρ(α), rounded up, and e = ρ − α formed without α, which would swamp it."""
    shrunk = alpha * (v @ problem.z**2)
    e = problem.excess - shrunk + ROUND_UP * (abs(problem.excess) + shrunk)
    return e + (1.0 + ROUND_UP) * alpha, e


def solve(problem: Problem, p: Array, null: Array, start: float, with_theta: bool) -> Solution:
    """Maximise over the set, which must have a point; `start` is a first guess at the multipliers."""
    tolerance = _THETA_TOLERANCE if with_theta else _VALUE_TOLERANCE
    compiled = _compiled_kernel()
    if compiled is None:
        return _solve_vectorised(problem, p, null, start, tolerance, with_theta)
    return _solve_compiled(compiled, problem, p, null, start, tolerance, with_theta)


def _solve_compiled(
    compiled: Kernel,
    problem: Problem,
    p: Array,
    null: Array,
    start: float,
    tolerance: float,
    with_theta: bool,
) -> Solution:
    n = len(p)
    value, alpha, along_null = np.empty((3, n))
    case = np.empty(n, dtype=np.int64)
    inside = np.empty((n, len(problem.s)) if with_theta else (0, 0))
    compiled(
        problem.s, problem.root_s, problem.z, problem.excess, p, null, start, *problem.bracket,
        tolerance, ROUND_UP, MAX_STEPS, value, alpha, case, inside, along_null,
    )  # fmt: skip
    return Solution(value, alpha, case, inside if with_theta else None, along_null)


def _compiled_kernel() -> Kernel | None:
    return kernel("mixbandit.sets._compiled.solve_rows", _check_agreement)


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code solves a small problem as numpy does; the first call compiles it."""
    # All three cases occur.
    problem = Problem(np.array([2.0, 0.5]), np.array([0.9, 0.2]), 0.05)
    p, null = np.array([[0.6, 0.0], [0.6, 0.8], [-0.8, 0.36], [0.48, 0.14]]), np.array([0.8, 0.0, 0.48, 0.866])
    found = _solve_compiled(compiled, problem, p, null, 0.1, _THETA_TOLERANCE, True)
    expected = _solve_vectorised(problem, p, null, 0.1, _THETA_TOLERANCE, True)
    if not np.allclose(found.value, expected.value, rtol=1e-9, atol=0.0):
        raise RuntimeError(f"compiled code gives {found.value}, numpy {expected.value}")


def _solve_vectorised(
    problem: Problem, p: Array, null: Array, start: float, tolerance: float, with_theta: bool
) -> Solution:
    """The cases in the order in which they exclude each other."""
    n = len(p)
    value, alpha, along_null = np.ones(n), np.full(n, np.inf), np.ones(n)
    inside = p.copy() if with_theta else None

    # The ball alone: its maximiser φ/‖φ‖ satisfies the residual constraint.
    gap = problem.root_s * p - problem.z
    case = np.where(np.einsum("nr,nr->n", gap, gap) <= problem.excess, BALL, INTERIOR)
    case[(null == 0.0) & ~p.any(axis=1)] = BALL

    # The ellipsoid alone, the limit α → 0: φ lies in the range and the maximiser in the unit ball.
    candidates = np.flatnonzero((case == INTERIOR) & (null == 0.0))
    if len(candidates):
        q = p[candidates]
        w = (q * q) @ (1.0 / problem.s)
        centre = problem.z / problem.root_s
        theta = centre + np.sqrt(problem.excess / w)[:, None] * (q / problem.s)
        fits = np.einsum("nr,nr->n", theta, theta) <= 1.0
        rows = candidates[fits]
        case[rows], alpha[rows], along_null[rows] = ELLIPSOID, 0.0, 0.0
        value[rows] = (q @ centre + np.sqrt(problem.excess * w))[fits]
        if inside is not None:
            inside[rows] = theta[fits]

    # Both constraints bind.
    rows = np.flatnonzero(case == INTERIOR)
    if len(rows):
        root = _InteriorRoot(problem, p[rows], null[rows])
        alpha[rows] = root.solve(start, tolerance)
        value[rows], theta, along_null[rows] = root.evaluate(alpha[rows])
        if inside is not None:
            inside[rows] = theta
    return Solution(value, alpha, case, inside, along_null)


class _InteriorRoot:
    """Solve H(α) = 0 for many directions at once by bracketed Newton steps in ln α."""

    def __init__(self, problem: Problem, p: Array, null: Array) -> None:
        self.problem, self.p, self.null2 = problem, p, null**2
        self.centre = problem.root_s * problem.z
        self.szz = self.centre**2
        # Weights of the sums over the spectrum: p² for u, sp² for Ku, √s z p for θ̂ᵀu.
        pp = p * p
        self.weights = np.stack((pp, pp * problem.s, p * self.centre))

    def evaluate(self, alpha: Array) -> tuple[Array, Array, Array]:
        """g(α), θ*(α) in the range, and its multiple of the unit direction's null part."""
        v = 1.0 / (self.problem.s + alpha[:, None])
        w = np.einsum("nr,nr->n", self.weights[0], v) + self.null2 / alpha
        radius2 = np.maximum(rho(self.problem, alpha, v)[0], _TINY)
        kappa = np.sqrt(radius2 / w)
        value = np.einsum("nr,nr->n", self.weights[2], v) + np.sqrt(radius2 * w)
        return value, (self.centre + kappa[:, None] * self.p) * v, kappa / alpha

    def solve(self, start: float, tolerance: float) -> Array:
        """The multipliers, (n,): H < 0 on their left, H > 0 on their right."""
        n = len(self.p)
        low, high = (math.log(end) for end in self.problem.bracket)
        lower, upper = np.full(n, low), np.full(n, high)
        x = np.full(n, min(max(math.log(start), low), high))
        result, rows, active = x.copy(), np.arange(n), self
        for _ in range(MAX_STEPS):
            alpha = np.exp(x)
            h, h_slope = active._slope(alpha)
            lower, upper = np.where(h < 0.0, x, lower), np.where(h < 0.0, upper, x)
            proposal = x + _newton_step(alpha, h, h_slope)
            inside = (proposal >= lower) & (proposal <= upper)
            new = np.where(inside, proposal, 0.5 * (lower + upper))
            going = np.abs(new - x) > tolerance
            result[rows] = x = new
            if not going.any():
                break
            if np.count_nonzero(going) < _COMPACT_BELOW * len(x):
                active = active._restricted(going)
                rows, x, lower, upper = rows[going], x[going], lower[going], upper[going]
        return np.asarray(np.exp(result))

    def _slope(self, alpha: Array) -> tuple[Array, Array]:
        """H = [uᵀKu − (ρ−α)‖u‖²]/w − ‖θ̂‖² − 2κθ̂ᵀu, in which no α cancels, and its derivative."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._slope_unguarded(alpha)

    def _slope_unguarded(self, alpha: Array) -> tuple[Array, Array]:
        v = 1.0 / (self.problem.s + alpha[:, None])
        v2 = v * v
        v3 = v2 * v
        w = np.einsum("nr,nr->n", self.weights[0], v) + self.null2 / alpha
        uu, uku, tu = np.einsum("knr,nr->kn", self.weights, v2)
        uuu, uuku, ttu = np.einsum("knr,nr->kn", self.weights, v3)
        uu += self.null2 / alpha**2
        uuu += self.null2 / alpha**3
        tt, ttt = v2 @ self.szz, v3 @ self.szz
        radius2, e = rho(self.problem, alpha, v)
        radius2 = np.maximum(radius2, _TINY)
        kappa = np.sqrt(radius2 / w)
        kappa_slope = 0.5 * kappa * ((1.0 - tt) / radius2 + uu / w)
        inner = (uku - e * uu) / w
        h = inner - tt - 2.0 * kappa * tu
        h_slope = (tt * uu - 2.0 * uuku + 2.0 * e * uuu + inner * uu) / w
        h_slope += 2.0 * ttt - 2.0 * kappa_slope * tu + 4.0 * kappa * ttu
        return h, h_slope

    def _restricted(self, rows: NDArray[np.bool_]) -> _InteriorRoot:
        """The same problem for some of the directions."""
        new = copy.copy(self)
        new.weights, new.null2 = self.weights[:, rows], self.null2[rows]
        return new


def _newton_step(alpha: Array, h: Array, h_slope: Array) -> Array:
    """A step in ln α on whichever form of the equation is nearly linear there; NaN where it leaves α > 0."""
    # With N = ‖θ*‖² = 1 − H: for small α, 1/N is linear in α (whether φ has a null part, N ≈ G/α, or
    # not, N ≈ N₀ − cα). For large α, H ≈ c/α − c'/α², so α²H is linear in α.
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.where(alpha > 1.0, 2.0 * h + alpha * h_slope, alpha * h_slope / (1.0 - h))
        # An infinite slope is an overflow, and a step of 0 would pass for convergence.
        return np.where(np.isfinite(slope), np.log1p(-h / slope), np.nan)

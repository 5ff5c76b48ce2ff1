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
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit._lazy import lapack
from mixbandit.data import SAFE_SIZE

# Multiplications with M after which bounds are looked at. With numpy alone looking costs more than multiplying.
_LOOKS, _NUMPY_LOOKS, _ROUGH_LOOKS = (5, 6, 8, 11, 14, 18), (7, 12, 18), (3,)
# Up to this dimension numpy decomposes M instead, once for all directions.
_SMALL = 32
# Multipliers within these multiples of a are looked for. The smallest stands for 0, where the norm bound does not bind,
# unless ΦᵀΦ is known to be regular; next to smaller ones, rounding errors of M would count.
_LEAST, _MOST = 1e-3, 1e8
# What may be left out, relative to the size of a bound.
_LEFT_OUT = 1e-11
# The last Newton step in ln α leaves an error of about its square, and a bound feels the square of that.
_TOLERANCE, _STEPS = 1e-4, 60
# ρ may be this much smaller than what it is the difference of.
_CANCELLED = 1e-3
# Vectors shorter than this, relative to what they were formed from, are left out.
_NOTHING = 1e-9


class Near(NamedTuple):
    """The set as ridge regression at one multiplier a sees it."""

    alpha: float  # a
    root: Array  # W, (d, d), in Fortran's order
    rewards: Array  # q, (d,)
    rho: float  # ρ₀ = ρ(a) − aB², formed without aB², which may swamp it
    norm_bound: float
    least_eigenvalue: float  # at most the smallest of ΦᵀΦ
    start: float  # a guess at multipliers
    least: float  # give up on smaller ones, as multiples of a: they are better found from elsewhere
    known: dict[str, Any]  # what was derived from all this, for the next direction


def interval(near: Near, p: Array) -> tuple[float, float] | None:
    """The minimum and maximum in the unit direction with coordinates p (d,); None if this takes a decomposition."""
    compiled = _compiled_kernel()
    return _interval(near, p) if compiled is None else _solved(compiled, near, p)


def best(near: Near, directions: Array, theta: Array, radius: float, tie: float) -> tuple[int, float, float] | None:
    """The direction (n, d) with the largest maximum: its index, minimum and maximum; None if that takes another look.

    `theta` and `radius` are those of the closed form at a.
    """
    compiled = kernel("mixbandit.sets._compiled_krylov.best", _check_best)
    if compiled is None or not directions.flags.c_contiguous:
        return None
    half = directions @ near.root
    index, low, high = compiled(directions, half, theta, radius, tie, SAFE_SIZE, near.root, *_arguments(near))
    return None if index < 0 else (index, low, high)


def _check_best(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code finds the best of a few directions; the first call compiles it."""
    near, directions = _example()
    theta, radius = near.root @ near.rewards, math.sqrt(near.rho + near.alpha * near.norm_bound**2)
    ends = [_interval(near, row @ near.root / np.linalg.norm(row)) for row in directions]
    expected = max(math.sqrt(row @ row) * end[1] for row, end in zip(directions, ends, strict=True) if end is not None)
    found = compiled(directions, directions @ near.root, theta, radius, 1e-9, 1e-100, near.root, *_arguments(near))
    if not math.isclose(found[2], expected, rel_tol=1e-9):
        raise RuntimeError(f"compiled code finds {found[2]}, numpy {expected}")


def typical_multiplier(near: Near, p: Array) -> tuple[float, float] | None:
    """The multiplier of the maximum in the unit direction with coordinates p (d,), roughly; None if it is extreme.

    Also, how much larger the closed form at a is than the maximum, in half-widths.
    """
    mu, both, _ = next(_spans(near, p, _ROUGH_LOOKS))
    found = _Projected(near, mu, both, None)
    alpha = found.multiplier(1.0)
    if not 2.0 * _LEAST < alpha / near.alpha < 0.5 * _MOST:
        return None
    value, half = found.closed_form(alpha)
    return alpha, (found.closed_form(near.alpha)[0] - value) / half


def _compiled_kernel() -> Kernel | None:
    return kernel("mixbandit.sets._compiled_krylov.interval", _check_agreement)


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code solves a small problem as numpy does; the first call compiles it."""
    near, directions = _example()
    p = (directions[0] / np.linalg.norm(directions[0])) @ near.root
    found, expected = _solved(compiled, near, p), _interval(near, p)
    if found is None or expected is None or not np.allclose(found, expected, rtol=1e-9, atol=0.0):
        raise RuntimeError(f"compiled code gives {found}, numpy {expected}")


def _example() -> tuple[Near, Array]:
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
        q, alpha, rho, norm_bound, smallest, start, _LOOKS, least, _LEAST, _MOST, _LEFT_OUT, _TOLERANCE, _STEPS,
        _CANCELLED, _NOTHING,
    )  # fmt: skip


def _interval(near: Near, p: Array) -> tuple[float, float] | None:
    """With numpy alone."""
    for mu, both, outside in _spans(near, p, _NUMPY_LOOKS):
        found = _Projected(near, mu, both, outside).interval()
        if found is not None:
            return found if found != _OUT_OF_REACH else None
    return None


def _spans(near: Near, p: Array, looks: tuple[int, ...]) -> Iterator[tuple[Array, Array, Array | None]]:
    """M restricted to larger and larger spans: its eigenvalues, p and q in the eigenbasis, and for each eigenvector the
    part of its image outside the span (d, m); that is None where the span is everything.
    """
    root, d = near.root, len(p)
    both = np.array((p, near.rewards))
    if d <= _SMALL:
        whole = near.known.get("whole")
        if whole is None:
            whole = near.known["whole"] = _eigen(root.T @ root)
        yield whole[0], both @ whole[1], None
        return
    basis, newest, done = np.empty((d, 0)), both.T, 0
    for look in looks:
        parts = [] if done else [newest]
        for _ in range(look - done - len(parts)):
            newest = root.T @ (root @ newest)
            newest *= near.alpha  # of size 1 at most
            parts.append(newest)
        grown = np.concatenate(parts, axis=1)[:, : d - basis.shape[1]]
        if done:
            grown = _orthonormal(grown - basis @ (basis.T @ grown))
            grown -= basis @ (basis.T @ grown)  # what is left of vectors in the span already is mostly rounding
        basis = np.concatenate((basis, _orthonormal(grown)), axis=1)
        images = root.T @ (root @ basis)
        inner = basis.T @ images
        mu, vectors = _eigen(inner)
        yield mu, both @ (basis @ vectors), (images - basis @ inner) @ vectors
        if basis.shape[1] == d:
            return
        newest, done = basis[:, -2:], look


_OUT_OF_REACH = (-math.inf, math.inf)


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span of columns (d, m), by QR."""
    packed, tau, _, info = lapack().dgeqrf(columns)
    basis, _, wrong = lapack().dorgqr(packed, tau)
    if info != 0 or wrong != 0:
        raise RuntimeError(f"LAPACK's dgeqrf and dorgqr returned {info} and {wrong}")
    return np.asarray(basis)


def _eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors, info = lapack().dsyevd(matrix)
    if info != 0:
        raise RuntimeError(f"LAPACK's dsyevd returned {info}: the eigenvalues did not converge")
    return values, vectors


class _Projected:
    """The problem in a span, or everywhere (`outside` is None): eigenvalues of M, p and q in its eigenbasis, (2, m)."""

    def __init__(self, near: Near, mu: Array, both: Array, outside: Array | None) -> None:
        self._near, self._mu, self._both, self._outside = near, mu, both, outside
        x, y = both
        self._weights, self._powers = np.array((x * x, x * y, y * y)), np.empty((4, len(mu)))

    def interval(self) -> tuple[float, float] | None:
        """Minimum and maximum; None if too much is left out, infinite if a multiplier is out of reach."""
        found = []
        for sign in (-1.0, 1.0):
            alpha = self.multiplier(sign)
            if not self._near.least <= alpha / self._near.alpha <= 0.5 * _MOST:
                return _OUT_OF_REACH
            value = self._bound(sign, alpha)
            if math.isnan(value):
                return None
            found.append(sign * min(value, self._near.norm_bound))
        return found[0], found[1]

    def _sums(self, h: float) -> Any:
        """Sums of p², pq, q² times v, μv, μv², μ²v³, as nested lists, (3, 4)."""
        v, first, second, third = self._powers
        np.multiply(self._mu, h, out=v)
        v += 1.0
        np.reciprocal(v, out=v)
        np.multiply(self._mu, v, out=first)
        np.multiply(first, v, out=second)
        np.multiply(first, second, out=third)
        return (self._weights @ self._powers.T).tolist()

    def multiplier(self, sign: float) -> float:
        """The multiplier of the norm bound, within its limits: H < 0 on its left, H > 0 on its right."""
        a, rho_0, bound2 = self._near.alpha, self._near.rho, self._near.norm_bound**2
        floor, looked = self._floor, False
        lower, upper, alpha = floor, _MOST * a, self._near.start
        for _ in range(_STEPS):
            h = alpha - a
            (w, _, uu, uuu), (_, _, tu, ttu), (_, shrunk, tt, ttt) = self._sums(h)
            rho = rho_0 + alpha * bound2 - h * shrunk
            if not rho > 0.0:
                break
            tu, ttu, kappa = sign * tu, sign * ttu, math.sqrt(rho / w)
            norm2 = tt + 2.0 * kappa * tu + kappa * kappa * uu
            gap = bound2 - norm2
            if gap < 0.0:
                lower = alpha
            else:
                upper = alpha
            if upper == floor:
                break
            kappa_slope = 0.5 * kappa * ((bound2 - tt) / rho + uu / w)
            slope = 2.0 * (ttt + 2.0 * kappa * ttu + kappa * kappa * uuu) - 2.0 * kappa_slope * (tu + kappa * uu)
            # Newton's step for 1/‖θ*‖², which is nearly linear.
            new = alpha - gap * norm2 / (bound2 * slope) if slope else math.nan
            if not lower < new < upper:
                # If there is no good step to the left, the norm bound may not bind at all: look at the smallest one.
                new = math.sqrt(max(lower, 1e-6 * upper)) * math.sqrt(upper) if looked or gap < 0.0 else floor
                looked = looked or new == floor
            moved, alpha = abs(new - alpha), new
            if moved <= _TOLERANCE * alpha:
                break
        return alpha

    @property
    def _floor(self) -> float:
        """The smallest multiplier that is looked for."""
        smallest = _LEAST * self._near.alpha
        return 0.0 if self._near.least_eigenvalue > smallest else smallest

    def closed_form(self, alpha: float) -> tuple[float, float]:
        """g(α), and its second term."""
        h = alpha - self._near.alpha
        (w, *_), (at, *_), (_, shrunk, *_) = self._sums(h)
        half = math.sqrt(max(self._near.rho + alpha * self._near.norm_bound**2 - h * shrunk, 0.0) * w)
        return at + half, half

    def _bound(self, sign: float, alpha: float) -> float:
        """g(α) with what is left out added; NaN if that is too much."""
        a, rho_0, bound2 = self._near.alpha, self._near.rho, self._near.norm_bound**2
        h = alpha - a
        (w, _, uu, _), (at, _, tu, _), (_, shrunk, tt, _) = self._sums(h)
        rho = rho_0 + alpha * bound2 - h * shrunk
        if not rho > _CANCELLED * (abs(rho_0) + alpha * bound2 + abs(h) * shrunk):
            return math.nan
        plain, kappa = math.sqrt(rho * w), math.sqrt(rho / w)
        missed = 0.0
        if alpha == self._floor:  # how much lower the bound at 0 may be: α times the slope there
            missed = 0.5 * alpha * max(bound2 - tt - 2.0 * sign * kappa * tu - kappa * kappa * uu, 0.0) / kappa
        padded = plain
        if self._outside is not None:
            left = h * ((self._both / (1.0 + h * self._mu)) @ self._outside.T)
            smallest = self._near.least_eigenvalue
            e_p, e_q = (np.add.reduce(left * left, axis=1) / min(1.0, (smallest + alpha) / (smallest + a))).tolist()
            padded = math.sqrt((rho + e_q) * (w + e_p)) + math.sqrt(e_p * e_q)
        return sign * at + padded if padded - plain + missed <= _LEFT_OUT * (abs(at) + plain) else math.nan

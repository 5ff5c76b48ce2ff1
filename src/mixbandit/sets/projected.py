"""The problem of `krylov` in a span of a few vectors, with numpy alone; notation and formulas are explained there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import blas, lapack

# Up to this dimension M is decomposed instead, once for all directions.
_SMALL = 32
# Multipliers within these multiples of a are looked for. The smallest stands for 0, where the norm bound does not bind,
# unless ΦᵀΦ is known to be regular; next to smaller ones, rounding errors of M would count.
LEAST, MOST = 1e-3, 1e8
# What may be left out, relative to the size of a bound.
LEFT_OUT = 1e-11
# The last Newton step in ln α leaves an error of about its square, and a bound feels the square of that.
TOLERANCE, STEPS = 1e-4, 60
# ρ may be this much smaller than what it is the difference of.
CANCELLED = 1e-3
# Ceilings from bounds in which that much was left out are raised by this.
_AMPLE = 1e-10
# Eigenvalues of M below this share of the largest are rounding.
_ROUNDING = 1e-16


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


def least_multiplier(near: Near) -> float:
    """The smallest multiplier that is looked for."""
    smallest = LEAST * near.alpha
    return 0.0 if near.least_eigenvalue > smallest else smallest


class Span(NamedTuple):
    """A subspace, and M restricted to it."""

    mu: Array  # eigenvalues of M, (m,)
    vectors: Array  # eigenvectors in terms of the basis, (m, m)
    basis: Array | None  # orthonormal, (d, m); None where the span is everything
    outside: Array | None  # the parts of images of the basis outside the span, (d, m)


def spans(near: Near, p: Array, looks: tuple[int, ...]) -> Iterator[Span]:
    """Larger and larger spans, of as many multiplications with M as `looks` says."""
    root, d = near.root, len(p)
    if d <= _SMALL:
        whole = near.known.get("whole")
        if whole is None:
            whole = near.known["whole"] = Span(*eigen(root.T @ root), None, None)
        yield whole
        return
    times = blas().dgemm  # for narrow matrices it takes less time than numpy's operator
    basis, newest, done = np.empty((d, 0)), np.array((p, near.rewards)).T, 0
    for look in looks:
        grown = np.empty((d, 2 * (look - done)), order="F")
        for k in range(look - done):
            if k or done:
                newest = times(near.alpha, root, times(1.0, root, newest), trans_a=1)  # of size 1 at most
            grown[:, 2 * k : 2 * k + 2] = newest
        grown = grown[:, : d - basis.shape[1]]
        if done:
            grown = _orthonormal(grown - basis @ (basis.T @ grown))
            grown -= basis @ (basis.T @ grown)  # what is left of vectors in the span already is mostly rounding
        grown = _orthonormal(grown)
        basis = np.concatenate((basis, grown), axis=1) if done else grown
        images = times(1.0, root, times(1.0, root, basis), trans_a=1)
        inner = times(1.0, basis, images, trans_a=1)
        yield Span(*eigen(inner), basis, images - times(1.0, basis, inner))
        if basis.shape[1] == d:
            return
        newest, done = basis[:, -2:], look


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span of columns (d, m), by QR."""
    packed, tau, _, info = lapack().dgeqrf(columns)
    basis, _, wrong = lapack().dorgqr(packed, tau)
    if info != 0 or wrong != 0:
        raise RuntimeError(f"LAPACK's dgeqrf and dorgqr returned {info} and {wrong}")
    return np.asarray(basis)


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors, info = lapack().dsyevd(matrix)
    if info != 0:
        raise RuntimeError(f"LAPACK's dsyevd returned {info}: the eigenvalues did not converge")
    return values, vectors


class End(NamedTuple):
    """A multiplier for the maximum (`sign` 1) or the minimum (−1), with sums there."""

    sign: float
    alpha: float
    sums: Any  # of e, e², e³ times p²/μ, pq/μ, q²/μ, q², as nested lists, (3, 4)


class Projected:
    """The problem in a span."""

    def __init__(self, near: Near, p: Array, span: Span) -> None:
        self._near, self._span = near, span
        both = np.array((p, near.rewards))
        both = both @ span.vectors if span.basis is None else both @ span.basis @ span.vectors
        x, y = both  # p and q in the eigenbasis
        self._both = both
        # v is formed as e/μ, e = 1/(1/μ + h), which takes less work. In a span rounding might leave a μ of 0.
        self._inverse = 1.0 / np.maximum(span.mu, _ROUNDING * span.mu[-1])
        over = self._inverse * both
        self._weights = np.array((x * over[0], x * over[1], y * over[1], y * y)).T
        self._floor = least_multiplier(near)

    def _sums(self, alphas: Sequence[float]) -> list[Any]:
        """The sums at some multipliers at once: calling numpy takes longer than the work."""
        inverse, a, count = self._inverse, self._near.alpha, len(alphas)
        powers = np.empty((3, count, len(inverse)))
        first, second, third = powers
        for alpha, row in zip(alphas, first, strict=True):
            np.add(inverse, alpha - a, out=row)
        np.reciprocal(first, out=first)
        np.multiply(first, first, out=second)
        np.multiply(second, first, out=third)
        found = np.dot(powers.reshape(3 * count, -1), self._weights).tolist()
        return [found[number::count] for number in range(count)]

    def roots(self, signs: Sequence[float], starts: Sequence[float]) -> list[End]:
        """The multipliers of the norm bound for these signs, within their limits."""
        searches = [_Search(self._near, self._floor, *each) for each in zip(signs, starts, strict=True)]
        going = searches
        while going:
            alphas = [each.alpha for each in going]
            sums = self._sums(alphas[:1]) * len(going) if alphas[0] == alphas[-1] else self._sums(alphas)
            for each, own in zip(going, sums, strict=True):
                each.move(own)
            going = [each for each in going if not each.is_done]
        return [End(each.sign, each.alpha, each.sums) for each in searches]

    def closed_form(self, end: End) -> float:
        """g(α)."""
        w, at, _, shrunk = end.sums[0]
        return float(end.sign * at) + math.sqrt(max(_rho(self._near, end.alpha, shrunk), 0.0) * w)

    def bounds(self, ends: Sequence[End]) -> list[float]:
        """g(α) for each, with what is left out added; NaN if that is too much."""
        errors, span = [[0.0, 0.0]] * len(ends), self._span
        if span.outside is not None:
            # The residuals of (I + hM)x = p, and of the same for q.
            steps = [end.alpha - self._near.alpha for end in ends]
            x = np.concatenate([self._both * (h / (1.0 + h * span.mu)) for h in steps])
            left = (x @ span.vectors.T) @ span.outside.T
            errors = np.einsum("nd,nd->n", left, left).reshape(-1, 2).tolist()
        return [self._bound(end, *each) for end, each in zip(ends, errors, strict=True)]

    def _bound(self, end: End, e_p: float, e_q: float) -> float:
        near, alpha, bound2 = self._near, end.alpha, self._near.norm_bound**2
        (w, at, _, shrunk), (uu, tu, tt, _), _ = end.sums
        rho = _rho(near, alpha, shrunk)
        if not rho > CANCELLED * (abs(near.rho) + alpha * bound2 + abs(alpha - near.alpha) * shrunk):
            return math.nan
        plain, kappa = math.sqrt(rho * w), math.sqrt(rho / w)
        missed = 0.0
        if alpha == self._floor:  # how much lower the bound at 0 may be: α times the slope there
            missed = 0.5 * alpha * max(bound2 - tt - 2.0 * end.sign * kappa * tu - kappa * kappa * uu, 0.0) / kappa
        share = min(1.0, (near.least_eigenvalue + alpha) / (near.least_eigenvalue + near.alpha))
        e_p, e_q = e_p / share, e_q / share
        padded = math.sqrt((rho + e_q) * (w + e_p)) + math.sqrt(e_p * e_q)
        return end.sign * at + padded if padded - plain + missed <= LEFT_OUT * (abs(at) + plain) else math.nan

    def ceilings(self, end: End, others: Array) -> Array:
        """At least the maxima in other directions with coordinates (n, d), from a multiplier whose bound is precise."""
        near, (mu, vectors, basis, _) = self._near, self._span
        h, rho = end.alpha - near.alpha, _rho(near, end.alpha, end.sums[0][3])
        v = 1.0 / (1.0 + h * mu)
        solved = vectors @ (v * self._both[1])  # (I + hM)⁻¹q
        if basis is None:
            at, along = others @ solved, others @ vectors
            w = (along * along) @ v
        elif h < 0.0:
            return np.full(len(others), math.inf)
        else:
            # w = Σ p²f(μ), f(μ) = 1/(1 + hμ), from sums of p², p²μ and p²μ²: the third derivative of f is negative, so
            # that f lies below the parabola that meets it at 0 and touches it at the ratio of the last two sums
            # (Gauss-Radau quadrature).
            at, half = others @ (basis @ solved), others @ near.root.T
            whole = half @ near.root
            zeroth, first, second = (np.einsum("nd,nd->n", each, each) for each in (others, half, whole))
            w = zeroth - h * first * first / (first + h * second)
        half = np.sqrt(rho * w)
        return np.asarray(at + half + _AMPLE * (np.abs(at) + half))


def _rho(near: Near, alpha: float, shrunk: float) -> float:
    return near.rho + alpha * near.norm_bound**2 - (alpha - near.alpha) * shrunk


class _Search:
    """Newton's method for the multiplier of the norm bound: H < 0 on its left, H > 0 on its right."""

    def __init__(self, near: Near, floor: float, sign: float, start: float) -> None:
        self._near, self._floor, self.sign, self.alpha = near, floor, sign, start
        self._lower, self._upper, self._steps = floor, MOST * near.alpha, 0
        self._looked = self._settled = self.is_done = False
        self.sums: Any = None

    def move(self, sums: Any) -> None:
        """A step, given the sums at `alpha`; in the end `sums` are those at the multiplier found."""
        self.sums = sums
        (w, _, _, shrunk), (uu, tu, tt, _), (uuu, ttu, ttt, _) = sums
        alpha, bound2 = self.alpha, self._near.norm_bound**2
        rho = _rho(self._near, alpha, shrunk)
        self._steps += 1
        if self._settled or self._steps > STEPS or not rho > 0.0:
            self.is_done = True
            return
        tu, ttu, kappa = self.sign * tu, self.sign * ttu, math.sqrt(rho / w)
        norm2 = tt + 2.0 * kappa * tu + kappa * kappa * uu
        gap = bound2 - norm2
        if gap < 0.0:
            self._lower = alpha
        else:
            self._upper = alpha
        lower, upper = self._lower, self._upper
        if upper == self._floor:
            self.is_done = True
            return
        kappa_slope = 0.5 * kappa * ((bound2 - tt) / rho + uu / w)
        slope = 2.0 * (ttt + 2.0 * kappa * ttu + kappa * kappa * uuu) - 2.0 * kappa_slope * (tu + kappa * uu)
        # Newton's step for 1/‖θ*‖², which is nearly linear.
        new = alpha - gap * norm2 / (bound2 * slope) if slope else math.nan
        if not lower < new < upper:
            # If there is no good step to the left, the norm bound may not bind at all: look at the smallest one.
            new = math.sqrt(max(lower, 1e-6 * upper)) * math.sqrt(upper) if self._looked or gap < 0.0 else self._floor
            self._looked = self._looked or new == self._floor
        self._settled, self.alpha = abs(new - alpha) <= TOLERANCE * new, new

"""The support function of a residual ball: h(φ) = max_{θ∈Θ} φᵀθ, the upper confidence bound of an action.

Θ = {θ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B} (the paper, eq. eqn:ucb_opt_prob). R² comes as its *excess* over the
least-squares residual, and the data as the singular value decomposition of Φ. The work is done by `dual`,
in units in which B, the largest singular value and ‖φ‖ are 1; here is the way there and back, with the
question whether Θ is empty and with the closed-form bounds of single ellipsoids.

| symbol | meaning | shape |
|---|---|---|
| V = ΦᵀΦ + αI, θ̂_α = V⁻¹Φᵀr | ridge estimate with multiplier α | |
| w = φᵀV⁻¹φ | squared width of a direction | (n,) |
| ρ(α) | squared radius of the analytic bound (label thm:analytic_ucb) | |
| α_f | minimiser of ρ: 0, or where ‖θ̂_α‖ = B | |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixbandit._validation import Array
from mixbandit.confidence import dual
from mixbandit.confidence.dual import IntArray
from mixbandit.statistics import Ridge, Spectrum

_EPS = float(np.finfo(np.float64).eps)
# ρ(α_f) must be below minus this much of its terms before the set is called empty.
_EMPTY_TOLERANCE = 1e-11
# What a touching set (one point, up to rounding) is opened by, relative to the same terms.
_TOUCHING_MARGIN = 1e-14
# Part of a unit direction outside the range of Φᵀ that is only rounding.
_NULL_TOLERANCE = 16.0 * _EPS
# Below this, the part outside is the small difference of larger vectors.
_CANCELLED = 0.1
# Lengths beyond this or its inverse are computed with rescaling.
_SAFE_SIZE = 1e-100
_MAX_STEPS = 100


@dataclass(frozen=True)
class Directions:
    """Feature vectors as length times unit vector, split into the range of Φᵀ and the rest."""

    size: Array  # ‖φ‖, (n,)
    inside: Array  # p, (n, rank)
    outside: Array | None  # φ/‖φ‖ − Up, (n, d); None where the range is everything or nobody asked
    null: Array  # ν, (n,)


@dataclass(frozen=True)
class Maximum:
    """Bounds on φᵀθ over the set, and where they are attained."""

    value: Array  # (n,)
    alpha: Array  # multipliers in the user's units; inf for the ball alone, 0 for the ellipsoid alone
    case: IntArray  # (n,), indices into dual.CASES
    theta: Array | None  # (n, d), if asked for


@dataclass(frozen=True)
class Feasibility:
    """The point of the norm ball nearest to the data, and whether the residual ball reaches it."""

    alpha: float  # α_f: 0, or the root of ‖θ̂_α‖ = 1 (normalised units)
    rho: float  # ρ(α_f) = G − least squared residual over the norm ball, beyond the least-squares one
    terms: float  # sum of the sizes of what ρ sums: the scale of its rounding error

    @property
    def is_empty(self) -> bool:
        return self.rho < -_EMPTY_TOLERANCE * self.terms

    @property
    def is_touching(self) -> bool:
        """Neither clearly empty nor clearly with interior."""
        return not self.is_empty and self.rho <= _TOUCHING_MARGIN * self.terms


def split(features: Array, spectrum: Spectrum, *, with_outside: bool) -> Directions:
    """Feature rows (n, d) as lengths and unit vectors, without overflow or underflow, projected."""
    size = np.sqrt(np.einsum("nd,nd->n", features, features))
    if not ((size > _SAFE_SIZE) & (size < 1.0 / _SAFE_SIZE)).all():
        # Squares of 1e-170 or 1e160 leave the range of floats: divide by the largest entry first.
        peak = np.abs(features).max(axis=1)
        features = features / np.where(peak > 0.0, peak, 1.0)[:, None]
        length = np.sqrt(np.einsum("nd,nd->n", features, features))
        size = peak * length
    else:
        length = size
    inverse = 1.0 / np.where(length > 0.0, length, 1.0)[:, None]
    inside = features @ spectrum.basis
    inside *= inverse
    if spectrum.rank == features.shape[1]:
        return Directions(size, inside, None, np.zeros(len(size)))
    if not with_outside:
        null = np.sqrt(np.maximum(1.0 - np.einsum("nr,nr->n", inside, inside), 0.0))
        small = null < _CANCELLED  # there the difference has lost digits
        if small.any():
            null[small] = np.linalg.norm(_outside(features[small] * inverse[small], spectrum), axis=1)
        return Directions(size, inside, None, null)
    outside = _outside(features * inverse, spectrum)
    return Directions(size, inside, outside, np.sqrt(np.einsum("nd,nd->n", outside, outside)))


def _outside(unit: Array, spectrum: Spectrum) -> Array:
    """The part of unit rows (n, d) that is orthogonal to the range of Φᵀ."""
    outside = unit - (unit @ spectrum.basis) @ spectrum.basis.T
    # Where most of the vector cancelled, what is left is no longer orthogonal: project again.
    again = np.einsum("nd,nd->n", outside, outside) < _CANCELLED**2
    if again.any():
        outside[again] -= (outside[again] @ spectrum.basis) @ spectrum.basis.T
    return outside


class ResidualBall:
    """{θ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B}, with R² given as its excess over the least-squares residual."""

    def __init__(self, spectrum: Spectrum, excess: float, norm_bound: float) -> None:
        self.spectrum = spectrum
        self.excess = excess
        self.norm_bound = norm_bound
        # Largest singular value: α is in units of its square, residuals in units of it times B.
        self._stretch = float(spectrum.singular[0]) if spectrum.rank else 1.0
        unit = self._stretch * norm_bound
        self._problem = dual.Problem(spectrum.singular / self._stretch, spectrum.z / unit, excess / unit**2)

    def rho(self, alpha: float) -> float:
        """ρ(α) in the user's units: the squared radius of the analytic bound, for α > 0."""
        a = alpha / self._stretch**2
        rho, _ = dual.rho(self._problem, a, 1.0 / (self._problem.s + a))
        return float(rho) * (self._stretch * self.norm_bound) ** 2

    @cached_property
    def feasibility(self) -> Feasibility:
        """Minimise ρ over α: the set is empty if and only if the minimum is negative."""
        s, z, excess = self._problem.s, self._problem.z, self._problem.excess
        alpha = 0.0
        if np.linalg.norm(z / self._problem.root_s) > 1.0:
            alpha = self._ridge_of_unit_norm()
        shrunk = float(np.sum(alpha / (s + alpha) * z**2)) if alpha else 0.0
        return Feasibility(alpha, excess + alpha - shrunk, abs(excess) + alpha + shrunk)

    def opened(self, margin: float = 0.0) -> ResidualBall:
        """The least larger ball that meets the norm ball, and `margin` (added to R²) more."""
        f = self.feasibility
        unit2 = (self._stretch * self.norm_bound) ** 2
        slack = max(-f.rho, 0.0) + _TOUCHING_MARGIN * f.terms
        return ResidualBall(self.spectrum, self.excess + slack * unit2 + margin, self.norm_bound)

    def nearest_point(self) -> Array:
        """The point of the norm ball with the least residual, (d,): in the set, if any point is."""
        coordinates = self._problem.z * self._problem.root_s / (self._problem.s + self.feasibility.alpha)
        return np.asarray(self.norm_bound * (self.spectrum.basis @ coordinates))

    def distance2(self, theta: Array) -> float:
        """‖Φθ − r‖² minus the least-squares residual, a sum of squares; at most `excess` inside the set."""
        gap = self.spectrum.singular * (self.spectrum.basis.T @ theta) - self.spectrum.z
        return float(gap @ gap)

    def contains(self, theta: Array, rtol: float) -> bool:
        """Whether the set holds θ, up to `rtol` and the rounding of its residual."""
        distance, radius = math.sqrt(self.distance2(theta)), math.sqrt(max(self.excess, 0.0))
        near = distance <= radius * (1.0 + rtol) + self.spectrum.rounding(float(np.linalg.norm(theta)))
        return bool(self.excess >= 0.0 and near and np.linalg.norm(theta) <= self.norm_bound * (1.0 + rtol))

    def closed_form(self, d: Directions, alpha: float, *, with_theta: bool = False) -> Maximum:
        """g(α) for one multiplier and all directions (label thm:analytic_ucb)."""
        radius2 = self.rho(alpha)
        return ellipsoid_maximum(self.spectrum, d, alpha, max(radius2, 0.0), with_theta=with_theta)

    def maximise(self, d: Directions, start: float, *, with_theta: bool = False) -> Maximum:
        """h(φ) for all directions. `start`: a guess at the multiplier, in the user's units."""
        # Where the null part is only rounding, whether φ lies in the range must not depend on it; its
        # worst contribution, ν, is added to the value instead.
        rounding = d.null <= _NULL_TOLERANCE
        solution = dual.solve(
            self._problem, d.inside, np.where(rounding, 0.0, d.null), start / self._stretch**2, with_theta
        )
        value, case = solution.value, np.where(d.size > 0.0, solution.case, dual.ORIGIN)
        value = np.minimum(value + np.where(rounding, d.null, 0.0), 1.0)
        theta = None
        if solution.inside is not None:
            theta = solution.inside @ self.spectrum.basis.T
            if d.outside is not None:
                theta += np.where(rounding, 0.0, solution.along_null)[:, None] * d.outside
            theta *= self.norm_bound
            if (case == dual.ORIGIN).any():  # where every point of the set attains the maximum, 0
                theta[case == dual.ORIGIN] = self.nearest_point()
        return Maximum(self.norm_bound * d.size * value, solution.alpha * self._stretch**2, case, theta)

    def _ridge_of_unit_norm(self) -> float:
        """The α > 0 with ‖θ̂_α‖ = 1, given that ‖θ̂_0‖ > 1."""
        # 1/‖θ̂_α‖ is concave and increasing in α and nearly linear, so Newton from the left is monotone
        # (Moré & Sorensen 1983, for the trust-region problem).
        # Squares of z may be huge and α tiny: z is in units of its largest entry, s + α in units of its least.
        s, largest = self._problem.s, float(np.abs(self._problem.z).max())
        z = self._problem.z / largest
        weights = s * z**2
        # ‖θ̂_α‖ ≥ ‖θ̂_0‖ s_min/(s_min+α) gives a start on the left.
        alpha = float(s[-1]) * max(largest * math.sqrt(float(np.sum(z**2 / s))) - 1.0, 0.0)
        for _ in range(_MAX_STEPS):
            least = float(s[-1]) + alpha
            v = least / (s + alpha)
            norm = largest * math.sqrt(float(weights @ v**2)) / least
            step = least * (float(weights @ v**2) / float(weights @ v**3)) * (norm - 1.0)
            alpha += max(step, 0.0)
            if step <= _EPS * alpha:
                break
        return alpha


def ridge_ball(spectrum: Spectrum, alpha: float, radius: float, norm_bound: float) -> ResidualBall:
    """{θ : ‖θ − θ̂_α‖_V ≤ radius, ‖θ‖ ≤ B}, V = ΦᵀΦ + αI: a ball of the residuals of the rows of Φ and √αI."""
    d, rank = spectrum.basis.shape
    scale = np.hypot(spectrum.singular, math.sqrt(alpha))
    rest = np.linalg.qr(spectrum.basis, mode="complete")[0][:, rank:]
    ridge = Spectrum(
        singular=np.append(scale, np.full(d - rank, math.sqrt(alpha))),
        basis=np.column_stack((spectrum.basis, rest)),
        z=np.append(spectrum.singular / scale * spectrum.z, np.zeros(d - rank)),
        outside=0.0,
        lost_singular=np.empty(0),
        lost_z=np.empty(0),
    )
    return ResidualBall(ridge, radius**2, norm_bound)


def ellipsoid_maximum(
    spectrum: Spectrum, d: Directions, alpha: float, radius2: float, *, with_theta: bool = False
) -> Maximum:
    """Maximum of φᵀθ over {θ : ‖θ − θ̂_α‖²_V ≤ radius2}, V = ΦᵀΦ + αI, θ̂_α the ridge estimate."""
    # Every quantity is formed from √s/√(s+α) and 1/√(s+α), both of which are safe for any s and α.
    root_alpha = math.sqrt(alpha)
    scale = np.hypot(spectrum.singular, root_alpha)
    weighted = d.inside / scale
    w = np.einsum("nr,nr->n", weighted, weighted) + (d.null / root_alpha) ** 2
    centre = spectrum.singular / scale * (spectrum.z / scale)
    value = d.size * (d.inside @ centre + math.sqrt(radius2) * np.sqrt(w))
    theta = None
    if with_theta:
        kappa = math.sqrt(radius2) / np.sqrt(np.where(w > 0.0, w, 1.0))
        theta = (centre + kappa[:, None] * (weighted / scale)) @ spectrum.basis.T
        if d.outside is not None:
            theta += (kappa / alpha)[:, None] * d.outside
    n = len(d.size)
    return Maximum(value, np.full(n, alpha), np.full(n, dual.CLOSED_FORM), theta)


def ridge_maximum(ridge: Ridge, phi: Array, radius2: float, *, with_theta: bool = False) -> Maximum | None:
    """`ellipsoid_maximum` without a singular value decomposition; None where that would cost digits."""
    size = np.sqrt(np.einsum("nd,nd->n", phi, phi))
    if not ridge.is_accurate or not ((size > _SAFE_SIZE) & (size < 1.0 / _SAFE_SIZE)).all():
        return None
    half = phi @ ridge.inverse
    root_w = np.sqrt(np.einsum("nd,nd->n", half, half))
    radius = math.sqrt(radius2)
    theta = None
    if with_theta:
        theta = ridge.theta + (radius / root_w)[:, None] * (half @ ridge.inverse.T)
    alpha, case = np.empty(len(phi)), np.empty(len(phi), dtype=np.int64)
    alpha.fill(ridge.alpha)  # np.full takes as long as a small matrix product
    case.fill(dual.CLOSED_FORM)
    return Maximum(phi @ ridge.theta + radius * root_w, alpha, case, theta)


def ellipsoid_contains(spectrum: Spectrum, theta: Array, alpha: float, radius: float, rtol: float) -> bool:
    """Whether ‖θ − θ̂_α‖_V ≤ radius, up to `rtol` and rounding."""
    distance = math.sqrt(ellipsoid_distance2(spectrum, theta, alpha))
    return distance <= radius * (1.0 + rtol) + spectrum.rounding(float(np.linalg.norm(theta)))


def ellipsoid_distance2(spectrum: Spectrum, theta: Array, alpha: float) -> float:
    """‖θ − θ̂_α‖²_V, V = ΦᵀΦ + αI, a sum of squares."""
    coordinates = spectrum.basis.T @ theta
    rest = theta - spectrum.basis @ coordinates
    scale = np.hypot(spectrum.singular, math.sqrt(alpha))
    inside = scale * coordinates - spectrum.singular / scale * spectrum.z
    return float(inside @ inside + alpha * (rest @ rest))

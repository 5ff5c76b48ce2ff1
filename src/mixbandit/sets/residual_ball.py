"""The set of the paper, Θ = {θ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B} (eq. eqn:ucb_opt_prob): an ellipsoid cut by a ball.

R² comes as its *excess* over the least-squares residual, and the data as a decomposition of Φ. The
work is done by `dual`, in units in which B, the largest singular value and ‖φ‖ are 1; this module converts to them and
back, and decides whether Θ is empty.

| symbol | meaning |
|---|---|
| θ̂_α = (ΦᵀΦ + αI)⁻¹Φᵀr | ridge estimate with multiplier α |
| ρ(α) | squared radius of the analytic bound (label thm:analytic_ucb) |
| α_f | minimiser of ρ: 0, or where ‖θ̂_α‖ = B |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_MULTIPLIER, SMALLEST_MULTIPLIER, Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.data import Decomposed, Ridged, length, widened
from mixbandit.sets import dual
from mixbandit.sets.base import CUT, ORIGIN, ConfidenceSet, Form, Maximum, Searched, SingleEnds
from mixbandit.sets.ellipsoid import SpectralEllipsoid
from mixbandit.sets.leaning import Leaning

_EPS = float(np.finfo(np.float64).eps)
# ρ(α_f) must be below minus this much of its terms before the set is called empty.
_EMPTY_TOLERANCE = 1e-11
# How much a touching set (one point, up to rounding) is opened by, relative to the same terms.
_TOUCHING_MARGIN = 1e-14
# Part of a unit direction outside the range of Φᵀ that is only rounding.
_NULL_TOLERANCE = 16.0 * _EPS
_MAX_STEPS = 100


class ResidualBall(Searched, SingleEnds):
    """{θ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B}, with R² given as its excess over the least-squares residual.

    `start` is a guess at the multiplier of the norm bound. `margin` is how much R² grows, beyond the least that will
    do, when an empty set is opened. `shift` is added to reported multipliers: the ridge of `ridge_ball`. R grows by
    `rounding`, how far the spectrum's residuals may be from the true ones: where R is smaller still, the set would
    be a point next to the truth.
    """

    screens_from = 64

    def __init__(
        self,
        spectrum: Decomposed,
        excess: float,
        norm_bound: float,
        *,
        start: float,
        margin: float = 0.0,
        shift: float = 0.0,
        rounding: float = 0.0,
    ) -> None:
        # Largest singular value: α is in units of its square, residuals in units of it times B.
        self._stretch = float(spectrum.singular[0]) if spectrum.rank else 1.0
        self._unit = self._stretch * norm_bound
        radius = math.sqrt(max(excess, 0.0))
        if widened(radius, rounding) > radius:
            # No parameter in the norm ball has a larger residual than that; more would not make the set larger.
            wider = widened(radius, min(rounding, self._unit + length(spectrum.z)))
            excess += (wider - radius) * (wider + radius)
        self.spectrum, self.excess, self.norm_bound = spectrum, excess, norm_bound
        self._start, self._margin, self._shift = start, margin, shift
        self._problem = dual.Problem(spectrum.singular / self._stretch, spectrum.z / self._unit, excess / self._unit**2)
        self.nearest_alpha, self.slack, self.terms = _feasibility(self._problem)
        self.is_empty = self.slack < -_EMPTY_TOLERANCE * self.terms

    @property
    def is_touching(self) -> bool:
        """Neither clearly empty nor clearly with an interior."""
        return not self.is_empty and self.slack <= _TOUCHING_MARGIN * self.terms

    def rho(self, alpha: float) -> float:
        """ρ(α), the squared radius of the analytic bound, for α > 0."""
        a = alpha / self._stretch**2
        rho, _ = dual.rho(self._problem, a, 1.0 / (self._problem.s + a))
        return float(rho) * self._unit**2

    def closed_form(self, alpha: float) -> SpectralEllipsoid:
        """The ellipsoid around the set that gives the analytic bound at α (label thm:analytic_ucb)."""
        radius2 = max(self.rho(alpha), 0.0)
        return SpectralEllipsoid(self.spectrum, alpha, radius2, reported_alpha=alpha + self._shift)

    def ceiling(self, near: Any = None) -> SpectralEllipsoid | None:
        """The closed form at the start, or at the multiplier of one direction: the multipliers of a set are alike."""
        if near is None:
            return self.closed_form(self._start)
        alpha = float(self.support(near).alpha[0]) - self._shift
        return self.closed_form(alpha) if SMALLEST_MULTIPLIER < alpha < LARGEST_MULTIPLIER else None

    def form(self) -> Form | None:
        basis, problem = self.spectrum.range_basis(), self._problem
        if basis is None or not self.spectrum.rank:
            return None
        tolerance, round_up, max_steps = dual.ATTAINING
        return Form(
            CUT, np.ascontiguousarray(basis), np.empty(0), 0.0, math.nan, problem.root_s, problem.z, problem.excess,
            self.norm_bound, self._start / self._stretch**2, *problem.bracket, tolerance, round_up, max_steps,
            _NULL_TOLERANCE,
        )  # fmt: skip

    def scaled(self, factor: float, estimate: ConfidenceSet) -> ResidualBall | Leaning:
        """Estimate + factor·(upper bound − estimate), as a score."""
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> ResidualBall:
        """The set, or the least larger residual ball that meets the norm ball, plus the margin if it is empty."""
        if not (self.is_empty or self.is_touching):
            return self
        slack = (max(-self.slack, 0.0) + _TOUCHING_MARGIN * self.terms) * self._unit**2
        margin = self._margin if self.is_empty else 0.0
        options = {"start": self._start, "margin": self._margin, "shift": self._shift}
        return ResidualBall(self.spectrum, self.excess + slack + margin, self.norm_bound, **options)

    def nearest_coordinates(self) -> Array:
        """The point of the norm ball with the least residual, (rank,): in the set, if any point is."""
        problem = self._problem
        return np.asarray(self.norm_bound * (problem.z * problem.root_s / (problem.s + self.nearest_alpha)))

    def distance2(self, theta: Array) -> float:
        """‖Φθ − r‖² minus the least-squares residual, a sum of squares; at most `excess` inside the set."""
        gap = self.spectrum.singular * self.spectrum.coordinates(theta)[0] - self.spectrum.z
        with np.errstate(over="ignore"):  # further away than any float
            return float(gap @ gap)

    def contains(self, theta: Array, rtol: float) -> bool:
        distance, radius = math.sqrt(self.distance2(theta)), math.sqrt(max(self.excess, 0.0))
        norm = length(theta)
        near = distance <= radius * (1.0 + rtol) + self.spectrum.rounding(norm)
        return self.excess >= 0.0 and near and norm <= self.norm_bound * (1.0 + rtol)

    def maximum(self, directions: Any) -> Array:
        parts = self.spectrum.split(directions, attaining=False)
        return np.asarray(self.norm_bound * parts.size * self._solved(parts.inside, parts.null))

    def _solved(self, inside: Array, null: Array) -> Array:
        """Maxima in normalised units, (n,)."""
        null, extra = _without_rounding(null)
        value = dual.solve(self._problem, inside, null, self._start / self._stretch**2, with_theta=False)[0]
        return np.asarray(np.minimum(value + extra, 1.0))

    def interval(self, directions: Any) -> tuple[Array, Array]:
        size, inside, null, _ = self.spectrum.split(directions, attaining=False)
        n = len(size)
        both = self._solved(np.concatenate((-inside, inside)), np.concatenate((null, null)))
        scale = self.norm_bound * size
        return -scale * both[:n], scale * both[n:]

    def support(self, directions: Any) -> Maximum:
        parts = self.spectrum.split(directions, attaining=True)
        null, extra = _without_rounding(parts.null)
        start = self._start / self._stretch**2
        value, alpha, case, attained, along_null = dual.solve(self._problem, parts.inside, null, start, with_theta=True)
        assert attained is not None
        case = np.where(parts.size > 0.0, case, ORIGIN)
        attained *= self.norm_bound
        along = np.where(null > 0.0, self.norm_bound * along_null, 0.0)
        if (case == ORIGIN).any():  # where every point of the set attains the maximum, 0
            attained[case == ORIGIN], along[case == ORIGIN] = self.nearest_coordinates(), 0.0
        points = self.spectrum.points(attained, along, parts)
        value = self.norm_bound * parts.size * np.minimum(value + extra, 1.0)
        return Maximum(value, points, alpha * self._stretch**2 + self._shift, case)


def _without_rounding(null: Array) -> tuple[Array, Array | float]:
    """The part of directions outside the range, 0 where it is only rounding, and the most it adds to a maximum.

    Whether φ lies in the range must not depend on rounding; its worst contribution, ν, is added to the value instead.
    """
    if not np.logical_or.reduce(null):
        return null, 0.0
    rounding = null <= _NULL_TOLERANCE
    return np.where(rounding, 0.0, null), np.where(rounding, null, 0.0)


def _feasibility(problem: dual.Problem) -> tuple[float, float, float]:
    """Minimise ρ over α: the set is empty if and only if the minimum is negative.

    α_f; ρ(α_f), the excess minus the least squared residual over the norm ball; and the sum of the sizes of ρ's
    terms, the scale of its rounding error. All in normalised units.
    """
    s, z, excess, alpha = problem.s, problem.z, problem.excess, 0.0
    least_squares = z / problem.root_s
    if float(least_squares @ least_squares) > 1.0:
        compiled = kernel("mixbandit.sets._compiled.ridge_of_unit_norm", _check_agreement)
        alpha = _ridge_of_unit_norm(s, z) if compiled is None else compiled(s, z, _EPS, _MAX_STEPS)
    shrunk = float(np.add.reduce(alpha / (s + alpha) * z**2)) if alpha else 0.0
    return alpha, excess + alpha - shrunk, abs(excess) + alpha + shrunk


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code finds the multiplier that numpy finds; the first call compiles it."""
    s, z = np.array([1.0, 0.3, 1e-4]), np.array([0.9, -0.7, 0.05])
    found, expected = compiled(s, z, _EPS, _MAX_STEPS), _ridge_of_unit_norm(s, z)
    if not math.isclose(found, expected, rel_tol=1e-12):
        raise RuntimeError(f"compiled code finds {found}, numpy {expected}")


def _ridge_of_unit_norm(s: Array, z: Array) -> float:
    """The α > 0 with ‖θ̂_α‖ = 1, given that ‖θ̂_0‖ > 1."""
    # 1/‖θ̂_α‖ is concave and increasing in α and nearly linear, so Newton from the left is monotone
    # (Moré & Sorensen 1983, for the trust-region problem).
    # Squares of z may be huge and α tiny: z is in units of its largest entry, s + α in units of its least.
    largest = float(np.abs(z).max())
    z = z / largest
    weights = s * z**2
    explains = weights > 0.0  # the least of these s, not of all, is the unit, or everything might vanish
    s, z, weights = s[explains], z[explains], weights[explains]
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


def ridge_ball(spectrum: Decomposed, alpha: float, radius: float, norm_bound: float, margin: float) -> ResidualBall:
    """{θ : ‖θ − θ̂_α‖_V ≤ radius, ‖θ‖ ≤ B}, V = ΦᵀΦ + αI: a ball of the residuals of the rows of Φ and √αI."""
    return ResidualBall(Ridged(spectrum, alpha), radius**2, norm_bound, start=alpha, margin=margin, shift=alpha)

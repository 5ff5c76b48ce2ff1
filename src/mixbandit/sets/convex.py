"""The set {θ : L(θ) ≤ β, ‖θ‖ ≤ B} of a convex negative log-likelihood: exactly, and as ellipsoids around it.

| symbol | meaning |
|---|---|
| β | what L may cost, in nats |
| F(θ) = L(θ) + (α/2)‖θ‖² | with norms in units of B, as everywhere in this module; θ̂ minimises it |
| ρ(α) = β + α/2 − F(θ̂) | never negative unless the set is empty, and least where ‖θ̂‖ = 1 |
| [lo_k, hi_k] | where the expected value of row k can be |
| κ_k | the least curvature of the row's term between its value at θ̂ and any point of [lo_k, hi_k] |
| V = Σ κ_k x_k x_kᵀ + αI | so that ½‖θ − θ̂‖²_V ≤ ρ for every θ of the set |
| y, ν | a unit direction's coordinates in the span of the rows, and the length of its part outside |

**Ellipsoids.** L grows at least as its secant curvatures say, so every α gives an ellipsoid around the set, which gives
smaller intervals [lo, hi], which give larger κ: a few rounds, over a few α. If a gradient g of F is left at θ̂, the
radius is γ + √(γ² + 2ρ) with γ = ‖g‖_{V⁻¹}. Beyond an end of the range θ̂ pays the steep square of `likelihood`: its
secant curvature makes up for the slope of L there, which no other curvature would show.

**Exactly.** For all μ, a > 0 and any θ, by duality and because −F is strongly concave,

    max φᵀθ ≤ D(μ, a) = μβ + a/2 + [yᵀθ − μL(θ) − (a/2)‖θ‖² + ‖g‖²/2a] + ν²/2a,   g the gradient of the bracket.

D is convex in (μ, a) where θ maximises the bracket, and its infimum is exact; α = a/μ. Stopping early is safe.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit._lazy import lapack, lazy
from mixbandit.data import Decomposed, length, squares
from mixbandit.sets.base import BALL, CLOSED_FORM, INTERIOR, ConfidenceSet, Maximum, Searched, SingleEnds
from mixbandit.sets.ellipsoid import Ellipsoid
from mixbandit.sets.leaning import Leaning
from mixbandit.sets.likelihood import Likelihood, Point, root_of, solve
from mixbandit.sets.tightest import Tightest

_EPS = float(np.finfo(np.float64).eps)
# Multipliers of the ellipsoids, in units of what the set leaves of β.
_SHARES = (0.2, 1.0, 5.0)
_ROUNDS = 8
# Rounds stop when no interval shrinks by more than this share.
_SETTLED = 0.003
_ANCHOR = 1.0
_SMALLEST_ALPHA, _LARGEST_ALPHA = 1e-8, 1e12
_MOST_BISECTIONS = 60
# Empty only if β misses the least loss by more than this share of both.
_EMPTY_TOLERANCE = 1e-9
# The exact bound: the longest step in ln μ and ln a, and when to stop, in units of B‖φ‖.
_LONGEST_STEP, _MOST_STEPS, _MOST_HALVINGS, _SETTLED_BOUND = 3.0, 40, 8, 1e-11


class Tuned(NamedTuple):
    """Where the exact bound of a direction is attained."""

    value: float
    theta: Array  # (k,)
    mu: float
    a: float

    def moved(self, step: Array) -> Tuned:
        """At other μ and a, by a step in their logarithms."""
        return self._replace(mu=self.mu * math.exp(step[0]), a=self.a * math.exp(step[1]))


class _Dual(NamedTuple):
    """D at one place."""

    value: float
    gradient: Array  # (2,), in ln μ and ln a
    hessian: Array  # (2, 2), without the part that the gradient adds
    tuned: Tuned


class LocalEllipsoid(Ellipsoid):
    """{θ : ‖θ − θ̂‖_V ≤ radius} in the coordinates of a decomposition; outside its span V is αI and θ̂ is 0."""

    def __init__(
        self, spectrum: Decomposed, norm_bound: float, centre: Array, half: Array, alpha: float, radius: float
    ) -> None:
        """`half` (k, k) is a root of V⁻¹ in the span: halfᵀV half = I."""
        self._spectrum, self._norm_bound, self._inside, self._half = spectrum, norm_bound, centre, half
        self._alpha, self.radius = alpha, radius
        self.alpha = alpha / norm_bound**2  # the multiplier in the units of users

    @property
    def centre(self) -> Array:
        return np.asarray(self._norm_bound * (self._spectrum.basis @ self._inside))  # type: ignore[attr-defined]

    def maximum(self, directions: Any) -> Array:
        return self.interval(directions)[1]

    def interval(self, directions: Any) -> tuple[Array, Array]:
        size, inside, null, _ = self._spectrum.split(directions, attaining=False)
        middle, half = inside @ self._inside, self.radius * self.unit_widths(inside, null)
        with np.errstate(over="ignore"):  # bounds beyond all floats are infinite
            scale = self._norm_bound * size
            return scale * (middle - half), scale * (middle + half)

    def support(self, directions: Any) -> Maximum:
        parts = self._spectrum.split(directions, attaining=True)
        attained, multiplier, value = self.attained(parts.inside, parts.null)
        points = self._spectrum.points(self._norm_bound * attained, self._norm_bound * multiplier / self._alpha, parts)
        n = len(value)
        with np.errstate(over="ignore"):
            value = self._norm_bound * parts.size * value
        return Maximum(value, points, np.full(n, self.alpha), np.full(n, CLOSED_FORM))

    def attained(self, inside: Array, null: Array) -> tuple[Array, Array, Array]:
        """Maximisers in the span, the factors 1/μ of V⁻¹φ in them, and maxima; unit directions, in units of B."""
        root_w = self.unit_widths(inside, null)
        multiplier = self.radius / np.where(root_w > 0.0, root_w, 1.0)
        points = self._inside + multiplier[:, None] * (inside @ self._half @ self._half.T)
        return points, multiplier, inside @ self._inside + self.radius * root_w

    def start(self, y: Array, null: float) -> Tuned:
        """Where the search for the exact bound of a unit direction can start."""
        points, multiplier, value = self.attained(y[None], np.array([null]))
        mu = 1.0 / float(multiplier[0])
        return Tuned(float(value[0]), points[0], mu, self._alpha * mu)

    def unit_widths(self, inside: Array, null: Array) -> Array:
        """√w of unit directions, (n,)."""
        return np.asarray(np.sqrt(squares(inside @ self._half) + null**2 / self._alpha))

    def widths(self, directions: Any) -> Array:
        size, inside, null, _ = self._spectrum.split(directions, attaining=False)
        return np.asarray(self._norm_bound * size * self.unit_widths(inside, null))

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        basis = self._spectrum.basis  # type: ignore[attr-defined]
        noise, outside = rng.normal(size=basis.shape[1]), rng.normal(size=len(basis))
        outside -= basis @ (basis.T @ outside)
        drawn = basis @ (self._inside + spread * (self._half @ noise)) + spread / math.sqrt(self._alpha) * outside
        return np.asarray(self._norm_bound * drawn)

    def contains(self, theta: Array, rtol: float) -> bool:
        coordinates, rest = self._spectrum.coordinates(theta / self._norm_bound)
        inside, info = lapack().dtrtrs(self._half, coordinates - self._inside)
        assert info == 0
        return math.hypot(length(inside), math.sqrt(self._alpha) * length(rest)) <= self.radius * (1.0 + rtol)


class Problem:
    """L, β and B, and how directions look in the coordinates of L's rows."""

    def __init__(self, spectrum: Decomposed, likelihood: Likelihood, budget: float, norm_bound: float) -> None:
        self.spectrum, self.likelihood, self.norm_bound = spectrum, likelihood, norm_bound
        self.budget = budget + likelihood.rounding()
        self._points: dict[float, Point] = {}

    def with_budget(self, budget: float) -> Problem:
        """The same with another β."""
        new = Problem(self.spectrum, self.likelihood, budget, self.norm_bound)
        new._points = self._points
        return new

    def point(self, alpha: float) -> Point:
        """θ̂ at α."""
        known = self._points.get(alpha)
        if known is None:
            # Always from the same start, or bounds would depend on what else was asked before.
            start = None if alpha == _ANCHOR else self.point(_ANCHOR).theta
            known = self._points[alpha] = self.likelihood.minimum(alpha, start)
        return known

    def lowest(self, alpha: float) -> float:
        """At most min F − α/2, and so at most L anywhere in the norm ball."""
        here = self.point(alpha)
        left = self.likelihood.gradient(here, alpha)
        return here.loss + 0.5 * alpha * (float(here.theta @ here.theta) - 1.0) - float(left @ left) / (2.0 * alpha)

    def is_empty(self) -> bool:
        """Whether no θ of the norm ball costs at most β."""
        tolerance = _EMPTY_TOLERANCE * (1.0 + abs(self.budget))
        for alpha in self._alphas_to_the_border():
            here = self.point(alpha)
            if float(here.theta @ here.theta) <= 1.0 and here.loss <= self.budget:
                return False
            if self.lowest(alpha) > self.budget + tolerance:
                return True
        return False

    def least_loss(self) -> float:
        """At most min L over the norm ball, and nearly that."""
        return max(map(self.lowest, self._alphas_to_the_border()))

    def least_norm(self) -> float:
        """At most the least ‖θ‖ with L(θ) ≤ β, in units of B."""
        low, high = math.log(_SMALLEST_ALPHA), math.log(_LARGEST_ALPHA)
        best = 0.0
        for _ in range(_MOST_BISECTIONS):
            alpha = math.exp(0.5 * (low + high))
            here = self.point(alpha)
            # F ≤ β + (α/2)‖θ‖² at every θ of the set.
            best = max(best, 2.0 * (self.lowest(alpha) + 0.5 * alpha - self.budget) / alpha)
            low, high = (0.5 * (low + high), high) if here.loss <= self.budget else (low, 0.5 * (low + high))
            if high - low < 1e-6:
                break
        return math.sqrt(best)

    def _alphas_to_the_border(self) -> Any:
        """Multipliers that lead to the α_f with ‖θ̂‖ = 1, or to the least one if all minimisers are shorter."""
        low, high = math.log(_SMALLEST_ALPHA), math.log(_LARGEST_ALPHA)
        middle = 0.0
        for step in range(_MOST_BISECTIONS):
            alpha = math.exp(middle)
            yield alpha
            theta = self.point(alpha).theta
            excess = float(theta @ theta) - 1.0
            if excess > 0.0:
                low = middle
            else:
                high = middle
            if high - low < 1e-7 or (step > 2 and abs(excess) < 1e-9):
                return
            # Large strides until the root is between two.
            if high == math.log(_LARGEST_ALPHA):
                middle = min(middle + 4.0, high - 1e-9)
            elif low == math.log(_SMALLEST_ALPHA):
                middle = max(middle - 4.0, low + 1e-9)
            else:
                middle = 0.5 * (low + high)

    def radius2(self, alpha: float) -> float:
        """2ρ(α)."""
        here = self.point(alpha)
        return 2.0 * (self.budget - here.loss) + alpha * (1.0 - float(here.theta @ here.theta))

    def excess(self) -> float:
        """About what the set leaves of β at its best point, at least a nat."""
        return max(self.budget - self.point(_ANCHOR).loss, 1.0)

    @lazy
    def intervals(self) -> tuple[Array, Array]:
        """[lo, hi] after all rounds."""
        rows = self.likelihood.rows
        reach = np.sqrt(squares(rows))
        low, high = self.likelihood.alone(max(self.budget, 0.0))
        low = np.minimum(np.maximum(self.likelihood.offset - reach, low), 1.0)
        high = np.maximum(np.minimum(self.likelihood.offset + reach, high), 0.0)
        excess = self.excess()
        for _ in range(_ROUNDS):
            width = float((high - low).sum())
            for share in _SHARES:
                found = self._local(share * excess, low, high)
                if found is None:
                    continue
                half, _, radius, alpha = found
                p = self.point(alpha).p
                reach = radius * np.sqrt(squares(rows @ half))
                low, high = np.maximum(low, p - reach), np.minimum(high, p + reach)
            # Rounding, or an opened set, may turn an interval of next to no length around.
            low, high = np.minimum(low, high), np.maximum(low, high)
            if float((high - low).sum()) > (1.0 - _SETTLED) * width:
                break
        return low, high

    def ellipsoid(self, alpha: float) -> LocalEllipsoid:
        """The ellipsoid at α, around the set, which must not be empty."""
        low, high = self.intervals
        found = self._local(alpha, low, high)
        if found is None:
            return self.ball()
        half, used, radius, _ = found
        made = LocalEllipsoid(self.spectrum, self.norm_bound, self.point(alpha).theta, half, used, radius)
        made.alpha = alpha / self.norm_bound**2
        return made

    def ball(self) -> LocalEllipsoid:
        """The norm ball."""
        k = self.likelihood.rows.shape[1]
        return LocalEllipsoid(self.spectrum, self.norm_bound, np.zeros(k), np.eye(k), 1.0, 1.0)

    def _local(self, alpha: float, low: Array, high: Array) -> tuple[Array, float, float, float] | None:
        """A root of V⁻¹, the α in it, rounded down, the radius, and the α of θ̂; None where rounding leaves nothing."""
        rows = self.likelihood.rows
        here = self.point(alpha)
        weighted = rows * np.sqrt(self.likelihood.secants(here.p, low, high))[:, None]
        gram = weighted.T @ weighted
        used = alpha - 4.0 * _EPS * len(gram) * float(np.trace(gram))
        root = root_of(gram, used) if used > 0.5 * alpha else None
        if root is None:
            return None
        inverse, info = lapack().dtrtri(root, lower=1) if len(root) else (root, 0)
        assert info == 0
        half = np.asfortranarray(inverse.T)
        gamma = length(half.T @ self.likelihood.gradient(here, alpha))
        return half, used, gamma + math.sqrt(gamma**2 + max(self.radius2(alpha), 0.0)), alpha


class LikelihoodSet(Searched, SingleEnds):
    """{θ : L(θ) ≤ β, ‖θ‖ ≤ B}; bounds are those of ellipsoids around it unless `exact`."""

    def __init__(self, problem: Problem, *, exact: bool, margin: float) -> None:
        self.problem, self._exact, self._margin = problem, exact, margin
        self.is_empty = problem.is_empty()

    @lazy
    def ellipsoids(self) -> tuple[LocalEllipsoid, ...]:
        """The best first: the one whose intervals of the rows are shortest together."""
        problem = self.problem
        excess = problem.excess()
        found = [problem.ellipsoid(share * excess) for share in _SHARES]
        rows = problem.likelihood.rows
        nothing = np.zeros(len(rows))
        found.sort(key=lambda each: each.radius * float(each.unit_widths(rows, nothing).sum()))
        return (*found, problem.ball())

    @lazy
    def closed_forms(self) -> Tightest:
        """The best of the ellipsoids in every direction."""
        return Tightest(self.ellipsoids)

    def maximum(self, directions: Any) -> Array:
        return self.support(directions).value if self._exact else self.closed_forms.maximum(directions)

    def interval(self, directions: Any) -> tuple[Array, Array]:
        if not self._exact:
            return self.closed_forms.interval(directions)
        return -self.maximum(-directions), self.maximum(directions)

    def support(self, directions: Any) -> Maximum:
        if not self._exact:
            return self.closed_forms.support(directions)
        problem = self.problem
        parts = problem.spectrum.split(directions, attaining=True)
        n = len(parts.inside)
        value, attained, along = np.ones(n), np.array(parts.inside), np.ones(n)
        alpha, case = np.full(n, np.inf), np.full(n, BALL)
        for i in range(n):
            y, null = parts.inside[i], float(parts.null[i])
            if problem.likelihood.at(y).loss <= problem.budget:  # the end of the norm ball is in the set
                continue
            found = self._tuned(y, null)
            if found.value < 1.0:
                value[i], attained[i], along[i] = found.value, found.theta, 1.0 / found.a
                alpha[i], case[i] = found.a / found.mu, INTERIOR
        bound = problem.norm_bound
        points = problem.spectrum.points(bound * attained, bound * along, parts)
        with np.errstate(over="ignore"):
            return Maximum(bound * parts.size * value, points, alpha / bound**2, case)

    def _tuned(self, y: Array, null: float) -> Tuned:
        """The infimum of D, from the best ellipsoid's bound on: Newton's method in ln μ and ln a."""
        best = min((each.start(y, null) for each in self.ellipsoids[:-1]), key=lambda each: each.value)
        here = self._dual(y, null, best)
        for _ in range(_MOST_STEPS):
            # Curvature that logarithms take away is added instead, so that steps lead downwards.
            damped = here.hessian + np.diag(np.abs(here.gradient) + _EPS)
            step = np.asarray(-np.linalg.solve(damped, here.gradient), dtype=np.float64)
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _EPS))
            gain = -float(here.gradient @ step)
            new = self._dual(y, null, here.tuned.moved(step))
            if gain < _SETTLED_BOUND:  # the last step, too short to be seen in D, which is flat there
                here = new if new.value <= here.value + _SETTLED_BOUND else here
                break
            for _ in range(_MOST_HALVINGS):
                if new.value <= here.value - 1e-4 * gain:
                    break
                step, gain = 0.25 * step, 0.25 * gain
                new = self._dual(y, null, here.tuned.moved(step))
            else:  # rounding hides the rest
                break
            here = new
        return here.tuned if here.value <= best.value else best

    def _dual(self, y: Array, null: float, near: Tuned) -> _Dual:
        """D, with its gradient and Hessian in ln μ and ln a, at the μ and a of `near`."""
        problem, likelihood, (_, start, mu, a) = self.problem, self.problem.likelihood, near
        here = likelihood.tilted(mu, a, y, start)
        slope, theta = likelihood.rows.T @ here.slopes, here.theta
        norm2, left = float(theta @ theta), y - mu * slope - a * theta
        value = mu * (problem.budget - here.loss) + 0.5 * a * (1.0 - norm2) + float(y @ theta)
        value += (float(left @ left) + null**2) / (2.0 * a)
        gradient = np.array([mu * (problem.budget - here.loss), 0.5 * a * (1.0 - norm2) - 0.5 * null**2 / a])
        both = np.column_stack((mu * slope, a * theta))
        weighted = likelihood.rows * (mu * here.curvatures)[:, None]
        hessian = both.T @ solve(weighted.T @ likelihood.rows, a, both)
        hessian[1, 1] += null**2 / a
        return _Dual(value, gradient, hessian, Tuned(value, theta, mu, a))

    screens_from = 64

    def ceiling(self, near: Any = None) -> Any:
        return self.closed_forms if self._exact else self.ellipsoids[0]

    def scaled(self, factor: float, estimate: ConfidenceSet) -> LikelihoodSet | Leaning:
        """Estimate + factor·(upper bound − estimate), as a score."""
        return self if factor == 1.0 else Leaning(self, factor, estimate)

    def opened(self) -> LikelihoodSet:
        return self._opened if self.is_empty else self

    @lazy
    def _opened(self) -> LikelihoodSet:
        problem = self.problem
        return LikelihoodSet(
            problem.with_budget(problem.least_loss() + self._margin), exact=self._exact, margin=self._margin
        )

    def contains(self, theta: Array, rtol: float) -> bool:
        """Whether L(θ) ≤ β and ‖θ‖ ≤ B, by either kind of bounds."""
        problem = self.problem
        coordinates, rest = problem.spectrum.coordinates(theta / problem.norm_bound)
        near = problem.likelihood.at(coordinates).loss <= problem.budget + rtol * (1.0 + abs(problem.budget))
        return near and math.hypot(length(coordinates), length(rest)) <= 1.0 + rtol

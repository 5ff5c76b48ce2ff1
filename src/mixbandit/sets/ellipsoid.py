"""Ellipsoids {θ : ‖θ − θ̂_α‖_V ≤ radius}, V = ΦᵀΦ + αI, θ̂_α = V⁻¹Φᵀr: the closed-form bounds, OFUL, the posterior.

| symbol | meaning | shape |
|---|---|---|
| w = φᵀV⁻¹φ | squared width of a direction, so that h(φ) = φᵀθ̂ + radius·√w | (n,) |
"""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mixbandit._checks import Array
from mixbandit._compiling import Kernel, kernel
from mixbandit.data import SAFE_SIZE, Decomposed, Ridge, RidgeRegression, length, squares
from mixbandit.sets.base import CLOSED_FORM, Ball, ConfidenceSet, Form, Maximum, Searched, SingleEnds

# Compiled code looks for the best of directions with up to this many entries, if it takes no more than this many
# products; beyond, matrix products are faster.
_MOST_ENTRIES, _MOST_PRODUCTS = 50_000, 120_000
# Where that measures fewer directions than this, it would rarely be enough.
_LEAST_MEASURED = 16
# Fewer directions than this are not screened first.
_MANY = 64


class Ellipsoid(Searched, SingleEnds, abc.ABC):
    """An ellipsoid: it has a centre, can be sampled around it, and gives the information in directions."""

    is_empty = False
    radius: float

    @property
    @abc.abstractmethod
    def centre(self) -> Array:
        """θ̂, (d,), where there are features."""

    @abc.abstractmethod
    def maximum(self, directions: Any) -> Array: ...

    @abc.abstractmethod
    def interval(self, directions: Any) -> tuple[Array, Array]: ...

    @abc.abstractmethod
    def support(self, directions: Any) -> Maximum: ...

    @abc.abstractmethod
    def contains(self, theta: Array, rtol: float) -> bool: ...

    @abc.abstractmethod
    def widths(self, directions: Any) -> Array:
        """√w, (n,): the half-widths of an ellipsoid of radius 1."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        """θ ~ N(θ̂, spread²V⁻¹), (d,)."""

    def information(self, directions: Any) -> Array:
        """ln(1 + w), (n,): the information gained from a direction."""
        return np.asarray(
            np.log1p(np.minimum(self.widths(directions), 1.0 / SAFE_SIZE) ** 2)
        )  # squares must not overflow

    def scaled(self, factor: float, estimate: ConfidenceSet | None = None) -> Ellipsoid:
        """The ellipsoid with `factor` times the radius; its bounds are this one's centre + factor·half-width."""
        if factor == 1.0:
            return self
        new = copy.copy(self)
        new._scale_radius(factor)
        return new

    def _scale_radius(self, factor: float) -> None:
        self.radius *= factor

    def opened(self) -> Ellipsoid:
        return self


class SpectralEllipsoid(Ellipsoid):
    """From the singular value decomposition of the data: accurate at any scale of data, multiplier and direction."""

    def __init__(
        self, spectrum: Decomposed, alpha: float, radius2: float, *, reported_alpha: float | None = None
    ) -> None:
        self._spectrum, self._alpha, self.radius = spectrum, alpha, math.sqrt(radius2)
        self._reported_alpha = alpha if reported_alpha is None else reported_alpha
        # Everything is formed from √s/√(s+α) and 1/√(s+α), both of which are safe for any s and α.
        self._root_alpha = math.sqrt(alpha)
        self._scale = np.hypot(spectrum.singular, self._root_alpha)
        self._inside = spectrum.singular / self._scale * (spectrum.z / self._scale)

    @property
    def centre(self) -> Array:
        return np.asarray(self._spectrum.basis @ self._inside)  # type: ignore[attr-defined]

    def maximum(self, directions: Any) -> Array:
        return self.interval(directions)[1]

    def interval(self, directions: Any) -> tuple[Array, Array]:
        size, inside, null, _ = self._spectrum.split(directions, attaining=False)
        middle, half = inside @ self._inside, self.radius * self._root_w(inside, null)
        with np.errstate(over="ignore"):  # bounds beyond all floats are infinite
            return size * (middle - half), size * (middle + half)

    def support(self, directions: Any) -> Maximum:
        parts = self._spectrum.split(directions, attaining=True)
        root_w = self._root_w(parts.inside, parts.null)
        with np.errstate(over="ignore"):
            value = parts.size * (parts.inside @ self._inside + self.radius * root_w)
        kappa = self.radius / np.where(root_w > 0.0, root_w, 1.0)
        attained = self._inside + kappa[:, None] * (parts.inside / self._scale / self._scale)
        points, n = self._spectrum.points(attained, kappa / self._alpha, parts), len(value)
        return Maximum(value, points, np.full(n, self._reported_alpha), np.full(n, CLOSED_FORM))

    def widths(self, directions: Any) -> Array:
        size, inside, null, _ = self._spectrum.split(directions, attaining=False)
        return np.asarray(size * self._root_w(inside, null))

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        basis = self._spectrum.basis  # type: ignore[attr-defined]
        noise = rng.normal(size=len(basis))
        # V^{-½} times noise: 1/√(s+α) along the directions seen, 1/√α along the others.
        along = basis.T @ noise
        inside = self._inside + spread * along * (1.0 / self._scale - 1.0 / self._root_alpha)
        return np.asarray(basis @ inside + spread / self._root_alpha * noise)

    def contains(self, theta: Array, rtol: float) -> bool:
        coordinates, rest = self._spectrum.coordinates(theta)
        # ‖θ − θ̂‖_V as a sum of squares.
        inside = self._scale * coordinates - self._spectrum.singular / self._scale * self._spectrum.z
        distance = math.hypot(length(inside), self._root_alpha * length(rest))
        rounding = self._spectrum.rounding(length(theta))
        return distance <= self.radius * (1.0 + rtol) + rounding

    def _root_w(self, inside: Array, null: Array) -> Array:
        weighted = inside / self._scale
        return np.asarray(np.sqrt(squares(weighted) + (null / self._root_alpha) ** 2))


class RidgeEllipsoid(Ellipsoid):
    """From a root of V⁻¹, without a decomposition of the rows.

    `spectral` makes the same set the other way, for directions whose squares leave the range of floats. `spread` gives
    at least the largest ‖φ‖_{V⁻¹} of directions of length 1, for features.
    """

    evaluates = 1 << 30  # all at once, which takes no longer

    def __init__(
        self,
        ridge: RidgeRegression,
        radius2: float,
        spectral: Callable[[], SpectralEllipsoid],
        spread: Callable[[float], float] | None = None,
    ) -> None:
        self._ridge, self.radius, self._spectral, self._spread = ridge, math.sqrt(radius2), spectral, spread
        self._best: tuple[bytes, tuple[float, float]] | None = None  # the best direction found, and its interval

    def _scale_radius(self, factor: float) -> None:
        super()._scale_radius(factor)
        self._best = None
        make = self._spectral
        self._spectral = lambda: make().scaled(factor)  # type: ignore[assignment, return-value]

    @property
    def centre(self) -> Array:
        return self._ridge.theta

    def maximum(self, directions: Any) -> Array:
        found = self._ridge.measured(directions)
        if found is None:
            return self._spectral().maximum(directions)
        return found[0] + self.radius * found[1]

    def interval(self, directions: Any) -> tuple[Array, Array]:
        found = self._ridge.measured(directions)
        if found is None:
            return self._spectral().interval(directions)
        middle, half = found[0], self.radius * found[1]
        return middle - half, middle + half

    def ends(self, direction: Any) -> tuple[float, float]:
        if self._best is not None and self._best[0] == direction.tobytes():
            return self._best[1]
        found = self._ridge.measured_one(direction)
        if found is None:
            return super().ends(direction)
        middle, half = found[0], self.radius * found[1]
        return middle - half, middle + half

    def best(self, directions: Any, tie: float) -> tuple[int, float] | None:
        ridge, n = self._ridge, len(directions)
        if not isinstance(ridge, Ridge) or directions.size > _MOST_ENTRIES:
            return None
        most = _MOST_PRODUCTS // len(ridge.theta) ** 2
        if n > most and (self._spread is None or n < _MANY or most < _LEAST_MEASURED):
            return None
        compiled = _compiled_best() if directions.flags.c_contiguous else None
        if compiled is None:
            return None
        spread = math.inf if n <= most or self._spread is None else self._spread(ridge.alpha)
        ends = (self.radius, spread, tie, SAFE_SIZE**2, most)
        found, middle, half = compiled(directions, ridge.root, ridge.theta, *ends)
        if found < 0:
            return None
        self._best = directions[found].tobytes(), (middle - half, middle + half)
        return found, middle + half

    def shell(self) -> Ball | None:
        if self._spread is None:
            return None
        return Ball(self._ridge.theta, 1.001 * self.radius * self._spread(self._ridge.alpha))

    def form(self) -> Form | None:
        ridge = self._ridge
        return Form.of_ellipsoid(ridge.root, ridge.theta, self.radius) if isinstance(ridge, Ridge) else None

    def support(self, directions: Any) -> Maximum:
        ridge = self._ridge
        if not ridge.is_safe(directions):
            return self._spectral().support(directions)
        root_w, points = ridge.maximisers(directions, self.radius)
        alpha, case = np.empty(len(root_w)), np.empty(len(root_w), dtype=np.int64)
        alpha.fill(ridge.alpha)  # np.full takes as long as a small matrix product
        case.fill(CLOSED_FORM)
        return Maximum(ridge.estimates(directions) + self.radius * root_w, points, alpha, case)

    def widths(self, directions: Any) -> Array:
        ridge = self._ridge
        return ridge.widths(directions) if ridge.is_safe(directions) else self._spectral().widths(directions)

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        return self._ridge.sample(rng, spread)

    def contains(self, theta: Array, rtol: float) -> bool:
        return self._spectral().contains(theta, rtol)


def _compiled_best() -> Kernel | None:
    return kernel("mixbandit.sets._compiled_ellipsoid.best", _check_agreement)


def _check_agreement(compiled: Kernel) -> None:
    """Raise RuntimeError unless compiled code finds the best of a few directions; the first call compiles it."""
    directions = np.sin(np.arange(35.0)).reshape(7, 5)
    root = np.asfortranarray(np.eye(5) + 0.1 * np.cos(np.arange(25.0)).reshape(5, 5))
    theta = np.linspace(-1.0, 1.0, 5)
    values = directions @ theta + 0.3 * np.sqrt(squares(directions @ root))
    index, middle, half = compiled(directions, root, theta, 0.3, float(np.linalg.norm(root)), 1e-9, 1e-200, 7)
    value = middle + half
    if index != values.argmax() or not math.isclose(value, values.max(), rel_tol=1e-12):
        raise RuntimeError(f"compiled code finds {value} at {index}, numpy {values.max()} at {values.argmax()}")


class AffineImage(Ellipsoid):
    """{shift + root·η : η in another ellipsoid}."""

    def __init__(self, base: Ellipsoid, shift: Array, root: Array, alpha: float) -> None:
        self._base, self._shift, self._root, self._alpha = base, shift, root, alpha
        self.radius = base.radius

    def _scale_radius(self, factor: float) -> None:
        super()._scale_radius(factor)
        self._base = self._base.scaled(factor)

    @property
    def centre(self) -> Array:
        return np.asarray(self._shift + self._root @ self._base.centre)

    def maximum(self, directions: Any) -> Array:
        return self.interval(directions)[1]

    def interval(self, directions: Any) -> tuple[Array, Array]:
        low, high = self._base.interval(directions @ self._root)
        middle = directions @ self._shift
        return low + middle, high + middle

    def support(self, directions: Any) -> Maximum:
        found = self._base.support(directions @ self._root)
        value = found.value + directions @ self._shift
        return Maximum(value, found.points @ self._root.T + self._shift, np.full(len(value), self._alpha), found.case)

    def widths(self, directions: Any) -> Array:
        return self._base.widths(directions @ self._root)

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        return np.asarray(self._shift + self._root @ self._base.sample(rng, spread))

    def contains(self, theta: Array, rtol: float) -> bool:
        return self._base.contains(np.asarray(np.linalg.solve(self._root, theta - self._shift)), rtol)

"""The negative log-likelihood of values in a known range, in coordinates in which the norm bound and the range are 1.

| symbol | meaning | shape |
|---|---|---|
| X, o | rows and offset: expected values are p = o + Xθ, in [0, 1] | (n, k) |
| r, m | values in [0, 1], one per distinct action, and how many results each is the mean of | (n,) |
| L(θ) = Σ m(ℓ(p, r) − ℓ(r, r)) | ℓ(p, r) = −r ln p − (1−r) ln(1−p); never negative, 0 where p = r | |
| F(θ) = L(θ) + (α/2)‖θ‖² | what Newton's method minimises | |

−ln x is continued below a small x₀ by its quadratic expansion there, which lies below it, and expected values outside
[0, 1] cost a steep square instead of infinity. So L is finite, convex and smooth for all θ, nothing has to look for a
feasible start, and {L ≤ β} contains the true set. The continuation begins where a single value costs more than any set
allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array, underflowing
from mixbandit._lazy import lapack

# −ln x is continued where one value alone costs this many nats, but not above half its own value.
_HOPELESS = 1000.0
_LEAST_END = 1e-4
# Curvature of the cost outside [0, 1]: per squared count, and at least and at most.
_STEEP, _LEAST_STEEP, _MOST_STEEP = 100.0, 1e8, 1e12
# Below this relative distance a secant's curvature is replaced by the least curvature along it.
_NEAR = 1e-4
_ROUND_DOWN = 1.0 - 1e-6
_BISECTIONS = 30
_MOST_STEPS, _MOST_HALVINGS = 100, 40
# The step that would gain less than this, in nats, is the last: it squares the distance that is left.
_NEARLY = 1e-8
# Nats that nobody misses.
_NEGLIGIBLE = 1e-7
_EPS = float(np.finfo(np.float64).eps)


class Log(NamedTuple):
    """c·(−ln x), continued by its quadratic expansion below `end`; c may be 0."""

    weight: Array  # c, (n,)
    end: Array  # x₀, (n,)

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Value, slope and curvature."""
        short = np.minimum(x - self.end, 0.0) / self.end  # how far below the end, in units of it
        inside = np.maximum(x, self.end)
        with np.errstate(over="ignore"):  # a step that is far too long costs infinitely much, and is halved
            value = self.weight * (-np.log(inside) - short + 0.5 * short**2)
        slope = self.weight / inside * (short - 1.0)
        return value, slope, self.weight / inside**2

    def secant(self, origin: Array, x: Array) -> Array:
        """At most 2[f(x') − f(x̂) − f'(x̂)(x' − x̂)]/(x' − x̂)² for every x' ≤ x: curvatures of −ln fall with x."""
        step = x - origin
        far = np.abs(step) > _NEAR * np.maximum(np.maximum(x, origin), self.end)
        least = self.weight / np.maximum(np.maximum(x, origin), self.end) ** 2
        if not far.any():
            return np.asarray(least)
        value, _, _ = self.at(x)
        at_origin, slope, _ = self.at(origin)
        safe = np.where(far, step, 1.0)
        found = 2.0 * (value - at_origin - slope * step) / safe**2
        return np.asarray(np.where(far, np.maximum(found * _ROUND_DOWN, least), least))


class Point(NamedTuple):
    """A parameter with what is known about F there."""

    theta: Array  # (k,)
    p: Array  # o + Xθ, (n,)
    loss: float  # L(θ)
    slopes: Array  # dL/dp, (n,)
    curvatures: Array  # d²L/dp², (n,)


class Likelihood:
    """L, from rows (n, k), values (n,) and counts (n,)."""

    def __init__(self, rows: Array, values: Array, counts: Array, offset: float) -> None:
        self.rows, self.offset, self.values, self.counts = rows, offset, values, counts
        self._yes = _log(values, counts)
        self._no = _log(1.0 - values, counts)
        self._steep = np.clip(_STEEP * counts**2, _LEAST_STEEP, _MOST_STEEP)
        self.saturated = float(saturated(values, counts).sum())  # Σ mℓ(r, r)

    def at(self, theta: Array) -> Point:
        """L at θ."""
        p = self.offset + self.rows @ theta
        yes, no = self._yes.at(p), self._no.at(1.0 - p)
        outside = np.minimum(p, 0.0) + np.maximum(p - 1.0, 0.0)
        steep = self._steep * (outside != 0.0)
        loss = float((yes[0] + no[0] + 0.5 * steep * outside**2).sum()) - self.saturated
        return Point(theta, p, loss, yes[1] - no[1] + steep * outside, yes[2] + no[2] + steep)

    def rounding(self) -> float:
        """The rounding error of L near its minimum."""
        return _NEGLIGIBLE + 16.0 * _EPS * (abs(self.saturated) + len(self.counts))

    def secants(self, p: Array, low: Array, high: Array) -> Array:
        """At most the curvature of every term of L between p and any point of [low, high], (n,).

        The curvature of the whole term is not monotone, that of its two logarithms is: the first counts at `high`, the
        second at `low`.
        """
        logs = self._yes.secant(p, high) + self._no.secant(1.0 - p, 1.0 - low)
        return np.asarray(logs + self._steep * (_square_secant(p, high) + _square_secant(1.0 - p, 1.0 - low)))

    def alone(self, budget: float) -> tuple[Array, Array]:
        """[low, high] of the expected values whose own term costs at most `budget`, rounded outwards, (n,) each."""
        low, high = self.values.copy(), self.values.copy()
        below, above = np.zeros(len(low)), np.ones(len(low))
        for _ in range(_BISECTIONS):
            for inner, outer in ((low, below), (high, above)):
                middle = 0.5 * (inner + outer)
                cost = self._yes.at(middle)[0] + self._no.at(1.0 - middle)[0] - saturated(self.values, self.counts)
                inside = cost <= budget
                inner[inside], outer[~inside] = middle[inside], middle[~inside]
        return below, above

    def start(self, alpha: float) -> Array:
        """Ridge regression with about the right weights."""
        safe = np.clip(self.values, 0.02, 0.98)
        weights = self.counts / (safe * (1.0 - safe))
        weighted = self.rows * weights[:, None]
        return solve(weighted.T @ self.rows, alpha, weighted.T @ (self.values - self.offset))

    def minimum(self, alpha: float, start: Array | None = None) -> Point:
        """The minimiser of F, as nearly as rounding allows."""
        return self.tilted(1.0, alpha, np.zeros(self.rows.shape[1]), start)

    def tilted(self, weight: float, alpha: float, tilt: Array, start: Array | None = None) -> Point:
        """The minimiser of weight·L(θ) + (α/2)‖θ‖² − tiltᵀθ, by Newton's method with step halving."""
        theta = self.start(alpha / weight) if start is None else start
        here = self.at(theta)
        objective = weight * here.loss + 0.5 * alpha * float(theta @ theta) - float(tilt @ theta)
        for _ in range(_MOST_STEPS):
            gradient = weight * (self.rows.T @ here.slopes) + alpha * here.theta - tilt
            weighted = self.rows * (weight * here.curvatures)[:, None]
            step = solve(weighted.T @ self.rows, alpha, -gradient)
            gain = -float(gradient @ step)
            if not gain > _NEARLY * weight:  # too little to be seen in L; the last step needs no check
                return self.at(here.theta + step)
            size = 1.0
            for _ in range(_MOST_HALVINGS):
                theta = here.theta + size * step
                new = self.at(theta)
                found = weight * new.loss + 0.5 * alpha * float(theta @ theta) - float(tilt @ theta)
                if found <= objective - 1e-4 * size * gain:
                    break
                size *= 0.5
            else:  # rounding hides the rest
                break
            here, objective = new, found
        return here

    def gradient(self, here: Point, alpha: float) -> Array:
        """The gradient of F, (k,)."""
        return np.asarray(self.rows.T @ here.slopes + alpha * here.theta)


def saturated(values: Array, counts: Array) -> Array:
    """mℓ(r, r), (n,): the least that a value can cost."""
    from scipy.special import entr

    return np.asarray(counts * (entr(values) + entr(1.0 - values)))


def _square_secant(origin: Array, x: Array) -> Array:
    """`Log.secant` for ½·min(x, 0)² and x ≥ 0."""
    beyond = np.maximum(-origin, 0.0)
    return np.asarray(beyond * (2.0 * x + beyond) / np.maximum((x + beyond) ** 2, 1e-300) * _ROUND_DOWN)


def root_of(gram: Array, alpha: float) -> Array | None:
    """The lower-triangular factor of XᵀDX + αI, from XᵀDX (k, k); None if rounding makes that indefinite."""
    if not len(gram):
        return np.zeros((0, 0))
    whole = np.array(gram, order="F")
    whole.ravel(order="F")[:: len(gram) + 1] += alpha
    factor, info = lapack().dpotrf(whole, lower=1, overwrite_a=1)
    return np.asarray(factor) if info == 0 else None


def solve(gram: Array, alpha: float, b: Array) -> Array:
    """About (XᵀDX + αI)⁻¹b for b (k,) or (k, j): a step of Newton's method, which need not be exact."""
    if not len(gram):
        return np.zeros(b.shape)
    root = root_of(gram, alpha)
    while root is None:
        alpha = max(10.0 * alpha, _EPS * float(np.trace(gram)))
        root = root_of(gram, alpha)
    found, info = lapack().dpotrs(root, b, lower=1)
    if info != 0:
        raise RuntimeError(f"LAPACK's dpotrs returned {info}")
    return np.asarray(found)


@underflowing
def _log(shares: Array, counts: Array) -> Log:
    """The logarithm of one kind of result, which makes up these shares of them."""
    weight = counts * shares
    with np.errstate(divide="ignore"):
        hopeless = shares * np.exp(-_HOPELESS / weight)
    least = _LEAST_END / counts
    end = np.clip(hopeless, np.minimum(least, 0.5 * shares), 0.5 * shares)
    return Log(weight, np.where(shares > 0.0, np.maximum(end, 1e-150), 1.0))

"""Results in [0, 1] and nothing else known: the e-process against a mean p, and the interval that it leaves.

A bettor who believes in q multiplies its wealth by x·q/p + (1−x)·(1−q)/(1−p) when x comes, which is fair if p is the
mean. The average over q ~ Beta(½, ½), drawn once and whatever p is, is Cover's universal portfolio:

    E(p) = ∫ (q/p)^A ((1−q)/(1−p))^B Π_i (x_i·q/p + (1−x_i)(1−q)/(1−p))^{c_i}  Beta(½,½)(dq).

| symbol | meaning |
|---|---|
| A, B | the results that were 1 and 0; a value r that is the mean of m > 1 results adds m·r and m(1−r) |
| x_i, c_i | the single values strictly between, and how often each came |
| N, S | A + B + Σc, and A + Σc·x: the results and their sum |
| θ | q = sin²θ, in which Beta(½, ½) is uniform on [0, π/2] |

Three facts carry the module. (1) The factor of a mean of m results is theirs after AM ≥ GM, a^x b^{1−x} ≤ xa + (1−x)b:
smaller, so still valid, and known without the single results. (2) E is log-convex in p, because 1/p and 1/(1−p) are,
and sums, products and averages keep that: the p that it leaves are an interval. S/N is among them, since ln y ≤ y − 1
gives E(S/N) ≤ 1. (3) E is never below the Beta mixture with S and N − S in place of A and B, whose closed form
brackets the roots. For yes-or-no results both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_SERIES_FROM = 30.0  # where three terms of Stirling's series are exact to 1e-12
_FEW, _NODES = 127, 64  # this many nodes integrate polynomials in q of this degree exactly
_WINDOW_NODES = 48
_LEAST_DROP, _MOST_DROP = 25.0, 80.0  # of the integrand's logarithm at the ends of its window
_MOST_POINTS = 1024
_NEXT_TO_AN_END = 1e-9
_TINY = 1e-290  # means below this are treated as this, where there is less evidence against them
_TOLERANCE = 1e-8  # of bounds, in nats, to the safe side
_MOST_STEPS = 80
_STEP, _LAST = 1.0 / 32.0, 3.2  # of the double exponential rule: its spacing, and where its nodes reach the ends
_OFF = 1e-8  # taken off ln E for its error, which is below 1e-10
_CELLS = 1 << 20  # of the matrices made for a path at once


class Tally(NamedTuple):
    """Results in [0, 1], as much of them as the e-process needs. `rest` is 1 − points, without its rounding."""

    ones: float
    zeros: float
    points: Array  # (k,) the values strictly between
    rest: Array  # (k,)
    counts: Array  # (k,)

    @property
    def total(self) -> float:
        """N."""
        return self.ones + self.zeros + float(self.counts.sum())

    @property
    def sum(self) -> float:
        """S."""
        return self.ones + float(self.counts @ self.points)

    def mirrored(self) -> Tally:
        """The same of 1 − x: its lower bound is one minus our upper bound."""
        return Tally(self.zeros, self.ones, self.rest, self.points, self.counts)


def tally(ones: float, zeros: float, points: Array, rest: Array) -> Tally:
    """The tally of these results, with at most `_MOST_POINTS` points.

    Beyond that, values are split between the two nearest points that stay, so that their mean stays as well. The
    logarithm is concave, so this makes E smaller, and never invalid.
    """
    near = (points < _NEXT_TO_AN_END) | (rest < _NEXT_TO_AN_END)  # split between 0 and 1, for the same reason
    if near.any():
        ones, zeros = ones + float(points[near].sum()), zeros + float(rest[near].sum())
        points, rest = points[~near], rest[~near]
    counts: Array = np.ones(len(points))
    if len(points) > _NODES:
        points, first, repeated = np.unique(points, return_index=True, return_counts=True)
        rest, counts = rest[first], repeated.astype(np.float64)
    if len(points) > _MOST_POINTS:
        kept = np.linspace(0, len(points) - 1, _MOST_POINTS).round().astype(np.int64)
        ends = points[kept]
        left = np.clip(np.searchsorted(ends, points, side="right") - 1, 0, _MOST_POINTS - 2)
        share = (points - ends[left]) / (ends[left + 1] - ends[left])
        to_left, to_right = counts * (1.0 - share), counts * share
        split = np.bincount(left, to_left, _MOST_POINTS) + np.bincount(left + 1, to_right, _MOST_POINTS)
        counts = split.astype(np.float64)
        points, rest = ends, rest[kept]
    return Tally(ones, zeros, points, rest, counts)


def log_wealth(data: Tally, p: float) -> float:
    """The logarithm of E(p), also at the ends 0 and 1."""
    if (p <= 0.0 and data.sum > 0.0) or (p >= 1.0 and data.total - data.sum > 0.0):
        return math.inf
    if not len(data.points):
        return log_beta_mixture(data.ones, data.zeros, p)
    return _Integral(data)(max(p, _TINY))


def lowest(data: Tally, level: float) -> float:
    """The least p with ln E(p) < level, or a little less."""
    total, up = data.total, data.sum
    if up <= 0.0:
        return 0.0
    first = _lowest_of_counts(up, total - up, level)
    if not len(data.points):
        return first
    # The counts alone may leave less than the smallest float; points seldom do.
    return _root(_Integral(data), level, max(first, _TINY), up / total)


def log_beta_mixture(ones: float, zeros: float, p: float) -> float:
    """The logarithm of E(p) without points, 𝔅(A+½, B+½) / (π p^A (1−p)^B), in a form that does not cancel."""
    total = ones + zeros
    if not total:
        return 0.0
    best = ones / total
    found = -_cost(ones, zeros)
    if ones:
        found += ones * _log_ratio(best, p, best - p)
    if zeros:
        found += zeros * _log_ratio(zeros / total, 1.0 - p, p - best)
    return found


def _log_ratio(one: float, other: float, difference: float) -> float:
    """The logarithm of one/other, exact also where they are nearly equal; `difference` is one − other."""
    if not other:
        return math.inf
    away = difference / other
    return math.log1p(away) if away > -0.5 else math.log(max(one / other, _TINY))


def _cost(ones: float, zeros: float) -> float:
    """How much the mixture pays for not knowing A/N: A ln(A/N) + B ln(B/N) − ln 𝔅(A+½, B+½) + ln π."""
    total = ones + zeros
    stirling = _stirling_half(ones) + _stirling_half(zeros) - _stirling_one(total)
    return 0.5 * math.log(0.5 * math.pi * total) - stirling


def _stirling_half(z: float) -> float:
    """The error of Stirling's formula: ln Γ(z+½) − z ln z + z − ½ ln 2π."""
    if z >= _SERIES_FROM:
        return (-1.0 / 24.0 + (7.0 / 2880.0 - 31.0 / 40320.0 / z**2) / z**2) / z
    return math.lgamma(z + 0.5) - (z * math.log(z) if z else 0.0) + z - _HALF_LOG_2PI


def _stirling_one(z: float) -> float:
    """The same for ln Γ(z+1): less z ln z − z + ½ ln 2πz."""
    if z >= _SERIES_FROM:
        return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / z**2) / z**2) / z
    return math.lgamma(z + 1.0) - (z + 0.5) * math.log(z) + z - _HALF_LOG_2PI


def _lowest_of_counts(ones: float, zeros: float, level: float) -> float:
    """`lowest` of the Beta mixture. `ones` > 0."""
    total = ones + zeros
    best, excess = ones / total, level + _cost(ones, zeros)
    # KL(best, p) is at least 2(best−p)², (best−p)²/2best, and best·ln(best/p) − best + p: three points outside.
    first = max(
        best - math.sqrt(0.5 * excess / total),
        best - math.sqrt(2.0 * best * excess / total),
        best * math.exp(-1.0 - excess / ones),
    )
    if first <= 0.0:
        return 0.0  # below the smallest float
    return _root(lambda p: log_beta_mixture(ones, zeros, p), level, first, best)


def _root(log_e: Callable[[float], float], level: float, outside: float, inside: float) -> float:
    """Where a falling ln E crosses `level`, between a p outside the set and one inside; never inside.

    The Anderson-Björck method in ln p, on the square root of ln E above its value inside: that is nearly linear.
    """
    target = level + 0.5 * _TOLERANCE
    least = log_e(inside)
    goal = math.sqrt(target - least)

    def height(p: float) -> tuple[float, float]:
        found = log_e(p)
        return found - target, math.sqrt(max(found - least, 0.0)) - goal

    miss, f_out = height(outside)
    if abs(miss) <= 0.5 * _TOLERANCE or f_out <= 0.0:
        return outside
    u_out, u_in, f_in = math.log(outside), math.log(inside), -goal
    for _ in range(_MOST_STEPS):
        u = u_in + (u_out - u_in) * f_in / (f_in - f_out)
        if not u_out < u < u_in:
            u = 0.5 * (u_out + u_in)
        miss, f = height(math.exp(u))
        if abs(miss) <= 0.5 * _TOLERANCE:
            return math.exp(u)
        if f > 0.0:
            f_in *= max(1.0 - f / f_out, 0.0) or 0.5
            u_out, f_out = u, f
        else:
            f_out *= max(1.0 - f / f_in, 0.0) or 0.5
            u_in, f_in = u, f
        if u_in - u_out <= 1e-15 * abs(u_out):
            break
    return math.exp(u_out)


def _nodes(count: int) -> tuple[Array, Array]:
    """The q and 1 − q at the midpoints of [0, π/2] in θ: Gauss's quadrature for Beta(½, ½), with equal weights."""
    angles = (np.arange(count) + 0.5) * (0.5 * math.pi / count)
    return np.sin(angles) ** 2, np.cos(angles) ** 2


_FULL = _nodes(_NODES)


class _Rule(NamedTuple):
    """Nodes and weights on [0, 1]. `rest` is 1 − nodes, without its rounding; weights sum to 1."""

    nodes: Array
    rest: Array
    log_weights: Array


def _double_exponential(step: float) -> _Rule:
    """The rule of Takahasi & Mori: exact to ten digits also where derivatives are infinite at the ends.

    Parts of a result leave such ends in the integrand, θ^{2A} with 2A no even number, where midpoints are wrong by up
    to a hundredth.
    """
    count = math.ceil(_LAST / step)
    t = step * np.arange(-count, count + 1)
    nodes, rest = (1.0 / (1.0 + np.exp(sign * math.pi * np.sinh(t))) for sign in (-1.0, 1.0))
    return _Rule(nodes, rest, np.log(step * math.pi * np.cosh(t) * nodes * rest))


_TO_THE_ENDS = _double_exponential(_STEP)


def _whole(*numbers: Array | float) -> bool:
    return all(bool((np.floor(each) == each).all()) for each in numbers)


class _Integral:
    """ln E(p) by quadrature in θ, for one tally and many p."""

    def __init__(self, data: Tally) -> None:
        self.data = data
        self.smooth = _whole(data.ones, data.zeros, data.counts)
        self.mode = data.sum / data.total  # of q at the last p: the next one starts there

    def __call__(self, p: float) -> float:
        if self.smooth and self.data.total <= _FEW:
            return _log_mean_exp(self.log_terms(*_FULL, p))
        low, high = self.window(p)
        share = math.log((high - low) / (0.5 * math.pi))
        if self.smooth or (low > 0.0 and high < 0.5 * math.pi):
            angles = low + (np.arange(_WINDOW_NODES) + 0.5) * ((high - low) / _WINDOW_NODES)
            return _log_mean_exp(self.log_terms(np.sin(angles) ** 2, np.cos(angles) ** 2, p)) + share
        angles, others = (
            low + (high - low) * _TO_THE_ENDS.nodes,
            (0.5 * math.pi - high) + (high - low) * _TO_THE_ENDS.rest,
        )
        logs = self.log_terms(np.sin(angles) ** 2, np.sin(others) ** 2, p) + _TO_THE_ENDS.log_weights
        return _log_sum_exp(logs) + share - _OFF

    def log_terms(self, q: Array, not_q: Array, p: float) -> Array:
        """The logarithm of the integrand at each q."""
        data, a, b = self.data, q / p, not_q / (1.0 - p)
        logs: Array = np.log(np.multiply.outer(a, data.points) + np.multiply.outer(b, data.rest)) @ data.counts
        if data.ones:
            logs += data.ones * np.log(a)
        if data.zeros:
            logs += data.zeros * np.log(b)
        return logs

    def log_term(self, angle: float, p: float) -> float:
        return float(self.log_terms(np.array([math.sin(angle) ** 2]), np.array([math.cos(angle) ** 2]), p)[0])

    def window(self, p: float) -> tuple[float, float]:
        """The angles outside of which the integrand is negligible."""
        q, slope, curve = self.peak(p)
        angle = math.asin(math.sqrt(q))
        bend = curve * 4.0 * q * (1.0 - q) + slope * 2.0 * (1.0 - 2.0 * q)
        start = math.sqrt(2.0 * _LEAST_DROP / max(-bend, 1.0)) * 1.2
        top = self.log_term(angle, p)
        return max(angle - self.reach(angle, -start, top, p), 0.0), min(
            angle + self.reach(angle, start, top, p), 0.5 * math.pi
        )

    def reach(self, angle: float, step: float, top: float, p: float) -> float:
        """How far from the peak, to one side, the integrand has dropped enough, and not by far too much."""
        most = angle if step < 0 else 0.5 * math.pi - angle
        sign, far = math.copysign(1.0, step), abs(step)
        for _ in range(_MOST_STEPS):
            if far >= most:
                end = top - self.log_term(angle + sign * most * (1.0 - 1e-12), p)
                if end <= _MOST_DROP:
                    return most
                far = 0.9 * most
            drop = top - self.log_term(angle + sign * far, p)
            if drop > _MOST_DROP:
                far *= 0.7
            elif drop < _LEAST_DROP:
                if far >= 0.9 * most:
                    return most
                far *= 1.35
            else:
                break
        return far

    def peak(self, p: float) -> tuple[float, float, float]:
        """Nearly the q of the largest term, whose logarithm is concave in q; with both derivatives there."""
        data = self.data
        edge = (data.points - p) / (p * (1.0 - p))
        weighted = data.counts * edge

        def derivatives(q: float) -> tuple[float, float]:
            pulls = weighted / (data.points * (q / p) + data.rest * ((1.0 - q) / (1.0 - p)))
            slope = float(pulls.sum()) + (data.ones / q if data.ones else 0.0)
            curve = -float((pulls * pulls) @ (1.0 / data.counts)) - (data.ones / q**2 if data.ones else 0.0)
            if data.zeros:
                slope, curve = slope - data.zeros / (1.0 - q), curve - data.zeros / (1.0 - q) ** 2
            return slope, curve

        low, high, q = 0.0, 1.0, min(max(self.mode, 1e-9), 1.0 - 1e-9)
        slope, curve = derivatives(q)
        for _ in range(_MOST_STEPS):
            if slope > 0.0:
                low = q
            else:
                high = q
            step = -slope / curve if curve else math.inf
            new = q + step
            if not low < new < high:
                # The peak may be at the end itself, where no result of the other kind came.
                end, reached = (
                    (1.0, high == 1.0 and not data.zeros) if step > 0.0 else (0.0, low == 0.0 and not data.ones)
                )
                if reached and slope * derivatives(end)[0] > 0.0:
                    q, (slope, curve) = end, derivatives(end)
                    break
                new = 0.5 * (low + high)
            q, (slope, curve) = new, derivatives(new)
            if slope * slope < -0.01 * curve or high - low < 1e-12:  # within a tenth of the peak's width
                break
        self.mode = q
        return q, slope, curve


def _log_mean_exp(logs: Array) -> float:
    return _log_sum_exp(logs) - math.log(len(logs))


def _log_sum_exp(logs: Array) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def log_beta_path(ones: Array, zeros: Array, p: float) -> Array:
    """The logarithm of E(p) at each of several (A, B), for 0 < p < 1."""
    from scipy.special import betaln  # imported late: it would be much of the package's import time

    logs: Array = betaln(ones + 0.5, zeros + 0.5) - math.log(math.pi) - ones * math.log(p) - zeros * math.log1p(-p)
    return logs


def log_path(ones: Array, zeros: Array, points: Array, rest: Array, p: float, count: int) -> Array:
    """The logarithm of E(p) after each result: A and B so far, and values strictly between or NaN, all (t,).

    With `count` nodes, which must be some 3√N or more for the quadrature to be exact to ten digits; more of them where
    parts of a result came.
    """
    if _whole(ones, zeros):
        (q, not_q), weights, off = _nodes(count), np.ones(count), 0.0
    else:
        rule = _double_exponential(min(1.25 / count, _STEP))  # as dense in the middle as midpoints are
        q, not_q = (np.sin(0.5 * math.pi * part) ** 2 for part in (rule.nodes, rule.rest))
        count, off = len(q), _OFF
        weights = count * np.exp(rule.log_weights)
    a, b = q / max(p, _TINY), not_q / (1.0 - p)
    chunk = max(_CELLS // count, 1)
    carried, found = np.zeros(count), []
    for start in range(0, len(points), chunk):
        part = slice(start, start + chunk)
        x, y = points[part, None], rest[part, None]
        logs = np.where(np.isnan(x), 0.0, np.log(np.where(np.isnan(x), 1.0, x * a + y * b)))
        logs[0] += carried
        logs = np.cumsum(logs, axis=0)
        carried = logs[-1]
        logs = logs + ones[part, None] * np.log(a) + zeros[part, None] * np.log(b)
        top = logs.max(axis=1, keepdims=True)
        found.append(top[:, 0] + np.log((weights * np.exp(logs - top)).mean(axis=1)))
    return np.concatenate(found) - off

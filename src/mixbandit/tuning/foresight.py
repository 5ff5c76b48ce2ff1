"""What the tuner acts on: a Gaussian process that learns which parameters matter and how noisy values are.

Nothing here is guaranteed, and nothing has to be: bounds hold whatever chose the trials.

| symbol | meaning | shape |
|---|---|---|
| x, y | rows of the unit box, and their rewards, centred, scaled and compressed | (n, dim), (n,) |
| D_j | squared distances in parameter j; of two choices of a category, 1; of a choice and none, ½ | (d, n, m) |
| ℓ_j | length-scale of parameter j: a long one says that it hardly matters | (d,) |
| a, p, ν | variances of the additive and of the joint part, and of the noise | |
| E_j = exp(−D_j/2ℓ_j²) | so that k = (a/d) Σ_j E_j + p Π_j E_j + 1, the 1 for an unknown level | |
| Λ | lower-triangular factor of K + diag(ν/w), w the weights of values; kept as Λ⁻¹ | (n, n) |

Length-scales, variances and noise are those of the largest posterior density, found anew whenever there are a quarter
more values. They follow from the values and their order alone, not from earlier fits, so that a stored tuner or a copy
makes the same choices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._lazy import lapack, lazy
from mixbandit._rows import distinct_rows
from mixbandit.tuning.space import rounded

_Indices = NDArray[np.int64]

# Values are clipped this many robust standard deviations from their median. To tell the best apart, those above count
# by their logarithm instead, and the best of all, which may be an outlier, at most this much more than the second.
_FAR, _MOST_AHEAD = 2.5, 1.0
# The robust one is at least this share of the plain one: it would be 0 where half of all values agree.
_LEAST_SPREAD = 0.5
_CONSISTENT = 1.4826  # the standard deviation of a Gaussian law over its median absolute deviation
# The prior of the logarithms: length-scales of half the range, longer in many dimensions, half of the variance in each
# part, a tenth of it noise.
_LENGTHSCALE, _VARIANCE, _NOISE = 0.5, 0.5, 0.1
_SPREAD_OF_LENGTHSCALES, _SPREAD_OF_VARIANCES, _SPREAD_OF_NOISE = 1.0, 1.0, 1.5
_LEVEL = 1.0
_BOUNDS_OF_LENGTHSCALES, _BOUNDS_OF_VARIANCES, _BOUNDS_OF_NOISE = (-4.0, 4.0), (-8.0, 4.0), (-7.0, 2.0)
# A new fit comes after a quarter more values, at most _MOST_BETWEEN. It uses at most _MOST_FITTED values, and takes at
# most _MOST_STEPS steps.
_FIRST_FIT, _MOST_BETWEEN, _MOST_FITTED, _MOST_STEPS = 4, 50, 120, 30
# At most this many values before the last fit are kept, besides all after it.
_MOST_KEPT = 300
_LEAST_VARIANCE = 1e-6
# This share of what looks like noise belongs to the configuration.
_OWN = 0.3


def warped(scaled: Array) -> Array:
    """Scaled rewards clipped, so that cliffs and outliers drown nothing."""
    return np.clip(scaled, -_FAR, _FAR)


def apart(scaled: Array) -> Array:
    """The same, except that the best of them stay apart."""
    y = np.maximum(scaled, -_FAR)
    y = np.where(y > _FAR, _FAR + np.log1p(np.maximum(y - _FAR, 0.0)), y)
    return np.asarray(np.minimum(y, np.partition(y, -2)[-2] + _MOST_AHEAD) if len(y) > 1 else y)


def scaled(rewards: Array) -> Array:
    """Rewards around their median, in robust standard deviations."""
    centred = rewards - np.median(rewards)
    spread = max(_CONSISTENT * float(np.median(np.abs(centred))), _LEAST_SPREAD * float(rewards.std()))
    return centred / spread if spread > 0.0 else np.zeros(len(rewards))


class Groups(NamedTuple):
    """The columns of each parameter."""

    columns: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.columns)

    def squared(self, j: int, rows: Array, others: Array) -> Array:
        """D_j, (n, m)."""
        columns = self.columns[j]
        if len(columns) == 1:
            difference = rows[:, columns[0], None] - others[:, columns[0]]
            return np.asarray(difference * difference)
        one, other = rows[:, list(columns)], others[:, list(columns)]
        # Of 0-1 columns: the cheap form is exact.
        return np.asarray(
            0.5 * ((one * one).sum(axis=1)[:, None] + (other * other).sum(axis=1) - 2.0 * (one @ other.T))
        )


class Hyperparameters(NamedTuple):
    """ℓ, a, p and ν, as logarithms."""

    lengthscales: Array
    additive: float
    joint: float
    noise: float

    @classmethod
    def of(cls, vector: Array) -> Hyperparameters:
        return cls(vector[:-3], *map(float, vector[-3:]))

    @property
    def variance(self) -> float:
        """K(x, x), the level included."""
        return math.exp(self.additive) + math.exp(self.joint) + _LEVEL

    def kernel(self, groups: Groups, rows: Array, others: Array) -> Array:
        """K, (n, m)."""
        total: Array | float = 0.0
        product: Array | float = 1.0
        for j, length in enumerate(self.lengthscales):
            part = groups.squared(j, rows, others)
            part *= -0.5 * math.exp(-2.0 * length)
            np.exp(part, out=part)
            total = total + part
            product = product * part
        return np.asarray((math.exp(self.additive) / len(groups)) * total + math.exp(self.joint) * product + _LEVEL)


def _prior(count: int) -> tuple[Array, Array]:
    """Means and standard deviations of the logarithms."""
    length = math.log(_LENGTHSCALE) + 0.25 * math.log(count)
    means = [length] * count + [math.log(_VARIANCE)] * 2 + [math.log(_NOISE)]
    spreads = [_SPREAD_OF_LENGTHSCALES] * count + [_SPREAD_OF_VARIANCES] * 2 + [_SPREAD_OF_NOISE]
    return np.array(means), np.array(spreads)


def fitted(groups: Groups, rows: Array, y: Array, weights: Array) -> Hyperparameters:
    """The hyperparameters of the largest posterior density."""
    from scipy.optimize import minimize

    means, spreads = _prior(len(groups))
    bounds = [_BOUNDS_OF_LENGTHSCALES] * len(groups) + [_BOUNDS_OF_VARIANCES] * 2 + [_BOUNDS_OF_NOISE]
    known = (pairs_of(groups, rows), y, 1.0 / weights, means, spreads)
    found = minimize(
        negative_log_posterior,
        means,
        args=known,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _MOST_STEPS},
    )
    return Hyperparameters.of(found.x)


class Pairs(NamedTuple):
    """All pairs of different rows, each once."""

    rows: tuple[_Indices, _Indices]
    squared: Array  # D, (d, number of pairs)


def pairs_of(groups: Groups, rows: Array) -> Pairs:
    below = np.tril_indices(len(rows), -1)
    return Pairs(below, np.array([groups.squared(j, rows, rows)[below] for j in range(len(groups))]))


def negative_log_posterior(
    vector: Array, pairs: Pairs, y: Array, noises: Array, means: Array, spreads: Array
) -> tuple[float, Array]:
    """−ln of the posterior density up to a constant, and its gradient; `noises` are 1/w."""
    n, d = len(y), len(pairs.squared)
    inverse = np.exp(-2.0 * vector[:d])
    additive, joint, noise = np.exp(vector[d:]).tolist()
    parts = np.exp(-0.5 * inverse[:, None] * pairs.squared)
    total, product = parts.sum(axis=0), parts.prod(axis=0)
    matrix = np.zeros((n, n))
    matrix[pairs.rows] = (additive / d) * total + joint * product + _LEVEL
    matrix[np.diag_indices(n)] = additive + joint + _LEVEL + noise * noises
    factor, info = lapack().dpotrf(matrix, lower=1)
    if info:
        return math.inf, np.zeros_like(vector)
    solution, _ = lapack().dpotrs(factor, y, lower=1)
    inverted, _ = lapack().dpotri(factor, lower=1)
    z = (vector - means) / spreads
    value = 0.5 * float(y @ solution) + float(np.log(factor.diagonal()).sum()) + 0.5 * float(z @ z)
    # dL/dK = ½(K⁻¹yyᵀK⁻¹ − K⁻¹), times dK of each hyperparameter. Pairs count twice: K is symmetric.
    slope = solution[pairs.rows[0]] * solution[pairs.rows[1]] - inverted[pairs.rows]
    on_diagonal = 0.5 * (solution * solution - inverted.diagonal())
    weighted = (joint * product * slope, (additive / d) * slope)
    gradient = np.empty_like(vector)
    gradient[:d] = inverse * (pairs.squared @ weighted[0] + (pairs.squared * parts) @ weighted[1])
    gradient[d] = total @ weighted[1] + additive * on_diagonal.sum()
    gradient[d + 1] = weighted[0].sum() + joint * on_diagonal.sum()
    gradient[d + 2] = noise * float(on_diagonal @ noises)
    return value, z / spreads - gradient


def last_fit(count: int) -> int:
    """The number of values at the last fit, once there are `count`; 0 before the first."""
    due, following = 0, _FIRST_FIT
    while following <= count:
        due, following = following, following + max(1, min(following // 4, _MOST_BETWEEN))
    return due


def representative(rows: Array, rewards: Array, most: int) -> _Indices:
    """Indices of at most `most` values: half from the best configurations, the rest evenly over time.

    By the means of configurations, not by single values: of repeats the lucky ones would be left.
    """
    if len(rewards) <= most:
        return np.arange(len(rewards))
    place = _places(rows)
    means = np.bincount(place, rewards) / np.bincount(place)
    order = np.argsort(-means[place], kind="stable")
    best, others = order[: most // 2], np.sort(order[most // 2 :])
    even = others[np.linspace(0, len(others) - 1, most - most // 2).astype(np.int64)]
    return np.sort(np.concatenate((best, even)))


class _Values:
    """The rewards on two scales: a search does better on clipped ones, which do not tell the best apart."""

    def __init__(self, rewards: Array, kept: _Indices) -> None:
        self._scaled, self._kept = scaled(rewards), kept

    @lazy
    def warped(self) -> Array:
        return warped(self._scaled[self._kept])

    @lazy
    def apart(self) -> Array:
        return apart(self._scaled)[self._kept]


class Outlook:
    """Predictions from the values of the first rows; the others are only believed to return what is predicted."""

    def __init__(
        self, groups: Groups, known: Hyperparameters, rows: Array, white: Array, weights: Array, values: _Values
    ) -> None:
        self._groups, self._known, self._rows, self._white = groups, known, rows, white
        self._weights, self._values = weights, values

    @property
    def noise(self) -> float:
        """The standard deviation of the noise."""
        return math.exp(0.5 * self._known.noise)

    @lazy
    def _solution(self) -> Array:
        """(K + diag(ν/w))⁻¹y of the values alone."""
        told = len(self._values.warped)
        white = self._white[:told, :told]
        return white.T @ (white @ self._values.warped)

    def at(self, rows: Array) -> tuple[Array, Array]:
        """Means and standard deviations of expected rewards, (n,) each, in the scale of `warped`."""
        sections = self._known.kernel(self._groups, rows, self._rows)
        means = sections[:, : len(self._solution)] @ self._solution
        whitened = sections @ self._white.T
        variances = self._known.variance - np.einsum("nt,nt->n", whitened, whitened)
        return means, np.sqrt(np.maximum(variances, _LEAST_VARIANCE))

    def standings(self, rows: Array) -> tuple[Array, Array]:
        """Like `at`, on the scale of `apart`, but every configuration may differ from what its neighbours suggest.

        A share of what looks like noise then belongs to the configuration, and its own values count for more.
        """
        noise, seen, told = math.exp(self._known.noise), self._rows, len(self._values.apart)
        own = _OWN * noise
        place = _places(np.vstack((seen, rows)))
        same = place[:, None] == place[: len(seen)]
        known = self._known.kernel(self._groups, seen, seen) + own * same[: len(seen)]
        known[np.diag_indices(len(seen))] += (noise - own) / self._weights
        factor, _ = lapack().dpotrf(known, lower=1)
        sections = self._known.kernel(self._groups, rows, seen) + own * same[len(seen) :]
        white, _ = lapack().dtrtrs(factor, sections.T, lower=1)
        # The first rows of a triangular system do not know of those that are only believed.
        white_y, _ = lapack().dtrtrs(factor[:told, :told], self._values.apart, lower=1)
        variances = self._known.variance + own - np.einsum("tn,tn->n", white, white)
        return white[:told].T @ white_y, np.sqrt(np.maximum(variances, _LEAST_VARIANCE))

    def believing(self, rows: Array) -> Outlook:
        """As if these rows had returned what is predicted."""
        ones = np.ones(len(rows))
        white = _grown(self._white, self._groups, self._known, self._rows, rows, ones)
        seen, weights = np.vstack((self._rows, rows)), np.concatenate((self._weights, ones))
        return Outlook(self._groups, self._known, seen, white, weights, self._values)


def _places(rows: Array) -> _Indices:
    """A number for every row, the same for those that encode the same configuration."""
    return distinct_rows(rounded(rows)).place


def _whole(groups: Groups, known: Hyperparameters, rows: Array, weights: Array) -> Array:
    """Λ⁻¹ of all rows."""
    if not len(rows):
        return np.empty((0, 0))
    matrix = known.kernel(groups, rows, rows)
    matrix[np.diag_indices(len(rows))] += math.exp(known.noise) / weights
    factor, _ = lapack().dpotrf(matrix, lower=1, clean=1)
    white, _ = lapack().dtrtri(factor, lower=1)
    return np.asarray(white)


def _grown(white: Array, groups: Groups, known: Hyperparameters, seen: Array, rows: Array, weights: Array) -> Array:
    """Λ⁻¹ with more rows, one after the other, so that it does not depend on how many came at once."""
    size, more = len(white), len(rows)
    if not more:
        return white
    new = np.zeros((size + more, size + more))
    new[:size, :size] = white
    every = np.vstack((seen, rows))
    for i, weight in enumerate(weights.tolist(), size):
        below = new[:i, :i] @ known.kernel(groups, every[i : i + 1], every[:i])[0]
        noise = math.exp(known.noise) / weight
        # At least the noise is left, up to rounding.
        pivot = math.sqrt(max(known.variance + noise - float(below @ below), 0.5 * noise))
        new[i, :i], new[i, i] = (below @ new[:i, :i]) / -pivot, 1.0 / pivot
    return new


class _Fit(NamedTuple):
    """What was learnt at the last fit, and Λ⁻¹ of the values that it kept and of those that came since."""

    seen: tuple[Array, Array, Array]  # all rows, rewards and weights at the fit
    kept: _Indices
    known: Hyperparameters
    white: Array
    since: tuple[Array, Array]  # rows and weights


class Foresight:
    """Outlooks from values; remembers the work of the last one, which changes nothing but the time."""

    def __init__(self, columns: Sequence[Sequence[int]]) -> None:
        self._groups = Groups(tuple(tuple(each) for each in columns))
        self._last: _Fit | None = None

    def after(self, rows: Array, rewards: Array, weights: Array) -> Outlook:
        """The outlook after at least one value. `weights` (t,) are relative: weight 2 means half the variance."""
        due = last_fit(len(rewards))
        fit = self._last
        if fit is None or not _begins_with(fit, due, rows, rewards, weights):
            fit = self._fitted(rows[:due], rewards[:due], weights[:due])
        start = due + len(fit.since[1])
        seen = np.vstack((rows[fit.kept], rows[due:start]))
        white = _grown(fit.white, self._groups, fit.known, seen, rows[start:], weights[start:])
        self._last = fit._replace(white=white, since=(rows[due:], weights[due:]))
        kept = np.concatenate((fit.kept, np.arange(due, len(rewards))))
        return Outlook(self._groups, fit.known, rows[kept], white, weights[kept], _Values(rewards, kept))

    def _fitted(self, rows: Array, rewards: Array, weights: Array) -> _Fit:
        known = Hyperparameters.of(_prior(len(self._groups))[0])
        if len(rewards):
            some = representative(rows, rewards, _MOST_FITTED)
            known = fitted(self._groups, rows[some], warped(scaled(rewards))[some], weights[some])
        kept = representative(rows, rewards, _MOST_KEPT)
        white = _whole(self._groups, known, rows[kept], weights[kept])
        return _Fit((rows, rewards, weights), kept, known, white, (rows[:0], weights[:0]))


def _begins_with(fit: _Fit, due: int, *seen: Array) -> bool:
    """Whether these rows, rewards and weights begin with those that the fit knows, in the same order."""
    rows, _, weights = seen
    start = due + len(fit.since[1])
    return bool(
        len(fit.seen[1]) == due
        and start <= len(rows)
        and all(np.array_equal(old, new[:due]) for old, new in zip(fit.seen, seen, strict=True))
        and np.array_equal(fit.since[0], rows[due:start])
        and np.array_equal(fit.since[1], weights[due:start])
    )

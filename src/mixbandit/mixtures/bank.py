"""A bank of Gaussian-process forecasters for values in a known range, combined by fixed share.

| symbol | meaning | shape |
|---|---|---|
| r, m | values, rescaled to [0, 1], and how many results each is the mean of | (t,), (t,) |
| K | kernel matrix of the actions, in the order of play | (t, t) |
| ν/m | noise variance that a member expects of a value | (t,) |
| Λ | lower-triangular factor of K + diag(ν/m) | (t, t) |
| μ, s² | a member's forecast of the expected value, made before the value is seen | (J, t) |
| a, b | the Beta law with that mean and variance | (J, t) |

All one-step forecasts of a Gaussian process stand in one factor: Λ_jj² is the predictive variance of r_j, noise
included, and Λ_jj·(Λ⁻¹r)_j its error. So nothing is computed until a bound is asked for. The predictive of a member,
with 𝔅 the Beta function, is

    E_{q ∼ Beta(a,b)}[q^{mr}(1−q)^{m(1−r)}] = 𝔅(a + mr, b + m(1−r))/𝔅(a, b),

and that of the bank the mean of its members' under weights that follow Bayes' rule, mixed with a share of uniform
ones after each value (Herbster & Warmuth 1998): the best member may change over time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_SETTING,
    SMALLEST_SETTING,
    Array,
    as_float_array,
    nonnegative,
    positive,
    shown,
    underflowing,
)
from mixbandit._lazy import lapack
from mixbandit._schema import Fields, array, list_of, optional, real, record, require
from mixbandit.errors import InvalidInput, NotStorable
from mixbandit.kernels import Kernel, as_kernel
from mixbandit.mixtures.base import Cost, Forecaster, Mixture
from mixbandit.mixtures.prequential import Prequential
from mixbandit.models import Model

# Beyond this many results, squares of their number would lose whole ones.
MOST_RESULTS = 10**12
SCALES = (0.001, 0.01, 0.1)
NOISES = (0.25, 0.09, 0.03, 0.01)
# The level of a function around the middle of the range, as a variance that every member adds.
_LEVEL, _MIDDLE = 0.25, 0.5
# Factors of the length-scales of the model's kernel; length-scales in feature space, in units of the first row that is
# not 0.
_STRETCHES = (0.5, 1.0, 2.0, 4.0)
_FEATURE_LENGTHS = (0.5, 1.5)
_MOST_UNITS = 1e100
# Means nearer to an end than half a result, or than this, are not forecast.
_END = 0.005
# a + b: more certain forecasts would gain nothing.
_MOST_CERTAIN = 1e9
_LEAST_VARIANCE = 1e-12
# Kernel matrices are made definite by this share of their diagonal.
_JITTER = 1e-10


def one_step(gram: Array, errors: Array, noise: Array) -> tuple[Array, Array]:
    """Forecasts of all values (t,), each from those before it: means of r − `prior mean`, and variances without noise.

    `errors` (t,) are the values less the prior mean, `noise` (t,) the variances of their noise.
    """
    t = len(errors)
    if not t:
        return np.empty(0), np.empty(0)
    whole = np.array(gram, order="F")
    whole.ravel(order="F")[:: t + 1] += noise + _JITTER * gram.diagonal()
    factor, info = lapack().dpotrf(whole, lower=1, overwrite_a=1, clean=0)
    if info > 0:
        # Rounding makes it indefinite from here on. What came before must not depend on that, and later values are
        # not forecast: any mean and variance will do.
        known = one_step(gram[: info - 1, : info - 1], errors[: info - 1], noise[: info - 1])
        left = t - info + 1
        return np.concatenate((known[0], np.zeros(left))), np.concatenate((known[1], np.full(left, _LEVEL)))
    white, _ = lapack().dtrtrs(factor, errors, lower=1)
    root = factor.diagonal()
    return errors - root * white, np.maximum(root**2 - noise, 0.0)


def beta_law(mean: Array, variance: Array, counts: Array) -> tuple[Array, Array]:
    """The Beta law of about this mean and variance: (a, b)."""
    end = np.minimum(_END, 0.5 / (counts + 1.0))
    inside = np.clip(mean, end, 1.0 - end)
    # Whoever forecasts a mean beyond the end is at least that far off.
    spread = np.maximum(variance, _LEAST_VARIANCE) + (mean - inside) ** 2
    most = inside * (1.0 - inside)
    total = np.clip(most / spread - 1.0, 1.0, _MOST_CERTAIN)
    return inside * total, (1.0 - inside) * total


def log_predictive(mean: Array, variance: Array, values: Array, counts: Array) -> Array:
    """Ln E_q[q^{mr}(1−q)^{m(1−r)}] for q of the Beta law of these forecasts, of any shape (…, t)."""
    from scipy.special import betaln

    a, b = beta_law(mean, variance, counts)
    return np.asarray(betaln(a + counts * values, b + counts * (1.0 - values)) - betaln(a, b))


@underflowing
def fixed_share(log_predictives: Array, share: float) -> Array:
    """Ln of the bank's predictive of every value, (t,), from its members' (J, t)."""
    members, t = log_predictives.shape
    if not share:  # weights may vanish, their logarithms do not
        totals = np.logaddexp.reduce(np.cumsum(log_predictives, axis=1), axis=0) - math.log(members)
        return np.diff(totals, prepend=0.0)
    found, weights = np.empty(t), np.full(members, 1.0 / members)
    for k in range(t):
        logs = log_predictives[:, k]
        top = float(logs.max())
        likely = weights * np.exp(logs - top)
        total = float(likely.sum())
        found[k] = top + math.log(total)
        weights = (1.0 - share) / total * likely + share / members
    return found


class Trials(NamedTuple):
    """Values in the order of play."""

    actions: Array  # (t, k)
    values: Array  # r, rescaled to [0, 1], (t,)
    counts: Array  # m, (t,)
    phi: Array | None = None  # feature rows, (t, d), where there are features

    def learn(self, actions: Array, values: Array, counts: Array, phi: Array | None) -> Trials:
        """With more of them."""
        # Of one memory layout, whatever the features return: a resumed run then repeats the same roundings.
        features = None if phi is None else _stacked(self.phi, phi)
        actions = _stacked(self.actions if len(self.values) else None, actions)
        return Trials(actions, np.concatenate((self.values, values)), np.concatenate((self.counts, counts)), features)


def _stacked(above: Array | None, below: Array) -> Array:
    return np.array(below if above is None else np.vstack((above, below)), order="C")


class Bank(Mixture):
    """Gaussian processes on several kernels, with several scales and noise levels, combined by fixed share.

    `kernels` see the actions; by default they are the model's kernel with its length-scales multiplied by ½ to 4, or
    for features the linear kernel and two Gaussian ones of the feature vectors. `scales` are the variances of functions
    in units of the squared range, `noises` those of single results, p(1−p); `share` is the share of the weights that is
    spread evenly after each value. These settings decide how tight bounds are, never whether they hold.
    """

    kind = "Bank"
    schema = record(
        {
            "kernels": optional(list_of(Kernel.family, least=1)),
            "scales": array(None),
            "noises": array(None),
            "share": real(nonnegative),
        }
    )

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        *,
        scales: ArrayLike = SCALES,
        noises: ArrayLike = NOISES,
        share: float = 0.01,
    ) -> None:
        if kernels is not None and (not isinstance(kernels, list | tuple) or not kernels):
            raise InvalidInput(f"kernels must be a list of kernels, got {shown(kernels)}")
        self.kernels = None if kernels is None else tuple(as_kernel(each) for each in kernels)
        self.scales, self.noises = _positive_list(scales, "scales"), _positive_list(noises, "noises")
        self.share = nonnegative(share, "share", 1.0)

    def __repr__(self) -> str:
        settings = f"scales={list(self.scales)}, noises={list(self.noises)}, share={self.share:g}"
        return f"Bank({None if self.kernels is None else list(self.kernels)}, {settings})"

    def cost(self, model: Model, sigma: float) -> Cost:
        raise InvalidInput("a Bank forecasts values in a known range: use it with BoundedMixture")

    @underflowing
    def log_predictives(self, model: Model, trials: Trials, extra: Sequence[float] = (0.0,)) -> Array:
        """Ln of every member's predictive of every value, (J, t).

        `extra` are variances that values have beyond those of their results, in units of the squared range: 0 if the
        results are all there is.
        """
        values, counts = trials.values, trials.counts
        means, variances = [], []
        for gram in self._grams(model, trials):
            for scale, noise, more in itertools.product(self.scales, self.noises, extra):
                found = one_step(scale * gram + _LEVEL, values - _MIDDLE, noise / counts + more)
                means.append(found[0] + _MIDDLE)
                variances.append(found[1] + more)
        return log_predictive(np.array(means), np.array(variances), values, counts)

    @underflowing
    def log_density(self, model: Model, trials: Trials, extra: Sequence[float] = (0.0,)) -> float:
        """Ln of the bank's predictive of all values: −C_t."""
        if not len(trials.values):
            return 0.0
        return float(fixed_share(self.log_predictives(model, trials, extra), self.share).sum())

    def _grams(self, model: Model, trials: Trials) -> list[Array]:
        """Kernel matrices of all trials, in units of the first diagonal entry that is not 0.

        It is known before the value of its own trial, and no forecast before that depends on it: what is 0 stays so.
        """
        if self.kernels is None and trials.phi is not None:
            return _feature_grams(trials.phi)
        kernels = stretched_kernels(model.kernel) if self.kernels is None else self.kernels  # type: ignore[arg-type]
        return [_in_units(kernel.matrix(trials.actions, trials.actions)) for kernel in kernels]

    def settings(self) -> dict[str, Any]:
        arrays = {"scales": np.array(self.scales), "noises": np.array(self.noises)}
        return {"kernels": self.kernels, **arrays, "share": self.share}


def stretched_kernels(kernel: Kernel) -> list[Kernel]:
    """The kernel with its length-scales multiplied by several factors; itself alone if it has none, or is code."""
    try:
        state = kernel.state_dict()
    except NotStorable:
        return [kernel]
    found: list[Kernel] = []
    for factor in _STRETCHES:
        each = Kernel.family.load(_stretched(state, factor))
        if each not in found:
            found.append(each)
    return found


def _stretched(state: Any, factor: float) -> Any:
    if isinstance(state, dict):
        return {
            name: np.clip(factor * np.asarray(value), SMALLEST_SETTING, LARGEST_SETTING)
            if name == "lengthscale"
            else _stretched(value, factor)
            for name, value in state.items()
        }
    return [_stretched(each, factor) for each in state] if isinstance(state, list) else state


def _feature_grams(phi: Array) -> list[Array]:
    """The linear kernel of feature rows, and Gaussian ones of their distances."""
    sizes = np.abs(phi).max(axis=1, initial=0.0)
    first = int(np.argmax(sizes > 0.0))
    if sizes[first]:
        row = phi[first] / sizes[first]
        phi = _clipped(phi, sizes[first] * math.sqrt(float(row @ row)), _MOST_UNITS)
    gram = phi @ phi.T
    squared = gram.diagonal()
    distance2 = np.maximum(squared[:, None] + squared - 2.0 * gram, 0.0)
    with np.errstate(under="ignore"):
        return [gram, *(np.exp(-0.5 * distance2 / length**2) for length in _FEATURE_LENGTHS)]


def _in_units(gram: Array) -> Array:
    positive = gram.diagonal()[gram.diagonal() > 0.0]
    return _clipped(gram, float(positive[0]), _MOST_UNITS**2) if len(positive) else gram


def _clipped(values: Array, unit: float, most: float) -> Array:
    """Values in a unit, each cut by itself where it would overflow: none depends on those that come later."""
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(values / unit, -most, most)


def _positive_list(given: ArrayLike, name: str) -> tuple[float, ...]:
    values = as_float_array(given, name)
    if values.ndim != 1 or not len(values):
        raise InvalidInput(f"{name} must be a list of numbers, got {shown(given)}")
    return tuple(positive(value, name) for value in values.tolist())


class BoundedPrequential(Prequential):
    """−ln of the predictive of a user's forecaster, which sees actions and values as the user gave them."""

    def __init__(self, forecaster: Forecaster, low: float, width: float) -> None:
        super().__init__(forecaster, 1.0)
        self._low, self._width = low, width

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        action = action.copy()  # the forecaster may keep it, the caller may change it
        mean, variance = self._checked_prediction(action)
        # The forecaster may reject the value: update it before anything of ours changes.
        self.forecaster.update(action, reward)
        numbers = (mean - self._low) / self._width, variance / self._width**2, (reward - self._low) / self._width
        mu, spread, value = map(np.asarray, numbers)
        self._cost -= float(log_predictive(mu, spread, value, np.asarray(np.rint(weight**2))))

    @property
    def log_density(self) -> float:
        return -self._cost


def _check_trials(stored: Fields, where: str) -> None:
    values, counts, phi = stored["values"], stored["counts"], stored["phi"]
    same = len(stored["actions"]) == len(values) == len(counts) == (len(values) if phi is None else len(phi))
    require(same, where, "must have as many actions as values and counts")
    require(((values >= 0.0) & (values <= 1.0)).all(), f"{where}.values", "must lie in [0, 1]")
    require(((counts >= 1.0) & (counts == np.rint(counts))).all(), f"{where}.counts", "must be positive integers")


TRIALS = record(
    {
        "actions": array(None, None),
        "values": array(None),
        "counts": array(None, largest=MOST_RESULTS),
        "phi": optional(array(None, None)),
    },
    _check_trials,
)
"""The state of `Trials`."""

"""Values in a known range, each the mean of a known number of results: no noise level needs to be stated.

For a result X in [0, 1] of conditional mean p and any q in (0, 1), E[(q/p)^X ((1−q)/(1−p))^{1−X}] ≤ 1, because
a^x b^{1−x} is convex in x. So for values r_k, each the mean of m_k results, p_k = (φ_kᵀθ − low)/(high − low), and *any*
predictable law P_k of q,

    ln M_t(θ) = Σ_k m_k ℓ(p_k, r_k) − C_t,   ℓ(p, r) = −r ln p − (1−r) ln(1−p),
    C_t = −Σ_k ln E_{q∼P_k}[q^{mr}(1−q)^{m(1−r)}],

is the logarithm of a supermartingale at θ*, whatever chose the actions. With probability ≥ 1−δ, at all times at once,
Σ_k m_k ℓ(p_k, r_k) ≤ C_t + ln(1/δ): a convex set. The forecasters that make up P_k decide how tight it is. It adapts
to the noise: near an end of the range results spread little, and the set is much smaller than that of Hoeffding's σ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_float_array,
    as_range,
    as_vector,
    check_finite,
    check_within,
    flag,
    nonnegative,
    one_of,
    positive,
    positive_int,
    probability,
    shown,
)
from mixbandit._lazy import setting
from mixbandit._rows import distinct_rows
from mixbandit._schema import Since, integer, record, require
from mixbandit.data import Data, KernelSpectrum, observations_of
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel, as_kernel
from mixbandit.mixtures import MOST_RESULTS, TRIALS, Bank, BoundedPrequential, Forecaster, Mixture, Trials
from mixbandit.models import DataModel, single_model
from mixbandit.sequences import dispersion
from mixbandit.sequences.base import ON_EMPTY, ConfidenceSequence, shared
from mixbandit.sequences.learning import Rewards, checked_rewards
from mixbandit.sequences.moment import Moment
from mixbandit.sequences.refutation import Audit, parts_of_tests
from mixbandit.sequences.response import Affine, Response
from mixbandit.sequences.rules import Rule, require_order_free
from mixbandit.sets import Ellipsoid, Likelihood, LikelihoodSet, Problem

_EPS = float(np.finfo(np.float64).eps)


class Memory(NamedTuple):
    """What the rule remembers of the values: all of them, and what a user's forecaster predicted of them."""

    trials: Trials
    running: BoundedPrequential | None  # None: the bank looks at the trials when it is asked


class BoundedRule(Rule):
    """Θ = {θ : Σ m ℓ(p, r) ≤ C_t + ln(1/δ), ‖θ‖ ≤ B}. Weights of rows are √m."""

    kind = "bounded"
    too_noisy = "the values scatter more than independent results can"

    def __init__(
        self,
        model: DataModel,
        norm_bound: float,
        delta: float,
        ends: tuple[float, float],
        mixture: Bank | Forecaster,
        *,
        exact: bool = False,
        samples: int = 1,
        suspects: tuple[Kernel, ...] = (),
    ) -> None:
        super().__init__(model, delta)
        self.norm_bound, self.mixture, self.exact, self.samples = norm_bound, mixture, exact, samples
        self.value_range: tuple[float, float] = ends
        self.suspects = suspects
        self._low, self._width = ends[0], ends[1] - ends[0]
        self.tests = parts_of_tests(delta, suspects=bool(suspects))

    @property
    def reach(self) -> float:
        return self.norm_bound

    def start(self) -> Data:
        nothing = Trials(np.empty((0, self.model.dim_in or 0)), np.empty(0), np.empty(0))
        own = None if isinstance(self.mixture, Bank) else BoundedPrequential(self.mixture, self._low, self._width)
        return self.model.start(Memory(nothing, own))

    def learn(self, data: Data, actions: Array, phi: Any, rewards: Array, weights: Array | None) -> Data:
        if weights is None:
            weights = np.full(len(rewards), math.sqrt(self.samples))
        # Values were checked; rewards that a policy merely expects may lie outside.
        rewards = np.clip(rewards, *self.value_range)
        trials, running = data.memory
        kept = None if self.model.dim is None else phi
        trials = trials.learn(actions, _rescaled(rewards, self.value_range), np.rint(weights**2), kept)
        running = None if running is None else running.learn(actions, phi, rewards, weights)
        return data.learn(phi, rewards, weights, Memory(trials, running))

    def merge(self, one: Data, other: Data) -> Data:
        require_order_free(True, self.mixture)
        raise AssertionError

    def mixture_of(self, data: Data) -> Bank | Forecaster:
        """The mixture; for a user's forecaster, the copy in use."""
        running = data.memory.running
        return self.mixture if running is None else running.forecaster

    def log_density(self, data: Data) -> float:
        """−C_t."""
        trials, running = data.memory
        if running is not None:
            return float(running.log_density)
        assert isinstance(self.mixture, Bank)
        key = self, "log_density"
        if key not in data.derived:
            data.derived[key] = self.mixture.log_density(self.model, trials)
        return float(data.derived[key])

    def likelihood(self, data: Data) -> Problem:
        """L on the span of the rows, which may cost nothing yet."""
        key = self, "likelihood"
        if key not in data.derived:
            data.derived[key] = _problem(data, self.norm_bound, self._low, self._width)
        return data.derived[key]  # type: ignore[no-any-return]

    def budget(self, data: Data, log_density: float, delta: float) -> float:
        """β: what L may cost, beyond what it costs at least, if a forecaster with this density is to be believed."""
        return -log_density - math.log(delta) - self.likelihood(data).likelihood.saturated

    def _set(self, data: Data) -> LikelihoodSet:
        budget = self.budget(data, self.log_density(data), self.delta)
        problem = self.likelihood(data).with_budget(budget)
        return LikelihoodSet(problem, exact=self.exact, margin=-math.log(self.delta))

    def own_set(self, data: Data) -> LikelihoodSet:
        """The set, with its own type."""
        return self.set(data)  # type: ignore[return-value]

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        return self.own_set(data).opened().problem.ellipsoid(alpha * self.norm_bound**2)

    def alpha0(self, data: Data) -> float:
        return self.own_set(data).opened().ellipsoids[0].alpha

    def noise_refuted(self, data: Data) -> bool:
        return dispersion.refutes(dispersion.SCATTER, self, data, self.tests["noise"].delta, dispersion.EXTRA)

    def suspect_refuted(self, data: Data) -> bool:
        if not self.suspects:
            return False
        return dispersion.refutes(Bank(self.suspects), self, data, self.tests["suspects"].delta)

    def audit(self, data: Data, response: Response) -> Audit:
        return dispersion.audit(self, data, response)

    def log_evalue(self, data: Data, theta: Array) -> float:
        """Ln M_t(θ), an e-value against θ* = θ."""
        problem = self.own_set(data).problem
        coordinates, _ = problem.spectrum.coordinates(theta / self.norm_bound)
        loss = problem.likelihood.at(coordinates).loss + problem.likelihood.saturated
        return loss + self.log_density(data)

    def memory(self, data: Data) -> dict[str, Any]:
        if self.model.dim is None:
            return {}
        kept: Trials = data.memory.trials
        return {"trials": {name: None if part is None else part.copy() for name, part in kept._asdict().items()}}

    def recall(self, state: Mapping[str, Any], data: Data) -> Memory:
        known = observations_of(data)
        if known is not None:
            check_within(known.rewards, self.value_range, "observations.rewards")
            counts = np.rint(known.weights**2)
            require((counts >= 1.0).all(), "sequence.observations.weights", "must be roots of positive integers")
            return Memory(Trials(known.rows, _rescaled(known.rewards, self.value_range), counts), None)
        stored: Any = state["trials"]
        require(stored is not None, "sequence", "lacks 'trials'")
        found = Trials(stored["actions"], stored["values"], stored["counts"], stored["phi"])
        fits = len(found.values) == data.count and (found.phi is None) == (data.count == 0)
        require(fits, "sequence.trials", f"must be {data.count}, got {len(found.values)}")
        if found.phi is not None:
            shapes = found.phi.shape[1] == data.dim and found.actions.shape[1] == self.model.dim_in
            require(shapes, "sequence.trials", "must fit the features")
        return Memory(found, None)

    def stated(self) -> str:
        return f"independent results in the range, as many per value as stated, norm_bound={self.norm_bound:g}"


def _problem(data: Data, norm_bound: float, low: float, width: float) -> Problem:
    """L of the values on the span of the rows, repeats of an action taken together, which loses nothing."""
    seen = observations_of(data)
    if seen is not None:
        grouped = seen.grouped
        _, counts = grouped.means
        place = grouped.place
        # A nugget keeps the matrix definite. It enlarges the space of functions, and so the set.
        gram = grouped.gram
        nugget = 8.0 * len(gram) * _EPS * float(np.abs(gram).sum(axis=1).max(initial=0.0))
        ones = np.ones(len(gram))
        spectrum: Any = KernelSpectrum(grouped.centres, gram + nugget * np.eye(len(gram)), ones, ones, 0.0)
        rows = spectrum.rows
    else:
        trials, spectrum = data.memory.trials, data.spectrum
        _, first, place, _ = distinct_rows(trials.actions)
        rows = np.empty((0, spectrum.rank)) if trials.phi is None else trials.phi[first] @ spectrum.basis
    trials = data.memory.trials
    counts = np.bincount(place, trials.counts, len(rows)).astype(np.float64)
    means = np.bincount(place, trials.counts * trials.values, len(rows)) / counts
    scaled = rows * (norm_bound / width)
    known = Likelihood(scaled, np.clip(means, 0.0, 1.0), counts, -low / width)
    return Problem(spectrum, known, 0.0, norm_bound)


def _rescaled(rewards: Array, ends: tuple[float, float]) -> Array:
    """Values in units of their range, in [0, 1]."""
    return np.asarray(np.clip((rewards - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0))


class BoundedMixture(ConfidenceSequence):
    """Θ_t = {θ : Σ_k m_k ℓ(p_k, r_k) ≤ β_t, ‖θ‖ ≤ B} holds θ* at all times t at once with probability ≥ 1−δ.

    Assumed: every value is the mean of m results in `reward_range` = (low, high), each of conditional mean φ(a)ᵀθ*
    given everything before it, and ‖θ*‖ ≤ `norm_bound`. This holds for yes-or-no results, accuracies on fresh rows and
    clicks. It does not hold if the results of one value move together, as when a model is trained anew for it. Nothing
    is assumed about how the actions were chosen, and no noise level is stated: near an end of the range bounds are much
    narrower than Hoeffding's σ allows.

    `phi` is a feature map, a number of features or a kernel. `samples` is the default m of a value. `upper` and `lower`
    are the best of a few ellipsoids around the set, or with `exact=True` those of the set itself, which are narrower
    and slower. With `alpha` they are those of the ellipsoid at that multiplier of (‖θ‖² − B²)/2, in nats; `alpha0` is
    the one whose intervals at the actions seen are shortest in total. `mixture`, a `Bank` or an object with predict(x)
    -> (mean, variance) and update(x, r), decides how tight the set is, never whether it is valid, as long as values are
    counted in an order that does not depend on them.

    An empty set refutes the assumptions, as for `MartingaleMixture`; see there for `on_empty` and `suspects`.
    """

    kind = "BoundedMixture"
    schema = record(
        {
            **shared("delta", "norm_bound", "reward_range"),
            "exact": flag,
            "samples": integer(1, MOST_RESULTS),
            **shared("on_empty", "misspecification", "mixture", "suspects"),
        }
    )
    memory = record({"trials": Since(TRIALS)})
    advice = "see audit() for details; on_empty='inflate' continues without a guarantee"

    norm_bound: float = setting("moment.rule.norm_bound", "The stated bound B on ‖θ*‖.")
    reward_range: tuple[float, float] = setting("moment.rule.value_range", "The range of all results.")
    exact: bool = setting("moment.rule.exact", "Whether bounds are those of the set itself.")
    samples: int = setting("moment.rule.samples", "The number of results per value, unless one is given with it.")
    misspecification: float = setting("moment.response.deviation", "Always 0.")
    suspects: tuple[Kernel, ...] = setting("moment.rule.suspects", "Kernels of functions that would refute the model.")

    def __init__(
        self,
        phi: FeatureMap | Kernel | int,
        *,
        norm_bound: float,
        delta: float = 0.01,
        reward_range: tuple[float, float] = (0.0, 1.0),
        exact: bool = False,
        samples: int = 1,
        mixture: Bank | Forecaster | None = None,
        misspecification: float = 0.0,
        on_empty: str = "raise",
        suspects: Sequence[Kernel] = (),
    ) -> None:
        model = single_model(phi)
        deviation = nonnegative(misspecification, "misspecification")
        if deviation:
            raise InvalidInput(
                f"BoundedMixture has no theory for misspecification={deviation:g}: enlarge the model instead, or use "
                "MartingaleMixture"
            )
        rule = BoundedRule(
            model,
            positive(norm_bound, "norm_bound"),
            probability(delta, "delta"),
            as_range(reward_range, "reward_range"),
            _as_mixture(mixture),
            exact=flag(exact, "exact"),
            samples=positive_int(samples, "samples", MOST_RESULTS),
            suspects=_suspects(suspects),
        )
        super().__init__(rule, Affine(0.0, rule.value_range), one_of(on_empty, ON_EMPTY, "on_empty"))

    @property
    def mixture(self) -> Bank | Forecaster:
        """The mixture; for a user's forecaster, the copy in use."""
        return self._rule.mixture_of(self.moment.data)

    @property
    def _rule(self) -> BoundedRule:
        rule: BoundedRule = self.moment.rule
        return rule

    def update(  # type: ignore[override]
        self, actions: ArrayLike, values: ArrayLike, samples: ArrayLike | None = None, *, sigma: ArrayLike | None = None
    ) -> Self:
        """Learn the values (n,) of actions (n, dim_in); a single action may be a vector.

        `samples` says how many results each value is the mean of, if this differs from the number stated to the
        sequence: one number or one per value, which must not depend on the values. `sigma`, which other sequences take,
        is refused. On an error nothing changes.
        """
        self._home.absorb(_checked(self.moment, actions, values, samples, sigma))
        return self

    def after(  # type: ignore[override]
        self, actions: ArrayLike, values: ArrayLike, samples: ArrayLike | None = None, *, sigma: ArrayLike | None = None
    ) -> Self:
        """A copy that has seen these values as well; this sequence is unchanged."""
        return self.copy().update(actions, values, samples, sigma=sigma)

    def log_evalue(self, theta: ArrayLike) -> float:
        """Logarithm of the supermartingale M_t(θ): an e-value against θ* = θ that may be read at any time."""
        if self.moment.model.dim is None:
            raise InvalidInput("kernel models have no parameter vector: ask for bounds at actions instead")
        return self._rule.log_evalue(self.moment.data, as_vector(theta, self.moment.model.dim, "theta"))


def _checked(
    moment: Moment, actions: ArrayLike, values: ArrayLike, samples: ArrayLike | None, sigma: ArrayLike | None
) -> Rewards:
    if samples is None or sigma is not None:
        return checked_rewards(moment, actions, values, sigma)
    rows = moment.model.checked(actions)
    rewards = as_vector(values, len(rows), "rewards")
    check_finite(rewards, "rewards", LARGEST_DATUM)
    check_within(rewards, moment.rule.value_range, "rewards")
    counts = as_float_array(samples, "samples")
    if counts.shape == (len(rows), 1):  # a one-column DataFrame
        counts = counts[:, 0]
    if counts.shape not in ((), (len(rows),)):
        raise InvalidInput(f"samples must be one number or have shape ({len(rows)},), got {counts.shape}")
    if not ((counts >= 1.0) & (counts <= MOST_RESULTS) & (counts == np.rint(counts))).all():
        raise InvalidInput(f"samples must be integers from 1 to {MOST_RESULTS:g}, got {shown(samples)}")
    return Rewards(rows, rewards, np.array(np.broadcast_to(np.sqrt(counts), (len(rows),))))


def _as_mixture(given: Any) -> Bank | Forecaster:
    if given is None:
        return Bank()
    if isinstance(given, Bank):
        return given
    if isinstance(given, Mixture | type) or not isinstance(given, Forecaster):
        raise InvalidInput(
            "mixture must be a Bank, or an object with predict(x) -> (mean, variance) and update(x, r), "
            f"got {shown(given)}"
        )
    return given


def _suspects(given: Any) -> tuple[Kernel, ...]:
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"suspects must be a list of kernels, got {shown(given)}")
    return tuple(as_kernel(each) for each in given)

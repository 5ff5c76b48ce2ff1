"""The paper's confidence sequence (Corollary mm_conf_set) with its exact and closed-form bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mixbandit._checks import Array, as_range, multiplier, nonnegative, positive, probability, shown
from mixbandit._lazy import setting
from mixbandit._schema import Since, record, require
from mixbandit.data import Data, Factor, Ridge, RidgeRegression, factor_of, spread_of, widened
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.kernels import Kernel, as_kernel
from mixbandit.mixtures import COST, Cost, Forecaster, Mixture, Prequential, Standard, as_cost, log_det
from mixbandit.models import DataModel, KernelListModel, as_model
from mixbandit.sequences.base import ResidualBallSequence, shared
from mixbandit.sequences.quick import Stated, krylov_ball
from mixbandit.sequences.refutation import Glimpse, NoiseTest, parts_of_tests, scales_of
from mixbandit.sequences.response import Affine
from mixbandit.sequences.ridge_only import RidgeOnly
from mixbandit.sequences.rules import BallRule, looks_quiet, require_order_free
from mixbandit.sequences.suspects import SuspectTest
from mixbandit.sets import (
    ConfidenceSet,
    Ellipsoid,
    KrylovBall,
    ResidualBall,
    RidgeEllipsoid,
    SpectralEllipsoid,
    ridge_ball,
)

_ROUND_UP = 1e-13
# Multiples of α₀ at which estimates are tried.
_LARGER = (1.0, 10.0, 100.0, 1000.0)


class _Own(NamedTuple):
    """Ridge regression at the mixture's own α₀."""

    ridge: RidgeRegression
    allowed: float  # R² minus its loss
    towards: float  # how much more than its loss the residual is at a point of the norm ball
    occupied: bool  # whether its estimate, or the part of it that the norm bound allows, is in the set


class MartingaleRule(BallRule):
    """Θ = {θ : ‖Φθ − r‖² ≤ R², ‖θ‖ ≤ B}, R² the running cost of a mixture plus 2σ² ln(1/δ).

    Expected rewards may deviate from linear ones by ε = `misspecification` at every action. With N(0, cΦΦᵀ) the tighter
    of two forms covers that: had the rewards been linear, θ̂ would have moved by at most ε√t in the norm of V, and
    the closed form's radius at α₀, σ² ln det + 2σ² ln(1/δ) + α₀B², does not depend on rewards at all. Other mixtures
    take ‖Φθ* − r‖ ≤ R + ε√t.
    """

    kind = "martingale"
    theories = ("Thompson sampling",)

    def __init__(
        self,
        model: DataModel,
        sigma: float,
        norm_bound: float,
        delta: float,
        mixture: Any,
        misspecification: float,
        suspects: tuple[Kernel, ...] = (),
    ) -> None:
        super().__init__(model, delta, norm_bound)
        self.sigma: float = sigma
        self.mixture, self.misspecification = mixture, misspecification
        self.tests = parts_of_tests(delta, suspects=bool(suspects))
        self._noise = NoiseTest(sigma, self.tests["noise"].delta, norm_bound, scales_of(norm_bound, model.dim))
        self.suspects, self._suspected = suspects, None
        if suspects:
            self._suspected = SuspectTest(suspects, sigma, self.tests["suspects"].delta, norm_bound)
        self._unused_cost = as_cost(mixture, model, sigma)
        self.delta_term = _delta_term(self, sigma)
        # α₀ of a mixture N(0, cΦΦᵀ); other mixtures have neither the ridge form nor the quick closed form.
        self.ridge_alpha = self._unused_cost.ridge_alpha
        self.sums_up = model.dim is not None and not (misspecification or self._unused_cost.stepwise)
        self._uses_ridge_form = misspecification > 0.0 and self.ridge_alpha is not None
        self.regret_theorem_alpha = None if misspecification else self.ridge_alpha

    def start(self) -> Data:
        return self.model.start(self._unused_cost)

    def learn(self, data: Data, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Data:
        return data.learn(phi, rewards, weights, data.memory.learn(actions, phi, rewards, weights))

    def merge(self, one: Data, other: Data) -> Data:
        require_order_free(one.memory.stepwise, self.mixture_of(one))
        return one.merge(other, one.memory)

    def mixture_of(self, data: Data) -> Mixture | Forecaster:
        """The mixture; for a user's forecaster, the copy in use."""
        return data.memory.forecaster if isinstance(data.memory, Prequential) else self.mixture

    def alpha0(self, data: Data) -> float:
        return self.ridge_alpha if self.ridge_alpha is not None else float(data.memory.alpha0(data))

    def check_alpha(self, alpha: float) -> float:
        given = multiplier(alpha, "alpha")
        if self._uses_ridge_form and given < self.ridge_alpha:  # type: ignore[operator]
            raise InvalidInput(
                f"with misspecification the closed form needs alpha ≥ alpha0 = {self.ridge_alpha:g}, got {given:g}"
            )
        return given

    def radius2(self, data: Data, cost: Cost) -> float:
        """R², the bound on ‖f* − r‖² for the expected rewards f* (label eq:confidence-set), linear or not."""
        total = cost.total(data)
        if total is not None:
            return max(total + _delta_term(self, cost.sigma), 0.0)
        excess = cost.excess(data, self.norm_bound) + _delta_term(self, cost.sigma)
        return max(excess + data.spectrum.outside + data.spectrum.unexplained(self.norm_bound), 0.0)

    def deviation(self, data: Data) -> float:
        """A bound on ‖Φθ* − f*‖ over the rows seen, f* being the expected rewards."""
        return self.misspecification * math.sqrt(data.weight2)

    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> ResidualBall | None:
        cost = data.memory if sigma == self.sigma else data.memory.at_sigma(sigma)
        if cost is None:
            return None
        margin = _delta_term(self, cost.sigma)
        if self._uses_ridge_form:
            radius = self._ridge_radius(data, cost, norm_bound)
            return ridge_ball(data.spectrum, cost.ridge_alpha, radius, norm_bound, margin)
        excess = cost.excess(data, norm_bound) + margin
        if self.misspecification:
            # ‖Φθ* − r‖ ≤ ‖f* − r‖ + ‖Φθ* − f*‖ ≤ R + ε√t, for any forecaster: excess + 2Rη + η².
            deviation = self.deviation(data)
            excess += deviation * (2.0 * math.sqrt(self.radius2(data, cost)) + deviation)
        start = cost.start(data) if self.ridge_alpha is None else self.ridge_alpha
        rounding = data.rounding(norm_bound)
        return ResidualBall(data.spectrum, excess, norm_bound, start=start, margin=margin, rounding=rounding)

    def set(self, data: Data) -> ConfidenceSet:
        # This one holds the data. Kept with them, both would wait for the garbage collector, with all their arrays.
        found = _set_from_ridge(self, data)
        return super().set(data) if found is None else found

    def is_empty(self, data: Data) -> bool:
        # Once the set has been made, for exact bounds, asking it is cheapest.
        own = _own(self, data) if self not in data.derived else None
        if own is not None and own.occupied:
            return False
        return not _contains_an_estimate(self, data) and super().is_empty(data)

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        own = _own(self, data) if alpha == self.ridge_alpha else None
        if own is not None and (own.occupied or not self.is_empty(data)):
            # Both quadratic terms of ρ(α₀) cancel (the paper's label eqn:special_radius).
            radius2 = own.allowed + alpha * self.norm_bound**2
            radius = math.sqrt(radius2)
            if (wider := widened(radius, data.rounding(self.norm_bound))) > radius:
                radius2 = wider**2
            spread = spread_of(data)
            return RidgeEllipsoid(own.ridge, radius2, lambda: SpectralEllipsoid(data.spectrum, alpha, radius2), spread)
        if not self._uses_ridge_form:
            return _quick_outer(self, data, alpha) or super().outer(data, alpha)
        assert self.ridge_alpha is not None
        if alpha > self.ridge_alpha:  # the ridge is part of the set already
            return super().outer(data, alpha - self.ridge_alpha)
        radius = self._ridge_radius(data, data.memory, self.norm_bound)
        return SpectralEllipsoid(data.spectrum, self.ridge_alpha, radius**2)

    def noise_refuted(self, data: Data) -> bool:
        known = self.noise_glance(data)
        return self._noise.refutes(data.spectrum, data.count, self.deviation(data)) if known is None else known

    def noise_glance(self, data: Data) -> bool | None:
        factor, own = factor_of(data), _own(self, data)
        if factor is not None and own is not None:  # the usual case, in short
            return self._noise.glance(_glimpse(factor, own), data.count)
        # Without a set, as for closed forms, ridge regression is at hand and singular values are not.
        at_hand = not isinstance(data.derived.get(self), ResidualBall)
        return False if at_hand and looks_quiet(data, self._noise, _at_hand(self, data)) else None

    def left(self, data: Data) -> tuple[int, ...]:
        """Which kernels are not refuted: the only one, unless its set is empty."""
        return () if self.is_empty(data) else (0,)

    def suspect_refuted(self, data: Data) -> bool:
        if self._suspected is None or not data.count:
            return False
        alphas = list(_at_hand(self, data))
        near = min((data.near_residual(alpha, self.norm_bound) for alpha in alphas), default=math.inf)
        return self._suspected.refutes(data, near, self.deviation(data))

    def ridge_only(self) -> RidgeOnly | None:
        if self.dim is None or self.ridge_alpha is None or self.misspecification or self._suspected is not None:
            return None
        return RidgeOnly(self.ridge_alpha, self.sigma, self.norm_bound, self.delta_term, self._noise)

    def log_evalue(self, data: Data, theta: Array) -> float:
        if self.misspecification:
            raise InvalidInput("an e-value against one θ needs misspecification=0: it tests a linear function")
        return super().log_evalue(data, theta)

    def memory(self, data: Data) -> dict[str, Any]:
        return {"cost": data.memory.state_dict()}

    def recall(self, state: Mapping[str, Any], data: Data) -> Cost:
        require(state["cost"] is not None, "sequence", "lacks 'cost'")
        return self._unused_cost.recall(state["cost"], data)

    def _ridge_radius(self, data: Data, cost: Cost, norm_bound: float) -> float:
        alpha = cost.ridge_alpha
        assert alpha is not None
        information = cost.sigma**2 * log_det(data.spectrum.all_singular, math.sqrt(alpha))
        linear = math.sqrt(information + _delta_term(self, cost.sigma) + alpha * norm_bound**2)
        return widened(linear + self.deviation(data) + data.spectrum.lost_estimate(alpha), data.rounding(norm_bound))


def _own(rule: MartingaleRule, data: Data) -> _Own | None:
    """What ridge regression at the mixture's own α₀ says, where the set and its closed form can be read off it."""
    if rule.ridge_alpha is None or rule.misspecification:
        return None
    key = rule, _Own
    if key not in data.derived:
        ridge = data.ridge(rule.ridge_alpha)
        allowed = rule.sigma**2 * ridge.log_det + rule.delta_term
        # With N(0, cΦΦᵀ) the estimate satisfies the residual constraint, whatever the rewards are.
        towards = data.towards(ridge.alpha, rule.norm_bound)
        occupied = ridge.norm2 <= rule.norm_bound**2 or towards <= allowed
        data.derived[key] = _Own(ridge, allowed, towards, occupied) if ridge.is_accurate else None
    found: _Own | None = data.derived[key]
    return found


def _glimpse(data: Factor, own: _Own) -> Glimpse:
    ridge = own.ridge
    return Glimpse(ridge.alpha, data.loss(ridge.alpha), ridge.norm2, own.towards, data.sizes2[0], data.dim)


def _set_from_ridge(rule: MartingaleRule, data: Data) -> KrylovBall | None:
    """The set from ridge regression alone, where that is enough: it is at hand, and a decomposition takes more work."""
    factor = factor_of(data)
    own = None if factor is None else _own(rule, data)
    if factor is None or own is None or not own.occupied:
        return None
    assert isinstance(own.ridge, Ridge)
    stated = Stated(rule.sigma, rule.delta, rule.norm_bound)
    return krylov_ball(factor, own.ridge, own.allowed, stated, lambda: rule.ball(data).opened())


def _delta_term(rule: MartingaleRule, sigma: float) -> float:
    return -2.0 * sigma**2 * math.log(rule.delta)


def _contains_an_estimate(rule: MartingaleRule, data: Data) -> bool:
    """Whether a ridge estimate that is quickly found, or a share of it, satisfies both constraints."""
    if rule in data.derived or rule.misspecification or not data.has_quick_ridges:
        return False
    radius2 = rule.radius2(data, data.memory)
    return any(data.near_residual(alpha, rule.norm_bound) <= radius2 for alpha in _at_hand(rule, data))


def _at_hand(rule: MartingaleRule, data: Data) -> Iterator[float]:
    """Multipliers at which ridge regression takes little work."""
    if data.has_quick_ridges:
        # Estimates at small α may follow the noise, and be larger than the norm bound.
        alphas = (larger * rule.alpha0(data) for larger in _LARGER)
        yield from (alpha for alpha in alphas if data.ridge(alpha).is_accurate)
    elif _own(rule, data) is not None:
        assert rule.ridge_alpha is not None
        yield rule.ridge_alpha


def _quick_outer(rule: MartingaleRule, data: Data, alpha: float) -> Ellipsoid | None:
    """The closed form at any α from ridge regression alone, where that takes much less work than the set."""
    # Whether the set has been made already must not matter: a resumed run repeats every bit.
    if rule.misspecification or rule.is_empty(data):
        return None
    total = data.memory.total(data) if data.has_quick_ridges else None
    if total is None or not data.ridge(alpha).is_accurate:
        return None
    loss = data.loss(alpha)
    # ρ = R² + αB² − min_θ (‖Φθ − r‖² + α‖θ‖²), rounded up: all terms are much larger than their difference.
    terms = total + _delta_term(rule, rule.sigma) + alpha * rule.norm_bound**2
    radius2 = max(terms - loss + _ROUND_UP * (terms + loss), 0.0)
    radius = widened(math.sqrt(radius2), data.rounding(rule.norm_bound))
    return RidgeEllipsoid(data.ridge(alpha), radius**2, lambda: SpectralEllipsoid(data.spectrum, alpha, radius**2))


class MartingaleMixture(ResidualBallSequence):
    """Θ_t = {θ : ‖Φθ − r‖ ≤ R_t, ‖θ‖ ≤ B} holds θ* at all times t at once with probability ≥ 1−δ.

    Assumed: expected rewards φ(a)ᵀθ* with ‖θ*‖ ≤ `norm_bound`, and noise that is conditionally
    `sigma`-sub-Gaussian. Nothing is assumed about how the actions were chosen.

    `upper` and `lower` are exact (the paper's CMM); with `alpha` they are its closed form (AMM), valid at
    every α > 0. `mixture`, chosen before the rewards are seen, decides how tight the set is, never whether it is valid,
    as long as rewards are counted in an order that does not depend on their values.

    `reward_range` states that *expected* rewards lie in [low, high]. Bounds are clipped to it; single rewards may lie
    outside. `misspecification` allows the expected reward to deviate from a linear function by up to that much at every
    action. `suspects`, for a kernel, are other kernels: if their functions predict the rewards far better than the
    model can explain them, the assumptions are refuted.

    An empty set has probability ≤ δ under the assumptions, so it refutes them. `on_empty` says what bounds
    then do: "raise" AssumptionsRefuted, or "inflate" the radius until the set has an interior again, with a
    warning and `Support.inflated` set, because no guarantee remains.
    """

    kind = "MartingaleMixture"
    schema = record(
        shared("sigma", "delta", "norm_bound", "reward_range", "on_empty", "misspecification", "mixture", "suspects")
    )
    memory = record({"cost": Since(COST)})

    sigma: float = setting("moment.rule.sigma", "The stated noise level.")
    misspecification: float = setting("moment.response.deviation", "How far expected rewards may be from linear ones.")
    suspects: tuple[Kernel, ...] = setting("moment.rule.suspects", "Kernels of functions that would refute the model.")

    def __init__(
        self,
        features: FeatureMap | Kernel | int,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        mixture: Mixture | Forecaster | None = None,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        on_empty: str = "raise",
        suspects: Sequence[Kernel] = (),
    ) -> None:
        model, deviation = as_model(features), nonnegative(misspecification, "misspecification")
        known = positive(sigma, "sigma"), positive(norm_bound, "norm_bound"), probability(delta, "delta")
        rule = self._rule_of(
            model, *known, Standard() if mixture is None else mixture, deviation, _suspects(suspects, model)
        )
        ends = None if reward_range is None else as_range(reward_range, "reward_range")
        super().__init__(rule, Affine(deviation, ends), on_empty)

    def _rule_of(self, model: DataModel, *settings: Any) -> Any:
        if isinstance(model, KernelListModel):
            raise InvalidInput("for a list of kernels use KernelMixture")
        return MartingaleRule(model, *settings)

    @property
    def mixture(self) -> Mixture | Forecaster:
        """The mixture; for a user's forecaster, the copy in use."""
        found: Mixture | Forecaster = self._ball_rule.mixture_of(self.moment.data)
        return found

    @property
    def radius(self) -> float:
        """R, the bound on ‖f* − r‖ for the expected rewards f* (label eq:confidence-set), linear or not."""
        return math.sqrt(self._ball_rule.radius2(self.moment.data, self.moment.data.memory))


def _suspects(given: Any, model: DataModel) -> tuple[Kernel, ...]:
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"suspects must be a list of kernels, got {shown(given)}")
    if given and model.dim is not None:
        raise InvalidInput("suspects need a model that remembers actions: a kernel, not features")
    return tuple(as_kernel(each) for each in given)

"""Rules: frozen settings from which confidence sets are made. A new method adds a rule, and nothing else changes.

A rule starts without data, learns by making new data, and makes the set that the data leave.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from mixbandit._checks import Array, multiplier, shown
from mixbandit.data import Data
from mixbandit.errors import InvalidInput, NotMergeable
from mixbandit.models import DataModel
from mixbandit.sequences import refutation
from mixbandit.sequences.refutation import Audit, NoiseTest
from mixbandit.sequences.response import Response
from mixbandit.sequences.ridge_only import RidgeOnly
from mixbandit.sets import ConfidenceSet, Ellipsoid, ResidualBall
from mixbandit.spending import Parts


class Rule(abc.ABC):
    """Which parameters the data leave possible, at level `delta`."""

    kind: ClassVar[str]  # its name in tables of methods
    guarantee: ClassVar[str] = "anytime"
    theories: ClassVar[tuple[str, ...]] = ()  # the ways of acting that have a theory for its sets, by name
    too_noisy: ClassVar[str] = "the residuals are larger than sigma allows"  # what the noise test finds, in words
    value_range: tuple[float, float] | None = None  # values outside are refused; None: there is no such range
    sigma: float | None = None  # the stated noise level, where one is stated
    sums_up = False  # whether rows, with their expected rewards, may be replaced by others with the same Gram matrix
    regret_theorem_alpha: float | None = None  # α of thm:regret_bound (`regret.worst_case`), where that applies

    def __init__(self, model: DataModel, delta: float) -> None:
        self.model, self.delta = model, delta
        # What tests spend beside the bounds, by name. An empty set costs nothing: then a bound is wrong already.
        self.tests = Parts()

    @property
    def dim(self) -> int | None:
        """The number of features; None for a kernel."""
        return self.model.dim

    @property
    def reach(self) -> float | None:
        """The stated bound on ‖θ*‖; None where guarantees need none."""
        return None

    def start(self) -> Data:
        """No data yet."""
        return self.model.start()

    def learn(self, data: Data, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> Data:
        """The data with these rows, already checked; `weights` are σ/σ_k."""
        return data.learn(phi, rewards, weights)

    def weights(self, levels: Array) -> Array:
        """The weights of rewards whose noise levels σ_k are known."""
        if self.sigma is None:
            raise InvalidInput("noise levels of single rewards need a stated sigma, which this sequence does not have")
        return self.sigma / levels

    def set(self, data: Data) -> ConfidenceSet:
        """The exact set, empty or not; cached with the data."""
        known = data.derived.get(self)
        if known is None:
            known = data.derived[self] = self._set(data)
        return known

    @abc.abstractmethod
    def _set(self, data: Data) -> ConfidenceSet: ...

    @abc.abstractmethod
    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        """The closed form at multiplier α: an ellipsoid around the set, or around the opened one if it is empty."""

    @abc.abstractmethod
    def alpha0(self, data: Data) -> float:
        """The multiplier that works best for the closed form."""

    def check_alpha(self, alpha: float) -> float:
        """The multiplier as a float; InvalidInput where there is no closed form at it."""
        return multiplier(alpha, "alpha")

    def is_empty(self, data: Data) -> bool:
        return self.set(data).is_empty

    def noise_refuted(self, data: Data) -> bool:
        """Whether residuals of every linear function are larger than the stated noise allows, by a test at level δ."""
        return False

    def noise_glance(self, data: Data) -> bool | None:
        """The same where it takes little work; None where it would take a decomposition."""
        return self.noise_refuted(data)

    def suspect_refuted(self, data: Data) -> bool:
        """Whether suspected functions predict the rewards too well for the model to hold, by a test at level δ."""
        return False

    def merge(self, one: Data, other: Data) -> Data:
        return one.merge(other)

    def memory(self, data: Data) -> dict[str, Any]:
        """What is remembered besides the factor, for `state_dict`."""
        return {}

    def recall(self, state: Mapping[str, Any], data: Data) -> Any:
        """The memory that a state, already checked, describes beside these data."""
        return None

    def recalled(self, state: Mapping[str, Any], data: Data) -> Data:
        """Data with that memory."""
        data.memory = self.recall(state, data)
        return data

    def ridge_only(self) -> RidgeOnly | None:
        """The rule as ridge regression at one multiplier alone can follow it; None where that is not enough."""
        return None

    def audit(self, data: Data, response: Response) -> Audit:
        """What the data say about the assumptions, where the rule can tell."""
        raise InvalidInput(f"{self.kind} sequences have no audit; MartingaleMixture has one")

    @abc.abstractmethod
    def stated(self) -> str:
        """The assumptions, for messages."""


class FixedMultiplier(Rule):
    """A rule whose set is one ellipsoid, with its multiplier chosen in advance."""

    def _set(self, data: Data) -> Ellipsoid:
        return self.outer(data, self.alpha0(data))

    def is_empty(self, data: Data) -> bool:
        return False

    def check_alpha(self, alpha: float) -> float:
        fixed, given = self.alpha0(self.start()), multiplier(alpha, "alpha")
        if given != fixed:
            raise InvalidInput(f"the multiplier of this sequence is fixed in advance at {fixed:g}, got alpha={given:g}")
        return given


class BallRule(Rule):
    """A rule whose set is a residual ball cut by the norm ball; a subclass says which, in `ball_if`."""

    def __init__(self, model: DataModel, delta: float, norm_bound: float) -> None:
        super().__init__(model, delta)
        self.norm_bound = norm_bound

    @property
    def reach(self) -> float:
        return self.norm_bound

    @abc.abstractmethod
    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> ResidualBall | None:
        """The set if σ and the norm bound were stated like this; None where unknown."""

    def _set(self, data: Data) -> ConfidenceSet:
        return self.ball(data)

    def ball(self, data: Data) -> ResidualBall:
        """The set from a decomposition of the rows; cached with the data."""
        known = data.derived.get((self, ResidualBall))
        if known is None:
            known = data.derived[self, ResidualBall] = self.ball_if(data, self.sigma, self.norm_bound)
        assert known is not None
        return known

    def outer(self, data: Data, alpha: float) -> Ellipsoid:
        return self.ball(data).opened().closed_form(alpha)

    def audit(self, data: Data, response: Response) -> Audit:
        return refutation.audit(self, data, response)

    def stated(self) -> str:
        return f"sigma={self.sigma:g}, norm_bound={self.norm_bound:g}"

    def analytic_radius(self, data: Data, alpha: float) -> float:
        """√ρ(α), the radius of the closed form."""
        return self.outer(data, alpha).radius

    def residual_spread(self, data: Data) -> float | None:
        """Root mean square of the least-squares residuals, scaled so that it should be about σ."""
        spare = data.count - data.spectrum.rank
        return math.sqrt(data.spectrum.residual(self.norm_bound) / spare) if spare > 0 else None

    def log_evalue(self, data: Data, theta: Array) -> float:
        """Logarithm of the mixture martingale, an e-value against θ* = θ, where σ is stated."""
        assert self.sigma is not None
        ball = self.ball(data)
        return (ball.distance2(theta) - ball.excess) / (2.0 * self.sigma**2) - math.log(self.delta)


def looks_quiet(data: Data, noise: NoiseTest, alphas: Iterable[float]) -> bool:
    """Whether ridge regression at one of these multipliers shows that the noise test refutes nothing.

    What a mixture of the test has to pay for the rewards is a ridge loss, which grows with its multiplier; where it is
    not known, the least-squares residual is less still. With a kernel and actions that do not repeat that is 0, and
    would never rule a refutation out.
    """
    near, least = [], noise.least_alpha
    for alpha in alphas:
        residual = data.near_residual(alpha, noise.norm_bound)
        paid = data.loss(alpha) if alpha <= least else data.early_residual
        if not noise.may_refute(residual, paid, data.count):
            return True
        near.append(residual)
    paid = data.loss(least) if data.has_quick_ridges and data.ridge(least).is_accurate else data.residual
    return any(not noise.may_refute(residual, paid, data.count) for residual in near)


def require_order_free(learns_in_order: bool, what: object) -> None:
    """Refuse to merge data whose order matters."""
    if learns_in_order:
        raise NotMergeable(
            f"{shown(what)} depends on the order of rewards, which a merge does not know; only fixed linear mixtures "
            "and grids of them can be merged"
        )

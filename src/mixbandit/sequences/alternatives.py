"""A list of kernels: the function lies in the space of one of them, and nobody needs to know which.

The event ‖f*(a) − r‖ ≤ R, on which all bounds rest, does not depend on the space. So one δ covers all kernels: bounds
are the loosest of those whose set is not empty yet, and R is that of one mixture of what all of them predict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mixbandit._checks import Array
from mixbandit._schema import require
from mixbandit.data import Alternatives, Data, as_alternatives
from mixbandit.errors import InvalidInput
from mixbandit.kernels import Kernel
from mixbandit.mixtures import Forecaster, Mixture, Pool, PooledCost, as_cost
from mixbandit.models import KernelListModel
from mixbandit.sequences.martingale import MartingaleRule
from mixbandit.sequences.rules import BallRule, require_order_free
from mixbandit.sets import Union


class AlternativesRule(BallRule):
    """A residual ball in every space, all of the same radius. The memory of data is the mixture's cost per kernel."""

    kind = "several kernels"

    def __init__(
        self,
        model: KernelListModel,
        sigma: float,
        norm_bound: float,
        delta: float,
        mixture: Mixture | Forecaster,
        misspecification: float,
        suspects: tuple[Kernel, ...] = (),
    ) -> None:
        super().__init__(model, delta, norm_bound)
        self.sigma: float = sigma
        self.mixture, self.misspecification, self.suspects = mixture, misspecification, suspects
        self._unused_costs = tuple(as_cost(mixture, each, sigma) for each in model.members)
        settings = sigma, norm_bound, delta
        others = mixture, misspecification, suspects
        self.members = tuple(_PooledRule(each, *settings, *others) for each in model.members)
        self.tests = self.members[0].tests  # an alarm needs those of all members, so that one δ covers them

    def start(self) -> Data:
        return _pooled(self.model.start(self._unused_costs))

    def learn(self, data: Data, actions: Array, phi: Any, rewards: Array, weights: Array | None) -> Data:
        costs = [cost.learn(actions, part, rewards, weights) for cost, part in zip(data.memory, phi.parts, strict=True)]
        return _pooled(data.learn(phi, rewards, weights, tuple(costs)))

    def merge(self, one: Data, other: Data) -> Data:
        require_order_free(any(cost.stepwise for cost in one.memory), self.mixture)
        return _pooled(one.merge(other, one.memory))

    def mixture_of(self, data: Data) -> Mixture | Forecaster:
        return self.mixture

    def radius2(self, data: Data, cost: Any = None) -> float:
        """R², the bound on ‖f* − r‖² for the expected rewards f*."""
        part = _parts(data)[0]
        return self.members[0].radius2(part, part.memory)

    def alpha0(self, data: Data) -> float:
        return self.members[0].alpha0(_parts(data)[0])

    def _set(self, data: Data) -> Union:
        return Union([rule.set(part) for rule, part in self._pairs(data)])

    def ball_if(self, data: Data, sigma: float | None, norm_bound: float) -> Any:
        balls = [rule.ball_if(part, sigma, norm_bound) for rule, part in self._pairs(data)]
        return None if None in balls else Union(balls)  # type: ignore[arg-type]

    def outer(self, data: Data, alpha: float) -> Any:
        outer = [rule.outer(part, alpha) for rule, part in self._pairs(data)]
        return Union(outer, self.left(data) or range(len(outer)))

    def is_empty(self, data: Data) -> bool:
        return all(rule.is_empty(part) for rule, part in self._pairs(data))

    def noise_refuted(self, data: Data) -> bool:
        # The test of the kernel whose space contains the function gives a false alarm with probability at most δ.
        return all(rule.noise_refuted(part) for rule, part in self._pairs(data))

    def suspect_refuted(self, data: Data) -> bool:
        return all(rule.suspect_refuted(part) for rule, part in self._pairs(data))

    def left(self, data: Data) -> tuple[int, ...]:
        """Which kernels are not refuted."""
        return tuple(i for i, (rule, part) in enumerate(self._pairs(data)) if not rule.is_empty(part))

    def _pairs(self, data: Data) -> Iterator[tuple[MartingaleRule, Any]]:
        """The rule in every space, with its data."""
        return zip(self.members, _parts(data), strict=True)

    def analytic_radius(self, data: Data, alpha: float) -> float:
        return max(rule.analytic_radius(part, alpha) for rule, part in self._pairs(data))

    def residual_spread(self, data: Data) -> float | None:
        return self.members[0].residual_spread(_parts(data)[0])

    def log_evalue(self, data: Data, theta: Array) -> float:
        raise InvalidInput("kernel models have no parameter vector: ask for bounds at actions instead")

    def memory(self, data: Data) -> dict[str, Any]:
        return {"cost": {"members": [cost.state_dict() for cost in data.memory]}}

    def recalled(self, state: Mapping[str, Any], data: Data) -> Data:
        stored = (state["cost"] or {}).get("members") or []
        found = f"must be of {len(self.members)} members, got {len(stored)}"
        require(len(stored) == len(self.members), "sequence.cost", found)
        parts = as_alternatives(data).parts
        triples = zip(self._unused_costs, stored, parts, strict=True)
        costs = tuple(cost.recall(part, own) for cost, part, own in triples)
        return _pooled(Alternatives(parts, costs))


class _PooledRule(MartingaleRule):
    """The set in one space, with the radius that all share: nothing here may rely on its own mixture alone."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.ridge_alpha = None
        self._uses_ridge_form = False


def _pooled(data: Data) -> Alternatives:
    """Data whose parts share one cost."""
    parts = as_alternatives(data).parts
    pool = Pool(data.memory, parts)
    return as_alternatives(data).remembering([PooledCost(pool, i) for i in range(len(parts))])


def _parts(data: Data) -> Sequence[Any]:
    return as_alternatives(data).parts

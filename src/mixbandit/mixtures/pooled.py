"""One cost for several kernels: the finite mixture of what each of them costs on its own data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixbandit._lazy import lazy
from mixbandit.data import Data, Observations
from mixbandit.mixtures.base import Cost


class Pool:
    """−2σ² ln Σ_k exp(−C_k/2σ²)/n of the costs C_k of n mixtures, each on its own data."""

    def __init__(self, costs: Sequence[Cost], data: Sequence[Observations]) -> None:
        self.costs, self.data = tuple(costs), tuple(data)

    @lazy
    def total(self) -> float:
        variance = self.costs[0].sigma ** 2
        totals = np.array([_total(cost, data) for cost, data in zip(self.costs, self.data, strict=True)])
        return float(-2.0 * variance * (np.logaddexp.reduce(-totals / (2.0 * variance)) - np.log(len(totals))))

    def at_sigma(self, sigma: float) -> Pool | None:
        costs = [changed for cost in self.costs if (changed := cost.at_sigma(sigma)) is not None]
        return Pool(costs, self.data) if len(costs) == len(self.costs) else None


class PooledCost(Cost):
    """The cost of a pool, to one of its members."""

    def __init__(self, pool: Pool, place: int) -> None:
        super().__init__(pool.costs[place].sigma)
        self._pool, self._place = pool, place

    def excess(self, data: Data, reach: float) -> float:
        return self._pool.total - data.spectrum.residual(reach)

    def total(self, data: Data) -> float:
        return self._pool.total

    def alpha0(self, data: Data) -> float:
        return self._pool.costs[self._place].alpha0(data)

    def at_sigma(self, sigma: float) -> PooledCost | None:
        pool = self._pool.at_sigma(sigma)
        return None if pool is None else PooledCost(pool, self._place)


def _total(cost: Cost, data: Observations) -> float:
    total = cost.total(data)
    # Where ridge regression is not accurate the decomposition is.
    return cost.excess(data, 0.0) + data.spectrum.residual(0.0) if total is None else total

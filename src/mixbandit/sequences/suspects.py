"""A test for functions that the model does not allow: rougher ones, say, if the model is smooth.

Any mixture gives an e-value against every function. With N(0, cK_j) for the kernel K_j of a suspected kind of function,
and f the function nearest to the rewards that the model allows,

    2 ln E_j(f*) ≥ (‖f(a) − r‖² − C_j)/σ²,   C_j the cost of N(0, cK_j) on the rewards:

if functions of that kind predict the rewards much better than the model can explain them, the model is refuted. The
mean over all suspects and scales c is an e-value too. It sees what the noise test cannot: a jump or a bump among values
that scatter no more than stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from mixbandit.data import Data, Observations, observations_of
from mixbandit.kernels import Kernel
from mixbandit.mixtures import LinearCost
from mixbandit.sequences.refutation import beyond, least_residual

# The variances of suspected functions, in units of B².
_SCALES = (0.0025, 0.025, 0.25)
# While a policy acts, the test is made at some times only: from the first of these on, each about this much later.
_FIRST, _LATER, _LAST = 8, 1.15, 10**7


@dataclass(frozen=True)
class SuspectTest:
    """Whether suspected functions predict the rewards too well for the model to hold, by a test at level δ."""

    kernels: tuple[Kernel, ...]
    sigma: float
    delta: float
    norm_bound: float

    def refutes(self, data: Data, near: float, deviation: float) -> bool:
        """The verdict; `near` is the squared residual of any function that the model allows."""
        known = observations_of(data)
        if known is None or not known.count or not self.kernels:
            return False
        costs = self._costs(known)
        # The function nearest to the rewards takes a decomposition to find; any other one has a larger residual.
        if not self._is_enough(near, costs, deviation):
            return False
        return self._is_enough(least_residual(data.spectrum, self.norm_bound), costs, deviation)

    def log_evalue(self, residual: float, costs: list[float], deviation: float = 0.0) -> float:
        """Ln of the mean e-value at a squared residual."""
        known = np.array([cost for cost in costs if cost < math.inf])
        exponents = (beyond(residual, deviation) - known) / (2.0 * self.sigma**2)
        return float(np.logaddexp.reduce(exponents, initial=-math.inf)) - math.log(len(costs))

    def _is_enough(self, residual: float, costs: list[float], deviation: float) -> bool:
        return self.log_evalue(residual, costs, deviation) >= -math.log(self.delta)

    def _costs(self, data: Observations) -> list[float]:
        """The cost of every suspect at every scale; infinite where rounding leaves too few digits of it."""
        variances = [scale * self.norm_bound**2 for scale in _SCALES]
        costs = [LinearCost(None, math.sqrt(c), 1.0 / c, self.sigma) for c in variances]
        totals = [cost.total(data.beside(kernel)) for kernel in self.kernels for cost in costs]
        return [math.inf if total is None else total for total in totals]


def is_time_to_test(count: int) -> bool:
    """Whether a policy that acts makes the test after this many rewards."""
    return count in _times()


@cache
def _times() -> frozenset[int]:
    times, time = set(), float(_FIRST)
    while time < _LAST:
        times.add(round(time))
        time = max(time * _LATER, time + 1.0)
    return frozenset(times)

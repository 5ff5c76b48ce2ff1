"""The paper's own route to the exact bounds, a conic solver through CVXPY: slow, independent, a reference.

    maximise φᵀθ subject to ‖Φθ − r‖₂ ≤ R and ‖θ‖₂ ≤ B          (the paper, eq. eqn:ucb_opt_prob)

Needs the extra `conic`. `MartingaleMixture.upper` gives the same numbers a thousand times faster.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array
from mixbandit._extras import import_extra
from mixbandit.data import factor_of
from mixbandit.errors import AssumptionsRefuted, InvalidInput, MixbanditError
from mixbandit.sequences.martingale import MartingaleMixture

logger = logging.getLogger(__name__)


class ConicReference:
    """The set of a sequence at the time of the call, as a conic program with the direction as parameter."""

    def __init__(self, sequence: MartingaleMixture, solver: str = "CLARABEL") -> None:
        cp = import_extra("cvxpy", extra="conic")
        self._cp, self._solver = cp, solver
        data, features = sequence.moment.data, sequence.features
        if features is None or factor_of(data) is None:
            raise InvalidInput("the conic reference needs features, not a kernel")
        self._features, self._norm_bound = features, sequence.norm_bound
        # [Φ r] enters through its triangular factor, which has the same residual norms. Solvers see unit
        # directions, a unit ball and a unit radius: their tolerances are absolute.
        factor = data.factor / sequence.radius
        x = cp.Variable(features.dim)
        self._direction = cp.Parameter(features.dim)
        constraints = [
            cp.norm(factor[:, :-1] * self._norm_bound @ x - factor[:, -1], 2) <= 1.0,
            cp.norm(x, 2) <= 1.0,
        ]
        self._problem = cp.Problem(cp.Maximize(self._direction @ x), constraints)

    def upper(self, actions: ArrayLike) -> Array:
        """Upper bounds (n,); AssumptionsRefuted if the solver finds the set empty."""
        return self._solve(self._features(actions))

    def lower(self, actions: ArrayLike) -> Array:
        """Lower bounds (n,)."""
        return -self._solve(-self._features(actions))

    def is_empty(self) -> bool:
        """Whether the solver finds no θ that satisfies both constraints."""
        return self._status(np.zeros(self._features.dim)) in self._cp.settings.INF_OR_UNB

    def _solve(self, phi: Array) -> Array:
        values = np.zeros(len(phi))
        for i, row in enumerate(phi):
            length = float(np.linalg.norm(row))
            status = self._status(row / length if length else row)
            if status in self._cp.settings.INF_OR_UNB:
                raise AssumptionsRefuted(f"{self._solver} finds the confidence set empty ({status})")
            if status not in self._cp.settings.SOLUTION_PRESENT:
                raise MixbanditError(f"{self._solver} ended with status {status!r}")
            values[i] = self._norm_bound * length * float(self._problem.value)
        return values

    def _status(self, direction: Array) -> str:
        self._direction.value = direction
        with warnings.catch_warnings():
            # CVXPY warns where a solver stopped short of its own tolerance; the status says so as well.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            self._problem.solve(solver=self._solver)
        if self._problem.status == self._cp.OPTIMAL_INACCURATE:
            logger.info("%s stopped short of its tolerance", self._solver)
        return str(self._problem.status)

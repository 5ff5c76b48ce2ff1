"""Finite mixtures of mixtures: as good as their best member, up to its weight.

The mixture martingale of Σ_k π_k P_k is the sum Σ_k π_k E_k, so that with the costs C_k of the members

    cost = −2σ² ln Σ_k π_k exp(−C_k/2σ²) ≤ min_k (C_k + 2σ² ln(1/π_k)).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_vector, shown
from mixbandit._schema import array, list_of, record, require
from mixbandit.data import Data
from mixbandit.errors import InvalidInput
from mixbandit.mixtures.base import Cost, Forecaster, Mixture
from mixbandit.mixtures.linear import Scaled
from mixbandit.mixtures.prequential import Prequential
from mixbandit.models import Model

_EPS = float(np.finfo(np.float64).eps)


class Grid(Mixture):
    """A finite mixture over scales c (N(0, cΦΦᵀ) each), or over any mixtures and forecasters.

    `weights` are positive and get normalised; by default they are equal. A grid over c ∈ {10⁻³, …, 10³} avoids choosing
    c at the cost of a few per cent of width.
    """

    kind = "Grid"
    schema = record({"members": list_of(Mixture.family, least=1), "weights": array(None)})

    def __init__(self, members: Sequence[float | Mixture | Forecaster], weights: ArrayLike | None = None) -> None:
        if hasattr(members, "__array__"):
            members = as_float_array(members, "members").tolist()
        if not isinstance(members, Sequence) or isinstance(members, str | bytes | bytearray):
            raise InvalidInput(f"members must be a list of scales, mixtures or forecasters, got {shown(members)}")
        given = list(members)
        if not given:
            raise InvalidInput("a Grid needs at least one member, got none")
        self.members = tuple(_as_member(member) for member in given)
        raw = np.ones(len(given)) if weights is None else as_vector(weights, len(given), "weights")
        if not (raw > 0.0).all() or not (raw / raw.sum() > 0.0).all():
            raise InvalidInput(f"weights must be positive and not too unequal, got {raw.tolist()}")
        total = float(raw.sum())
        # Weights that are normalised already, as stored ones are, stay as they are to the last bit.
        self.weights: Array = raw.copy() if abs(total - 1.0) <= len(raw) * _EPS else raw / total

    def __repr__(self) -> str:
        return f"Grid({list(self.members)!r}, weights={self.weights.tolist()!r})"

    def cost(self, model: Model, sigma: float) -> GridCost:
        return GridCost([as_cost(member, model, sigma) for member in self.members], np.log(self.weights), sigma)


class GridCost(Cost):
    """The soft minimum of the members' costs."""

    def __init__(self, members: list[Cost], log_weights: Array, sigma: float) -> None:
        super().__init__(sigma)
        self._members, self._log_weights = members, log_weights

    @property
    def stepwise(self) -> bool:
        return any(member.stepwise for member in self._members)

    def learn(self, actions: Array, phi: Array, rewards: Array, weights: Array | None) -> GridCost:
        return self._with([member.learn(actions, phi, rewards, weights) for member in self._members])

    def _with(self, members: list[Cost]) -> GridCost:
        return GridCost(members, self._log_weights, self.sigma)

    def excess(self, data: Data, reach: float) -> float:
        exponents = self._exponents(data, reach)
        top = exponents.max()
        return float(-2.0 * self.sigma**2 * (top + np.log(np.sum(np.exp(exponents - top)))))

    def total(self, data: Data) -> float | None:
        totals = self._totals(data)
        if totals is None:
            return None
        return float(-2.0 * self.sigma**2 * np.logaddexp.reduce(self._log_weights - totals / (2.0 * self.sigma**2)))

    def alpha0(self, data: Data) -> float:
        """That of the member with the largest weight given the data so far."""
        totals = self._totals(data)
        if totals is None:
            return self.start(data)
        heaviest = int(np.argmax(self._log_weights - totals / (2.0 * self.sigma**2)))
        return self._members[heaviest].alpha0(data)

    def start(self, data: Data) -> float:
        heaviest = int(np.argmax(self._exponents(data, 0.0)))
        return self._members[heaviest].start(data)

    def at_sigma(self, sigma: float) -> GridCost | None:
        members = [changed for member in self._members if (changed := member.at_sigma(sigma)) is not None]
        return GridCost(members, self._log_weights, sigma) if len(members) == len(self._members) else None

    def state_dict(self) -> dict[str, Any]:
        return {"members": [member.state_dict() for member in self._members]}

    def recall(self, state: Mapping[str, Any], data: Data) -> GridCost:
        stored = state["members"] or []
        found = f"must be of {len(self._members)} members, got {len(stored)}"
        require(len(stored) == len(self._members), "cost.members", found)
        return self._with([member.recall(part, data) for member, part in zip(self._members, stored, strict=True)])

    def _totals(self, data: Data) -> Array | None:
        """The members' costs, where all of them are known without a decomposition of the data."""
        if self not in data.derived:  # asked several times a round
            totals = [member.total(data) for member in self._members]
            data.derived[self] = None if None in totals else np.array(totals, dtype=np.float64)
        known: Array | None = data.derived[self]
        return known

    def _exponents(self, data: Data, reach: float) -> Array:
        """The logarithms of the members' weights, up to a common constant: ln π_k − C_k/2σ²."""
        costs = np.array([member.excess(data, reach) for member in self._members])
        return np.asarray(self._log_weights - costs / (2.0 * self.sigma**2))


def as_cost(mixture: Mixture | Forecaster, model: Model, sigma: float) -> Cost:
    """Start a mixture, or a user's forecaster, for one sequence."""
    if isinstance(mixture, Mixture):
        return mixture.cost(model, sigma)
    if not isinstance(mixture, type) and isinstance(mixture, Forecaster):
        # A private copy: if another sequence told it a reward, it would know what it is about to predict.
        return Prequential(copy.deepcopy(mixture), sigma)
    raise InvalidInput(
        "mixture must be one of mixbandit's mixtures or an object with predict(x) and update(x, r), "
        f"got {shown(mixture)}"
    )


def _as_member(member: float | Mixture | Forecaster) -> Mixture | Forecaster:
    if isinstance(member, Mixture) or (not isinstance(member, type) and isinstance(member, Forecaster)):
        return member
    try:
        return Scaled(member)  # type: ignore[arg-type]
    except InvalidInput as error:
        raise InvalidInput(f"a member must be a scale c > 0, a mixture or a forecaster: {error}") from error

"""Actions and rewards of a kernel, as a value: learning makes a new one; the old one stays.

| symbol | meaning | shape |
|---|---|---|
| x_1 … x_m | centres: the distinct actions seen, in the order of their first appearance | (m, k) |
| K | kernel matrix of the centres | (m, m) |
| D | diag(√n_i), n_i the sum of the squared weights of the rewards at x_i | (m,) |
| U diag(s) Uᵀ = DKD | so that e_j = Σ_i (DU)_ij k(x_i, ·)/√s_j are orthonormal functions | |
| Λ | lower-triangular factor of WKW + αI over all rewards, W their weights | (t, t) |

Repeated actions are summed up before anything is decomposed, so that they do not make K singular. A closed form needs
only Λ, which grows by a row per reward, O(t²); an exact set needs the eigenvalues, O(m³), once per moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import LARGEST_DATUM, LARGEST_SETTING, SMALLEST_SETTING, Array
from mixbandit._lazy import lazy
from mixbandit._schema import Fields, array, checked, optional, record, require
from mixbandit.data.base import Data, Observed
from mixbandit.data.cholesky import BlockCholesky
from mixbandit.data.grouped import Grouped
from mixbandit.data.sections import Functions, Sections
from mixbandit.data.spectrum import Decomposed, Split
from mixbandit.errors import InvalidInput
from mixbandit.kernels import Kernel

_EPS = float(np.finfo(np.float64).eps)
# Eigenvalues of a kernel matrix are known up to about this many roundings of the largest.
_EIGENVALUE_ERROR = 4.0 * _EPS
# A closed form from the triangular factor alone is used up to this ratio of its size to √α.
_WELL_CONDITIONED = 1e5
_TINY = 1e-100
# Ridge regressions are kept at the latest multipliers only: each takes O(t²) of memory.
_MOST_RIDGES = 32


def is_well_conditioned(trace: float, alpha: float) -> bool:
    """Whether the factor of a matrix of this trace plus αI leaves enough digits."""
    return math.sqrt(trace + alpha) <= _WELL_CONDITIONED * math.sqrt(alpha)


class KernelSpectrum(Decomposed):
    """The decomposition of the sections at the centres, weighted by D."""

    __slots__ = ("_centres", "_dual", "_vectors", "lost_singular", "lost_z", "outside", "singular", "z")

    def __init__(self, centres: Array, gram: Array, scale: Array, rewards: Array, outside: float) -> None:
        """From the kernel matrix `gram` of the centres, D as `scale` and the mean rewards at the centres."""
        values, vectors = np.linalg.eigh(scale[:, None] * gram * scale) if len(gram) else (np.empty(0), gram)
        values, vectors = values[::-1], vectors[:, ::-1]
        top = max(float(values[0]), _TINY) if len(values) else _TINY
        rank = int(np.count_nonzero(values > max(len(values) * _EPS * top, _TINY)))
        z = vectors.T @ (scale * rewards)
        self._centres, self.outside = centres, outside
        self.singular, self.z = np.sqrt(values[:rank]), z[:rank]
        # What is lost may be as large as the error of all eigenvalues.
        self.lost_singular = np.sqrt(np.maximum(values[rank:], 0.0) + _EIGENVALUE_ERROR * top)
        self.lost_z = z[rank:]
        self._vectors = vectors[:, :rank]
        self._dual: Array = scale[:, None] * vectors[:, :rank] / self.singular  # (m, rank): the e_j in sections

    @property
    def width(self) -> int:
        return len(self._centres)

    @property
    def rows(self) -> Array:
        """The sections at the centres, weighted by D, in this basis, (m, rank)."""
        return self._vectors * self.singular

    def split(self, directions: Sections, *, attaining: bool) -> Split:
        inner = directions.at(self._centres) @ self._dual
        squared = directions.squared
        size = np.sqrt(squared)
        # The part outside is a difference. An eigenvalue error E changes it by about ‖K⁻¹k‖²E, which rounding it up
        # covers: rounded down, it would pull bounds below the truth.
        top = float(self.singular[0]) ** 2 if self.rank else 0.0
        amplified = (inner * inner) @ (top / self.singular**2)
        rest = squared - np.einsum("nr,nr->n", inner, inner) + _EIGENVALUE_ERROR * (amplified + squared)
        inverse = 1.0 / np.where(size > 0.0, size, 1.0)
        null = np.minimum(np.sqrt(np.maximum(rest, 0.0)) * inverse, 1.0)
        inner *= inverse[:, None]
        return Split(size, inner, null, (directions, inverse) if attaining else None)

    def points(self, inside: Array, along: Array, parts: Split) -> Functions:
        directions, inverse = parts.rest
        coefficients = (inside - along[:, None] * parts.inside) @ self._dual.T
        found: Functions = directions.functions(self._centres, coefficients, along * inverse)
        return found


class _Grown(NamedTuple):
    """What a ridge regression leaves to the next one."""

    factor: BlockCholesky
    white: Array


_NOTHING = _Grown(BlockCholesky(), np.empty(0))


class KernelRidge:
    """Ridge regression in the function space at one α: everything that a closed-form bound needs."""

    def __init__(self, alpha: float, data: Observations, factor: BlockCholesky, white: Array) -> None:
        self.alpha, self._data = alpha, data
        self.factor, self.white = factor, white  # Λ, and Λ⁻¹Wr
        self.log_det = 2.0 * float(np.log(factor.diagonal() / math.sqrt(alpha)).sum())  # ln det(WKW/α + I)
        self.is_accurate = is_well_conditioned(data.grouped.trace, alpha)
        self._last: tuple[Any, Any, Array] | None = None

    @property
    def loss(self) -> float:
        """The least ‖f(a) − r‖² + α‖f‖² over all functions f."""
        return self.alpha * float(self.white @ self.white)

    @lazy
    def _solution(self) -> Array:
        """(WKW + αI)⁻¹Wr, (t,)."""
        return self.factor.solve_transposed(self.white)

    @lazy
    def norm2(self) -> float:
        """The squared norm of the ridge estimate."""
        beta = self._solution
        return max(float(beta @ (self._data.grouped.weighted_rewards - self.alpha * beta)), 0.0)

    def residual(self, share: float = 1.0) -> float:
        """The squared residual ‖f(a) − r‖² of this share of the ridge estimate."""
        # At the actions seen the estimate is the rewards less α times the solution.
        left = (share - 1.0) * self._data.grouped.weighted_rewards - share * self.alpha * self._solution
        return float(left @ left)

    @staticmethod
    def is_safe(directions: Sections) -> bool:
        """Always: kernels and their settings are bounded."""
        return True

    def measured(self, directions: Sections) -> tuple[Array, Array]:
        """The ridge estimate at the actions, and √w, (n,) each."""
        return self.estimates(directions), self.widths(directions)

    def measured_one(self, direction: Sections) -> tuple[float, float]:
        """The same of one action."""
        middle, half = self.measured(direction)
        return float(middle[0]), float(half[0])

    def estimates(self, directions: Sections) -> Array:
        """The ridge estimate at the actions, (n,)."""
        return np.asarray(self._whitened(directions).T @ self.white)

    def widths(self, directions: Sections) -> Array:
        """√w, (n,)."""
        white, squared = self._whitened(directions), directions.squared
        rest = squared - np.einsum("tn,tn->n", white, white) + _EIGENVALUE_ERROR * squared
        return np.asarray(np.sqrt(np.maximum(rest, 0.0) / self.alpha))

    def maximisers(self, directions: Sections, radius: float) -> tuple[Array, Functions]:
        """√w, and the points that attain the bounds."""
        root_w = self.widths(directions)
        along = radius / (np.where(root_w > 0.0, root_w, 1.0) * self.alpha)
        coefficients = self.factor.dewhitened(self._whitened(directions)).T
        on_centres = self._data.grouped.on_centres(self._solution - along[:, None] * coefficients)
        return root_w, directions.functions(self._data.grouped.centres, on_centres, along)

    @property
    def theta(self) -> Array:
        raise InvalidInput("functions of a kernel have no parameter vector")

    def sample(self, rng: np.random.Generator, spread: float) -> Array:
        raise InvalidInput("kernel models cannot be sampled: use features for Thompson sampling")

    def _whitened(self, directions: Sections) -> Array:
        """Λ⁻¹Wk(x), (t, n)."""
        if self._last is not None and self._last[0] is directions.actions and self._last[1] is directions.base:
            white = self._last[2]
            return white if directions.sign == 1.0 else -white
        white = self.factor.whitened(self._data.grouped.at_rewards(directions).T)
        self._last = directions.actions, directions.base, white if directions.sign == 1.0 else -white
        return white


class Observations(Data):
    """Actions and rewards of a kernel."""

    dim: int | None = None
    has_quick_ridges = True

    def __init__(
        self,
        kernel: Kernel,
        rows: Array,
        rewards: Array,
        weights: Array,
        *,
        memory: Any = None,
        older: Observations | None = None,
    ) -> None:
        self.kernel, self.rows, self.rewards, self.weights = kernel, rows, rewards, weights
        self.count, self.weight2, self.memory = len(rewards), float(weights @ weights), memory
        self.derived: dict[Any, Any] = {}
        self._ridges: dict[float, KernelRidge] = {}
        # What the data before these have computed already, and this value can extend.
        self._older_ridges: dict[float, _Grown] = {}
        self._older_gram: Array | None = None
        self._beside: dict[Kernel, Observations] = {}
        self._last_rows: tuple[tuple[int, int], Array] | None = None
        if older is not None:
            self._beside = dict(older._beside)
            known = {alpha: _Grown(ridge.factor, ridge.white) for alpha, ridge in older._ridges.items()}
            unused = {alpha: grown for alpha, grown in older._older_ridges.items() if alpha not in known}
            self._older_ridges = dict(list({**unused, **known}.items())[-_MOST_RIDGES:])
            self._older_gram = older.grouped.__dict__.get("gram", older._older_gram)

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        kept = {name: getattr(self, name) for name in ("kernel", "rows", "rewards", "weights", "count", "weight2")}
        caches: dict[str, Any] = {"derived": {}, "_ridges": {}, "_older_ridges": {}, "_older_gram": None, "_beside": {}}
        caches["_last_rows"] = None
        return {**kept, "memory": self.memory, **caches}

    def learn(
        self, directions: Sections, rewards: Array, weights: Array | None = None, memory: Any = None
    ) -> Observations:
        n = len(rewards)
        if not n:
            return Observations(self.kernel, self.rows, self.rewards, self.weights, memory=memory, older=self)
        rows = directions.rows + 0.0  # −0 and 0 are one action
        return Observations(
            self.kernel,
            np.vstack((self.rows, rows)) if self.count else rows,
            np.concatenate((self.rewards, rewards)),
            np.concatenate((self.weights, np.ones(n) if weights is None else weights)),
            memory=memory,
            older=self,
        )

    def merge(self, other: Observations, memory: Any = None) -> Observations:
        return self.learn(Sections.of(self.kernel, other.rows), other.rewards, other.weights, memory)

    def remembering(self, memory: Any) -> Observations:
        """The same actions and rewards beside another memory; what one of them computes, the other knows."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, memory=memory, derived={})
        return new

    def beside(self, kernel: Kernel) -> Observations:
        """The same actions and rewards as data of another kernel."""
        known = self._beside.get(kernel)
        if known is None or known.count != self.count:
            known = Observations(kernel, self.rows, self.rewards, self.weights, older=known)
            self._beside[kernel] = known
        return known

    @property
    def observed(self) -> Observed:
        return Observed(self.rows, self.rewards, self.weights)

    @lazy
    def grouped(self) -> Grouped:
        """Repeats of an action taken together."""
        return Grouped(self.kernel, self.rows, self.rewards, self.weights, self._older_gram)

    @property
    def residual(self) -> float:
        return self.grouped.residual

    @lazy
    def spectrum(self) -> KernelSpectrum:
        seen = self.grouped
        mean, total = seen.means
        return KernelSpectrum(seen.centres, seen.gram, np.sqrt(total), mean, seen.residual)

    def rounding(self, reach: float) -> float:
        """How far the residuals of functions of norm `reach` may be from the true ones.

        Eigenvalues s are known up to ε·s_max, so that √s, of which the residual is a multiple, is known up to √ε.
        """
        typical = self.grouped.trace / max(len(self.grouped.centres), 1)
        rewards = float(np.linalg.norm(self.grouped.weighted_rewards))
        return 2.0 * math.sqrt(_EPS * typical) * reach + 4.0 * math.sqrt(self.count) * _EPS * rewards

    def ridge(self, alpha: float) -> KernelRidge:
        """Ridge regression at α: O(t²) if the data before these had one, else O(t³)."""
        known = self._ridges.get(alpha)
        if known is None:
            if len(self._ridges) >= _MOST_RIDGES:
                del self._ridges[next(iter(self._ridges))]
            known = self._ridges[alpha] = self._ridge(alpha)
        return known

    def loss(self, alpha: float) -> float:
        return self.ridge(alpha).loss

    def near_residual(self, alpha: float, reach: float | None) -> float:
        ridge = self.ridge(alpha)
        norm = math.sqrt(ridge.norm2)
        return ridge.residual(1.0 if reach is None or norm <= reach else reach / norm)

    def _ridge(self, alpha: float) -> KernelRidge:
        old = self._older_ridges.get(alpha, _NOTHING)
        # Where α vanishes next to the kernel the factor is not accurate, but must exist.
        least = 0.0 if is_well_conditioned(self.grouped.trace, alpha) else 16.0 * self.count * _EPS * self.grouped.trace

        def rows(start: int, end: int) -> Array:
            own = self._weighted(start, end).copy()
            own[np.arange(end - start), np.arange(start, end)] += alpha + least
            return own

        factor = old.factor.grown(self.count, rows)
        return KernelRidge(alpha, self, factor, factor.solve(self.grouped.weighted_rewards, old.white))

    def _weighted(self, start: int, end: int) -> Array:
        """Rows of WKW up to its diagonal, (end−start, end). The last ones are kept, for regressions at other α."""
        if self._last_rows is None or self._last_rows[0] != (start, end):
            own = self.kernel.matrix(self.rows[start:end], self.rows[:end])
            own *= self.weights[start:end, None] * self.weights[:end]
            self._last_rows = (start, end), own
        return self._last_rows[1]

    def state_dict(self) -> dict[str, Any]:
        own = None if (self.weights == 1.0).all() else self.weights.copy()
        return {"actions": self.rows.copy(), "rewards": self.rewards.copy(), "weights": own}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], kernel: Kernel, memory: Any = None) -> Observations:
        stored = checked(OBSERVATIONS, state, "observations")
        rewards, weights = stored["rewards"], stored["weights"]
        weights = np.ones(len(rewards)) if weights is None else weights
        return cls(kernel, stored["actions"], rewards, weights, memory=memory)


_LARGEST_WEIGHT = 2.0 * LARGEST_SETTING / SMALLEST_SETTING


def _check_observations(stored: Fields, where: str) -> None:
    actions, rewards, weights = stored["actions"], stored["rewards"], stored["weights"]
    require(
        len(actions) == len(rewards),
        where,
        f"must have as many actions as rewards, got {len(actions)} and {len(rewards)}",
    )
    require((np.abs(rewards) <= LARGEST_DATUM).all(), f"{where}.rewards", f"must be at most {LARGEST_DATUM:g}")
    if weights is not None:
        fits = weights.shape == rewards.shape and bool(((weights > 0.0) & (weights <= _LARGEST_WEIGHT)).all())
        require(fits, f"{where}.weights", "must be positive, one per reward")


OBSERVATIONS = record(
    {"actions": array(None, None), "rewards": array(None), "weights": optional(array(None))}, _check_observations
)
"""The state of `Observations`."""


def observations_of(data: Data) -> Observations | None:
    """The data, if they are those of a kernel."""
    return data if isinstance(data, Observations) else None

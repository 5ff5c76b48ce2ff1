"""The data seen, as a value: the triangular QR factor of [Φ r]. Learning makes a new value; the old one stays.

| symbol | meaning | shape |
|---|---|---|
| Φ, r | feature rows and rewards seen so far | (t, d), (t,) |
| C | upper-triangular factor, CᵀC = [Φ r]ᵀ[Φ r] | (d+1, d+1) |
| A diag(√s) Uᵀ | singular value decomposition of ΦL, L a root of a covariance or I | |
| z | Aᵀ(r − Φθ₀), the rewards in those coordinates | (rank,) |

The factor holds everything that a fixed linear mixture needs, in O(d²) memory. Its singular values give
those of Φ without squaring the condition number, and the part outside the range of Φ stays a sum of
squares. Forming ΦᵀΦ, Φᵀr and rᵀr instead loses digits that the bounds need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbandit._checks import LARGEST_DATUM, LARGEST_MULTIPLIER, Array, nonnegative
from mixbandit._lazy import lapack, lazy
from mixbandit._schema import Fields, array, checked, count, integer, real, record, require
from mixbandit.data.base import Data
from mixbandit.data.ridge import Ridge
from mixbandit.data.spectrum import Spectrum

_EPS = float(np.finfo(np.float64).eps)
# Rows wait in a buffer of this many before they are folded into the factor for good. A query folds them
# into a copy, so that reading never changes what is remembered; the factor is rounded once per full buffer;
# and cost and memory per row stay constant.
_BUFFER_ROWS = 32
_CHUNK_ROWS = 4096
# Singular values whose squares would vanish.
_NOTHING = 1e-50
# Ridge regression from the triangular factor alone is used up to this ratio of its largest entry to √α.
_WELL_CONDITIONED = 1e5
# Panel width of LAPACK's triangular-pentagonal QR; 8 was fastest for d = 20 and d = 100.
_PANEL = 8


class _Buffer:
    """Rows [φ r] not yet folded in, shared by the values that learnt them in turn."""

    def __init__(self, width: int) -> None:
        self.rows: Array = np.empty((_BUFFER_ROWS, width))
        self.used = 0


class Factor(Data):
    """The QR factor of [Φ r]."""

    dim: int
    has_quick_ridges = False

    def __init__(
        self,
        dim: int,
        *,
        count: int = 0,
        weight2: float = 0.0,
        folded: Array | None = None,
        buffer: _Buffer | None = None,
        waiting: int = 0,
        memory: Any = None,
    ) -> None:
        self.dim, self.count = dim, count
        self.weight2 = weight2
        self.memory = memory
        self._base: Array = np.zeros((dim + 1, dim + 1), order="F") if folded is None else folded
        self._buffer, self._waiting = buffer, waiting
        self.derived: dict[Any, Any] = {}
        self._ridges: dict[float, Ridge] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        kept = {name: value for name, value in self.__dict__.items() if name not in ("factor", "spectrum", "_sizes")}
        return {**kept, "derived": {}, "_ridges": {}}

    def learn(self, directions: Array, rewards: Array, weights: Array | None = None, memory: Any = None) -> Factor:
        features, n = directions, len(directions)
        if weights is not None:
            features, rewards = weights[:, None] * features, weights * rewards
        base, buffer, waiting = self._base, self._buffer, self._waiting
        if waiting + n > _BUFFER_ROWS:
            base, buffer, waiting = self.factor, None, 0
        if n > _BUFFER_ROWS:
            for start in range(0, n, _CHUNK_ROWS):
                part = slice(start, start + _CHUNK_ROWS)
                base = _fold(base, np.column_stack((features[part], rewards[part])))
        else:
            buffer = self._with_room(buffer, waiting)
            rows = buffer.rows[waiting : waiting + n]
            rows[:, :-1] = features
            rows[:, -1] = rewards
            waiting = buffer.used = waiting + n
        return Factor(
            self.dim,
            count=self.count + n,
            weight2=self.weight2 + (n if weights is None else float(weights @ weights)),
            folded=base,
            buffer=buffer,
            waiting=waiting,
            memory=memory,
        )

    def _with_room(self, buffer: _Buffer | None, waiting: int) -> _Buffer:
        """The buffer if no other value has extended it, else a copy of the rows that belong to this value."""
        if buffer is not None and buffer.used == waiting:
            return buffer
        new = _Buffer(self.dim + 1)
        if buffer is not None:
            new.rows[:waiting] = buffer.rows[:waiting]
        return new

    def merge(self, other: Factor, memory: Any = None) -> Factor:
        """Both data sets together, by QR of the stacked factors."""
        return Factor(
            self.dim,
            count=self.count + other.count,
            weight2=self.weight2 + other.weight2,
            folded=_fold(self.factor, other.factor),
            memory=memory,
        )

    @lazy
    def factor(self) -> Array:
        """The upper-triangular factor C of everything seen, (d+1, d+1); rows may be zero while t ≤ d."""
        if self._buffer is None or not self._waiting:
            return self._base
        return _fold(self._base, self._buffer.rows[: self._waiting])

    def rounding(self, reach: float) -> float:
        """How far the factor's residual ‖Φθ − r‖ at parameters of norm `reach` may be from the true one."""
        inside, rewards = self._sizes
        return 4.0 * math.sqrt(self.dim) * _EPS * (inside * reach + rewards)

    @lazy
    def _sizes(self) -> tuple[float, float]:
        """The lengths of Φ, as a vector, and r."""
        return float(np.linalg.norm(self.factor[:, :-1])), float(np.linalg.norm(self.factor[:, -1]))

    @property
    def residual(self) -> float:
        """The least-squares residual ‖Φθ − r‖², or less where Φ is nearly singular."""
        return float(self.factor[-1, -1]) ** 2

    @lazy
    def spectrum(self) -> Spectrum:
        """Φ and r decomposed."""
        return self.seen_from(None, None)

    def seen_from(self, shift: Array | None, root: Array | None) -> Spectrum:
        """ΦL and r − Φθ₀ decomposed, for θ₀ = `shift` (None: 0) and L = `root` (None: I)."""
        factor = self.factor
        used = np.logical_or.reduce(factor[:, :-1], axis=1)
        rows, rewards = factor[used, :-1], factor[used, -1]
        unexplained = factor[~used, -1]
        if shift is not None:
            rewards = rewards - rows @ shift
        if root is not None:
            rows = rows @ root
        left, singular, right = _svd(rows)
        z = left.T @ rewards
        rank = numerical_rank(singular, self.dim)
        outside = float(unexplained @ unexplained)
        return Spectrum(singular[:rank], right[:rank].T, z[:rank], outside, singular[rank:], z[rank:])

    def ridge(self, alpha: float) -> Ridge:
        """Ridge regression at α, by QR of the factor stacked on √αI."""
        known = self._ridges.get(alpha)
        if known is None:
            known = self._ridges[alpha] = self._ridge(alpha)
        return known

    def loss(self, alpha: float) -> float:
        theta = self.ridge(alpha).theta
        return self.near_residual(alpha, None) + alpha * float(theta @ theta)

    def near_residual(self, alpha: float, reach: float | None) -> float:
        theta = self.ridge(alpha).theta
        if reach is not None:
            norm = math.sqrt(float(theta @ theta))
            theta = theta if norm <= reach else theta * (reach / norm)
        gap = self.factor[:, :-1] @ theta - self.factor[:, -1]
        return float(gap @ gap)

    def _ridge(self, alpha: float) -> Ridge:
        d, root_alpha = self.dim, math.sqrt(alpha)
        penalty = np.zeros((d, d + 1), order="F")
        penalty.ravel(order="F")[: d * d : d + 1] = root_alpha
        # The d: the penalty is upper trapezoidal, and stays so while it is folded in.
        folded, _, _, info = lapack().dtpqrt(d, min(_PANEL, d + 1), self.factor, penalty)
        if info != 0:
            raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
        root = folded[:d, :d]
        inverse, info = lapack().dtrtri(root)
        if info != 0:
            raise RuntimeError(f"LAPACK's dtrtri returned {info}")
        return Ridge(
            alpha,
            inverse,
            inverse @ folded[:d, d],
            2.0 * float(np.add.reduce(np.log(np.abs(root.diagonal()) / root_alpha))),
            float(np.maximum.reduce(np.abs(root), axis=None)) <= _WELL_CONDITIONED * root_alpha,
        )

    def state_dict(self) -> dict[str, Any]:
        # The buffer is stored as it is, not folded: a resumed run then repeats the same roundings.
        waiting = np.empty((0, self.dim + 1)) if self._buffer is None else self._buffer.rows[: self._waiting]
        return {
            "dim": self.dim,
            "count": self.count,
            "weight2": self.weight2,
            "factor": self._base.copy(),
            "buffer": waiting.copy(),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], memory: Any = None) -> Factor:
        stored = checked(STATISTICS, state, "statistics")
        dim = stored["dim"]
        waiting = stored["buffer"].reshape(-1, dim + 1)
        buffer = _Buffer(dim + 1)
        buffer.rows[: len(waiting)] = waiting
        buffer.used = len(waiting)
        folded = np.array(stored["factor"], order="F")
        options = {"count": stored["count"], "weight2": stored["weight2"], "waiting": len(waiting), "memory": memory}
        return cls(dim, folded=folded, buffer=buffer, **options)


def _check_statistics(stored: Fields, where: str) -> None:
    """The parts of the state of a `Factor` belong together, and some rows can have led to them."""
    dim, count, factor, buffer = (stored[name] for name in ("dim", "count", "factor", "buffer"))
    width = dim + 1
    require(factor.shape == (width, width), f"{where}.factor", f"must have shape {(width, width)}, got {factor.shape}")
    require(not np.tril(factor, -1).any(), f"{where}.factor", "must be upper triangular")
    fits = buffer.shape[1] == width or not buffer.size
    require(fits, f"{where}.buffer", f"must have {width} columns, got {buffer.shape}")
    require(len(buffer) <= min(_BUFFER_ROWS, count), f"{where}.count", f"is {count}, with {len(buffer)} rows waiting")
    require(count or not factor.any(), f"{where}.count", "is 0, but the factor is not")
    require(count or not stored["weight2"], f"{where}.weight2", "must be 0 without rows")
    most = 1e3 * LARGEST_DATUM * math.sqrt(count)  # rules may multiply rows by weights of their own
    largest = max(float(np.abs(factor).max()), float(np.abs(buffer).max(initial=0.0)))
    require(largest <= most, where, f"must have entries of at most {most:g}, got {largest:g}")


def _squares(value: float, where: str) -> float:
    return nonnegative(value, where, LARGEST_MULTIPLIER)


STATISTICS = record(
    {
        "dim": integer(1),
        "count": count,
        "weight2": real(_squares),
        "factor": array(None, None),
        "buffer": array(None, None),
    },
    _check_statistics,
)
"""The state of a `Factor`."""


def _svd(rows: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition, like numpy's but without its overhead."""
    if not rows.size:
        return np.empty((len(rows), 0)), np.empty(0), np.empty((0, rows.shape[1]))
    left, singular, right, info = lapack().dgesdd(rows, compute_uv=1, full_matrices=0)
    if info != 0:
        raise RuntimeError(f"LAPACK's dgesdd returned {info}: the singular values did not converge")
    return left, singular, right


def numerical_rank(singular: Array, dim: int) -> int:
    """How many singular values, in decreasing order, exceed rounding error of the largest and `_NOTHING`."""
    if not len(singular):
        return 0
    threshold = max(dim * _EPS * float(singular[0]), _NOTHING)
    return len(singular) if singular[-1] > threshold else int(np.count_nonzero(singular > threshold))


def _fold(factor: Array, rows: Array) -> Array:
    """The triangular factor of `factor` stacked on `rows`; the arguments are left as they are."""
    # The zero: `rows` is a full rectangle, without a triangular part.
    folded, _, _, info = lapack().dtpqrt(0, min(_PANEL, len(factor)), factor, rows)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
    return np.asarray(folded)

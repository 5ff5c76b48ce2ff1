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
from mixbandit._lazy import blas, lapack, lazy
from mixbandit._schema import Fields, Since, array, checked, count, integer, real, record, require
from mixbandit.data.base import Data
from mixbandit.data.ridge import Ridge
from mixbandit.data.spectrum import Spectrum
from mixbandit.data.triangular import folded_in, ridge_of, svd

_EPS = float(np.finfo(np.float64).eps)
# Rows wait in a buffer of this many before they are folded into the factor for good. A query folds them
# into a copy, so that reading never changes what is remembered; the factor is rounded once per full buffer;
# and cost and memory per row stay constant.
# The first buffers are shorter, because what is folded in serves as a start for more than ridge regression.
_BUFFER_ROWS, _FIRST_ROWS = 32, 8
_CHUNK_ROWS = 4096
# Ridge regressions are kept at this many multipliers at most: each takes O(d²) of memory.
_MOST_RIDGES = 4
# Singular values whose squares would vanish.
_NOTHING = 1e-50
# An eigenvalue of ΦᵀΦ below this multiple of α is as good as 0. The length of V⁻¹ is known to at least this precision
# wherever ridge regression is accurate.
_LITTLE, _LENGTH_ROUNDING = 0.01, 1e-6


class Folded:
    """A triangular factor that has taken in all its rows, with what was derived from it."""

    is_at_hand = True  # False: the matrix takes a decomposition, and ridge regression at most multipliers does, too

    def __init__(self, matrix: Array, count: int, error: float = 0.0) -> None:
        self.matrix, self.count = matrix, count
        self.error = error  # at most its relative error, beyond that of a factorisation
        self.ridges: dict[float, Ridge] = {}
        self.derived: dict[Any, Any] = {}  # by rules

    @lazy
    def sizes2(self) -> tuple[float, float]:
        """The squared lengths of Φ, as a vector, and of r."""
        columns = np.einsum("ij,ij->j", self.matrix, self.matrix)
        return float(np.add.reduce(columns[:-1])), float(columns[-1])

    @property
    def is_scarce(self) -> bool:
        """Whether so few rows are folded in that not much is known in most directions."""
        return self.count < 2 * (len(self.matrix) - 1)

    @lazy
    def least_eigenvalue(self) -> float:
        """At most the smallest eigenvalue of ΦᵀΦ, now and when more rows are added; 0 while there are fewer than d."""
        if self.count < len(self.matrix) - 1:
            return 0.0
        _, singular, _, info = lapack().dgesdd(self.matrix[:-1, :-1], compute_uv=0)
        if info != 0:
            raise RuntimeError(f"LAPACK's dgesdd returned {info}: the singular values did not converge")
        smallest = float(singular[-1])
        rounding = _EPS * len(self.matrix) * math.sqrt(self.sizes2[0])
        return max(smallest - rounding, 0.0) ** 2

    def known_eigenvalue(self, alpha: float) -> float:
        """The same or less, for much less work where that is clearly more than 0 next to α, or clearly not."""
        d = len(self.matrix) - 1
        # No entry of the diagonal is less than the smallest singular value.
        if self.count < d or float(np.minimum.reduce(np.abs(self.matrix.diagonal()[:d]))) ** 2 <= _LITTLE * alpha:
            return 0.0
        # The length of V⁻¹, as a vector, is at least its largest eigenvalue.
        half = blas().dsyrk(1.0, self.ridge(alpha).root)  # the upper triangle, with zeros below
        diagonal, entries = half.diagonal(), half.ravel(order="K")
        length = math.sqrt(2.0 * float(blas().ddot(entries, entries)) - float(diagonal @ diagonal))
        found = (1.0 - _LENGTH_ROUNDING) / length - alpha
        return found if found > _LITTLE * alpha else self.least_eigenvalue

    def spread(self, alpha: float) -> float:
        """At least the largest ‖φ‖_{V⁻¹} of directions of length 1, V = ΦᵀΦ + αI, now and when more rows are added."""
        return 1.0 / math.sqrt(self.least_eigenvalue + alpha)

    def ridge(self, alpha: float) -> Ridge:
        known = self.ridges.get(alpha)
        if known is None:
            _make_room(self.ridges)
            known = self.ridges[alpha] = ridge_of(self.matrix, alpha)
        return known


class _Buffer:
    """Rows [φ r] not yet folded in, shared by the values that learnt them in turn."""

    def __init__(self, width: int) -> None:
        self.rows: Array = np.empty((_BUFFER_ROWS, width))
        # Squared lengths of each φ, and of all φ and rewards so far.
        self.sizes2: list[float] = []
        self.totals: list[tuple[float, float]] = [(0.0, 0.0)]
        # The latest ridge regression at each α, and how many of these rows it knows. Steps are always made one by one
        # from the folded factor on, so that a run that was loaded from a file repeats every bit.
        self.ridges: dict[float, tuple[int, Ridge]] = {}

    @property
    def used(self) -> int:
        return len(self.sizes2)

    def add(self, features: Array, rewards: Array) -> None:
        for row, reward in zip(features, rewards.tolist(), strict=True):
            self.add_one(row, reward)

    def add_one(self, row: Array, reward: float) -> None:
        own = self.rows[len(self.sizes2)]
        own[:-1] = row
        own[-1] = reward
        size2, (inside2, rewards2) = blas().ddot(row, row), self.totals[-1]
        self.sizes2.append(size2)
        self.totals.append((inside2 + size2, rewards2 + reward * reward))

    def first(self, count: int) -> _Buffer:
        """A copy of the first rows."""
        new = _Buffer(self.rows.shape[1])
        new.rows[:count] = self.rows[:count]
        new.sizes2, new.totals = self.sizes2[:count], self.totals[: count + 1]
        return new


class Factor(Data):
    """The QR factor of [Φ r]."""

    dim: int
    has_quick_ridges = False

    def __init__(
        self,
        dim: int,
        count: int = 0,
        weight2: float = 0.0,
        folded: Folded | None = None,
        buffer: _Buffer | None = None,
        waiting: int = 0,
        memory: Any = None,
    ) -> None:
        self.dim, self.count = dim, count
        self.weight2 = weight2
        self.memory = memory
        self.folded = Folded(np.zeros((dim + 1, dim + 1), order="F"), 0) if folded is None else folded
        self._buffer, self._waiting = buffer, waiting
        self.derived: dict[Any, Any] = {}
        self._ridges: dict[float, Ridge] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Caches are rebuilt on demand.
        kept = {name: value for name, value in self.__dict__.items() if name not in ("factor", "spectrum")}
        folded = Folded(self.folded.matrix, self.folded.count, self.folded.error)
        buffer = None if self._buffer is None else self._buffer.first(self._waiting)
        return {**kept, "derived": {}, "_ridges": {}, "folded": folded, "_buffer": buffer}

    def learn(self, directions: Array, rewards: Array, weights: Array | None = None, memory: Any = None) -> Factor:
        features, n = directions, len(directions)
        buffer, waiting = self._buffer, self._waiting
        room = min(max(self.folded.count, _FIRST_ROWS), _BUFFER_ROWS)
        if n == 1 and weights is None and waiting < room and buffer is not None and buffer.used == waiting:
            buffer.add_one(features[0], float(rewards[0]))  # the usual step
            return Factor(self.dim, self.count + 1, self.weight2 + 1.0, self.folded, buffer, waiting + 1, memory)
        if weights is not None:
            features, rewards = weights[:, None] * features, weights * rewards
        folded = self.folded
        if waiting + n > room:
            folded, buffer, waiting = self._settled(), None, 0
        if n > _BUFFER_ROWS:
            matrix = folded.matrix
            for start in range(0, n, _CHUNK_ROWS):
                part = slice(start, start + _CHUNK_ROWS)
                matrix = folded_in(matrix, np.column_stack((features[part], rewards[part])))
            folded = Folded(matrix, folded.count + n, folded.error)
        else:
            # Rows of a value that another one has extended already are copied.
            if buffer is None or buffer.used != waiting:
                buffer = _Buffer(self.dim + 1) if buffer is None else buffer.first(waiting)
            buffer.add(features, rewards)
            waiting += n
        return Factor(
            self.dim,
            count=self.count + n,
            weight2=self.weight2 + (n if weights is None else float(weights @ weights)),
            folded=folded,
            buffer=buffer,
            waiting=waiting,
            memory=memory,
        )

    def _settled(self) -> Folded:
        """Everything seen, folded in for good."""
        return self.folded if not self._waiting else Folded(self.factor, self.count, self.folded.error)

    def merge(self, other: Factor, memory: Any = None) -> Factor:
        """Both data sets together, by QR of the stacked factors."""
        return Factor(
            self.dim,
            count=self.count + other.count,
            weight2=self.weight2 + other.weight2,
            folded=Folded(
                folded_in(self.factor, other.factor),
                self.count + other.count,
                max(self.folded.error, other.folded.error),
            ),
            memory=memory,
        )

    @lazy
    def factor(self) -> Array:
        """The upper-triangular factor C of everything seen, (d+1, d+1); rows may be zero while t ≤ d."""
        if self._buffer is None or not self._waiting:
            return self.folded.matrix
        return folded_in(self.folded.matrix, self._buffer.rows[: self._waiting])

    @property
    def sizes2(self) -> tuple[float, float]:
        """The squared lengths of Φ, as a vector, and of r."""
        inside2, rewards2 = self.folded.sizes2
        if self._buffer is None:
            return inside2, rewards2
        more = self._buffer.totals[self._waiting]
        return inside2 + more[0], rewards2 + more[1]

    def rounding(self, reach: float) -> float:
        """How far the factor's residual ‖Φθ − r‖ at parameters of norm `reach` may be from the true one."""
        inside2, rewards2 = self.sizes2
        relative = 4.0 * math.sqrt(self.dim) * _EPS + self.folded.error
        return relative * (math.sqrt(inside2) * reach + math.sqrt(rewards2))

    @property
    def residual(self) -> float:
        """The least-squares residual ‖Φθ − r‖², or less where Φ is nearly singular."""
        return float(self.factor[-1, -1]) ** 2

    @property
    def early_residual(self) -> float:
        """The same of the rows folded in: more rows leave no less."""
        return float(self.folded.matrix[-1, -1]) ** 2

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
        left, singular, right = svd(rows)
        z = left.T @ rewards
        rank = numerical_rank(singular, self.dim)
        outside = float(unexplained @ unexplained)
        return Spectrum(singular[:rank], right[:rank].T, z[:rank], outside, singular[rank:], z[rank:])

    def ridge(self, alpha: float) -> Ridge:
        """Ridge regression at α: that of the rows folded in, and a step for each row that waits."""
        known = self._ridges.get(alpha)
        if known is None:
            known = self._ridges[alpha] = self._stepped(alpha)
        return known

    def _stepped(self, alpha: float) -> Ridge:
        buffer = self._buffer
        if buffer is None or not self._waiting:
            return self.folded.ridge(alpha)
        done, ridge = buffer.ridges.get(alpha, (0, None))
        if ridge is None or done > self._waiting:
            done, ridge = 0, self.folded.ridge(alpha)
        for number in range(done, self._waiting):
            row = buffer.rows[number]
            ridge = ridge.after(row[:-1], float(row[-1]), buffer.sizes2[number])
        _make_room(buffer.ridges)
        buffer.ridges[alpha] = self._waiting, ridge
        return ridge

    def loss(self, alpha: float) -> float:
        return self.ridge(alpha).loss

    def near_residual(self, alpha: float, reach: float | None) -> float:
        ridge = self.ridge(alpha)
        return max(ridge.loss + ridge.towards(reach), 0.0)

    def towards(self, alpha: float, reach: float) -> float:
        return self.ridge(alpha).towards(reach)

    def state_dict(self) -> dict[str, Any]:
        # The buffer is stored as it is, not folded: a resumed run then repeats the same roundings.
        waiting = np.empty((0, self.dim + 1)) if self._buffer is None else self._buffer.rows[: self._waiting]
        return {
            "dim": self.dim,
            "count": self.count,
            "weight2": self.weight2,
            "factor": self.folded.matrix.copy(),
            "buffer": waiting.copy(),
            **({"error": self.folded.error} if self.folded.error else {}),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], memory: Any = None) -> Factor:
        stored = checked(STATISTICS, state, "statistics")
        dim = stored["dim"]
        waiting = stored["buffer"].reshape(-1, dim + 1)
        folded, buffer = np.array(stored["factor"], order="F"), _Buffer(dim + 1)
        buffer.add(waiting[:, :-1], waiting[:, -1])
        options = {"count": stored["count"], "weight2": stored["weight2"], "waiting": len(waiting), "memory": memory}
        settled = Folded(folded, stored["count"] - len(waiting), stored["error"])
        return cls(dim, folded=settled, buffer=buffer, **options)


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
        "error": Since(real(nonnegative), 0.0),
    },
    _check_statistics,
)
"""The state of a `Factor`."""


def numerical_rank(singular: Array, dim: int) -> int:
    """How many singular values, in decreasing order, exceed rounding error of the largest and `_NOTHING`."""
    if not len(singular):
        return 0
    threshold = max(dim * _EPS * float(singular[0]), _NOTHING)
    return len(singular) if singular[-1] > threshold else int(np.count_nonzero(singular > threshold))


def _make_room(ridges: dict[float, Any]) -> None:
    """Forget the oldest multiplier if there are too many."""
    if len(ridges) >= _MOST_RIDGES:
        del ridges[next(iter(ridges))]


def factor_of(data: Data) -> Factor | None:
    """The data, if they are those of features."""
    return data if isinstance(data, Factor) else None


def as_factor(data: Data) -> Factor:
    """The data, which must be those of features."""
    assert isinstance(data, Factor)
    return data


def spread_of(data: Data) -> Any:
    """How rows spread, which a closed form may start from; None where that takes some work."""
    return data.folded.spread if isinstance(data, Factor) and not data.folded.is_scarce else None

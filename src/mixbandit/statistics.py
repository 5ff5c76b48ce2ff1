"""What a sequence remembers of its data: the triangular QR factor of [Φ r].

| symbol | meaning | shape |
|---|---|---|
| Φ, r | feature rows and rewards seen so far | (t, d), (t,) |
| C | upper-triangular factor, CᵀC = [Φ r]ᵀ[Φ r] | (d+1, d+1) |
| A diag(√s) Uᵀ | singular value decomposition of ΦL, L a root of a covariance or I | |
| z | Aᵀ(r − Φθ₀), the rewards in those coordinates | (rank,) |

The factor holds everything that a fixed linear mixture needs, in O(d²) memory. Its singular values give
those of Φ without squaring the condition number, and what lies outside the range of Φ stays a sum of
squares. Forming ΦᵀΦ, Φᵀr and rᵀr instead loses digits that the bounds need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._validation import Array
from mixbandit.errors import DamagedState, reading

_EPS = float(np.finfo(np.float64).eps)
# Rows wait in a buffer of this many before they are folded into the factor for good. A query folds them
# into a copy, so that reading never changes what is remembered; roundings of the factor happen once in so
# many rows; and cost and memory per row stay constant.
_BUFFER_ROWS = 32
_CHUNK_ROWS = 4096
# Singular values whose squares would vanish.
_NOTHING = 1e-50
# Ridge regression from the triangular factor alone is used up to this ratio of its largest entry to √α.
_WELL_CONDITIONED = 1e5
# Panel width of LAPACK's triangular-pentagonal QR; 8 was fastest for d = 20 and d = 100.
_PANEL = 8


@dataclass(frozen=True)
class Spectrum:
    """The data seen through the singular value decomposition of ΦL (L = I unless a root was given)."""

    singular: Array  # √s, (rank,), all > 0, decreasing
    basis: Array  # U, (d, rank), orthonormal columns
    z: Array  # coordinates of r − Φθ₀ in the range of ΦL, (rank,)
    outside: float  # squared norm of what no parameter explains
    lost_singular: Array  # singular values below the rounding error of the largest, (k,)
    lost_z: Array  # coordinates of r − Φθ₀ along them, (k,)

    @property
    def rank(self) -> int:
        return len(self.singular)

    def residual(self, reach: float) -> float:
        """The least squared residual of parameters of norm at most `reach`, but for what the range explains.

        Along a lost direction a parameter explains at most singular value times reach, and rounding some more.
        Where that is nothing, this is the least-squares residual; where it is not, to count all of z would be to
        call explained rewards noise.
        """
        unexplained = np.maximum(np.abs(self.lost_z) - self.lost_singular * reach - self.rounding(reach), 0.0)
        return self.outside + float(unexplained @ unexplained)

    def rounding(self, reach: float) -> float:
        """The rounding error of a residual at parameters of norm `reach`."""
        top = float(self.singular[0]) if self.rank else 0.0
        return 4.0 * len(self.basis) * _EPS * (top * reach + float(np.linalg.norm(self.z)))


@dataclass(frozen=True)
class Ridge:
    """Ridge regression at one α: all that a closed-form bound needs."""

    alpha: float
    inverse: Array  # R⁻¹, upper triangular, of the R with RᵀR = V = ΦᵀΦ + αI, (d, d)
    theta: Array  # θ̂_α, (d,)
    log_det: float  # ln det(ΦᵀΦ/α + I)
    is_accurate: bool  # whether rounding, which is relative to R's largest entry, leaves ten digits of √α


class Statistics:
    """The QR factor of [Φ r], fed one row or a block at a time."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.weight2 = 0.0  # sum of squared row weights: count, unless rows came with weights
        self._factor: Array = np.zeros((dim + 1, dim + 1), order="F")
        self._buffer: Array = np.empty((_BUFFER_ROWS, dim + 1))
        self._buffered = 0
        self._folded: Array | None = None  # the factor with the buffer folded in, until the next update

    def update(self, features: Array, rewards: Array, weights: Array | None = None) -> None:
        """Add rows (n, d) with rewards (n,), both checked already, each times its weight (n,)."""
        n = len(features)
        if weights is not None:
            features, rewards = weights[:, None] * features, weights * rewards
        self.weight2 += n if weights is None else float(weights @ weights)
        self.count += n
        if self._buffered + n > _BUFFER_ROWS:
            self._factor, self._buffered = self.factor(), 0
        self._folded = None
        if n > _BUFFER_ROWS:
            for start in range(0, n, _CHUNK_ROWS):
                part = slice(start, start + _CHUNK_ROWS)
                self._factor = _fold(self._factor, np.column_stack((features[part], rewards[part])))
            return
        rows = self._buffer[self._buffered : self._buffered + n]
        rows[:, :-1] = features
        rows[:, -1] = rewards
        self._buffered += n

    def factor(self) -> Array:
        """The upper-triangular factor C of everything seen, (d+1, d+1); rows may be zero while t ≤ d."""
        if not self._buffered:
            return self._factor
        if self._folded is None:
            self._folded = _fold(self._factor, self._buffer[: self._buffered])
        return self._folded

    def residual(self) -> float:
        """The least-squares residual ‖Φθ − r‖², or less where Φ is nearly singular."""
        return float(self.factor()[-1, -1] ** 2)

    def spectrum(self, shift: Array | None = None, root: Array | None = None) -> Spectrum:
        """Decompose ΦL with rewards r − Φθ₀, for θ₀ = `shift` (default 0) and L = `root` (default I)."""
        factor = self.factor()
        used = factor[:, :-1].any(axis=1)
        rows, rewards = factor[used, :-1], factor[used, -1]
        unexplained = factor[~used, -1]
        if shift is not None:
            rewards = rewards - rows @ shift
        if root is not None:
            rows = rows @ root
        left, singular, right = np.linalg.svd(rows, full_matrices=False)
        z = left.T @ rewards
        rank = numerical_rank(singular, self.dim)
        outside = float(unexplained @ unexplained)
        return Spectrum(singular[:rank], right[:rank].T, z[:rank], outside, singular[rank:], z[rank:])

    def ridge(self, alpha: float) -> Ridge:
        """Ridge regression at α, by QR of the factor stacked on √αI."""
        from scipy.linalg import lapack

        d = self.dim
        penalty = np.zeros((d, d + 1), order="F")
        np.fill_diagonal(penalty, math.sqrt(alpha))
        # The d: the penalty is upper trapezoidal, and stays so while it is folded in.
        folded, _, _, info = lapack.dtpqrt(d, min(_PANEL, d + 1), self.factor(), penalty)
        if info != 0:
            raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
        root = folded[:d, :d]
        inverse, info = lapack.dtrtri(root)
        if info != 0:
            raise RuntimeError(f"LAPACK's dtrtri returned {info}")
        return Ridge(
            alpha=alpha,
            inverse=np.asarray(inverse),
            theta=np.asarray(inverse @ folded[:d, d]),
            log_det=float(2.0 * np.log(np.abs(np.diagonal(root)) / math.sqrt(alpha)).sum()),
            is_accurate=float(np.abs(root).max()) <= _WELL_CONDITIONED * math.sqrt(alpha),
        )

    def merged(self, other: Statistics) -> Statistics:
        """The statistics of both data sets together, by QR of the stacked factors."""
        new = Statistics(self.dim)
        new.count, new.weight2 = self.count + other.count, self.weight2 + other.weight2
        new._factor = _fold(self.factor(), other.factor())
        return new

    def copy(self) -> Statistics:
        new = Statistics(self.dim)
        new.count, new.weight2, new._buffered = self.count, self.weight2, self._buffered
        new._factor = self._factor.copy(order="F")
        new._buffer[: self._buffered] = self._buffer[: self._buffered]
        return new

    def state_dict(self) -> dict[str, Any]:
        # The buffer is stored as it is, not folded: a resumed run then repeats the same roundings.
        return {
            "dim": self.dim,
            "count": self.count,
            "weight2": self.weight2,
            "factor": self._factor.copy(),
            "buffer": self._buffer[: self._buffered].copy(),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Statistics:
        with reading("the statistics"):
            new = cls(int(state["dim"]))
            new.count, new.weight2 = int(state["count"]), float(state["weight2"])
            width = new.dim + 1
            factor, buffer = (
                np.asarray(state["factor"], dtype=np.float64),
                np.asarray(state["buffer"], dtype=np.float64),
            )
            buffer = buffer.reshape(-1, width) if buffer.size else np.empty((0, width))
        upper = factor.shape == (width, width) and not np.tril(factor, -1).any()
        if not upper or new.count != state["count"] or len(buffer) > min(_BUFFER_ROWS, new.count):
            raise DamagedState(
                f"the statistics of {new.count} rows in dimension {new.dim} came with a factor of shape "
                f"{factor.shape} and {len(buffer)} buffered rows"
            )
        if not (np.isfinite(factor).all() and np.isfinite(buffer).all()):
            raise DamagedState("the statistics contain NaN or infinity")
        new._factor[:] = factor
        new._buffer[: len(buffer)] = buffer
        new._buffered = len(buffer)
        return new


def numerical_rank(singular: Array, dim: int) -> int:
    """How many singular values, in decreasing order, are more than rounding error of the largest, or than nothing."""
    threshold = np.maximum(dim * _EPS * singular[:1], _NOTHING)
    return int(np.count_nonzero(singular > threshold))


def _fold(factor: Array, rows: Array) -> Array:
    """The triangular factor of `factor` stacked on `rows`; the arguments are left as they are."""
    from scipy.linalg import lapack  # a third of the time to import the package, if imported above

    # The zero: `rows` is a full rectangle, without a triangular part of its own.
    folded, _, _, info = lapack.dtpqrt(0, min(_PANEL, len(factor)), factor, rows)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
    return np.asarray(folded)

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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._validation import Array
from mixbandit.errors import DamagedState

# Rows wait in a buffer of this many before they are folded into the factor for good. A query folds them
# into a copy, so that reading never changes what is remembered; roundings of the factor happen once in so
# many rows; and cost and memory per row stay constant.
_BUFFER_ROWS = 32
_CHUNK_ROWS = 4096
# Panel width of LAPACK's triangular-pentagonal QR; 8 was fastest for d = 20 and d = 100.
_PANEL = 8


@dataclass(frozen=True)
class Spectrum:
    """The data seen through the singular value decomposition of ΦL (L = I unless a root was given)."""

    singular: Array  # √s, (rank,), all > 0, decreasing
    basis: Array  # U, (d, rank), orthonormal columns
    z: Array  # coordinates of r − Φθ₀ in the range of ΦL, (rank,)
    rss: float  # squared norm of the rest of r − Φθ₀: the least-squares residual

    @property
    def rank(self) -> int:
        return len(self.singular)


class Statistics:
    """The QR factor of [Φ r], fed one row or a block at a time."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.weight2 = 0.0  # sum of squared row weights: count, unless rows came with weights
        self._factor: Array = np.zeros((dim + 1, dim + 1), order="F")
        self._buffer: Array = np.empty((_BUFFER_ROWS, dim + 1))
        self._buffered = 0

    def update(self, features: Array, rewards: Array, weights: Array | None = None) -> None:
        """Add rows (n, d) with rewards (n,), both checked already, each times its weight (n,)."""
        n = len(features)
        if weights is not None:
            features, rewards = weights[:, None] * features, weights * rewards
        self.weight2 += n if weights is None else float(weights @ weights)
        self.count += n
        if self._buffered + n > _BUFFER_ROWS:
            self._factor, self._buffered = self.factor(), 0
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
        return _fold(self._factor, self._buffer[: self._buffered])

    def residual_norm2(self, theta: Array) -> float:
        """‖Φθ − r‖², a sum of squares."""
        residual = self.factor() @ np.append(theta, -1.0)
        return float(residual @ residual)

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
        # Singular values below the rounding error of the largest carry no information: they count as 0,
        # and so does what the rewards have along them.
        rank = int(np.count_nonzero(singular > self.dim * np.finfo(np.float64).eps * singular[:1]))
        rss = float(unexplained @ unexplained + z[rank:] @ z[rank:])
        return Spectrum(singular[:rank], right[:rank].T, z[:rank], rss)

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
        try:
            new = cls(int(state["dim"]))
            new.count, new.weight2 = int(state["count"]), float(state["weight2"])
            factor, buffer = np.asarray(state["factor"]), np.asarray(state["buffer"])
        except KeyError as error:
            raise DamagedState(f"the state of the statistics lacks {error}") from error
        width = new.dim + 1
        buffer = buffer.reshape(-1, width) if buffer.size else np.empty((0, width))
        if factor.shape != (width, width) or len(buffer) > min(_BUFFER_ROWS, new.count):
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


def _fold(factor: Array, rows: Array) -> Array:
    """The triangular factor of `factor` stacked on `rows`; the arguments are left as they are."""
    from scipy.linalg import lapack  # a third of the time to import the package, if imported above

    # The zero: `rows` is a full rectangle, without a triangular part of its own.
    folded, _, _, info = lapack.dtpqrt(0, min(_PANEL, len(factor)), factor, rows)
    if info != 0:
        raise RuntimeError(f"LAPACK's dtpqrt refused argument {-info}")
    return np.asarray(folded)

"""Ridge regressions of many arms, each with its own rewards, as one value: `after` returns another one.

| symbol | meaning | shape |
|---|---|---|
| V_k = Φ_kᵀΦ_k + αI | Gram matrix of arm k's rows, with the ridge that all arms share | (d, d) |
| W_k | a root of its inverse: W_kW_kᵀ = V_k⁻¹ | (d, d) |
| q_k = W_kᵀΦ_kᵀr_k | its rewards in the coordinates of W_k, so that θ̂_k = W_kq_k | (d,) |
| w = φᵀV_k⁻¹φ = ‖W_kᵀφ‖² | the squared width of a direction | |

A decision needs φᵀθ̂_k and w for every arm: one product of φ with the stacked matrices (W_kᵀ; θ̂_k). Learning a reward
changes one arm. Arms stand in groups of a few hundred kilobytes; the next value shares all groups but the arm's own, so
that old values stay, and a step costs the same however many arms there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, positive
from mixbandit._schema import array, checked, integer, real, record, require
from mixbandit.data.products import MOST_ENTRIES, ridge_step, times
from mixbandit.data.ridge import Ridge

# A group is copied at every step: this many numbers take about as long as the rest of it.
_GROUP_ENTRIES = 32768
# Each step may leave an error of this size, relative to the lengths of what it computes with.
_EPS = float(np.finfo(np.float64).eps)

LOG_DET, LOSS, SIZE2, NORM2, SLACK, COUNT = range(6)
"""The columns of `numbers`: ln det(Φ_kᵀΦ_k/α + I); min_θ ‖Φ_kθ − r_k‖² + α‖θ‖²; the sum of squared lengths of rows;
‖θ̂_k‖²; at least the relative error of W_k; how many rewards."""

_dots = getattr(np, "vecdot", None) or (lambda a, b: np.einsum("kd,kd->k", a, b))


class _Group(NamedTuple):
    """Some arms."""

    stack: Array  # (m, d+2, d): the rows of W_kᵀ, then θ̂_k, then q_k
    numbers: Array  # (m, 6)


class Ridges:
    """A ridge regression per arm, at one α."""

    def __init__(self, alpha: float, dim: int, groups: tuple[_Group, ...] = ()) -> None:
        self.alpha, self.dim, self._groups = alpha, dim, groups
        self._room = max(_GROUP_ENTRIES // ((dim + 2) * dim), 1)  # arms in a full group

    def __len__(self) -> int:
        """How many arms there are."""
        return (len(self._groups) - 1) * self._room + len(self._groups[-1].stack) if self._groups else 0

    @property
    def numbers(self) -> Array:
        """What is known of every arm besides its matrix, (K, 6)."""
        return np.concatenate([group.numbers for group in self._groups] or [np.empty((0, 6))])

    def of(self, arm: int) -> Ridge:
        """One arm's ridge regression."""
        group, place = self._find(arm)
        stack, numbers, d = group.stack[place], group.numbers[place].tolist(), self.dim
        peak2 = self.alpha + numbers[SIZE2]
        return Ridge(
            self.alpha, stack[:d].T, stack[d], stack[d + 1], numbers[LOG_DET], numbers[LOSS], peak2, numbers[NORM2]
        )

    def numbers_of(self, arm: int) -> list[float]:
        """What is known of one arm besides its matrix."""
        group, place = self._find(arm)
        found: list[float] = group.numbers[place].tolist()
        return found

    def measured(self, row: Array, arms: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """φᵀθ̂_k and w of one direction (d,) for all arms, or for some, given in increasing order; (K,) each."""
        stacks = self._stacks(arms)
        if len(stacks) == 1:
            return self._measured(stacks[0], row)
        found = [self._measured(stack, row) for stack in stacks]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([w for _, w in found])

    def measured_each(self, rows: Array, arms: NDArray[np.int64]) -> tuple[Array, Array]:
        """φᵀθ̂_k and w of directions (n, d), each for an arm of its own (n,); in any order, (n,) each."""
        means, w, d = np.empty(len(rows)), np.empty(len(rows)), self.dim
        homes = arms // self._room
        for home in np.unique(homes):
            own = np.flatnonzero(homes == home)
            stack = self._groups[home].stack
            # No more than a group is copied at once.
            for start in range(0, len(own), self._room):
                part = own[start : start + self._room]
                if d * (d + 2) > MOST_ENTRIES:
                    found = np.array([times(stack[arms[i] - home * self._room], rows[i]) for i in part])
                else:
                    found = np.matmul(stack[arms[part] - home * self._room], rows[part][:, :, None])[:, :, 0]
                means[part], w[part] = found[:, d], _dots(found[:, :d], found[:, :d])
        return means, w

    def after(self, arm: int, row: Array, reward: float) -> Ridges:
        """With one more row (d,) of an arm, and its reward."""
        home, place = divmod(arm, self._room)
        group, d = self._groups[home], self.dim
        stack, numbers = group.stack.copy(), group.numbers.copy()
        own, known = stack[place], numbers[place]
        _, own[d], own[d + 1], w, error, norm2 = ridge_step(own[:d].T, own[d], own[d + 1], row, reward, in_place=True)
        size2 = float(row @ row)
        known += (
            np.log1p(w), error * error / (1.0 + w), size2, 0.0,
            # u = Wᵀφ is known up to eps·‖W‖‖φ‖, and W moves along u by u/(1 + w).
            8.0 * d * _EPS * (1.0 + np.sqrt(size2 / self.alpha * w) / (1.0 + w)), 1.0,
        )  # fmt: skip
        known[NORM2] = norm2
        groups = (*self._groups[:home], _Group(stack, numbers), *self._groups[home + 1 :])
        return Ridges(self.alpha, d, groups)

    def extended(self, more: int) -> Ridges:
        """With more arms, of which nothing is known."""
        groups, left = list(self._groups), more
        while left:
            if not groups or len(groups[-1].stack) == self._room:
                groups.append(_Group(np.empty((0, self.dim + 2, self.dim)), np.empty((0, 6))))
            last = groups[-1]
            new = min(left, self._room - len(last.stack))
            stack = np.zeros((new, self.dim + 2, self.dim))
            stack[:, : self.dim] = np.eye(self.dim) / np.sqrt(self.alpha)
            groups[-1] = _Group(np.concatenate((last.stack, stack)), np.concatenate((last.numbers, np.zeros((new, 6)))))
            left -= new
        return Ridges(self.alpha, self.dim, tuple(groups))

    def mapped(self, change: Array) -> Ridges:
        """As if every row φ had been Aφ, for A = `change` (d', d); the ridge is αI as before."""
        new_dim = len(change)
        unknown = Ridges(self.alpha, new_dim).extended(len(self))
        stack, numbers = unknown._flat()
        old, known = self._flat()
        seen = np.flatnonzero(known[:, COUNT])
        for arm in seen:  # in a loop, because a batch of large matrices would take much memory
            stack[arm], numbers[arm] = _mapped(old[arm], known[arm], self.alpha, change)
        return Ridges._of_flat(self.alpha, new_dim, stack, numbers)

    def state_dict(self) -> dict[str, Any]:
        stack, numbers = self._flat()
        return {"alpha": self.alpha, "dim": self.dim, "stack": stack, "numbers": numbers}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Ridges:
        stored = checked(RIDGES, state, "ridges")
        return cls._of_flat(stored["alpha"], stored["dim"], stored["stack"], stored["numbers"])

    def _flat(self) -> tuple[Array, Array]:
        """Everything, in two arrays."""
        stacks = [group.stack for group in self._groups]
        return np.concatenate(stacks or [np.empty((0, self.dim + 2, self.dim))]), self.numbers

    @classmethod
    def _of_flat(cls, alpha: float, dim: int, stack: Array, numbers: Array) -> Ridges:
        room = cls(alpha, dim)._room
        starts = range(0, len(stack), room)
        return cls(alpha, dim, tuple(_Group(stack[i : i + room].copy(), numbers[i : i + room].copy()) for i in starts))

    def _find(self, arm: int) -> tuple[_Group, int]:
        home, place = divmod(arm, self._room)
        return self._groups[home], place

    def _stacks(self, arms: NDArray[np.int64] | None) -> list[Array]:
        """The matrices of all arms, or of some."""
        if arms is None:
            return [group.stack for group in self._groups] or [np.empty((0, self.dim + 2, self.dim))]
        found, first = [], 0
        while first < len(arms):
            home = int(arms[first]) // self._room
            last = int(np.searchsorted(arms, (home + 1) * self._room))
            stack = self._groups[home].stack
            # Copies of what is left out would cost as much as its products.
            found.append(stack if last - first == len(stack) else stack[arms[first:last] - home * self._room])
            first = last
        return found or [np.empty((0, self.dim + 2, self.dim))]

    def _measured(self, stack: Array, row: Array) -> tuple[Array, Array]:
        d = self.dim
        if d * (d + 2) > MOST_ENTRIES:
            found = np.array([times(matrix, row) for matrix in stack]).reshape(len(stack), d + 2)
        else:
            found = np.matmul(stack, row)
        inside = found[:, :d]
        return found[:, d], _dots(inside, inside)


def _mapped(matrix: Array, known: Array, alpha: float, change: Array) -> tuple[Array, Array]:
    """One arm's matrix and numbers after a linear change of its rows."""
    d = matrix.shape[1]
    half = np.linalg.inv(matrix[:d])  # V = W⁻ᵀW⁻¹, and matrix[:d] = Wᵀ
    moment = change @ (half @ matrix[d + 1])
    gram = change @ (half @ half.T - alpha * np.eye(d)) @ change.T
    wide = len(change)
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    spread = np.maximum(values, 0.0) + alpha  # no rounding error makes a Gram matrix negative
    new = np.empty((wide + 2, wide))
    new[:wide] = (vectors / np.sqrt(spread)).T
    new[wide + 1] = new[:wide] @ moment
    new[wide] = new[wide + 1] @ new[:wide]
    total = known[LOSS] + float(matrix[d + 1] @ matrix[d + 1])  # rᵀr
    numbers = known.copy()
    numbers[LOG_DET] = float(np.log(spread / alpha).sum())
    numbers[LOSS] = max(total - float(new[wide + 1] @ new[wide + 1]), 0.0)
    numbers[SIZE2], numbers[NORM2] = float(np.maximum(values, 0.0).sum()), float(new[wide] @ new[wide])
    return new, numbers


def _check_ridges(stored: dict[str, Any], where: str) -> None:
    d, arms = stored["dim"], len(stored["stack"])
    require(stored["stack"].shape == (arms, d + 2, d), f"{where}.stack", f"must have shape ({arms}, {d + 2}, {d})")
    require(stored["numbers"].shape == (arms, 6), f"{where}.numbers", f"must have shape ({arms}, 6)")
    require((stored["numbers"] >= 0.0).all(), f"{where}.numbers", "must not be negative")


RIDGES = record(
    {"alpha": real(positive), "dim": integer(1), "stack": array(None, None, None), "numbers": array(None, None)},
    _check_ridges,
)
"""The state of a `Ridges`."""

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

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, multiplier
from mixbandit._lazy import blas, lapack
from mixbandit._schema import array, checked, integer, real, record, require
from mixbandit._threads import MOST_ENTRIES, single_threaded
from mixbandit.data.products import ridge_step, times
from mixbandit.data.ridge import Ridge

# A group is copied at every step: this many numbers take about as long as the rest of it.
_GROUP_ENTRIES = 32768
# The products of several rows are made for this many numbers at once.
_PRODUCT_ENTRIES = 131072
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


class Residual(NamedTuple):
    """How far a reward was from its prediction."""

    error: float  # e = r − φᵀθ̂
    width2: float  # w, before the reward was learnt

    @property
    def share(self) -> float:
        """e²/(1 + w): a share of what all errors say about the noise."""
        return self.error * self.error / (1.0 + self.width2)


class About(NamedTuple):
    """What is known of an arm besides its ridge regression."""

    size2: float  # the sum of squared lengths of its rows
    slack: float  # at least the relative error of W
    rewards: int  # how many there were


class Ridges:
    """A ridge regression per arm, at one α. With `apart`, each is a group of its own, which suits those who ask for
    means only.
    """

    def __init__(self, alpha: float, dim: int, groups: tuple[_Group, ...] = (), *, apart: bool = False) -> None:
        self.alpha, self.dim, self.apart, self._groups = alpha, dim, apart, groups
        self._room = 1 if apart else max(_GROUP_ENTRIES // ((dim + 2) * dim), 1)  # arms in a full group
        self._thetas: Array | None = None  # (K, d), once means were asked for

    def _regrouped(self, groups: Sequence[_Group]) -> Ridges:
        return Ridges(self.alpha, self.dim, tuple(groups), apart=self.apart)

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

    def about(self, arm: int) -> About:
        """What is known of one arm besides its ridge regression."""
        group, place = self._find(arm)
        _, _, size2, _, slack, count = group.numbers[place].tolist()
        return About(size2, slack, int(count))

    def means(self, row: Array, arms: NDArray[np.int64] | None = None) -> Array:
        """φᵀθ̂_k of one direction (d,) for all arms, or for some, given in increasing order; (K,)."""
        found = times(self.thetas, row)
        return found if arms is None else found[arms]

    @property
    def thetas(self) -> Array:
        """θ̂ of every arm, (K, d)."""
        if self._thetas is None:
            self._thetas = np.concatenate([group.stack[:, self.dim] for group in self._groups])
        return self._thetas

    def measured(self, row: Array, arms: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """φᵀθ̂_k and w of one direction (d,) for all arms, or for some, given in increasing order; (K,) each."""
        if arms is None and len(self._groups) == 1:
            return self._measured(self._groups[0].stack, row)
        found = [self._measured(stack, row) for stack in self._stacks(arms)]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([w for _, w in found])

    def measured_many(self, rows: Array, arms: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """`measured` of several directions (n, d), bit for bit the same; (n, K) each."""
        parts = [self._measured_many(stack, rows) for stack in self._stacks(arms)]
        return np.concatenate([mean for mean, _ in parts], axis=1), np.concatenate([w for _, w in parts], axis=1)

    def measured_rows(self, arm: int, rows: Array) -> tuple[Array, Array]:
        """φᵀθ̂_k and w of several directions (n, d) for one arm; (n,) each."""
        group, place = self._find(arm)
        matrix, d = group.stack[place], self.dim
        if d * (d + 2) > MOST_ENTRIES:
            found = np.array([times(matrix, row) for row in rows]).reshape(len(rows), d + 2)
        else:
            found, most = np.empty((len(rows), d + 2)), _PRODUCT_ENTRIES // (d * (d + 2))
            for start in range(0, len(rows), most):  # OpenBLAS uses threads from 262,144 multiplications on
                np.matmul(rows[start : start + most], matrix.T, out=found[start : start + most])
        inside = found[:, :d]
        return found[:, d], _dots(inside, inside)

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

    def learnt(self, arm: int, row: Array, reward: float) -> tuple[Ridges, Residual]:
        """With one more row (d,) of an arm, and its reward; and the error before it."""
        home, place = divmod(arm, self._room)
        groups = self._groups
        stack, numbers = groups[home]
        own = _Group(stack.copy(), numbers.copy())
        error = _step(own.stack, own.numbers, place, row, reward, self.alpha)
        new = object.__new__(Ridges)
        new.alpha, new.dim, new.apart, new._room = self.alpha, self.dim, self.apart, self._room
        thetas = self._thetas
        if thetas is not None:
            thetas = thetas.copy()
            thetas[arm] = own.stack[place, self.dim]
        new._thetas = thetas
        new._groups = (own,) if len(groups) == 1 else (*groups[:home], own, *groups[home + 1 :])
        return new, error

    def stepped(
        self, arms: Sequence[int], rows: Sequence[Array] | Array, rewards: Sequence[float]
    ) -> tuple[Ridges, list[Residual]]:
        """`learnt` with several rows, each of an arm of its own, one after the other: the same, bit for bit.

        A group is copied once, however many of its arms learn.
        """
        groups, errors, room = list(self._groups), [], self._room
        copied: dict[int, _Group] = {}
        for arm, row, reward in zip(arms, rows, rewards, strict=True):
            home = arm // room
            own = copied.get(home)
            if own is None:
                stack, numbers = groups[home]
                own = copied[home] = groups[home] = _Group(stack.copy(), numbers.copy())
            errors.append(_step(own.stack, own.numbers, arm - home * room, row, reward, self.alpha))
        return self._regrouped(groups), errors

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
        return self._regrouped(groups)

    def mapped(self, change: Array) -> Ridges:
        """As if every row φ had been Aφ, for A = `change` (d', d); the ridge is αI as before."""
        new = Ridges(self.alpha, len(change), apart=self.apart).extended(len(self))
        stack, numbers = new._flat()
        before, known = self._flat()
        seen, most = np.flatnonzero(known[:, COUNT]), max(_PRODUCT_ENTRIES // max(len(change), self.dim) ** 2, 1)
        for start in range(0, len(seen), most):
            part = seen[start : start + most]
            stack[part], numbers[part] = _mapped(before[part], known[part], change, self.alpha)
        return Ridges._of_flat(self.alpha, new.dim, stack, numbers, apart=self.apart)

    def replaced(self, arm: int, ridge: Ridge, about: About) -> Ridges:
        """With another ridge regression, at the same α, for one arm."""
        home, place = divmod(arm, self._room)
        stack, numbers = self._groups[home].stack.copy(), self._groups[home].numbers.copy()
        stack[place] = np.vstack((ridge.root.T, ridge.theta, ridge.white))
        numbers[place] = ridge.log_det, ridge.loss, about.size2, ridge.norm2, about.slack, about.rewards
        return self._regrouped((*self._groups[:home], _Group(stack, numbers), *self._groups[home + 1 :]))

    def state_dict(self) -> dict[str, Any]:
        stack, numbers = self._flat()
        return {"alpha": self.alpha, "dim": self.dim, "stack": stack, "numbers": numbers}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], *, apart: bool = False) -> Ridges:
        stored = checked(RIDGES, state, "ridges")
        return cls._of_flat(stored["alpha"], stored["dim"], stored["stack"], stored["numbers"], apart=apart)

    def _flat(self) -> tuple[Array, Array]:
        """Everything, in two arrays."""
        stacks = [group.stack for group in self._groups]
        return np.concatenate(stacks or [np.empty((0, self.dim + 2, self.dim))]), self.numbers

    @classmethod
    def _of_flat(cls, alpha: float, dim: int, stack: Array, numbers: Array, *, apart: bool = False) -> Ridges:
        room = cls(alpha, dim, apart=apart)._room
        starts = range(0, len(stack), room)
        groups = tuple(_Group(stack[i : i + room].copy(), numbers[i : i + room].copy()) for i in starts)
        return cls(alpha, dim, groups, apart=apart)

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

    def _measured_many(self, stack: Array, rows: Array) -> tuple[Array, Array]:
        d, n, size = self.dim, len(rows), len(stack)
        if d * (d + 2) > MOST_ENTRIES:
            parts = [self._measured(stack, row) for row in rows]
            return np.reshape([mean for mean, _ in parts], (n, size)), np.reshape([w for _, w in parts], (n, size))
        mean, w = np.empty((n, size)), np.empty((n, size))
        most = max(_PRODUCT_ENTRIES // max(size * (d + 2), 1), 1)
        for start in range(0, n, most):
            part = slice(start, start + most)
            found = np.matmul(stack, rows[part, None, :, None])[..., 0]  # one product per arm and row, as of one row
            mean[part], w[part] = found[..., d], _dots(found[..., :d], found[..., :d])
        return mean, w


def _step(stack: Array, numbers: Array, place: int, row: Array, reward: float, alpha: float) -> Residual:
    """A step of one arm, in place."""
    own, d = stack[place], len(row)
    _, _, _, w, error, norm2 = ridge_step(own[:d].T, own[d], own[d + 1], row, reward, in_place=True)
    log_det, loss, size2, _, slack, count = numbers[place].tolist()
    more2, lost = blas().ddot(row, row), error * error / (1.0 + w)
    # u = Wᵀφ is known up to eps·‖W‖‖φ‖, and W moves along u by u/(1 + w).
    slack += 8.0 * d * _EPS * (1.0 + math.sqrt(more2 / alpha * w) / (1.0 + w))
    numbers[place] = log_det + math.log1p(w), loss + lost, size2 + more2, norm2, slack, count + 1.0
    return Residual(error, w)


@single_threaded
def _mapped(stack: Array, known: Array, change: Array, alpha: float) -> tuple[Array, Array]:
    """The matrices and numbers of several arms after a linear change of their rows."""
    d, wide = stack.shape[2], len(change)
    back = np.linalg.inv(stack[:, :d])  # V = W⁻ᵀW⁻¹
    moments = (back @ stack[:, d + 1, :, None])[..., 0] @ change.T
    grams = back @ back.swapaxes(1, 2)
    grams[:, range(d), range(d)] -= alpha
    grams = _between(change, grams)
    diagonal = grams[:, range(wide), range(wide)]
    grams[:, range(wide), range(wide)] += alpha
    lower = _cholesky(grams, alpha)  # V = LLᵀ, W = L⁻ᵀ
    new, numbers = np.empty((len(stack), wide + 2, wide)), known.copy()
    for triangle, inverse in zip(lower, new, strict=True):
        inverse[:wide] = _inverse(triangle)
    white = (new[:, :wide] @ moments[..., None])[..., 0]
    theta = (white[:, None] @ new[:, :wide])[:, 0]
    new[:, wide], new[:, wide + 1] = theta, white
    total = known[:, LOSS] + np.square(stack[:, d + 1]).sum(axis=1)  # rᵀr
    numbers[:, LOG_DET] = 2.0 * np.log(np.abs(lower[:, range(wide), range(wide)]) / math.sqrt(alpha)).sum(axis=1)
    numbers[:, LOSS] = np.maximum(total - np.square(white).sum(axis=1), 0.0)
    numbers[:, NORM2] = np.square(theta).sum(axis=1)
    numbers[:, SIZE2] = np.maximum(diagonal.sum(axis=1), 0.0)
    return new, numbers


def _inverse(lower: Array) -> Array:
    """The inverse of a lower triangular matrix; numpy's takes six times as long."""
    inverse, info = lapack().dtrtri(lower.T)  # as an upper one in Fortran's order, without a copy
    if info:
        raise RuntimeError(f"LAPACK's dtrtri returned {info}")
    return np.asarray(inverse).T


def _cholesky(grams: Array, alpha: float) -> Array:
    """Lower triangular factors of K + αI, (n, d, d)."""
    try:
        return np.asarray(np.linalg.cholesky(grams), dtype=np.float64)
    except np.linalg.LinAlgError:  # rounding errors outweigh α
        values, vectors = np.linalg.eigh(grams)
        roots = (vectors * np.sqrt(np.maximum(values, alpha))[:, None, :]).swapaxes(1, 2)
        return np.asarray(np.linalg.qr(roots, mode="r")).swapaxes(1, 2)


def _between(change: Array, grams: Array) -> Array:
    """AKAᵀ for each K. Changes of scale only stretch and shift: each row of A has one entry beyond the first column."""
    others = change[:, 1:]
    if not others.shape[1] or np.count_nonzero(others, axis=1).max() > 1:
        return np.asarray(change @ grams @ change.T)
    place = np.abs(others).argmax(axis=1) + 1
    stretch, shift = change[np.arange(len(change)), place], change[:, 0]
    left = stretch[:, None] * grams[:, place] + shift[:, None] * grams[:, :1]
    return np.asarray(left[:, :, place] * stretch + left[:, :, :1] * shift)


def _check_ridges(stored: dict[str, Any], where: str) -> None:
    d, arms = stored["dim"], len(stored["stack"])
    require(stored["stack"].shape == (arms, d + 2, d), f"{where}.stack", f"must have shape ({arms}, {d + 2}, {d})")
    require(stored["numbers"].shape == (arms, 6), f"{where}.numbers", f"must have shape ({arms}, 6)")
    require((stored["numbers"] >= 0.0).all(), f"{where}.numbers", "must not be negative")
    counts = stored["numbers"][:, COUNT]
    # Beyond 2^53, one more changes nothing.
    require((counts == np.floor(counts)).all() and (counts < 2.0**53).all(), f"{where}.numbers", "must count rewards")


RIDGES = record(
    {"alpha": real(multiplier), "dim": integer(1), "stack": array(None, None, None), "numbers": array(None, None)},
    _check_ridges,
)
"""The state of a `Ridges`."""

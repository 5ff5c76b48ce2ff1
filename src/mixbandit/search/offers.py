"""Offers: what can be chosen in one decision. Selections: what a rule wants to play of it.

A rule states with what probability it plays each arm; the policy draws. So a log of decisions knows the probability of
each, and can answer later what another rule would have earned.
"""

from __future__ import annotations

import abc
import functools
import math
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbandit._checks import Array, as_float_array, nonnegative, shown
from mixbandit._lazy import lazy
from mixbandit._schema import Fields, checked, count, integer, list_of, real, record, require
from mixbandit.actions import Arms, Box
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.models import Directed
from mixbandit.search.arms import TIE_TOLERANCE, BestArm, best_arm, best_value
from mixbandit.search.box import THOROUGH, Effort, search_box
from mixbandit.search.scores import Score

Entropy = int | Sequence[int] | np.random.Generator
"""The seed of a generator, which is made when needed."""

_SUM_TOLERANCE = 1e-6
_TINY = 1e-300


class Stream:
    """The random numbers of one decision: a numpy Generator that is made when first used, because few need it.

    It has the methods of a Generator; `generator` is the Generator itself.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    @lazy
    def generator(self) -> np.random.Generator:
        """The generator itself."""
        return np.random.default_rng(self._entropy)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.generator, name)


class Shares(NamedTuple):
    """Probabilities of K arms, in little memory: `rest` for all arms but those named."""

    size: int  # K
    arms: tuple[int, ...]  # in increasing order
    values: tuple[float, ...]  # their probabilities
    rest: float = 0.0  # the probability of each other arm

    @classmethod
    def even(cls, size: int, arms: Sequence[int]) -> Shares:
        """The same probability for some arms, given in increasing order."""
        if len(arms) == 1:
            return _certain(size, arms[0])
        return cls(size, tuple(arms), (1.0 / len(arms),) * len(arms))

    @classmethod
    def checked(cls, probabilities: ArrayLike, size: int) -> Shares:
        """Of an array (K,), checked: no probability is negative, and they sum to 1."""
        given = as_float_array(probabilities, "probabilities")
        if given.shape != (size,):
            raise InvalidInput(f"a rule must give each of {size} arms a probability, got shape {given.shape}")
        total = float(given.sum())
        if not (given >= 0.0).all() or not abs(total - 1.0) <= _SUM_TOLERANCE:
            raise InvalidInput(f"probabilities must be at least 0 and sum to 1, got {shown(given)}")
        given = given / total  # what is recorded is what is drawn from
        values, counts = np.unique(given, return_counts=True)
        rest = float(values[counts.argmax()])
        named = np.flatnonzero(given != rest)
        return cls(size, tuple(named.tolist()), tuple(given[named].tolist()), rest)

    def fitting(self, size: int) -> Shares:
        """The same, once checked: `size` arms, no negative probability, a sum of 1."""
        if self.size != size:
            raise InvalidInput(f"a rule must give each of {size} arms a probability, got {self.size}")
        if self.rest == 0.0 and self.values == (1.0,) and len(self.arms) == 1 and 0 <= self.arms[0] < size:
            return self  # the usual case
        if self._is_sound():
            return self
        try:
            checked(SHARES, self.state_dict(), "shares")
        except DamagedState as error:
            raise InvalidInput(f"a rule gave {self}: {error}") from error
        return self

    def _is_sound(self) -> bool:
        """Whether everything is as it must be; what `SHARES` says, in a tenth of its time."""
        size, arms, values, rest = self
        if len(arms) != len(values) or set(map(type, arms)) - {int} or set(map(type, (*values, rest))) - {float}:
            return False
        increasing = all(map(operator.lt, arms, arms[1:])) and (not arms or (arms[0] >= 0 and arms[-1] < size))
        total = sum(values) + rest * (size - len(arms))
        return increasing and min(values, default=0.0) >= 0.0 <= rest and abs(total - 1.0) <= _SUM_TOLERANCE

    def of_arm(self, arm: int) -> float:
        """The probability of an arm."""
        return self.values[self.arms.index(arm)] if arm in self.arms else self.rest

    def array(self) -> Array:
        """All of them, (K,)."""
        found = np.full(self.size, self.rest)
        found[list(self.arms)] = self.values
        return found

    def among(self, places: NDArray[np.int64] | None, size: int) -> Shares:
        """The same for arms that are part of `size` arms, at these places; others have probability 0."""
        if places is None:
            return self
        found = self.array()
        possible = np.flatnonzero(found)
        return Shares(size, tuple(places[possible].tolist()), tuple(found[possible].tolist()))

    def mixed(self, floor: float) -> Shares:
        """(1 − floor) times this, plus `floor` spread evenly over all arms."""
        if self.rest == 0.0 and self.values == (1.0,):
            return _nearly_certain(self.size, self.arms[0], floor)
        least, kept = floor / self.size, 1.0 - floor
        return Shares(
            self.size, self.arms, tuple(kept * value + least for value in self.values), kept * self.rest + least
        )

    def blended(self, arm: int, share: float) -> Shares:
        """(1 − share) times this, plus `share` on an arm."""
        kept = dict(zip(self.arms, self.values, strict=True))
        kept.setdefault(arm, self.rest)
        left = 1.0 - share
        arms = tuple(sorted(kept))
        values = tuple(left * kept[each] + (share if each == arm else 0.0) for each in arms)
        return Shares(self.size, arms, values, left * self.rest)

    def at(self, u: float) -> int:
        """The arm that a uniform number in [0, 1) draws: the named ones first, then the others in order."""
        last = -1
        for arm, value in zip(self.arms, self.values, strict=True):
            if u < value:
                return arm
            u -= value
            last = arm if value else last
        others = self.size - len(self.arms)
        if not (self.rest and others):  # what is left of u is rounding
            return last
        place = min(int(u / self.rest), others - 1)
        for arm in self.arms:  # in increasing order
            place += arm <= place
        return place

    def state_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "arms": list(self.arms), "values": list(self.values)}

    @classmethod
    def from_state_dict(cls, stored: Mapping[str, Any]) -> Shares:
        """Of what `SHARES` describes."""
        return cls(stored["size"], tuple(stored["arms"]), tuple(stored["values"]), stored["rest"])

    def draw(self, rng: np.random.Generator | Stream) -> int:
        """An arm; no random number is drawn if it is certain."""
        if self.rest == 0.0 and len(self.arms) == 1:
            return self.arms[0]
        found = self.array()
        possible = np.flatnonzero(found)
        shares = found[possible]
        if (shares == shares[0]).all():
            return int(rng.choice(possible))
        return int(rng.choice(possible, p=shares / shares.sum()))


@functools.lru_cache(maxsize=4096)
def _certain(size: int, arm: int) -> Shares:
    """One of `size` arms for certain: what most decisions are."""
    return Shares(size, (arm,), (1.0,))


@functools.lru_cache(maxsize=4096)
def _nearly_certain(size: int, arm: int, floor: float) -> Shares:
    """The same, mixed with a floor."""
    least = floor / size
    return Shares(size, (arm,), (1.0 - floor + least,), least)


def _check_shares(stored: Fields, where: str) -> None:
    arms, values, n = stored["arms"], stored["values"], stored["size"]
    require(len(arms) == len(values), f"{where}.values", f"must be as many as arms, {len(arms)}, got {len(values)}")
    require(arms == sorted(set(arms)) and not (arms and arms[-1] >= n), f"{where}.arms", f"must increase, below {n}")
    total = math.fsum(values) + stored["rest"] * (n - len(arms))
    require(abs(total - 1.0) <= _SUM_TOLERANCE, where, f"must sum to 1, got {total:g}")


_SHARE = real(nonnegative)
SHARES = record({"size": integer(1), "arms": list_of(count), "values": list_of(_SHARE), "rest": _SHARE}, _check_shares)


class Selection(NamedTuple):
    """What a rule wants to play."""

    probabilities: Shares | ArrayLike | None  # of the arms offered, (K,); None on a box, where `row` is played
    optimum: float | None = None  # the largest upper bound on φᵀθ of anything offered, if the rule computed it
    row: Array | None = None  # on a box: the action, (dim_in,)
    score: float = math.nan  # the largest score, where one was maximised
    marginal: bool = True  # False: the rule drew the arm by itself, and nobody knows how probable it was before


class Selections(NamedTuple):
    """What a rule wants to play in each of n decisions among K arms."""

    chances: NDArray[Any]  # (n, K), the probabilities up to a factor per decision
    optimum: Array | None = None  # (n,)
    marginal: bool = True

    def drawn(self, rng: Stream) -> NDArray[np.int64]:
        """An arm for each decision, (n,)."""
        indices: NDArray[np.int64] = self.chances.argmax(axis=1).astype(np.int64)
        several = np.flatnonzero(np.count_nonzero(self.chances, axis=1) > 1)
        if len(several):
            # With u uniform, u^(1/p) is largest at each arm with probability p, up to a factor.
            chances = self.chances[several].astype(np.float64)
            draws = np.log(np.maximum(rng.uniform(size=chances.shape), _TINY))
            least = np.full_like(draws, -np.inf)
            indices[several] = np.divide(draws, chances, out=least, where=chances > 0.0).argmax(axis=1)
        return indices

    def fitting(self, n: int, arms: int) -> Selections:
        """The same, checked: chances (n, arms) that are finite and not negative, some of them positive in each row."""
        found = np.asarray(self.chances)
        if found.shape != (n, arms) or found.dtype.kind not in "bif":
            raise InvalidInput(f"a rule must give chances of shape ({n}, {arms}), got {shown(self.chances)}")
        if found.dtype == np.bool_ and found.any(axis=1).all():
            return self
        largest = found.max(axis=1, initial=0.0)
        if not (np.isfinite(found) & (found >= 0.0)).all() or not (largest > 0.0).all():
            raise InvalidInput("chances must be finite and at least 0, and one of each decision positive")
        return self._replace(chances=found / largest[:, None])

    def probability(self, indices: NDArray[np.int64]) -> Array | None:
        """The probability of one arm of each decision, (n,); None where nobody knows it."""
        if not self.marginal:
            return None
        chosen = self.chances[np.arange(len(indices)), indices]
        return np.asarray(chosen / self.chances.sum(axis=1))

    def shares(self) -> list[Shares | None]:
        """The probabilities of every decision."""
        if not self.marginal:
            return [None] * len(self.chances)
        found: list[Shares | None] = []
        for row, total in zip(self.chances, self.chances.sum(axis=1).tolist(), strict=True):
            arms = np.flatnonzero(row)
            values = tuple((row[arms] / total).tolist())
            found.append(Shares(len(row), tuple(arms.tolist()), values))
        return found


class Offer(abc.ABC):
    """What can be chosen in one decision: arms, or a box."""

    rows: Array | None  # (K, dim_in) of arms, context included; None for a box
    context: Array | None

    @abc.abstractmethod
    def maximise(self, score: Score, rng: Any) -> Selection:
        """Where a score is largest; arms that tie share the probability."""

    @abc.abstractmethod
    def uniform(self, rng: Any) -> Selection:
        """Anything, with equal probability."""

    def ends(self, before: Array | None) -> Array | None:
        """Where searches of the next decision may start, (m, dim_in)."""
        return before


class ArmsOffer(Offer):
    """Finitely many arms, as rows (K, dim_in) and, for confidence sets, their directions."""

    def __init__(
        self,
        rows: Array | Callable[[], Array],
        directions: Any = None,
        *,
        labels: tuple[Hashable, ...] | None = None,
        context: Array | None = None,
        arms: NDArray[np.int64] | None = None,
        places: NDArray[np.int64] | None = None,
        whole: int | None = None,
    ) -> None:
        """`rows` and `directions` may be functions that make them, which are called when they are first needed.

        `arms` (K,) are numbers that arms keep from one decision to the next, in increasing order, where they have any;
        an offer whose rows are a function must have them.
        """
        self._rows, self._directions = rows, directions
        self.labels, self.context, self.arms = labels, context, arms
        self._row: Callable[[int], Array] | None = None
        self._count = len(rows) if arms is None else len(arms)  # type: ignore[arg-type]
        # A restricted offer selects among the arms of the offer that it is a part of, of which there are `whole`.
        self.places = places  # (K,) of its arms there; None if it is that offer itself
        self.whole = self._count if whole is None else whole

    @classmethod
    def of(cls, region: Arms, directions: Any, context: Array | None) -> ArmsOffer:
        """Of a region's arms, whose rows are made when they are first needed."""
        new = cls((), directions, labels=region.labels, context=context)  # type: ignore[arg-type]
        new._rows, new._row = lambda: region.rows, region.row
        new._count = new.whole = len(region)
        return new

    def __len__(self) -> int:
        return self._count

    def row(self, index: int) -> Array:
        """One of the rows, (dim_in,)."""
        return self.rows[index] if self._row is None else self._row(index)

    @property
    def rows(self) -> Array:  # type: ignore[override]
        """The arms, one per row, context included."""
        if callable(self._rows):
            self._rows = self._rows()
        return self._rows

    @property
    def directions(self) -> Any:
        """The directions of the rows, which a model made; opaque but for indexing, negation and subtraction."""
        if callable(self._directions):
            self._directions = self._directions()
        return self._directions

    def restricted(self, mask: ArrayLike) -> ArmsOffer:
        """Only the arms where `mask` (K,) is true; what is selected of it is selected of this offer."""
        given = np.asarray(mask)
        if given.shape != (len(self),) or given.dtype != np.bool_ or not given.any():
            raise InvalidInput(f"mask must have {len(self)} truth values, and one that is true, got {shown(mask)}")
        left = np.flatnonzero(given)
        part = self.part(left)
        part.places, part.whole = left if self.places is None else self.places[left], self.whole
        return part

    def part(self, arms: NDArray[np.int64]) -> ArmsOffer:
        """Some arms, by their indices, as an offer of their own."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in arms)
        numbers = None if self.arms is None else self.arms[arms]
        rows: Any = self.rows[arms] if self.arms is None else lambda: self.rows[arms]
        directions = None if self._directions is None else self.directions[arms]
        return ArmsOffer(rows, directions, labels=labels, context=self.context, arms=numbers)

    def maximise(self, score: Score, rng: Any) -> Selection:
        return self._selected(best_arm(score, self.directions))

    def largest(self, values: Array) -> Selection:
        """The arm with the largest of these finite values (K,); arms that tie share the probability."""
        place = int(values.argmax())
        best: float = values.item(place)
        if self.places is None and np.count_nonzero(values >= best - TIE_TOLERANCE * abs(best)) == 1:
            return Selection(_certain(self._count, place), None, None, best)  # the usual case
        return self._selected(best_value(values))

    def _selected(self, best: BestArm) -> Selection:
        shares = Shares.even(len(self), best.arms)
        return Selection(shares if self.places is None else shares.among(self.places, self.whole), score=best.value)

    def uniform(self, rng: Any) -> Selection:
        return Selection(Shares(len(self), (), (), 1.0 / len(self)).among(self.places, self.whole))


class BoxOffer(Offer):
    """A box, with the optima that searches found in it (`optima`) and where they may start (`warm`)."""

    rows = None

    def __init__(
        self,
        box: Box,
        model: Directed,
        warm: Array | None = None,
        effort: Effort = THOROUGH,
        context: Array | None = None,
    ) -> None:
        self.context, self.optima = context, []  # type: ignore[var-annotated]
        self._box, self._model, self._warm, self._effort = box, model, warm, effort

    def maximise(self, score: Score, rng: Any) -> Selection:
        best = search_box(score, self._model, self._box, _generator(rng), warm=self._warm, effort=self._effort)
        self.optima.append(best.optima)
        return Selection(None, row=best.action, score=best.value)

    def uniform(self, rng: Any) -> Selection:
        return Selection(None, row=self._box.sample(1, _generator(rng))[0])

    def ends(self, before: Array | None) -> Array | None:
        return np.vstack(self.optima) if self.optima else before


def _generator(rng: Any) -> np.random.Generator:
    return rng.generator if isinstance(rng, Stream) else rng

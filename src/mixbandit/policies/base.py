"""What every policy shares: ask, tell, late and missing rewards, certificates, regret bounds, state.

A policy holds two things apart. It *acts* on whatever it likes, pending choices included; a child says how in
`_select`. It *reports* bounds of its confidence sequence from told rewards only, and those hold whatever it does.
"""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._statefile import write_state
from mixbandit._validation import (
    LARGEST_DATUM,
    Array,
    as_generator,
    as_vector,
    check_finite,
    positive_int,
    stored_generator,
)
from mixbandit.acquisition import QUICK, THOROUGH, ArmsField, BoxField, Effort, Field, Found, Optimism
from mixbandit.actions import Arms, Box, Region, as_region, offered, region_from_state_dict
from mixbandit.certificates import Certificate, certificate
from mixbandit.confidence import Audit, ConfidenceSequence, sequence_from_state_dict
from mixbandit.confidence.ball import BallSequence
from mixbandit.errors import DamagedState, InvalidInput, reading
from mixbandit.features import FeatureMap
from mixbandit.policies.acting import anticipating, nudged, quiet
from mixbandit.policies.choice import Choice, Ledger, Open
from mixbandit.policies.entry import Place, opened
from mixbandit.policies.history import History, RegretAccount
from mixbandit.regret import RegretBound

# What only reads searches with a seed of its own: to look must not change what is chosen next.
_READING_SEED = 0


@dataclass(frozen=True)
class Selection:
    """What a policy wants to play."""

    found: Found
    optimum_upper: float | None = None  # the largest upper bound of the acting sequence, where it came up


class Policy(abc.ABC):
    """Choose actions, learn from their rewards, and say what is guaranteed."""

    def __init__(
        self,
        sequence: ConfidenceSequence,
        actions: Region | ArrayLike | None = None,
        *,
        rng: int | np.random.Generator | None = None,
        strict: bool = False,
        keep_history: bool = False,
        track_regret: bool = True,
        quick: bool = False,
    ) -> None:
        if not isinstance(sequence, ConfidenceSequence):
            raise InvalidInput(f"sequence must be a confidence sequence, as MartingaleMixture; got {sequence!r}")
        self.sequence = sequence
        self._actions = None if actions is None else as_region(actions)
        if self.actions is not None and self.actions.dim > sequence.features.dim_in:
            raise InvalidInput(
                f"actions have dimension {self.actions.dim}, more than the features take ({sequence.features.dim_in})"
            )
        self.strict, self.keep_history, self.track_regret = bool(strict), bool(keep_history), bool(track_regret)
        self.quick = bool(quick)
        self._rng = as_generator(rng)
        self._ledger = Ledger()
        self._history = History()
        self._account = RegretAccount()
        self._refuted = False
        self._warm: Array | None = None

    def __repr__(self) -> str:
        counts = f"rounds={self.rounds}, pending={len(self.pending)}"
        return f"{type(self).__name__}({self.sequence!r}, {self.actions!r}, {counts})"

    @property
    def actions(self) -> Region | None:
        """What may be chosen, unless `ask` is given something else."""
        return self._actions

    @property
    def rounds(self) -> int:
        """How many choices have been made, pending and cancelled ones included."""
        return self._ledger.next_id

    @property
    def pending(self) -> tuple[Choice, ...]:
        """The choices that wait for their rewards."""
        return tuple(entry.choice for entry in self._ledger if entry.reward is None)

    @property
    def refuted(self) -> bool:
        """Whether the data have ever refuted the assumptions at level δ, as far as anybody looked."""
        return self._refuted or self.sequence.is_refuted

    @property
    def guarantee(self) -> str:
        """What holds, in words."""
        if self.sequence.guarantee != "anytime":
            return "The bounds are Bayesian: right on average over the prior. Nothing is guaranteed for this problem."
        holds = (
            f"With probability ≥ {1 - self.sequence.delta:g}, at all times at once, bounds, proven certificates and "
            "proven data-dependent regret bounds hold, whatever is chosen."
        )
        return f"{holds} {self._worst_case()}"

    @abc.abstractmethod
    def _worst_case(self) -> str:
        """Whether a regret bound is known in advance, in words."""

    # ---- choosing

    @overload
    def ask(self, arms: Region | ArrayLike | None = None, *, context: ArrayLike | None = None) -> Choice: ...
    @overload
    def ask(
        self,
        arms: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        n: int,
        distinct: bool = True,
    ) -> list[Choice]: ...

    def ask(
        self,
        arms: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        n: int | None = None,
        distinct: bool = True,
    ) -> Choice | list[Choice]:
        """Choose an action, or a list of n, among `arms` or else the policy's own actions.

        With a `context`, features see rows (context, action). Choices whose rewards are still out count as if they
        had brought what is expected of them, so that asking again gives something else that is worth knowing. A list
        holds different arms as long as there are so many, unless `distinct` is False. On an error nothing changes.
        """
        region, vector = self._offered(arms, context, "arms")
        count = 1 if n is None else positive_int(n, "n")
        refuted = self._check_assumptions()
        saved = self._rng.bit_generator.state
        try:
            with quiet(refuted):
                field = self._field(region, self._rng, QUICK if self.quick else THOROUGH)
                entries = self._choose(region, field, vector, count, distinct)
        except BaseException:  # an interrupt, too, leaves everything as it was
            self._rng.bit_generator.state = saved
            raise
        self._commit(entries, region)
        if isinstance(field, BoxField) and field.optima:
            self._warm = np.vstack(field.optima)
        choices = [entry.choice for entry in entries]
        return choices[0] if n is None else choices

    def adopt(self, action: ArrayLike, *, context: ArrayLike | None = None) -> Choice:
        """Count an action that somebody else chose as a choice of this policy, whose reward will be told.

        That is for what is under way elsewhere, and for what a user wants to see tried. It counts in regret bounds.
        """
        region, vector = self._offered(None, context, "arms")
        context_ = np.empty(0) if vector is None else vector
        row = np.concatenate((context_, as_vector(action, region.dim - len(context_), "action")))
        index = region.index_of(row)
        with quiet(self._check_assumptions()):
            optimum = self._largest_upper(region) if self.track_regret else None
            entry = self._entry(Place(self.rounds, row, index, region, vector), optimum)
        self._commit([entry], region)
        return entry.choice

    @abc.abstractmethod
    def _select(self, acting: ConfidenceSequence, field: Field, round_: int) -> Selection:
        """What to play in `round_` ≥ 1, according to a sequence that has anticipated pending rewards."""

    def _field(self, region: Region, rng: np.random.Generator, effort: Effort = THOROUGH) -> ArmsField | BoxField:
        if isinstance(region, Arms):
            return ArmsField(region.actions, self.sequence._features(region.actions), rng)
        return BoxField(region, self.sequence.features, rng, self._warm, effort)

    def _choose(
        self, region: Region, field: ArmsField | BoxField, context: Array | None, count: int, distinct: bool
    ) -> list[Open]:
        taken = [entry.row for entry in self._ledger]
        acting = anticipating(taken, self.sequence)
        entries: list[Open] = []
        optimum: float | None = None
        for k in range(count):
            with quiet(acting is not self.sequence):
                selection = self._select(acting, field, self.rounds + k + 1)
            row, index = selection.found.row, selection.found.index
            if acting is self.sequence:
                optimum = selection.optimum_upper
            if optimum is None and self.track_regret:
                optimum = self._largest_upper(region)
            if isinstance(region, Box):
                row = nudged(row, region, taken, self._rng)
            elif distinct and isinstance(field, ArmsField) and index is not None:
                field.without(index)
            entries.append(self._entry(Place(self.rounds + k, row, index, region, context), optimum))
            taken.append(row)
            if k + 1 < count:
                acting = anticipating([row], acting)
        return entries

    def _entry(self, place: Place, optimum: float | None) -> Open:
        return opened(self.sequence, place, self._reporting_alpha, optimum, refuted=self._refuted)

    def _before_asking(self) -> tuple[Any, ...]:
        """What `ask` changes, for `_take_back`."""
        return self._rng.bit_generator.state, self._ledger.snapshot(), self._account.searched, self._warm, self._refuted

    def _take_back(self, before: tuple[Any, ...], choices: list[Choice]) -> None:
        """Undo the last `ask`, whose choices were never played, to the bit."""
        self._rng.bit_generator.state, ledger, self._account.searched, self._warm, self._refuted = before
        self._ledger.restore(ledger)
        for choice in choices:
            self._history.drop(choice.id)

    @property
    def _reporting_alpha(self) -> float | None:
        """The multiplier of the bounds in choices; None for the exact ones."""
        return None

    def _commit(self, entries: list[Open], region: Region) -> None:
        for entry in entries:
            self._refuted |= not entry.choice.trusted
            if self.keep_history:
                self._history.add(entry.choice.id, entry.row, None if region is self.actions else region)
        self._account.searched |= isinstance(region, Box)
        self._ledger.add(entries)

    def _largest_upper(self, region: Region) -> float:
        """The largest upper bound over the region, from told rewards; on a box, as far as a search finds it."""
        score = Optimism(self.sequence, self._reporting_alpha)
        return self._field(region, np.random.default_rng(_READING_SEED)).maximise(score).value

    # ---- learning

    def tell(
        self,
        choice: Choice | int | Sequence[Choice | int],
        reward: float | ArrayLike,
        sigma: float | ArrayLike | None = None,
    ) -> Self:
        """Learn the reward of a choice, given itself or by its id, or of several; late and in any order.

        Rewards count in order of arrival. That is valid when the noise is independent given the actions and when
        nothing about a reward's value decides when, or whether, it arrives. With `strict=True` they count in order
        of play, later ones waiting for earlier ones, which is valid whatever decides when they arrive. On an error
        nothing changes.
        """
        entries, values, levels = self._ledger.told(choice, reward, sigma)
        weights = np.array([1.0 if level is None else self.sequence.sigma / level for level in levels])
        check_finite(weights * values, "reward", LARGEST_DATUM)
        if self.strict:
            self._hold(entries, values, levels)
        else:
            self._take_in(entries, values, levels)
        return self

    def _hold(self, entries: list[Open], values: Array, levels: list[float | None]) -> None:
        for entry, value, level in zip(entries, values, levels, strict=True):
            entry.reward, entry.sigma = float(value), level
        try:
            self._release()
        except BaseException:
            for entry in entries:
                entry.reward = entry.sigma = None
            raise

    def _release(self) -> None:
        """Take in what no earlier choice holds back any more."""
        ready = self._ledger.released()
        if ready:
            values = np.array([entry.reward for entry in ready], dtype=np.float64)
            self._take_in(ready, values, [entry.sigma for entry in ready])

    def _take_in(self, entries: list[Open], values: Array, levels: list[float | None]) -> None:
        rows = np.array([entry.row for entry in entries])
        known = any(level is not None for level in levels)
        sigma = [self.sequence.sigma if level is None else level for level in levels] if known else None
        # Out of the ledger first: an interrupt in between must not let a reward be told, and count, twice.
        with self._ledger.without(entries):
            self.sequence.update(rows, values, sigma)
        for entry in entries:
            self._account.settle(entry)

    def cancel(self, choice: Choice | int, *, played: bool = False) -> Self:
        """Give up a choice that will bring no reward: it was never played, or it was `played` and the reward is lost.

        It no longer counts as pending. In regret bounds it counts only if it was played. For bounds to stay valid,
        what made a reward be lost must have nothing to do with its value.
        """
        entry = self._ledger.find(choice, held=True)
        with self._ledger.without([entry]):
            self._release()
        if played:
            self._account.settle(entry)
        else:
            self._history.drop(entry.choice.id)
        return self

    def learn(self, actions: ArrayLike, rewards: ArrayLike, sigma: ArrayLike | None = None) -> Self:
        """Learn from data that were chosen elsewhere: a log, another tuner. Rows are (context, action)."""
        self.sequence.update(actions, rewards, sigma)
        return self

    # ---- what is guaranteed

    def certificate(
        self,
        over: Region | ArrayLike | None = None,
        *,
        context: ArrayLike | None = None,
        proof: str | None = None,
    ) -> Certificate:
        """The action worth most for sure, over the policy's own actions or over others, and how far it may be off.

        `proof` insists on one way over a box: "branch-and-bound", "range" or "search". Print it to read it.
        """
        region, vector = self._offered(over, context, "over")
        with quiet(self._check_assumptions()):
            rng = np.random.default_rng(_READING_SEED)
            found = certificate(self.sequence, region, rng, proof=proof, warm=self._warm)
        self._refuted |= not found.trusted
        action = found.action if vector is None else found.action[len(vector) :]
        return dataclasses.replace(found, action=action, trusted=not self._refuted)

    def audit(self) -> Audit:
        """What the data so far say about the assumptions; print it to read it."""
        if not isinstance(self.sequence, BallSequence):
            raise InvalidInput(f"a {type(self.sequence).__name__} has no audit; a MartingaleMixture has")
        return self.sequence.audit()

    def regret_bound(self) -> RegretBound:
        """Bounds on the regret of all choices so far; print it to read it."""
        hindsight, proof = None, None
        with quiet(self._check_assumptions()):
            if self.keep_history:
                hindsight, proof = self._history.regret(self.sequence, self.actions, self._warm)
        account = self._account.with_open(self._ledger)
        return RegretBound(
            rounds=account.count,
            widths=account.widths,
            analytic=account.analytic,
            hindsight=hindsight,
            proof=account.proof,
            hindsight_proof=proof,
            delta=self.sequence.delta,
            guarantee=self.sequence.guarantee,
            trusted=not self.refuted,
        )

    def _offered(
        self, given: Region | ArrayLike | None, context: ArrayLike | None, name: str
    ) -> tuple[Region, Array | None]:
        return offered(self.actions, given, context, self.sequence.features.dim_in, name)

    def _check_assumptions(self) -> bool:
        """Whether the data refute the assumptions now: noted for good, with an error every time or one warning."""
        refuted = self.sequence.is_refuted
        if refuted:
            known, self._refuted = self._refuted, True
            if not known or self.sequence.on_empty == "raise":
                self.sequence._report_refuted()
        return refuted

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on: numbers, strings, arrays, lists and dicts of them."""
        return {
            "type": type(self).__name__,
            "sequence": self.sequence.state_dict(),
            "actions": None if self.actions is None else self.actions.state_dict(),
            "strict": self.strict,
            "keep_history": self.keep_history,
            "track_regret": self.track_regret,
            "quick": self.quick,
            "rng": self._rng.bit_generator.state,
            "ledger": self._ledger.state_dict(),
            "history": self._history.state_dict(),
            "account": self._account.state_dict(),
            "refuted": self._refuted,
            "warm": self._warm,
            **self._parameters(),
        }

    def difference(self, other: Policy) -> str | None:
        """The first setting in which two policies differ, in words; None if only what they have seen does."""
        for name in ("strict", "keep_history", "actions"):
            if getattr(self, name) != getattr(other, name):
                return f"{name}: {getattr(self, name)!r} and {getattr(other, name)!r}"
        if self._parameters() != other._parameters():
            return f"{self._parameters()} and {other._parameters()}"
        return self.sequence._difference(other.sequence)

    def _parameters(self) -> dict[str, Any]:
        """The settings of a child beyond those of every policy."""
        return {}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], features: FeatureMap | int | None = None) -> Self:
        """The policy that `state_dict` described; `features` again if they are a user's function."""
        if state.get("type") != cls.__name__:
            raise DamagedState(f"this is the state of a {state.get('type')!r}, not of a {cls.__name__}")
        with reading(cls.__name__):
            new = cls._from_parameters(
                sequence_from_state_dict(state["sequence"], features),
                None if state["actions"] is None else region_from_state_dict(state["actions"]),
                state,
                rng=stored_generator(state["rng"]),
                strict=state["strict"],
                keep_history=state["keep_history"],
                track_regret=state["track_regret"],
                quick=state.get("quick", False),  # older files have none
            )
            new._recall(state)
        return new

    @classmethod
    def _from_parameters(
        cls, sequence: ConfidenceSequence, actions: Region | None, state: Mapping[str, Any], **options: Any
    ) -> Self:
        """A policy with stored settings, before it recalls what it has seen."""
        return cls(sequence, actions, **options)

    def _recall(self, state: Mapping[str, Any]) -> None:
        self._ledger = Ledger.from_state_dict(state["ledger"])
        self._history = History.from_state_dict(state["history"])
        self._account = RegretAccount.from_state_dict(state["account"])
        self._refuted = bool(state["refuted"])
        self._warm = None if state["warm"] is None else np.array(state["warm"], dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically: `mixbandit.load` goes on from it, bit for bit."""
        write_state(path, self.state_dict())

"""What choices add to the regret bounds, and what was chosen among what, for the bound in hindsight."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mixbandit._validation import Array
from mixbandit.actions import Arms, Region, region_from_state_dict
from mixbandit.certificates import bound_optimum, largest_difference
from mixbandit.confidence import ConfidenceSequence
from mixbandit.policies.choice import Open


class RegretAccount:
    """What every choice adds to the data-dependent regret bounds, summed over those that are done with.

    Open choices are added when somebody asks, and never subtracted: a cancelled one leaves no rounding behind.
    """

    def __init__(self) -> None:
        self.count = 0
        self.widths: float | None = 0.0  # None once a choice's is not known
        self.analytic: float | None = 0.0
        self.searched = False  # whether a search over a box had to find the largest upper bound

    @property
    def proof(self) -> str:
        return "search" if self.searched else "enumerated"

    def settle(self, entry: Open) -> None:
        """Count a choice for good."""
        self.count += 1
        if entry.width is None or entry.analytic is None or self.widths is None or self.analytic is None:
            self.widths = self.analytic = None
        else:
            self.widths += entry.width
            self.analytic += entry.analytic

    def with_open(self, entries: Iterable[Open]) -> RegretAccount:
        """The account as if open choices were settled."""
        new = copy.copy(self)
        for entry in entries:
            new.settle(entry)
        return new

    def state_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> RegretAccount:
        new = cls()
        new.count, new.searched = int(state["count"]), bool(state["searched"])
        for name in ("widths", "analytic"):
            setattr(new, name, None if state[name] is None else float(state[name]))
        return new


class History:
    """Rows by id of their choice, and the region of each that was not the policy's own."""

    def __init__(self) -> None:
        self._rows: dict[int, Array] = {}
        self._regions: dict[int, Region] = {}

    def add(self, number: int, row: Array, region: Region | None) -> None:
        self._rows[number] = row
        if region is not None:
            self._regions[number] = region

    def drop(self, number: int) -> None:
        """Forget a choice that was never played."""
        self._rows.pop(number, None)
        self._regions.pop(number, None)

    def regret(self, sequence: ConfidenceSequence, own: Region | None, warm: Array | None) -> tuple[float, str]:
        """Σ_s of a bound on how much more than a_s the best action of A_s is worth, with today's set, and its proof.

        One event covers the sets of all times, so that today's may judge all past choices.
        """
        total, proofs = 0.0, {"enumerated"}
        shared = [number for number in self._rows if number not in self._regions]
        if shared and own is not None:
            rows = np.array([self._rows[number] for number in shared])
            bound, proof = _regret(sequence, own, rows, warm)
            total, proofs = total + bound, proofs | {proof}
        for number, region in self._regions.items():
            bound, proof = _regret(sequence, region, self._rows[number][None], warm)
            total, proofs = total + bound, proofs | {proof}
        # The weakest proof counts.
        return total, next(p for p in ("search", "range", "branch-and-bound", "enumerated") if p in proofs)

    def state_dict(self) -> dict[str, Any]:
        return {
            "ids": list(self._rows),
            "rows": np.array(list(self._rows.values())),
            "regions": [[number, region.state_dict()] for number, region in self._regions.items()],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> History:
        new = cls()
        new._rows = {int(number): np.array(row) for number, row in zip(state["ids"], state["rows"], strict=True)}
        new._regions = {int(number): region_from_state_dict(part) for number, part in state["regions"]}
        return new


def _regret(sequence: ConfidenceSequence, region: Region, rows: Array, warm: Array | None) -> tuple[float, str]:
    """The bound for rows (n, dim_in) that were all chosen from one region."""
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    own = sequence._features(distinct)
    if isinstance(region, Arms):
        phi = sequence._features(region.actions)
        lower, upper = (sequence._bounded(part, None, sign).bounds for part, sign in ((own, -1.0), (phi, 1.0)))
        apart = upper.max() - lower
        together = np.array([largest_difference(sequence, phi, each) for each in own])
        return float(counts @ np.maximum(np.minimum(apart, together), 0.0)), "enumerated"
    lower = sequence._bounded(own, None, -1.0).bounds
    rng = np.random.default_rng(0)
    optimum = bound_optimum(sequence, region, rng, at_least=float(lower.max()), warm=warm)
    return float(counts @ np.maximum(optimum.upper - lower, 0.0)), optimum.proof

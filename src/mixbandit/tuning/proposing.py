"""Which configuration to try next: one that is predicted to be good, now and then one that may be.

The score of a configuration is its predicted mean plus κ standard deviations, κ drawn for each trial: mostly small,
sometimes large. Scores of random configurations, and of the best tried ones, are improved by changing one or two
parameters at a time. Small spaces are enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit.actions import Box, MixedBox
from mixbandit.tuning.foresight import Foresight, Outlook, last_fit
from mixbandit.tuning.space import Space, centre, enumerated

# κ, and how often: chosen by measurement (docs/searching.md).
_BOLDNESS, _HOW_OFTEN = (0.5, 2.0), (0.8, 0.2)
# Random configurations, tried ones of the best values, and rounds of changes to the best few of all of them.
_RANDOM, _TRIED, _ROUNDS, _LEADERS, _CHANGES = 128, 24, 3, 4, 48
# Up to this many configurations are all looked at.
_MOST_ENUMERATED = 512
# A parameter is changed by a step rather than anew this often; two are changed instead of one this often.
_STEPS, _PAIRS = 0.6, 0.3
# Steps are of sizes between these powers of ten, in units of the range.
_SMALLEST_STEP, _LARGEST_STEP = -2.0, -0.5
# A configuration is tried again only if anything new is predicted to be worse by this many standard deviations of the
# noise: values of its neighbours say as much about it, and something about themselves.
_WORTH_REPEATING = 0.5
# Optimism, in standard deviations, when choosing what to repeat.
_DOUBT = 1.0
# More pending trials than this are not told apart from others.
_MOST_BELIEVED = 100
_DIGITS = 9


class Experience(NamedTuple):
    """All values so far."""

    rows: Array  # (t, dim)
    rewards: Array  # (t,)
    weights: Array  # (t,): how precise they are, relative to each other


class Proposer:
    """Proposes configurations of a space."""

    def __init__(self, space: Space) -> None:
        self._region, self._centre = space.region, centre(space)[None]
        self._columns = [np.array(space.columns(name)) for name in space]
        self._steps = np.array([_least_step(space, name) for name in space])
        self._foresight = Foresight([tuple(space.columns(name)) for name in space])
        self._all = enumerated(space, _MOST_ENUMERATED)
        self._space = space

    def propose(self, seen: Experience, pending: Array, rng: np.random.Generator) -> Array:
        """A row to try next, given those that were tried and those that are being tried."""
        outlook = self._outlook(seen, pending)
        boldness = float(rng.choice(_BOLDNESS, p=_HOW_OFTEN))
        rows = self._first_candidates(seen, rng)
        scores = _scores(outlook, rows, boldness)
        for _ in range(0 if self._all is not None else _ROUNDS):
            leaders = rows[np.argsort(-scores, kind="stable")[:_LEADERS]]
            changed = self._changed(np.repeat(leaders, _CHANGES // len(leaders), axis=0), rng)
            rows, scores = np.vstack((rows, changed)), np.append(scores, _scores(outlook, changed, boldness))
        return self._chosen(rows, scores, seen.rows, pending, _WORTH_REPEATING * outlook.noise)

    def again(self, seen: Experience, pending: Array) -> Array:
        """The tried configuration that may be the best, to be tried again."""
        rows = np.unique(seen.rows, axis=0)
        means, deviations = self._outlook(seen, pending).standings(rows)
        return np.asarray(rows[int(np.argmax(means + _DOUBT * deviations))])

    def _outlook(self, seen: Experience, pending: Array) -> Outlook:
        outlook = self._foresight.after(*seen)
        return outlook.believing(pending[-_MOST_BELIEVED:]) if len(pending) else outlook

    def ranked(self, seen: Experience) -> Array:
        """The tried configurations, those with the best standings first."""
        rows = np.unique(seen.rows, axis=0)
        means, _ = self._foresight.after(*seen).standings(rows)
        return rows[np.argsort(-means, kind="stable")]

    def _first_candidates(self, seen: Experience, rng: np.random.Generator) -> Array:
        if self._all is not None:
            return self._all
        best = seen.rows[np.argsort(-seen.rewards, kind="stable")[:_TRIED]]
        return np.vstack((self._centre, best, self._region.sample(_RANDOM, rng)))

    def _changed(self, rows: Array, rng: np.random.Generator) -> Array:
        """The rows with one or two parameters changed in each."""
        n, count = len(rows), len(self._columns)
        fresh, new = self._region.sample(n, rng), rows.copy()
        which = rng.integers(count, size=(n, 2))
        which[rng.random(n) >= _PAIRS, 1] = -1
        stepped = rng.random((n, 2)) < _STEPS
        sizes = rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(_SMALLEST_STEP, _LARGEST_STEP, size=(n, 2))
        for j, columns in enumerate(self._columns):
            for k in range(2):
                at = which[:, k] == j
                if len(columns) > 1:
                    new[np.ix_(at, columns)] = fresh[np.ix_(at, columns)]
                    continue
                column = int(columns[0])
                # A step of an integer is at least one.
                step = np.sign(sizes[:, k]) * np.maximum(np.abs(sizes[:, k]), self._steps[j])
                moved = np.clip(new[:, column] + step, 0.0, 1.0)
                new[:, column] = np.where(at, np.where(stepped[:, k], moved, fresh[:, column]), new[:, column])
        return _allowed(self._region, new)

    def _chosen(self, rows: Array, scores: Array, tried: Array, pending: Array, margin: float) -> Array:
        """The best new configuration, or a tried one that is better by the margin; no pending one, if possible."""
        known, waiting = set(_keys(tried)), set(_keys(pending))
        order = np.argsort(-scores, kind="stable")
        again: tuple[float, Array] | None = None
        for i in order.tolist():
            row = self._space.snapped(rows[i])  # of integers with too many values to list, rows lie in between
            (key,) = _keys(row[None])
            if key in waiting:
                continue
            if again is not None and scores[i] < again[0] - margin:
                break
            if key not in known:
                return row
            again = (float(scores[i]), row) if again is None else again
        return np.asarray(rows[order[0]]) if again is None else again[1]


def _keys(rows: Array) -> Iterator[bytes]:
    """What tells configurations apart; −0 is 0."""
    return (row.tobytes() for row in np.ascontiguousarray(np.round(rows, _DIGITS) + 0.0))


def _scores(outlook: Outlook, rows: Array, boldness: float) -> Array:
    means, deviations = outlook.at(rows)
    return means + boldness * deviations


def _least_step(space: Space, name: str) -> float:
    """The step to the next value, on average over the range; 0 if values are not listed."""
    levels = space[name].levels
    return 0.0 if levels is None or len(levels) < 2 else 1.0 / (len(levels) - 1)


def _allowed(region: Box, rows: Array) -> Array:
    return region.snapped(rows) if isinstance(region, MixedBox) else rows


def as_weights(errors: NDArray[np.float64]) -> Array:
    """Weights of values by their standard errors, NaN where none was told: only their ratios count, within limits."""
    known = np.isfinite(errors) & (errors > 0.0)
    if not known.any():
        return np.ones(len(errors))
    # As of the last fit, if it knew any, so that the next value does not change all weights.
    early = errors[: last_fit(len(errors))]
    early = early[known[: len(early)]]
    typical = float(np.median(early if len(early) else errors[known]))
    ratios = np.where(known, typical / np.where(known, errors, 1.0), 1.0)
    return np.clip(ratios, 0.25, 4.0) ** 2

"""Which configuration to try next: the one of a few dozen candidates that is predicted to be best, or may be.

Candidates are bred from the best tried configurations: each parameter near its value in one of them, and not all
in the same one. They are few on purpose. Their best is close to what has worked; the best of everything is where the
predictions err most, often in a corner of the space, and searches for it ended there. Small spaces are enumerated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array
from mixbandit._rows import distinct_rows
from mixbandit.tuning.foresight import Foresight, Outlook, last_fit
from mixbandit.tuning.space import Space, centre, enumerated, rounded

# The settings below were chosen by measurement (docs/results/searching.md).
# A score is the predicted mean plus one of these numbers of standard deviations, drawn for each trial.
_BOLDNESS = (0.0, 1.0)
# Candidates that are bred, and that are random.
_BRED, _RANDOM = 32, 8
# The parents of candidates: this share of all trials, those with the best values, but no more and no fewer than these.
_PARENTS, _FEWEST_PARENTS, _MOST_PARENTS = 0.1, 2, 25
# A number is drawn around a parent's with a standard deviation of the larger gap to its neighbours, and at least this.
_NARROWEST = 0.02
# A choice of a category is that of the parent this often.
_INHERITED = 0.7
# Spaces of up to this many configurations are enumerated.
_MOST_ENUMERATED = 200
# A configuration is tried again only if anything new is predicted to be worse by this many standard deviations of the
# noise: values of its neighbours say as much about it, and something about themselves.
_WORTH_REPEATING = 0.5
# Optimism, in standard deviations, when choosing what to repeat; and how well that is known in the end, in standard
# deviations of the noise.
_DOUBT, _SETTLED = 1.0, 0.25
# More pending trials than this are not told apart from others.
_MOST_BELIEVED = 100


class Experience(NamedTuple):
    """All values so far."""

    rows: Array  # (t, dim)
    rewards: Array  # (t,)
    weights: Array  # (t,): how precise they are, relative to each other


class Leader(NamedTuple):
    """The tried configuration that may be the best."""

    row: Array
    is_settled: bool  # whether its worth is known well enough: then other trials say more


class Proposer:
    """Proposes configurations of a space."""

    def __init__(self, space: Space) -> None:
        self._space, self._centre = space, centre(space)
        columns = [tuple(space.columns(name)) for name in space]
        self._numbers = np.array([each[0] for each in columns if len(each) == 1], dtype=np.int64)
        self._categories = [np.array(each) for each in columns if len(each) > 1]
        self._foresight = Foresight(columns)
        self._all = enumerated(space, _MOST_ENUMERATED)

    def propose(self, seen: Experience, pending: Array, rng: np.random.Generator) -> Array:
        """A row to try next, given those that were tried and those that are being tried."""
        outlook = self._outlook(seen, pending)
        means, deviations = outlook.at(rows := self._candidates(seen, outlook, rng))
        scores = means + float(rng.choice(_BOLDNESS)) * deviations
        return self._chosen(rows, scores, seen.rows, pending, _WORTH_REPEATING * outlook.noise)

    def standings(self, seen: Experience, pending: Array, rows: Array) -> tuple[Array, Array]:
        """Estimates of the worth of rows and their standard deviations, (n,) each, in units of their own."""
        return self._outlook(seen, pending).standings(rows)

    def leader(self, seen: Experience, pending: Array) -> Leader:
        """The tried configuration that may be the best."""
        outlook, rows = self._outlook(seen, pending), distinct_rows(seen.rows).rows
        means, deviations = outlook.standings(rows)
        first = int(np.argmax(means + _DOUBT * deviations))
        return Leader(rows[first], bool(deviations[first] < _SETTLED * outlook.noise))

    def ranked(self, seen: Experience) -> Array:
        """The tried configurations, those with the best standings first."""
        rows = distinct_rows(seen.rows).rows
        means, _ = self._foresight.after(*seen).standings(rows)
        return rows[np.argsort(-means, kind="stable")]

    def _outlook(self, seen: Experience, pending: Array) -> Outlook:
        outlook = self._foresight.after(*seen)
        return outlook.believing(pending[-_MOST_BELIEVED:]) if len(pending) else outlook

    def _candidates(self, seen: Experience, outlook: Outlook, rng: np.random.Generator) -> Array:
        if self._all is not None:
            return self._all
        # Where some values are less precise than others, the best of them may just be the noisiest.
        worth = seen.rewards if (seen.weights == 1.0).all() else outlook.at(seen.rows)[0]
        region, best = self._space.region, np.argsort(-worth, kind="stable")
        count = min(max(int(np.ceil(_PARENTS * len(best))), _FEWEST_PARENTS), _MOST_PARENTS)
        rows = region.sample(_BRED + _RANDOM, rng)
        bred = self._bred(seen.rows[best[:count]], rows[:_BRED], rng)
        return np.vstack((self._centre, region.snapped(bred), rows[_BRED:]))

    def _bred(self, parents: Array, fresh: Array, rng: np.random.Generator) -> Array:
        """A row for each of the fresh ones: every parameter from one of the parents or, as from one more, fresh."""
        n, count = len(fresh), len(parents)
        new = fresh.copy()
        of_whom = rng.integers(count + 1, size=(n, len(self._numbers)))
        known = np.take_along_axis(parents[:, self._numbers], np.minimum(of_whom, count - 1), axis=0)
        spreads = np.take_along_axis(_gaps(parents[:, self._numbers]), np.minimum(of_whom, count - 1), axis=0)
        moved = np.abs(known + np.maximum(spreads, _NARROWEST) * rng.normal(size=known.shape))
        moved = np.where(moved > 1.0, 2.0 - moved, moved)  # reflected: to clip would pile them up at the ends
        use = (of_whom < count) & (moved >= 0.0)
        new[:, self._numbers] = np.where(use, moved, fresh[:, self._numbers])
        for columns in self._categories:
            whose = rng.integers(count + 1, size=n)
            use = (whose < count) & (rng.random(n) < _INHERITED)
            new[np.ix_(use, columns)] = parents[np.ix_(whose[use], columns)]
        return new

    def _chosen(self, rows: Array, scores: Array, tried: Array, pending: Array, margin: float) -> Array:
        """The best new configuration, or a tried one that is better by the margin; no pending one, if possible."""
        known, waiting = rounded(tried), rounded(pending)
        order = np.argsort(-scores, kind="stable")
        again: tuple[float, Array] | None = None
        for i in order.tolist():
            row = self._space.snapped(rows[i])  # of integers with too many values to list, rows lie in between
            if (waiting == rounded(row)).all(axis=1).any():
                continue
            if again is not None and scores[i] < again[0] - margin:
                break
            if not (known == rounded(row)).all(axis=1).any():
                return row
            again = (float(scores[i]), row) if again is None else again
        return self._space.snapped(rows[order[0]]) if again is None else again[1]


def _gaps(values: Array) -> Array:
    """The larger gap between a value and its neighbours in its column, the ends of the range included, (n, columns)."""
    order = np.argsort(values, axis=0, kind="stable")
    ends = np.zeros((1, values.shape[1])), np.ones((1, values.shape[1]))
    between = np.diff(np.vstack((ends[0], np.take_along_axis(values, order, axis=0), ends[1])), axis=0)
    found = np.empty_like(values)
    np.put_along_axis(found, order, np.maximum(between[:-1], between[1:]), axis=0)
    return found


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

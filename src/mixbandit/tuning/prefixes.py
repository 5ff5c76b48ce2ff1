"""Learning a run in its order. A refutation at any time stands, so that earlier moments are looked at as well."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.sequences import Moment, learnt
from mixbandit.tuning.runs import Run

# Every one of the first prefixes is looked at, and this many longer ones, evenly spaced on a logarithmic scale.
_EVERY, _FURTHER = 20, 50
# Trials are learnt at most this many at a time: the features of a million of them would need gigabytes.
_AT_ONCE = 4 * 4096
# A known range is tested at this many of the latest trials.
_LATEST = 4
# With a kernel, exact sets are made of prefixes up to this length.
_MOST_EXACT = 100


class Learnt(NamedTuple):
    """A run that was learnt."""

    moment: Moment
    refuted_after: int | None  # the number of trials after which the assumptions were first seen to be refuted


def learn_in_order(
    moment: Moment,
    run: Run,
    rewards: Array,
    levels: Array | None = None,
    progress: Callable[[int], None] = lambda learnt: None,
) -> Learnt:
    """Learn trials in the order of the run, and test the assumptions on the way; `levels` are those of single values.

    Where that is not the order of play, its prefixes would mislead: then only the whole is tested.
    """
    n, refuted_after = len(rewards), None
    looks = set(looked_at(n)) if run.ordered else set()
    looks.add(n)
    for start, end in _parts(sorted(looks)):
        rows = run.encoded(slice(start, end))
        moment = learnt(moment, rows, rewards[start:end], None if levels is None else levels[start:end])
        if refuted_after is None and end in looks and _refuted(moment, rows[-_LATEST:]):
            refuted_after = moment.t
        progress(end)
    return Learnt(moment, refuted_after)


def looked_at(n: int) -> list[int]:
    """The lengths of the prefixes of n trials that are looked at."""
    first = range(1, min(n, _EVERY) + 1)
    if n <= _EVERY:
        return list(first)
    further = np.ceil(np.geomspace(_EVERY, n, _FURTHER + 1)[1:-1]).astype(int).tolist()
    return sorted({*first, *further, n})


def _parts(ends: list[int]) -> Iterator[tuple[int, int]]:
    """Consecutive pieces up to these ends, none longer than what is learnt at once."""
    for first, last in itertools.pairwise([0, *ends]):
        for start in range(first, last, _AT_ONCE):
            yield start, min(start + _AT_ONCE, last)


def _refuted(moment: Moment, rows: Array) -> bool:
    """Whether the assumptions are refuted at a moment; a known range is tested at these rows."""
    if moment.is_refuted:
        return True
    if moment.response.range is None:
        return False
    # Exact sets of all long prefixes would take long with a kernel.
    within = moment.closed_form if moment.model.dim is None and moment.t > _MOST_EXACT else moment.exact
    return moment.interval(moment.directions(rows), within).contradicts

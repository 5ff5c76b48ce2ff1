"""Learn long logs in pieces, on many processes or machines, and merge what they learnt."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from mixbandit._checks import instance_of, positive_int, shown
from mixbandit._extras import import_extra
from mixbandit.errors import InvalidInput
from mixbandit.sequences import ConfidenceSequence, OwnHome

Kind = TypeVar("Kind", bound=ConfidenceSequence)
Shard = Any
"""Actions and rewards, and perhaps their noise levels; or whatever `load` makes them from, such as a path."""
_MOST_JOBS, _MOST_SHARDS = 10_000, 1_000_000


def learn_in_shards(
    sequence: Kind,
    shards: Iterable[Shard],
    *,
    load: Callable[[Shard], Sequence[Any]] | None = None,
    jobs: int | None = None,
) -> Kind:
    """A new sequence that has also seen all shards, each (actions, rewards) or (actions, rewards, sigma).

    Shards are learnt in parallel by `jobs` workers (None: one per core) and merged in their order, so the result does
    not depend on which finishes first. Up to rounding, it is that of one pass over all rows. With `load`, a shard can
    be the path of a file, which the worker then reads: sending large arrays to workers can take longer than learning
    them here. Workers are processes on this machine, or on a Dask or Ray cluster within
    `joblib.parallel_config("dask")` or `"ray"`.

    Merging needs a mixture that does not depend on the order of rewards (`ConfidenceSequence.merge`). Bounds are valid
    for shards that were fixed in advance, all of which are in when this returns. δ does not cover choosing shards by
    their data. If you go on with more shards later, *when* a shard arrives must not depend on what it contains.
    """
    instance_of(sequence, ConfidenceSequence, "sequence", "a confidence sequence such as MartingaleMixture")
    if load is not None and not callable(load):
        raise InvalidInput(f"load must be a function of a shard, got {shown(load)}")
    workers = -1 if jobs is None else positive_int(jobs, "jobs", _MOST_JOBS)
    pieces = _pieces(shards)
    blank = sequence.copy().live_in(OwnHome(sequence.moment.blank()))
    merged = sequence.merge(blank)  # refuses what cannot be merged before anything is learnt
    joblib = import_extra("joblib", extra="experiments")
    learn = joblib.delayed(_learnt)
    for part in joblib.Parallel(n_jobs=workers)(learn(blank, shard, load) for shard in pieces):
        merged = merged.merge(part)
    merged.merged = sequence.merged  # all shards are in, and nobody read a bound before
    return merged


def _pieces(shards: Any) -> list[Shard]:
    """The shards as a list."""
    try:
        if isinstance(shards, str | bytes | Mapping) or hasattr(type(shards), "__array__"):
            raise TypeError(f"a {type(shards).__name__}")
        found = list(itertools.islice(shards, _MOST_SHARDS + 1))  # some iterables never end
        if len(found) > _MOST_SHARDS:
            raise ValueError(f"more than {_MOST_SHARDS:,} of them")
        return found
    except Exception as error:  # iterating runs the code of users
        raise InvalidInput(f"shards must be a list of shards, got {shown(shards)} ({error})") from error


def _learnt(blank: Kind, shard: Shard, load: Callable[[Shard], Sequence[Any]] | None) -> Kind:
    """What one worker does."""
    given = shard if load is None else load(shard)
    if not isinstance(given, list | tuple) or len(given) not in (2, 3):
        raise InvalidInput(f"a shard must be (actions, rewards) or (actions, rewards, sigma), got {shown(given)}")
    return blank.after(*given)

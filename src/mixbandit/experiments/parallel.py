"""Independent repetitions over processes, results as they come."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from mixbandit._validation import positive_int
from mixbandit.experiments.store import ResultStore


def repeat(
    function: Callable[[int], tuple[Any, ...]],
    repetitions: int,
    store: ResultStore | None,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[int, tuple[str, ...]]:
    """The results of `function` for 0, 1, …, as text, going on from what `store` holds of them already.

    `function` must be picklable for more than one job. An interruption keeps what is finished in the store and is
    passed on.
    """
    seen = {} if store is None else {i: row for i, row in store.rows.items() if i < repetitions}
    progress(len(seen))
    missing = [i for i in range(positive_int(repetitions, "repetitions")) if i not in seen]
    try:
        for i, result in _results(function, missing, positive_int(jobs, "jobs")):
            seen[i] = tuple(str(value) for value in result)
            if store is not None:
                store.add(i, *seen[i])
            progress(len(seen))
    finally:
        if store is not None and missing:
            store.flush()
    return seen


def _results(
    function: Callable[[int], tuple[Any, ...]], missing: list[int], jobs: int
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    if jobs == 1 or len(missing) <= 1:
        for i in missing:
            yield i, function(i)
        return
    pool = ProcessPoolExecutor(jobs, initializer=_ignore_interrupts)
    try:
        futures = {pool.submit(function, i): i for i in missing}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; the workers leave it to the parent, which cancels what is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

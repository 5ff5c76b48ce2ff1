"""Independent repetitions over processes or a cluster, results as they come."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbandit._checks import Array, one_of, positive_int
from mixbandit._extras import import_extra
from mixbandit.paper.store import ResultStore

BACKENDS = ("loky", "ray", "dask")
Repetition = Callable[[int], tuple[Any, ...]]
Results = Generator[tuple[int, tuple[Any, ...]], None, None]


@dataclass(frozen=True)
class Workers:
    """Where the work is done: in processes of this machine ("loky"), or of a Ray or Dask cluster.

    The cluster is the one that RAY_ADDRESS or DASK_SCHEDULER_ADDRESS names, or else a local one until the work is done.
    """

    jobs: int = 1
    backend: str = "loky"

    def __post_init__(self) -> None:
        positive_int(self.jobs, "jobs")
        one_of(self.backend, BACKENDS, "backend")


ALONE = Workers()


def repeat(
    function: Repetition,
    repetitions: int,
    store: ResultStore | None,
    *,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[int, tuple[str, ...]]:
    """The results of `function` for 0, 1, …, as text, resuming from those in `store`.

    `function` must be picklable. It runs with one thread for linear algebra, so that results do not depend on the
    number of workers. Every result is stored as soon as it arrives, so that an interruption costs at most the
    repetitions in progress.
    """
    seen = {} if store is None else {i: row for i, row in store.rows.items() if i < repetitions}
    progress(len(seen))
    missing = [i for i in range(positive_int(repetitions, "repetitions")) if i not in seen]
    with contextlib.closing(_results(function, missing, workers)) as results:
        for i, result in results:
            seen[i] = tuple(str(value) for value in result)
            if store is not None:
                store.add(i, *seen[i])
            progress(len(seen))
    if store is not None and missing:
        store.tidy()
    return seen


def gather(
    name: str,
    simulate: Callable[[Any, int], tuple[Any, ...]],
    settings: Any,
    columns: tuple[str, ...],
    repetitions: int,
    *,
    folder: Path | None,
    workers: Workers,
    progress: Callable[[int], None],
) -> list[dict[str, str]]:
    """`simulate(settings, i)` for i = 0, 1, …: a row of text per repetition, by column.

    They are kept in `folder`, in a file named after `name` and the settings; work resumes from it.
    """
    store = None if folder is None else ResultStore(folder, name, settings, columns)
    seen = repeat(functools.partial(simulate, settings), repetitions, store, workers=workers, progress=progress)
    return [dict(zip(columns, seen[i], strict=True)) for i in range(repetitions)]


def gather_all(
    name: str,
    simulate: Callable[[Any, int], tuple[Any, ...]],
    cells: Iterable[Any],
    columns: tuple[str, ...],
    repetitions: int,
    *,
    folder: Path,
    workers: Workers,
    progress: Callable[[str, int], None],
) -> None:
    """`gather` for each of these settings; `progress` gets their `label` and the repetitions done."""
    for settings in cells:
        show = functools.partial(progress, settings.label)
        gather(name, simulate, settings, columns, repetitions, folder=folder, workers=workers, progress=show)


def measure_all(
    measure: Callable[..., Any],
    cells: Sequence[Any],
    labels: Sequence[str],
    repetitions: int,
    *,
    folder: Path | None,
    workers: Workers,
    progress: Callable[[str, int, int], None],
) -> list[Any]:
    """`measure(cell, repetitions, …)` for every cell; `progress` gets the label, the work done and the total."""
    results: list[Any] = []
    for cell, label in zip(cells, labels, strict=True):

        def show(done: int, label: str = label) -> None:
            progress(label, len(results) * repetitions + done, len(cells) * repetitions)

        results.append(measure(cell, repetitions, folder=folder, workers=workers, progress=show))
    return results


def numbers(rows: list[dict[str, str]], column: str) -> Array:
    """A column in which every row holds numbers, (repetitions, n)."""
    return np.array([[float(value) for value in row[column].split()] for row in rows])


def _results(function: Repetition, missing: list[int], workers: Workers) -> Results:
    if not missing:
        return
    if workers == ALONE:
        for i in missing:
            yield _repetition(function, i)
        return
    joblib = import_extra("joblib", extra="experiments")
    with cluster(workers):
        if workers.backend == "ray":
            # Its backend returns nothing until everything is done: one repetition per process at a time.
            for start in range(0, len(missing), workers.jobs):
                wave = missing[start : start + workers.jobs]
                yield from _pools[-1](joblib.delayed(_in_worker)(function, i, None) for i in wave)
            return
        # Processes of a cluster belong to it, those of this machine to us.
        parent = os.getpid() if workers.backend == "loky" else None
        calls = (joblib.delayed(_in_worker)(function, i, parent) for i in missing)
        with joblib.parallel_config(backend=workers.backend, n_jobs=workers.jobs):
            # One repetition at a time: a batch would arrive, or be lost, as a whole.
            pool = joblib.Parallel(batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
        with contextlib.closing(pool(calls)) as results:
            yield from results


# Seconds between looks of a worker for its parent.
_LOOK_EVERY = 1.0
# Ray's processes take seconds to start: reuse open ones.
_pools: list[Any] = []


@contextlib.contextmanager
def cluster(workers: Workers) -> Iterator[None]:
    """The existing cluster, or a local one for the duration of the block; `repeat` inside uses it."""
    if workers.backend == "loky":
        yield
        return
    with (_ray if workers.backend == "ray" else _dask)(workers):
        yield


@contextlib.contextmanager
def _ray(workers: Workers) -> Iterator[None]:
    if _pools:
        yield
        return
    ray, joblib = import_extra("ray", extra="ray"), import_extra("joblib", extra="experiments")
    import_extra("ray.util.joblib", extra="ray").register_ray()
    ours = not ray.is_initialized()
    if ours:
        # An existing cluster has its own size.
        local = {"num_cpus": workers.jobs, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="error", **({} if os.environ.get("RAY_ADDRESS") else local))
    try:
        with joblib.parallel_config(backend="ray", n_jobs=workers.jobs):
            pool = joblib.Parallel(batch_size=1)
        with pool:
            _pools.append(pool)
            try:
                yield
            finally:
                _pools.pop()
    finally:
        if ours:
            ray.shutdown()


@contextlib.contextmanager
def _dask(workers: Workers) -> Iterator[None]:
    distributed, dask = import_extra("distributed", extra="dask"), import_extra("dask", extra="dask")
    try:
        distributed.get_client()
    except ValueError:
        pass
    else:
        yield
        return
    known = dask.config.get("scheduler-address", None)
    # We stop the workers ourselves: neither Ctrl-C in them nor their end is worth a message.
    # Its page takes any free port: others may have the usual one.
    local = {"n_workers": workers.jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    with _interrupts_ignored():
        client = distributed.Client(**({} if known else {**local, "silence_logs": logging.CRITICAL}))
    with client:
        yield


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C for good; only possible in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_worker(function: Repetition, i: int, parent: int | None) -> tuple[int, tuple[Any, ...]]:
    """Ctrl-C reaches every process of a terminal; the workers leave it to the parent, which stops them.

    A parent that was killed cannot: the workers then end themselves.
    """
    if parent is not None:
        die_with(parent)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return _repetition(function, i)


@functools.cache
def die_with(parent: int) -> None:
    """End this process soon after its parent has ended, whatever it is doing."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os.kill(os.getpid(), signal.SIGKILL)

    if os.name == "posix":  # elsewhere the parent of a process stays what it was
        threading.Thread(target=watch, daemon=True).start()


def _repetition(function: Repetition, i: int) -> tuple[int, tuple[Any, ...]]:
    import scipy.linalg  # noqa: F401 - its linear algebra can only be limited once it is there

    # Sums over several threads round differently: with one, any number of processes gives the same numbers.
    with _libraries(len(sys.modules)).limit(limits=1):
        return i, function(i)


@functools.lru_cache(maxsize=1)
def _libraries(loaded: int) -> Any:
    """The libraries that have threads; to find them takes milliseconds, and new ones come with new modules only."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

"""Whoever works, and whatever happens to them, the numbers are the same."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper.parallel import ALONE, BACKENDS, Workers, cluster, repeat
from mixbandit.paper.store import ResultStore
from tests.helpers.parallel import Settings


def rounded(repetition):
    """A number whose last digits depend on how many threads sum it up."""
    rng = np.random.default_rng(repetition)
    a, b = rng.normal(size=(2, 300, 300))
    return (repr(float((a @ b).sum())), os.getpid())


def numbers(results):
    return {i: row[0] for i, row in results.items()}


@pytest.fixture(scope="module")
def alone():
    return numbers(repeat(rounded, 7, None))


def test_two_processes_give_the_same_as_one(alone):
    results = repeat(rounded, 7, None, workers=Workers(2))
    assert numbers(results) == alone
    assert str(os.getpid()) not in {row[1] for row in results.values()}


@pytest.mark.heavy
@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_cluster_gives_the_same(alone, backend, tmp_path):
    """A real local cluster of two processes, which serves several calls."""
    workers = Workers(2, backend)
    with cluster(workers):
        for name in ("one", "two"):
            store = ResultStore(tmp_path, name, Settings(), ("value", "process"))
            results = repeat(rounded, 7, store, workers=workers)
            assert numbers(results) == alone
            assert len({row[1] for row in results.values()} - {str(os.getpid())}) == 2
            assert store.rows == results


@pytest.mark.parametrize(("jobs", "backend"), [(0, "loky"), (2, "threads"), (1.5, "loky")])
def test_workers_that_cannot_be_are_refused(jobs, backend):
    with pytest.raises(mb.InvalidInput, match=r"jobs|backend"):
        Workers(jobs, backend)
    assert BACKENDS == ("loky", "ray", "dask")
    assert Workers() == ALONE


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_repetition_is_passed_on_and_results_are_kept(tmp_path, jobs):
    store = ResultStore(tmp_path, "x", Settings(), ("value",))
    with pytest.raises(ZeroDivisionError):
        repeat(_fails_at_three, 9, store, workers=Workers(jobs))
    assert set(ResultStore(tmp_path, "x", Settings(), ("value",)).rows) >= {0}


def _fails_at_three(repetition):
    time.sleep(0.05 * repetition)
    return (1 / (repetition - 3),)


def test_a_line_cut_short_costs_one_repetition(tmp_path):
    store = ResultStore(tmp_path, "x", Settings(), ("value", "process"))
    whole = repeat(rounded, 3, store)
    text = store.path.read_text()
    store.path.write_text(text[:-4])
    again = ResultStore(tmp_path, "x", Settings(), ("value", "process"))
    assert set(again.rows) == {0, 1}
    assert repeat(rounded, 3, again) == whole
    assert store.path.read_text() == text


def test_two_commands_on_one_file_lose_nothing(tmp_path):
    one, two = (ResultStore(tmp_path, "x", Settings(), ("value",)) for _ in range(2))
    one.add(0, "a")
    two.add(1, "b")
    one.add(2, "c, with a comma")
    one.tidy()
    two.tidy()
    rows = ResultStore(tmp_path, "x", Settings(), ("value",)).rows
    assert rows == {0: ("a",), 1: ("b",), 2: ("c, with a comma",)}
    assert list(rows) == [0, 1, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_kill_9_costs_at_most_the_repetitions_under_way(tmp_path, jobs):
    program = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from mixbandit.paper.parallel import Workers, repeat
        from mixbandit.paper.store import ResultStore
        from tests.helpers.parallel import Settings, slow
        if __name__ == "__main__":
            store = ResultStore(Path({str(tmp_path)!r}), "x", Settings(), ("value",))
            repeat(slow, 100, store, workers=Workers({jobs}), progress=lambda done: print(done, flush=True))
    """)
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, tmp_path / "program.py"], env=environment, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        reported = 0
        while reported < 5:
            reported = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGKILL)
    rows = ResultStore(tmp_path, "x", Settings(), ("value",)).rows
    assert len(rows) >= reported
    assert all(row == (str(i * i),) for i, row in rows.items())

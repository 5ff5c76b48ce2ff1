"""The tasks and figures of benchmarks/search_cv.py are what they are said to be."""

import numpy as np
import pytest

from benchmarks import search_cv as bench
from mixbandit.paper.store import write_table


@pytest.mark.parametrize("task", bench.TASKS)
def test_rows_that_judge_are_not_those_of_the_search(task):
    X, X_unseen, y, y_unseen = bench.TASKS[task].data(3)
    assert len(X) == len(y)
    assert len(X_unseen) == len(y_unseen) >= 300
    again = bench.TASKS[task].data(3)[0]
    np.testing.assert_array_equal(X, again)
    assert not {row.tobytes() for row in np.unique(X, axis=0)} >= {row.tobytes() for row in X_unseen}


@pytest.mark.parametrize("method", bench.METHODS)
def test_every_search_has_as_many_fits(method):
    name, seed, played, fits, estimated, true = bench.played("cancer", 1, method)
    assert (name, seed, played, fits) == ("cancer", 1, method, bench.FITS)
    assert 0.5 < estimated <= 1.0
    assert 0.8 < true <= 1.0


def test_differences_are_in_pairs(tmp_path):
    scores = {"MixBanditSearchCV": (0.9, 0.8), "RandomizedSearchCV": (0.8, 0.8), "HalvingRandomSearchCV": (0.7, 0.9)}
    rows = [
        [task, seed, method, 50, 0.5, true]
        for task in bench.TASKS
        for method, pair in scores.items()
        for seed, true in enumerate(pair)
    ]
    path = tmp_path / "runs.csv"
    write_table(path, bench.COLUMNS, rows)
    stored = list(bench.known_runs(path).values())
    found = {(row[0], row[1]): row[2:] for row in bench.gains(stored)}
    assert found["digits", "RandomizedSearchCV"] == [2, "0.8500", "0.8000", "+0.0500 ± 0.0500"]
    assert found["all", "HalvingRandomSearchCV"][0] == 10
    assert found["all", "HalvingRandomSearchCV"][3].startswith("+0.0500")

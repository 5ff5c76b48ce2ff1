"""The tasks of benchmarks/tuning: what is known about them is true."""

import numpy as np
import pytest
from benchmarks.tuning import tasks
from benchmarks.tuning.play import COLUMNS, TuningSettings, simulate
from benchmarks.tuning.tables import TABLES, load_table


@pytest.mark.parametrize("name", [*tasks.SYNTHETIC, *tasks.HELD_OUT])
def test_no_configuration_is_better_than_the_optimum(name):
    task = tasks.make(name, 0)
    values = [task.worth(p)[0] for p in task.space.sample(400, rng=0)]
    assert min(values) >= 0.0
    assert max(values) <= task.optimum + 1e-9
    assert max(values) > task.optimum - 0.4


@pytest.mark.parametrize("name", tasks.HELD_OUT)
def test_a_table_is_met_at_the_points_of_its_grid(name):
    task, table, values = tasks.make(name, 0), TABLES[name], load_table(name)
    assert len(values) == np.prod([len(grid) for grid in table.grid.values()])
    for key in list(values)[:: max(len(values) // 20, 1)]:
        assert task.worth(dict(zip(table.space, key, strict=True)))[0] == pytest.approx(values[key])


@pytest.mark.parametrize("tuner", ["mixbandit", "OFUL", "TPE"])
def test_a_run_can_be_played(tuner):
    row = dict(zip(COLUMNS, simulate(TuningSettings("branin", tuner, trials=12), 3), strict=True))
    assert len(row["expected"].split()) == len(row["values"].split()) == 12
    again = dict(zip(COLUMNS, simulate(TuningSettings("branin", tuner, trials=12), 3), strict=True))
    assert again["parameters"] == row["parameters"]

"""What was played, as small tables and a picture."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixbandit import Tuner
from mixbandit.paper.store import write_table
from mixbandit.plots import COLOURS

from .tasks import DEVELOPMENT, HELD_OUT, SAMPLES, make

KEPT = (
    "mean", "mean_test", "recommended", "recommended_test", "by_mean", "ms", "late_ms", "lower", "upper", "gap",
    "refuted",
)  # fmt: skip
SHOWN = ("mean", "recommended", "ms", "covers", "width", "gap")
ORDER = ("mixbandit", "TPE", "CMA-ES", "GP", "random")
TRIALS = 200
# Variants are compared over this many seeds, the same for all.
ABLATION_SEEDS = 10
LOOKS = (25, 50, 100, 200)


@dataclass(frozen=True)
class Cell:
    """All runs of a tuner on a task."""

    task: str
    tuner: str
    options: str
    rows: list[dict[str, str]]

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        return np.array([float(row[column]) for row in self.rows if row[column] != ""])

    def first(self, seeds: int) -> Cell:
        """The runs of the first seeds."""
        return Cell(self.task, self.tuner, self.options, [r for r in self.rows if int(r["repetition"]) < seeds])

    def curve(self) -> NDArray[np.float64]:
        """Expected reward, mean over seeds, by trial."""
        return np.asarray(np.mean([[float(v) for v in row["expected"].split()] for row in self.rows], axis=0))

    def covered(self) -> tuple[int, int]:
        """The number of runs in which the interval of the recommended configuration covers, and of all runs."""
        inside = (self["lower"] <= self["recommended"]) & (self["recommended"] <= self["upper"])
        return int(inside.sum()), len(inside)


def read(folder: Path, trials: int = TRIALS) -> dict[tuple[str, str, str], Cell]:
    """The stored runs of so many trials, by task, tuner and options."""
    csv.field_size_limit(sys.maxsize)
    cells = {}
    for path in sorted(folder.glob("tuning-*.csv")):
        comment, *lines = path.read_text().splitlines()
        settings = json.loads(comment[2:])
        rows = list(csv.DictReader(lines))
        if rows and settings["trials"] == trials:
            key = (settings["task"], settings["tuner"], settings["options"])
            cells[key] = Cell(*key, rows)
    return cells


def summarise(folder: Path, to: Path) -> None:
    """Write runs.csv, a table per set of tasks, the ablations and a picture."""
    cells = read(folder)
    to.mkdir(parents=True, exist_ok=True)
    runs = [
        (*key, row["repetition"], *(row[column] for column in KEPT)) for key, cell in cells.items() for row in cell.rows
    ]
    made = {"command": "python -m benchmarks.tuning summary", "trials": TRIALS}
    write_table(to / "runs.csv", ("task", "tuner", "options", "seed", *KEPT), sorted(runs), **made)
    for name, tasks in (("development", DEVELOPMENT), ("held-out", HELD_OUT)):
        write_table(to / f"{name}.csv", ("task", "tuner", "seeds", *SHOWN), _table(cells, tasks), **made)
    write_table(to / "ablations.csv", ("tuner", "setting", *SHOWN), _ablations(cells), **made)
    columns = ("trials of", "runs", "by the best value", "by certify", "misses", "of these refuted", "width")
    write_table(to / "certified.csv", columns, _certified(cells), **made)
    widths = ("task", "parameters", *(f"{n} trials" for n in LOOKS))
    write_table(to / "widths.csv", widths, _widths(cells), **made)
    write_table(to / "verdict.csv", ("question", "answer"), _verdict(cells), **made)
    _picture(cells, to / "tuning.png")


def _table(cells: dict[tuple[str, str, str], Cell], tasks: tuple[str, ...]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for task in tasks:
        for tuner in ORDER:
            cell = cells.get((task, tuner, "{}"))
            if cell is not None:
                values = (with_error(cell["mean"]), with_error(cell["recommended"]), f"{cell['ms'].mean():.1f}")
                rows.append((task, tuner, str(len(cell.rows)), *values, *_ours([cell])))
    return rows


def _ours(cells: list[Cell]) -> tuple[str, str, str]:
    """Coverage, width and gap, if there are any."""
    if not all(len(cell["upper"]) for cell in cells):
        return "", "", ""
    inside, runs = np.sum([cell.covered() for cell in cells], axis=0)
    width = np.mean([(cell["upper"] - cell["lower"]).mean() for cell in cells])
    gaps = [cell["gap"].mean() for cell in cells if len(cell["gap"])]
    return f"{inside} of {runs}", f"{width:.3f}", f"{np.mean(gaps):.3f}" if gaps else ""


def _ablations(cells: dict[tuple[str, str, str], Cell]) -> list[tuple[str, ...]]:
    """Means over the development tasks, for every setting that was played on all of them."""
    rows: list[tuple[str, ...]] = []
    for tuner, options in sorted({(tuner, options) for _, tuner, options in cells}, key=_place):
        found = [cell.first(ABLATION_SEEDS) for task in DEVELOPMENT if (cell := cells.get((task, tuner, options)))]
        if len(found) == len(DEVELOPMENT):
            values = (_over_tasks([cell[name] for cell in found]) for name in ("mean", "recommended"))
            ms = np.mean([cell["ms"].mean() for cell in found])
            setting = "default" if options == "{}" else options.strip("{}").replace('"', "")
            rows.append((tuner, setting, *values, f"{ms:.1f}", *_ours(found)))
    return rows


def _over_tasks(runs: list[NDArray[np.float64]]) -> str:
    """The mean over tasks of the means over seeds, and its standard error; the tasks are those, not a sample."""
    error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in runs)) / len(runs)
    return f"{np.mean([values.mean() for values in runs]):.4f} ± {error:.4f}"


def _certified(cells: dict[tuple[str, str, str], Cell]) -> list[tuple[str, ...]]:
    """What a certificate recommends from the trials of others, on the held-out tasks; means over all runs."""
    rows: list[tuple[str, ...]] = []
    for tuner in ORDER[1:]:
        best, worth, lower, upper, refuted = [], [], [], [], []
        for name in HELD_OUT:
            cell, task = cells.get((name, tuner, "{}")), make(name, 0)
            for row in cell.rows if cell is not None else []:
                told = map(float, row["values"].split())
                history = list(zip(json.loads(row["parameters"]), told, strict=True))
                found = (
                    Tuner(task.space, reward_range=(0.0, 1.0), samples=SAMPLES, rows="fresh").learn(history).recommend()
                )
                best.append(float(row["recommended"]))
                worth.append(task.worth(found.parameters)[0])
                lower.append(found.interval[0])
                upper.append(found.interval[1])
                refuted.append(not found.trusted)
        if best:
            missed = (np.array(lower) > worth) | (np.array(worth) > upper)
            known = int((missed & refuted).sum())
            values = (f"{np.mean(best):.4f}", f"{np.mean(worth):.4f}", str(int(missed.sum())), str(known))
            rows.append((tuner, str(len(best)), *values, f"{np.mean(np.array(upper) - lower):.3f}"))
    return rows


def _widths(cells: dict[tuple[str, str, str], Cell]) -> list[tuple[str, ...]]:
    """How wide the interval of the recommended configuration is after some of our trials, on the development tasks."""
    rows: list[tuple[str, ...]] = []
    for name in DEVELOPMENT:
        cell = cells.get((name, "mixbandit", "{}"))
        if cell is None:
            continue
        space, widths = make(name, 0).space, []
        for row in cell.first(ABLATION_SEEDS).rows:
            history = list(zip(json.loads(row["parameters"]), map(float, row["values"].split()), strict=True))
            tuners = (
                Tuner(space, reward_range=(0.0, 1.0), samples=SAMPLES, rows="fresh").learn(history[:n]) for n in LOOKS
            )
            widths.append([high - low for low, high in (tuner.recommend().interval for tuner in tuners)])
        rows.append((name, str(len(space)), *(f"{width:.2f}" for width in np.mean(widths, axis=0))))
    return rows


def _place(key: tuple[str, str]) -> tuple[int, str]:
    """Ours first, starting with its default, then those not in the order, then peers."""
    tuner, options = key
    return ({name: i + 2 for i, name in enumerate(ORDER)} | {"mixbandit": 0}).get(tuner, 1), options


def with_error(values: NDArray[np.float64]) -> str:
    """The mean, and its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.4f} ± {error:.4f}"


def _verdict(cells: dict[tuple[str, str, str], Cell]) -> list[tuple[str, str]]:
    """The three questions of the README, answered for the held-out tasks that were played."""
    recommended, mean, inside, runs, played = 0, 0, 0, 0, 0
    for task in HELD_OUT:
        ours, tpe = cells.get((task, "mixbandit", "{}")), cells.get((task, "TPE", "{}"))
        if ours is None or tpe is None:
            continue
        peers = [cell for tuner in ORDER[1:] if (cell := cells.get((task, tuner, "{}"))) is not None]
        best = max(peers, key=lambda cell: float(cell["recommended"].mean()))
        # "Within its noise": two standard errors of the difference.
        noise = 2.0 * np.sqrt(sum(cell["recommended"].var(ddof=1) / len(cell.rows) for cell in (ours, best)))
        recommended += int(ours["recommended"].mean() >= best["recommended"].mean() - noise)
        mean += int(ours["mean"].mean() > tpe["mean"].mean())
        covered = ours.covered()
        inside, runs, played = inside + covered[0], runs + covered[1], played + 1
    return [
        ("recommended no worse than the best peer's, within two standard errors", f"{recommended} of {played} tasks"),
        ("mean reward above TPE's", f"{mean} of {played} tasks"),
        ("the interval of the recommended configuration covers", f"{inside} of {runs} runs"),
    ]


def _picture(cells: dict[tuple[str, str, str], Cell], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = [task for task in (*DEVELOPMENT, *HELD_OUT) if (task, "mixbandit", "{}") in cells]
    if not tasks:
        return
    columns = 3
    figure, axes = plt.subplots(-(-len(tasks) // columns), columns, figsize=(11, 2.4 * -(-len(tasks) // columns)))
    for axis, task in zip(np.ravel(axes), tasks, strict=False):
        for tuner in ORDER:
            cell = cells.get((task, tuner, "{}"))
            if cell is not None:
                curve = cell.curve()
                so_far = np.cumsum(curve) / np.arange(1, len(curve) + 1)
                colour = COLOURS[ORDER.index(tuner)]
                axis.plot(so_far, label=tuner, color=colour, lw=1.8 if tuner == "mixbandit" else 1)
        axis.set_title(task, fontsize=9)
        axis.tick_params(labelsize=7)
    for axis in np.ravel(axes)[len(tasks) :]:
        axis.axis("off")
    np.ravel(axes)[len(tasks) - 1].legend(fontsize=7)
    figure.supxlabel("trials", fontsize=9)
    figure.supylabel("expected reward, mean over the trials so far", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=80)

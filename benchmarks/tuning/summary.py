"""What was played, as small tables and a picture."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixbandit.experiments.store import write_table

from .tasks import DEVELOPMENT, HELD_OUT

KEPT = (
    "mean", "mean_test", "recommended", "recommended_test", "by_mean", "ms", "late_ms", "lower", "upper", "gap",
    "refuted",
)  # fmt: skip
ORDER = ("mixbandit", "TPE", "CMA-ES", "GP", "random")
TRIALS = 200


@dataclass(frozen=True)
class Cell:
    """All runs of a tuner on a task."""

    task: str
    tuner: str
    options: str
    rows: list[dict[str, str]]

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        return np.array([float(row[column]) for row in self.rows if row[column] != ""])

    def curve(self) -> NDArray[np.float64]:
        """Expected reward, mean over seeds, by trial."""
        return np.asarray(np.mean([[float(v) for v in row["expected"].split()] for row in self.rows], axis=0))

    def covered(self) -> tuple[int, int]:
        """In how many runs the interval of the recommended configuration covers, and of how many."""
        inside = (self["lower"] <= self["recommended"]) & (self["recommended"] <= self["upper"])
        return int(inside.sum()), len(inside)


def read(folder: Path) -> dict[tuple[str, str, str], Cell]:
    """What is there, by task, tuner and options."""
    csv.field_size_limit(sys.maxsize)
    cells = {}
    for path in sorted(folder.glob("tuning-*.csv")):
        comment, *lines = path.read_text().splitlines()
        settings = json.loads(comment[2:])
        rows = list(csv.DictReader(lines))
        if rows and settings["trials"] == TRIALS:
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
        (to / f"{name}.md").write_text(_table(cells, tasks))
    (to / "ablations.md").write_text(_ablations(cells))
    _picture(cells, to / "tuning.png")
    print("\n".join((to / f"{name}.md").read_text() for name in ("development", "held-out", "ablations")))
    print(_verdict(cells))


def _table(cells: dict[tuple[str, str, str], Cell], tasks: tuple[str, ...]) -> str:
    header = ["task", "tuner", "seeds", "mean", "recommended", "ms", "covers", "width", "gap"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for task in tasks:
        for tuner in ORDER:
            cell = cells.get((task, tuner, "{}"))
            if cell is None:
                continue
            ours = ["", "", ""]
            if len(cell["gap"]):
                inside, runs = cell.covered()
                ours = [
                    f"{inside} of {runs}",
                    f"{(cell['upper'] - cell['lower']).mean():.3f}",
                    f"{cell['gap'].mean():.3f}",
                ]
            values = [_with_error(cell["mean"]), _with_error(cell["recommended"]), f"{cell['ms'].mean():.1f}", *ours]
            lines.append("| " + " | ".join([task, tuner, str(len(cell.rows)), *values]) + " |")
    return "\n".join(lines) + "\n"


def _ablations(cells: dict[tuple[str, str, str], Cell]) -> str:
    """Means over the development tasks, for every setting that was played on all of them."""
    lines = [
        "| tuner | setting | mean | recommended | covers | width | gap | ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for tuner, options in sorted(
        {(tuner, options) for _, tuner, options in cells},
        key=lambda k: (ORDER.index(k[0]) if k[0] in ORDER else -1, k[1]),
    ):
        own = [cells.get((task, tuner, options)) for task in DEVELOPMENT]
        found = [cell for cell in own if cell is not None]
        if len(found) < len(DEVELOPMENT):
            continue
        mean = {c: np.mean([cell[c].mean() for cell in found]) for c in ("mean", "recommended", "ms")}
        ours = ["", "", ""]
        if all(len(cell["upper"]) for cell in found):
            inside, runs = np.sum([cell.covered() for cell in found], axis=0)
            width = np.mean([(cell["upper"] - cell["lower"]).mean() for cell in found])
            gap = f"{np.mean([cell['gap'].mean() for cell in found]):.3f}" if len(found[0]["gap"]) else ""
            ours = [f"{inside} of {runs}", f"{width:.3f}", gap]
        setting = "default" if options == "{}" else options.strip("{}").replace('"', "")
        values = [f"{mean['mean']:.4f}", f"{mean['recommended']:.4f}", *ours, f"{mean['ms']:.1f}"]
        lines.append("| " + " | ".join([tuner, setting, *values]) + " |")
    return "\n".join(lines) + "\n"


def _with_error(values: NDArray[np.float64]) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.4f} ± {error:.4f}"


def _verdict(cells: dict[tuple[str, str, str], Cell]) -> str:
    """The three questions of the README, answered for the held-out tasks."""
    recommended = mean = inside = runs = 0
    for task in HELD_OUT:
        ours = cells.get((task, "mixbandit", "{}"))
        peers = [cell for tuner in ORDER[1:] if (cell := cells.get((task, tuner, "{}"))) is not None]
        tpe = cells.get((task, "TPE", "{}"))
        if ours is None or tpe is None:
            return "the held-out tasks were not all played"
        best = max(peers, key=lambda cell: float(cell["recommended"].mean()))
        # "Within its noise": two standard errors of the difference.
        noise = 2.0 * np.sqrt(sum(cell["recommended"].var(ddof=1) / len(cell.rows) for cell in (ours, best)))
        recommended += ours["recommended"].mean() >= best["recommended"].mean() - noise
        mean += ours["mean"].mean() > tpe["mean"].mean()
        covered = ours.covered()
        inside, runs = inside + covered[0], runs + covered[1]
    return (
        f"of {len(HELD_OUT)} held-out tasks: recommended no worse than the best peer's on {recommended}, "
        f"mean reward above TPE's on {mean}; intervals cover in {inside} of {runs} runs"
    )


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
                axis.plot(
                    np.cumsum(curve) / np.arange(1, len(curve) + 1), label=tuner, lw=1.8 if tuner == "mixbandit" else 1
                )
        axis.set_title(task, fontsize=9)
        axis.tick_params(labelsize=7)
    for axis in np.ravel(axes)[len(tasks) :]:
        axis.axis("off")
    np.ravel(axes)[0].legend(fontsize=7)
    figure.supxlabel("trials", fontsize=9)
    figure.supylabel("expected reward, mean over the trials so far", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)

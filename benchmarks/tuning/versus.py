"""Wins, ranks and regret of tuners on tasks that nobody here made, as small tables and a picture.

A win is counted per task and seed, ties aside. The p-value is that of a two-sided sign test over all runs. Ranks are
among all tuners by the expected value of the recommended configuration, 1 the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

from mixbandit.paper.store import write_table
from mixbandit.plots import COLOURS

from . import outside
from .summary import Cell, read, with_error
from .tasks import DEVELOPMENT, HELD_OUT, make

# These were not looked at while defaults were chosen. The old held-out tasks are those of version 0.1.0: its results on
# them have been known since.
_ALL = "all of these"
JUDGING = {"tables": outside.TABLES, "functions": outside.FUNCTIONS, "unseen": outside.UNSEEN}
FAMILIES = {
    **JUDGING,
    _ALL: (*outside.TABLES, *outside.FUNCTIONS, *outside.UNSEEN),
    "development": (*outside.DEVELOPMENT, *outside.DEVELOPMENT_FUNCTIONS),
    "old held-out": HELD_OUT,
    "old development": DEVELOPMENT,
}
TUNERS = ("mixbandit", "TPE", "CMA-ES", "GP", "SMAC", "random")
Cells = dict[tuple[str, str, str], Cell]
# The picture of trials is of runs of this many, and shows means over some of them.
DRAWN, _SMOOTHED = 100, 5
# Tuners with fewer seeds are not ranked.
_RANKED = 10


def compare(folder: Path, to: Path, trials: Sequence[int]) -> None:
    """Write tasks.csv, wins.csv, ranks.csv and two pictures."""
    played = {n: read(folder, n) for n in trials}
    to.mkdir(parents=True, exist_ok=True)
    made = {"command": "python -m benchmarks.tuning versus"}
    shown = ("tasks", "task", "trials", "tuner", "seeds", "mean", "recommended", "best", "floor", "covers", "ms")
    write_table(to / "tasks.csv", shown, [row for n in trials for row in _table(played[n], n)], **made)
    columns = ("tasks", "trials", "against", "what", "ahead", "behind", "ties", "share, %", "p")
    write_table(to / "wins.csv", columns, [row for n in trials for row in _wins(played[n], n)], **made)
    ranks = ("tasks", "trials", *TUNERS)
    write_table(to / "ranks.csv", ranks, [row for n in trials for row in _ranks(played[n], n)], **made)
    _draw_trials(played, to / "regret.png")
    _draw_recommended(played, to / "recommended.png")


def _table(cells: Cells, trials: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for family, names in FAMILIES.items():
        for task in names if family != _ALL else ():
            for tuner in TUNERS:
                cell = cells.get((task, tuner, "{}"))
                if cell is None:
                    continue
                floor = f"{cell['lower'].mean():.4f}" if len(cell["lower"]) else ""
                values = (with_error(cell["mean"]), with_error(cell["recommended"]), f"{_best(task):.4f}", floor)
                rows.append(
                    (family, task, str(trials), tuner, str(len(cell.rows)), *values, _covers(cell),
                     f"{cell['ms'].mean():.1f}")
                )  # fmt: skip
    return rows


def _best(task: str) -> float:
    return make(task, 0).optimum or math.nan


def _covers(cell: Cell) -> str:
    """Of ours, and of what `certify` recommends from TPE's trials; of the misses, how many say that data refute."""
    if not len(cell["lower"]):
        return ""
    truth = cell["by_mean"] if cell.tuner == "TPE" else cell["recommended"]
    inside = (cell["lower"] <= truth) & (truth <= cell["upper"])
    refuted = cell["refuted"] if len(cell["refuted"]) else np.zeros(len(inside))
    said = int((~inside & (refuted > 0.0)).sum())
    return f"{int(inside.sum())} of {len(inside)}{f', {said} refuted' if said else ''}"


def _wins(cells: Cells, trials: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for family, names in FAMILIES.items():
        for against, what in (
            ("TPE", "mean"),
            ("TPE", "recommended"),
            ("CMA-ES", "mean"),
            ("CMA-ES", "recommended"),
            ("GP", "mean"),
            ("GP", "recommended"),
            ("SMAC", "mean"),
            ("SMAC", "recommended"),
            ("random", "recommended"),
            ("TPE", "lower"),
        ):
            found = _pairs(cells, names, against, what)
            if len(found):
                difference = found[:, 0] - found[:, 1]
                ahead, behind = int((difference > 0.0).sum()), int((difference < 0.0).sum())
                told_apart = ahead + behind
                p = binomtest(ahead, told_apart).pvalue if told_apart else 1.0
                label = "floor" if what == "lower" else what
                counts = str(ahead), str(behind), str(len(found) - told_apart)
                share = f"{100.0 * ahead / told_apart:.0f}" if told_apart else ""
                rows.append((family, str(trials), against, label, *counts, share, f"{p:.2g}"))
    return rows


def _pairs(cells: Cells, names: Sequence[str], against: str, what: str) -> NDArray[np.float64]:
    """Ours and theirs, (runs, 2), for the seeds that both have."""
    found = []
    for task in names:
        ours, theirs = cells.get((task, "mixbandit", "{}")), cells.get((task, against, "{}"))
        if ours is None or theirs is None:
            continue
        known = {row["repetition"]: row for row in theirs.rows}
        for row in ours.rows:
            other = known.get(row["repetition"])
            if other is not None and row[what] != "" and other[what] != "":
                found.append((float(row[what]), float(other[what])))
    return np.array(found).reshape(-1, 2)


def _ranks(cells: Cells, trials: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for family, names in FAMILIES.items():
        ranks = []
        for task in names:
            every = {tuner: cells.get((task, tuner, "{}")) for tuner in TUNERS}
            found = {
                name: cell if cell is not None and len(cell.rows) >= _RANKED else None for name, cell in every.items()
            }
            known = [cell for cell in found.values() if cell is not None]
            if not known or found["mixbandit"] is None:
                continue
            seeds = min(len(cell.rows) for cell in known)
            values = np.array([cell.first(seeds)["recommended"] for cell in known])
            means = iter(rankdata(-values, axis=0).mean(axis=1))
            ranks.append([math.nan if cell is None else next(means) for cell in found.values()])
        if ranks:
            mean = np.mean(ranks, axis=0)  # NaN for a tuner that did not play all tasks of the family
            rows.append((family, str(trials), *("" if math.isnan(rank) else f"{rank:.2f}" for rank in mean)))
    return rows


def _draw_trials(played: dict[int, Cells], path: Path) -> None:
    """Regret of the trials, and at the right that of the recommended configuration; that of random trials is 1."""
    trials = DRAWN if DRAWN in played else next(iter(played))
    cells = played[trials]
    shown = [name for name in JUDGING if _regrets(cells, JUDGING[name], "random")]
    figure, axes = _axes(shown, one_scale=True)
    for axis, family in zip(axes, shown, strict=True):
        names = JUDGING[family]
        scale = {task: regrets[:-1].mean() for task, regrets in _regrets(cells, names, "random").items()}
        for tuner, colour in zip(TUNERS, COLOURS, strict=False):
            found = [regrets / scale[task] for task, regrets in _regrets(cells, names, tuner).items() if task in scale]
            if found:
                mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
                smooth = np.convolve(mean[:-1], np.full(_SMOOTHED, 1.0 / _SMOOTHED), mode="valid")
                axis.plot(np.arange(_SMOOTHED, trials + 1), smooth, color=colour, label=tuner)
                place = 1.04 * trials + 0.03 * trials * TUNERS.index(tuner)
                axis.errorbar(place, mean[-1], error[-1], color=colour, marker="o", capsize=3)
        axis.axvline(1.015 * trials, color="0.8", lw=1)
        axis.set_xlabel(f"trials (mean over the last {_SMOOTHED}); dots: recommended", fontsize=9)
    _finish(figure, axes, path)


def _draw_recommended(played: dict[int, Cells], path: Path) -> None:
    """Regret of the recommended configuration after several numbers of trials; that of random trials is 1."""
    shown = [name for name in JUDGING if all(_regrets(cells, JUDGING[name], "random") for cells in played.values())]
    figure, axes = _axes(shown, one_scale=False)
    for axis, family in zip(axes, shown, strict=True):
        names = JUDGING[family]
        last = played[max(played)]
        scale = {task: regrets[:-1].mean() for task, regrets in _regrets(last, names, "random").items()}
        for tuner, colour in zip(TUNERS, COLOURS, strict=False):
            rows = []
            for i, cells in enumerate(played[n] for n in sorted(played)):
                found = [r[-1] / scale[task] for task, r in _regrets(cells, names, tuner).items() if task in scale]
                if found:
                    # A little apart, so that bars can be told apart.
                    place = i + 0.06 * (TUNERS.index(tuner) - 2)
                    rows.append((place, float(np.mean(found)), float(np.std(found) / np.sqrt(len(found)))))
            if rows:
                x, y, error = map(list, zip(*rows, strict=True))
                axis.errorbar(x, y, error, color=colour, marker="o", capsize=3, label=tuner)
        axis.set_xticks(range(len(played)), [str(n) for n in sorted(played)])
        axis.set_xlabel("trials", fontsize=9)
        axis.set_ylim(bottom=0.0)
    _finish(figure, axes, path)


def _axes(shown: Sequence[str], *, one_scale: bool) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, max(len(shown), 1), figsize=(4.6 * max(len(shown), 1), 3.4), squeeze=False, sharey=one_scale
    )
    for axis, name in zip(axes[0], shown, strict=False):
        axis.set_title(name)
    return figure, list(axes[0])[: len(shown)]


def _finish(figure: Any, axes: Sequence[Any], path: Path) -> None:
    if axes:
        axes[0].set_ylabel("regret, random trials = 1")
        axes[0].legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(path, dpi=90)


def _regrets(cells: Cells, names: Sequence[str], tuner: str) -> dict[str, NDArray[np.float64]]:
    """Mean regret of each trial and, last, of the recommended configuration, by task."""
    found = {task: cells.get((task, tuner, "{}")) for task in names}
    return {
        task: _best(task) - np.append(cell.curve(), cell["recommended"].mean())
        for task, cell in found.items()
        if cell is not None
    }

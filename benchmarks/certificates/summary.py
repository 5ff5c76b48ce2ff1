"""Tables of what was played, label beside label."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .functions import KINDS
from .play import RUN, read
from .records import Row

# What a row counts, and what is said about it.
COUNTED = {
    "wrong": "wrong",
    "silent": "wrong, silently",
    "refuted": "refuted",
}
STATEMENTS = {
    "interval_wrong": "interval of the recommended",
    "best_possible_wrong": "best possible",
    "gap_wrong": "gap",
    "intervals_wrong": "any of 400 intervals",
}
Choice = Callable[[Row], bool]


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error."""

    mean: float
    error: float

    def percent(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.error:.1f}"

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


def clustered(values: dict[str, list[float]]) -> Estimate:
    """The mean over all runs; the error takes the runs of a function as one: they resemble each other."""
    sums = np.array([sum(part) for part in values.values()])
    counts = np.array([len(part) for part in values.values()], dtype=float)
    if not len(counts):
        return Estimate(math.nan, math.nan)
    mean, groups = float(sums.sum() / counts.sum()), len(counts)
    if groups == 1:
        return Estimate(mean, math.nan)
    off = np.sum((sums - mean * counts) ** 2)
    return Estimate(mean, float(math.sqrt(off * groups / (groups - 1)) / counts.sum()))


def share(rows: Sequence[Row], column: str) -> Estimate:
    """Of the rows, those in which a column is positive."""
    return clustered(_by_function(rows, lambda row: float(float(row[column]) > 0)))


def mean(rows: Sequence[Row], column: str) -> Estimate:
    return clustered(_by_function(rows, lambda row: float(row[column])))


def ratio(rows: Sequence[Row], others: Sequence[Row], column: str = "mean_width") -> Estimate:
    """The ratio of means over the runs that both have, function by function, and its mean over functions."""
    here, there = ({tuple(row[name] for name in RUN): row for row in part} for part in (rows, others))
    both = [run for run in here if run in there]
    ours, theirs = (_by_function([part[run] for run in both], lambda row: float(row[column])) for part in (here, there))
    return clustered({name: [float(np.mean(ours[name]) / np.mean(theirs[name]))] for name in ours})


def _by_function(rows: Sequence[Row], value: Callable[[Row], float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["function"], []).append(value(row))
    return found


def groups() -> dict[str, Choice]:
    """Kinds; needles that a trial hit apart from those that none did: of these no data can tell."""
    found: dict[str, Choice] = {}
    for kind in KINDS:
        if kind == "needle":
            found["needle, hit"] = lambda row: row["kind"] == "needle" and row["hit"] == "1"
            found["needle, missed"] = lambda row: row["kind"] == "needle" and row["hit"] == "0"
        else:
            found[kind] = lambda row, kind=kind: row["kind"] == kind  # type: ignore[misc]
    found["all but missed needles"] = lambda row: row["hit"] != "0"
    found["all"] = lambda row: True
    return found


def summarise(files: Sequence[Path]) -> str:
    """Markdown; the label of a file is its name, and widths are compared with those of the first."""
    if not files:
        raise SystemExit("nothing was played yet: name the files")
    labels = {path.stem: read(path)[1] for path in files}
    parts = [
        "Shares of runs in percent, ± a standard error over functions. A run is wrong if any of its statements is: "
        "the interval of the recommended configuration, the best possible value and the gap where proven, or one of "
        "400 intervals elsewhere; silently, if the data are not said to refute the assumptions. Widths are means over "
        "the 400 intervals; those of refuted runs come from an inflated set.",
        _main_table(labels),
        "Which statement is wrong, though nothing is refuted, in percent of runs:",
        _statements(labels),
        "By the number of trials and of samples per value:",
        _main_table(labels, by=("trials", "samples")),
        "By sampler:",
        _main_table(labels, by=("sampler",)),
    ]
    return "\n\n".join(parts)


def _main_table(labels: dict[str, list[Row]], by: Sequence[str] = ()) -> str:
    first, *others = labels
    header = ["kind", *by, "runs"]
    header += [f"{title}: {label}" for title in COUNTED.values() for label in labels]
    header += [f"width: {label}" for label in labels]
    for label in others:
        header += [f"width: {label} / {first}", "both trusted"]
    header += [f"seconds: {label}" for label in labels]
    rows = []
    for name, belongs in groups().items():
        chosen = {label: [row for row in rows if belongs(row)] for label, rows in labels.items()}
        for cell in sorted({tuple(row[b] for b in by) for part in chosen.values() for row in part}, key=_in_order):
            here = {label: [r for r in part if tuple(r[b] for b in by) == cell] for label, part in chosen.items()}
            row = [name, *cell, " / ".join(dict.fromkeys(str(len(part)) for part in here.values()))]
            row += [share(part, column).percent() for column in COUNTED for part in here.values()]
            row += [str(mean(part, "mean_width")) for part in here.values()]
            for label in others:
                row.append(str(ratio(here[label], here[first])))
                row.append(str(ratio(_trusted(here[label]), _trusted(here[first]))))
            row += [f"{mean(part, 'seconds').mean:.2f}" for part in here.values()]
            rows.append(row)
    return markdown(header, rows)


def _trusted(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["refuted"] == "0"]


def _statements(labels: dict[str, list[Row]]) -> str:
    rows = []
    for name, belongs in groups().items():
        for label, everything in labels.items():
            part = [row for row in everything if belongs(row)]
            # A statement of a refuted run does not count, but the run does.
            quiet = [row if row["refuted"] == "0" else {**row, **dict.fromkeys(STATEMENTS, "0")} for row in part]
            if part:
                rows.append([name, label, *(share(quiet, column).percent() for column in STATEMENTS)])
    return markdown(["kind", "label", *STATEMENTS.values()], rows)


def _in_order(cell: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((int(part) if part.isdigit() else 0, part) for part in cell)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

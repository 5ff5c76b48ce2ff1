"""What came out, for the documentation: a table and a picture."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .play import read
from .records import Row
from .summary import groups, mean, ratio, share

HEADER = ("kind", "label", "runs", "wrong, %", "wrong, silently, %", "refuted, %", "width", "width / before")


def publish(files: Sequence[Path], to: Path) -> None:
    """Write `summary.csv` and `honesty.png`; the label of a file is its name, and the first is compared with."""
    labels = {path.stem: read(path)[1] for path in files}
    first = next(iter(labels.values()))
    to.mkdir(parents=True, exist_ok=True)
    with (to / "summary.csv").open("w", newline="") as file:
        command = f"python -m benchmarks.certificates summary {' '.join(map(str, files))} --to {to}"
        file.write(f"# mixbandit: {version('mixbandit')}; command: {command}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for name, belongs in groups().items():
            before = [row for row in first if belongs(row)]
            for label, rows in labels.items():
                some = [row for row in rows if belongs(row)]
                shares = [share(some, column).percent() for column in ("wrong", "silent", "refuted")]
                compared = "" if rows is first else f"{ratio(some, before).mean:.2f}"
                writer.writerow([name, label, len(some), *shares, f"{mean(some, 'mean_width').mean:.3f}", compared])
    _draw(labels, to / "honesty.png")


def _draw(labels: dict[str, list[Row]], path: Path) -> None:
    from matplotlib.figure import Figure

    kinds = [name for name in groups() if not name.startswith("all")]
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(labels)
    for place, (label, rows) in enumerate(labels.items()):
        found = [share([row for row in rows if groups()[kind](row)], "silent") for kind in kinds]
        at = np.arange(len(kinds)) + (place - 0.5 * (len(labels) - 1)) * height
        colour = ("#c44e52", "#4c72b0", "#55a868")[place % 3]
        values, errors = ([100 * getattr(each, part) for each in found] for part in ("mean", "error"))
        axes.barh(at, values, 0.9 * height, xerr=errors, label=label, color=colour, error_kw={"lw": 1, "alpha": 0.6})
        for y, value, error in zip(at, values, errors, strict=True):
            axes.text(value + error + 0.8, y, f"{value:.0f}", va="center", fontsize=8)
    axes.axvline(10.0, color="0.5", lw=0.8, ls=":")
    axes.set_yticks(np.arange(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlim(0.0, None)
    axes.set_xlabel("runs with a false statement and no warning, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)

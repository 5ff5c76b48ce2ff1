"""Tables of floors: how far below the truth, compared with an oracle's; coverage and width; label beside label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import audits, floors
from .records import Row
from .summary import Estimate, markdown

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]  # of samples of runs, shape (resamples, runs, columns)
RESAMPLES = 2000
# Floors are to lie at most this many times as far below the truth as the oracle's.
GOAL = 1.6
Labels = dict[str, list[Row]]


def column(rows: Sequence[Row], name: str) -> Array:
    return np.array([float(row[name]) for row in rows])


def bootstrapped(columns: Sequence[Array], statistic: Statistic) -> Estimate:
    """A statistic of runs and its standard error, from resampled runs: all columns of a run stay together."""
    data = np.stack(columns, axis=-1)
    drawn = np.random.default_rng(0).integers(len(data), size=(RESAMPLES, len(data)))
    return Estimate(float(statistic(data[None])[0]), float(np.std(statistic(data[drawn]))))


def median(values: Array) -> Estimate:
    return bootstrapped([values], lambda data: np.asarray(np.median(data[..., 0], axis=1)))


def ratio(values: Array, others: Array) -> Estimate:
    """The ratio of two medians over the same runs."""

    def of(data: Array) -> Array:
        over, under = np.moveaxis(np.median(data, axis=1), -1, 0)
        return np.asarray(over / under)

    return bootstrapped([values, others], of)


def mean(values: Array) -> Estimate:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return Estimate(float(np.mean(values)), error)


def shortfall(rows: Sequence[Row], of: str = "truth", floor: str = "floor") -> Array:
    return column(rows, of) - column(rows, floor)


def difference(rows: Sequence[Row], others: Sequence[Row]) -> Estimate:
    """How much better the recommended configurations are than those of the same seeds in the other rows."""
    there = {row["seed"]: float(row["truth"]) for row in others}
    both = [row for row in rows if row["seed"] in there]
    return mean(column(both, "truth") - np.array([there[row["seed"]] for row in both]))


def read(files: Sequence[Path]) -> tuple[Labels, Labels]:
    """Runs and audits by label, which is the name of a file without the command."""
    played: Labels = {}
    audited: Labels = {}
    for path in files:
        is_audit, label = path.stem.startswith("audits_"), path.stem.rpartition("_")[2]
        kept, form = (audited, audits.FORM) if is_audit else (played, floors.FORM)
        kept.setdefault(label, []).extend(form.read(path)[1])
    return played, audited


def draw(files: Sequence[Path], to: Path) -> None:
    """How far floors are below the truth, label beside label, and the oracle's."""
    from matplotlib.figure import Figure

    played, _ = read(files)
    names = list(dict.fromkeys(row["task"] for rows in played.values() for row in rows))
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.subplots()
    bars = {label: [[row for row in rows if row["task"] == name] for name in names] for label, rows in played.items()}
    found = {label: [median(shortfall(rows)) for rows in each] for label, each in bars.items()}
    found["oracle"] = [median(shortfall(rows, "best", "oracle_floor")) for rows in next(iter(bars.values()))]
    width = 0.8 / len(found)
    for place, (label, estimates) in enumerate(found.items()):
        at = np.arange(len(names)) + (place - 0.5 * (len(found) - 1)) * width
        colour = ("#c44e52", "#4c72b0", "#999999")[place % 3]
        heights, errors = [each.mean for each in estimates], [each.error for each in estimates]
        axes.bar(at, heights, 0.9 * width, yerr=errors, label=label, color=colour, error_kw={"lw": 1, "alpha": 0.6})
    axes.set_xticks(np.arange(len(names)), names, rotation=20, ha="right")
    axes.set_ylabel("truth − certified floor, median")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(to, dpi=150)


def summarise(files: Sequence[Path]) -> str:
    """Markdown, label beside label."""
    played, audited = read(files)
    parts = []
    if played:
        parts += [
            f"Shortfalls of floors after confirmations, medians over runs ± a bootstrap standard error. Ratios are to "
            f"the oracle's shortfall: at most {GOAL} is the goal.",
            _by_task(played, _SHORTFALLS, _ORACLE),
            "The truth of the recommended configuration, mean ± standard error. A floor is wrong if it is above that "
            "truth; the best possible value and the gap count only where proven. In percent of runs.",
            _by_task(played, {**_COVERAGE, **_compared(played)}),
            "Floors after the search and after confirmations, trials of the search that repeat a configuration, and "
            "confirmations left over:",
            _by_task(played, _FLOORS),
        ]
    if audited:
        parts += ["Percent of runs in which repeated trials refute what was stated:", _audit_table(audited)]
    return "\n\n".join(parts)


Cell = Callable[[list[Row]], str]
_NONE: Mapping[str, Cell] = {}


def _ratio_to_oracle(rows: list[Row], of: str) -> str:
    return _two(ratio(shortfall(rows, of), shortfall(rows, "best", "oracle_floor")))


def _two(estimate: Estimate) -> str:
    return f"{estimate.mean:.2f} ± {estimate.error:.2f}"


def _four(estimate: Estimate) -> str:
    return f"{estimate.mean:.4f} ± {estimate.error:.4f}"


def _percent(rows: Sequence[Row], name: str, counted: str = "1") -> str:
    return f"{100.0 * np.mean([row[name] == counted for row in rows]):.0f}"


def _spoke(rows: Sequence[Row]) -> str:
    counts = Counter(row["evidence"] for row in rows if row["evidence"])
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "–"


_SHORTFALLS: dict[str, Cell] = {
    "truth − floor": lambda rows: _four(median(shortfall(rows))),
    "best − floor": lambda rows: _four(median(shortfall(rows, "best"))),
    "ratio from truth": lambda rows: _ratio_to_oracle(rows, "truth"),
    "ratio from best": lambda rows: _ratio_to_oracle(rows, "best"),
}
# The same whatever the label.
_ORACLE: dict[str, Cell] = {"oracle": lambda rows: _four(median(shortfall(rows, "best", "oracle_floor")))}
_COVERAGE: dict[str, Cell] = {
    "truth": lambda rows: _four(mean(column(rows, "truth"))),
    "floor wrong": lambda rows: _percent(rows, "floor_wrong"),
    "interval wrong": lambda rows: _percent(rows, "interval_wrong"),
    "best possible wrong": lambda rows: _percent(rows, "best_possible_wrong"),
    "gap wrong": lambda rows: _percent(rows, "gap_wrong"),
    "refuted": lambda rows: _percent(rows, "trusted", "0"),
    "width": lambda rows: _four(median(column(rows, "width"))),
}
_FLOORS: dict[str, Cell] = {
    "floor, searched": lambda rows: _four(median(column(rows, "floor_searched"))),
    "floor, confirmed": lambda rows: _four(median(column(rows, "floor"))),
    "lowest": lambda rows: f"{min(column(rows, 'floor')):.4f}",
    "evidence": _spoke,
    "repeated": lambda rows: f"{np.mean(column(rows, 'repeated')):.1f}",
    "unused": lambda rows: f"{np.mean(column(rows, 'unused')):.1f}",
    "seconds": lambda rows: f"{np.mean(column(rows, 'seconds')):.2f}",
}


def _compared(labels: Labels) -> dict[str, Cell]:
    """How the truth of the recommended configuration has changed since the first label."""
    first, *others = labels.values()
    if not others:
        return {}
    return {
        "truth − first": lambda rows: _four(difference(rows, [row for row in first if row["task"] == rows[0]["task"]]))
    }


def _by_task(labels: Labels, cells: Mapping[str, Cell], shared: Mapping[str, Cell] = _NONE) -> str:
    """A row per task, with label beside label, and cells that do not depend on the label."""
    names = dict.fromkeys(row["task"] for rows in labels.values() for row in rows)
    header = ["task", "runs", *shared, *(f"{title}: {label}" for title in cells for label in labels)]
    lines = []
    for name in names:
        here = {label: [row for row in rows if row["task"] == name] for label, rows in labels.items()}
        runs = " / ".join(dict.fromkeys(str(len(rows)) for rows in here.values()))
        longest = max(here.values(), key=len)
        line = [name, runs, *(cell(longest) for cell in shared.values())]
        lines.append(line + [cell(rows) if rows else "" for cell in cells.values() for rows in here.values()])
    return markdown(header, lines)


def _audit_table(labels: Labels) -> str:
    runs = [row for rows in labels.values() for row in rows]
    keys = dict.fromkeys((row["task"], row["configurations"], row["spread"]) for row in runs)
    titles = [f"{title}: {label}" for title in ("refuted", "floor wrong") for label in labels]
    lines = []
    for key in keys:
        here = [
            [row for row in rows if (row["task"], row["configurations"], row["spread"]) == key]
            for rows in labels.values()
        ]
        shares = [_percent(rows, name) if rows else "" for name in ("refuted", "floor_wrong") for rows in here]
        lines.append([*key, " / ".join(dict.fromkeys(str(len(rows)) for rows in here)), *shares])
    return markdown(["task", "configurations", "spread", "runs", *titles], lines)

"""Every figure and table of the paper: what to run, what to draw, and what to compare with it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbandit import plots
from mixbandit.paper import deviations, fig1, fig2, fig3, fig4, fig5, fig6, svm, table1
from mixbandit.paper.parallel import ALONE, Workers, measure_all
from mixbandit.paper.published import Claim
from mixbandit.paper.store import write_table
from mixbandit.paper.svm import PAPER_ALGORITHMS, PAPER_DATASETS, SvmSettings, SvmTuning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]

# As often as in the paper if it repeats; Figures 2, 4 and 5 show one function each there, and are counted here.
REPETITIONS = {"fig1": 1, "fig2": 20, "table1": 100, "fig3": 100, "fig4": 50, "fig5": 100, "fig6": 10, "deviations": 10}
ROUNDS = 500

BANDITS = ("table1", "fig3", "fig6", "deviations")
"""The parts whose bandits play `rounds`."""


@dataclass(frozen=True)
class Plan:
    """How much to do, where to keep it, and which workers to use."""

    folder: Path
    reps: int | None = None  # None for REPETITIONS
    rounds: int = ROUNDS  # of the bandits
    seed: int = 0
    workers: Workers = ALONE
    progress: Callable[[str, int, int], None] = lambda label, done, total: None

    def measured(
        self, part: str, measure: Callable[..., Any], cells: Sequence[Any], labels: Sequence[str]
    ) -> list[Any]:
        """All cells of a part, with progress."""
        return measure_all(
            measure,
            cells,
            [f"{part}: {label}" for label in labels],
            self.repetitions(part),
            folder=self.folder / "repetitions",
            workers=self.workers,
            progress=self.progress,
        )

    def repetitions(self, part: str) -> int:
        return REPETITIONS[part] if self.reps is None else self.reps

    def share(self, part: str) -> float:
        """The part of the full work that this does; with less than 1 it is a preview, which judges no claim."""
        played = min(1.0, self.rounds / ROUNDS) if part in BANDITS else 1.0
        return min(1.0, self.repetitions(part) / REPETITIONS[part]) * played


@dataclass(frozen=True)
class Part:
    """One figure or table: pictures, tables by file name, and how the paper's claims fared."""

    name: str
    title: str
    claims: Sequence[Claim]
    tables: Mapping[str, Table]
    figure: Figure | None = None
    results: Sequence[Any] = field(default=(), repr=False)

    def write(self, folder: Path, **known: object) -> list[Path]:
        """Pictures as PDF and PNG, tables as CSV; returns the paths."""
        paths = []
        if self.figure is not None:
            for ending in ("pdf", "png"):
                paths.append(folder / f"{self.name}.{ending}")
                plots.save(self.figure, paths[-1])
        for name, (columns, rows) in self.tables.items():
            paths.append(folder / f"{name}.csv")
            write_table(paths[-1], columns, rows, **known)
        return paths


def _fig1(plan: Plan) -> Part:
    result = fig1.run(fig1.Fig1Settings(seed=plan.seed))
    plan.progress("fig1", 1, 1)
    title = "Figure 1: bounds for one function"
    return Part("fig1", title, fig1.claims(result), {"fig1": fig1.table(result)}, fig1.draw(result), [result])


def _fig2(plan: Plan) -> Part:
    (result,) = plan.measured("fig2", fig2.measure, [fig2.Fig2Settings(seed=plan.seed)], ["widths"])
    title = "Figure 2: width of the bounds for all T and d"
    return Part("fig2", title, fig2.claims(result), {"fig2": fig2.table(result)}, fig2.draw(result), [result])


def _tuning(plan: Plan, part: str) -> list[SvmTuning]:
    cells = [
        SvmSettings(dataset, algorithm, rounds=plan.rounds, seed=plan.seed)
        for dataset in PAPER_DATASETS
        for algorithm in PAPER_ALGORITHMS
    ]
    return plan.measured(part, svm.measure, cells, [cell.label for cell in cells])


def _table1(plan: Plan) -> Part:
    results = _tuning(plan, "table1")
    tables = {
        "table1": table1.table(results),
        "table1-repetitions": table1.repetitions_table(results),
        "table1-time": table1.time_table(results),
    }
    title = f"Table 1: test accuracy, {plan.rounds} rounds, {plan.repetitions('table1')} repetitions"
    return Part("table1", title, table1.claims(results), tables, None, results)


def _fig3(plan: Plan) -> Part:
    results = _tuning(plan, "fig3")
    title = "Figure 3: test accuracy over the rounds"
    return Part("fig3", title, fig3.claims(results), {"fig3": fig3.table(results)}, fig3.draw(results), results)


def _fig4(plan: Plan) -> Part:
    cells = [
        fig4.Fig4Settings(points=points, lengthscale=lengthscale, seed=plan.seed)
        for lengthscale in fig4.LENGTHSCALES
        for points in fig4.POINTS
    ]
    results = plan.measured("fig4", fig4.measure, cells, [cell.label for cell in cells])
    title = "Figure 4: three priors"
    return Part("fig4", title, fig4.claims(results), {"fig4": fig4.table(results)}, fig4.draw(results), results)


def _fig5(plan: Plan) -> Part:
    cells = [
        fig5.Fig5Settings(points=points, size=size, seed=plan.seed) for points in fig5.POINTS for size in fig5.SIZES
    ]
    results = plan.measured("fig5", fig5.measure, cells, [cell.label for cell in cells])
    title = "Figure 5: the adaptive mixture, synthetic functions"
    return Part("fig5", title, fig5.claims(results), {"fig5": fig5.table(results)}, fig5.draw(results), results)


def _fig6(plan: Plan) -> Part:
    cells = [SvmSettings("raisin", "AMM-UCB", mixture, rounds=plan.rounds, seed=plan.seed) for mixture in svm.MIXTURES]
    results = plan.measured("fig6", svm.measure, cells, [cell.label for cell in cells])
    title = "Figure 6: the adaptive mixture, Raisin"
    return Part("fig6", title, fig6.claims(results), {"fig6": fig6.table(results)}, fig6.draw(results), results)


def _deviations(plan: Plan) -> Part:
    cells = deviations.cells(plan.rounds, plan.seed)
    results = plan.measured("deviations", svm.measure, cells, [cell.label for cell in cells])
    title = "Deviations: what could explain them"
    tables = {"deviations": deviations.table(results)}
    return Part("deviations", title, deviations.claims(results), tables, None, results)


PARTS: dict[str, Callable[[Plan], Part]] = {
    "fig1": _fig1,
    "fig2": _fig2,
    "fig4": _fig4,
    "fig5": _fig5,
    "table1": _table1,
    "fig3": _fig3,
    "fig6": _fig6,
    "deviations": _deviations,
}
"""The parts, ordered so that short ones come first and nothing is done twice."""


CLAIMS = ("part", "where", "claim", "seen here", "holds", "command")


def record_claims(folder: Path, part: Part, command: str) -> Path:
    """Put the claims of a part in place of older ones of the same part in claims.csv; returns its path."""
    path = folder / "claims.csv"
    kept: list[list[Any]] = []
    if path.exists():
        _, _, *rows = csv.reader(path.read_text().splitlines())
        kept = [row for row in rows if row[0] != part.name]
    new = [[part.name, c.where, c.text, c.seen, "yes" if c.holds else "no", command] for c in part.claims]
    order = list(REPETITIONS)
    rows = sorted(kept + new, key=lambda row: order.index(str(row[0])))
    write_table(path, CLAIMS, rows)
    return path

"""Table 1 of the paper: mean and maximum test accuracy of five algorithms that tune support vector machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit.paper.published import TABLE1, Claim
from mixbandit.paper.svm import SvmTuning

MEASURES = ("mean", "maximum")
# How close to the published numbers ours must be.
CLOSE = {"mean": 0.03, "maximum": 0.015}
NEAR_THE_PAPER_IN_MEAN = ("CMM-UCB", "AMM-UCB", "OFUL")


@dataclass(frozen=True)
class Cell:
    """One number of the table, the paper's and ours."""

    dataset: str
    algorithm: str
    measure: str  # of MEASURES
    repetitions: int
    ours: float
    deviation: float  # standard deviation over repetitions
    paper: float
    rank: int  # among the algorithms on the data set, 1 the best; ties share the better rank
    paper_rank: int

    @property
    def difference(self) -> float:
        return self.ours - self.paper


def cells(results: Sequence[SvmTuning]) -> list[Cell]:
    """The table, in the paper's order."""
    found = {(r.settings.dataset, r.settings.algorithm): r for r in results}
    table = []
    for dataset, published in TABLE1.items():
        for k, measure in enumerate(MEASURES):
            values = {a: np.asarray(getattr(found[dataset, a], measure)) for a in published}
            ours = {a: float(v.mean()) for a, v in values.items()}
            theirs = {a: pair[k] for a, pair in published.items()}
            table += [
                Cell(
                    dataset,
                    algorithm,
                    measure,
                    len(v),
                    ours[algorithm],
                    float(v.std(ddof=1)) if len(v) > 1 else math.nan,
                    theirs[algorithm],
                    _rank(ours, algorithm),
                    _rank(theirs, algorithm),
                )
                for algorithm, v in values.items()
            ]
    return table


def _rank(values: Mapping[str, float], name: str) -> int:
    return 1 + sum(value > values[name] for value in values.values())


def claims(results: Sequence[SvmTuning]) -> list[Claim]:
    """The order of the algorithms, and how close the numbers are."""
    table = cells(results)
    mean = {(c.dataset, c.algorithm): c for c in table if c.measure == "mean"}
    claimed = []
    for dataset in TABLE1:
        order = sorted((c for key, c in mean.items() if key[0] == dataset), key=lambda c: -c.ours)
        names = [c.algorithm for c in order]
        claimed += [
            Claim(
                "Table 1",
                f"{dataset}: CMM-UCB has the best mean accuracy, AMM-UCB the second best.",
                " > ".join(f"{c.algorithm} {c.ours:.3f}" for c in order),
                names[:2] == ["CMM-UCB", "AMM-UCB"],
            ),
            Claim(
                "Table 1",
                f"{dataset}: OFUL is third, IDS fourth.",
                f"OFUL {mean[dataset, 'OFUL'].ours:.3f}, IDS {mean[dataset, 'IDS'].ours:.3f}",
                names[2:4] == ["OFUL", "IDS"],
            ),
            Claim(
                "Table 1",
                f"{dataset}: Freq-TS is last.",
                f"the last is {names[-1]} with {order[-1].ours:.3f}",
                names[-1] == "Freq-TS",
            ),
        ]
    return claimed + [_nearness(table, measure) for measure in MEASURES]


def _nearness(table: Sequence[Cell], measure: str) -> Claim:
    checked = [
        c for c in table if c.measure == measure and (measure == "maximum" or c.algorithm in NEAR_THE_PAPER_IN_MEAN)
    ]
    far = [c for c in checked if abs(c.difference) > CLOSE[measure]]
    worst = max(checked, key=lambda c: abs(c.difference))
    names = ", ".join(f"{c.dataset} {c.algorithm} {c.difference:+.3f}" for c in far)
    whose = "all five" if measure == "maximum" else ", ".join(NEAR_THE_PAPER_IN_MEAN)
    return Claim(
        "Table 1",
        f"The {measure} accuracy of {whose} is within {CLOSE[measure]:g} of the published one.",
        f"not for {names}" if far else f"farthest {worst.dataset} {worst.algorithm} {worst.difference:+.3f}",
        not far,
    )


COLUMNS = ("data set", "algorithm", "measure", "repetitions", "paper", "ours", "standard deviation", "difference",
           "rank in the paper", "rank here")  # fmt: skip


def table(results: Sequence[SvmTuning]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per cell of the paper's table."""
    rows = [
        (
            c.dataset,
            c.algorithm,
            c.measure,
            c.repetitions,
            f"{c.paper:.3f}",
            f"{c.ours:.4f}",
            f"{c.deviation:.4f}",
            f"{c.difference:+.4f}",
            c.paper_rank,
            c.rank,
        )
        for c in cells(results)
    ]
    return COLUMNS, rows


def repetitions_table(results: Sequence[SvmTuning]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """A row per repetition: what every mean is made of."""
    columns = ("data set", "algorithm", "repetition", "mean", "maximum", "validation", "refuted")
    rows = [
        (
            r.settings.dataset,
            r.settings.algorithm,
            i,
            f"{r.mean[i]:.6f}",
            f"{r.maximum[i]:.6f}",
            f"{r.validation[i]:.6f}",
            int(r.refuted[i]),
        )
        for r in results
        for i in range(len(r.accuracy))
    ]
    return columns, rows


def time_table(results: Sequence[SvmTuning]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Where the time went: a row per data set and algorithm, and one for everything."""
    columns = ("data set", "algorithm", "choosing ms per round", "fitting ms per round", "hours")
    rows: list[tuple[Any, ...]] = []
    choosing = fitting = 0.0
    for r in results:
        rounds = r.accuracy.size / 3.6e6
        spent = r.choosing_ms.mean() * rounds, r.fitting_ms.mean() * rounds
        choosing, fitting = choosing + spent[0], fitting + spent[1]
        names = r.settings.dataset, r.settings.algorithm
        rows.append((*names, f"{r.choosing_ms.mean():.1f}", f"{r.fitting_ms.mean():.1f}", f"{sum(spent):.3f}"))
    total = sum(r.accuracy.size for r in results) / 3.6e6
    return columns, [
        *rows,
        ("all", "all", f"{choosing / total:.1f}", f"{fitting / total:.1f}", f"{choosing + fitting:.3f}"),
    ]

"""Is a Grid over scales worth its weight? Widths of exact bounds for every fixed c, and for the Grid over them.

    python -m mixbandit.paper.grid_scale

Twenty problems with ‖θ*‖ from 0.1 to 10: i.i.d. Gaussian features, T rewards, widths at fresh actions. The
best c is not known beforehand; the question is what not knowing it costs the Grid, and what it costs Standard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixbandit._checks import Array
from mixbandit.mixtures import Grid, Mixture, Scaled, Standard
from mixbandit.sequences import MartingaleMixture

SCALES = tuple(float(c) for c in 10.0 ** np.arange(-3.0, 4.0))


@dataclass(frozen=True)
class GridScaleSettings:
    """What the table depends on."""

    problems: int = 20
    rounds: int = 500
    sigma: float = 0.1
    norm_bound: float = 10.0
    delta: float = 0.01
    seed: int = 0


@dataclass(frozen=True)
class Row:
    """One problem: mean widths."""

    dim: int
    norm: float
    best_scale: float
    best: float
    grid: float
    standard: float


def run(settings: GridScaleSettings) -> list[Row]:
    """A row per problem."""
    rows = []
    for k, norm in enumerate(np.geomspace(0.1, 10.0, settings.problems)):
        dim = (5, 10, 20)[k % 3]
        rng = np.random.default_rng([settings.seed, k])
        theta = rng.normal(size=dim)
        theta *= norm / np.linalg.norm(theta)
        Phi, actions = rng.normal(size=(settings.rounds, dim)), rng.normal(size=(100, dim))
        r = Phi @ theta + settings.sigma * rng.normal(size=settings.rounds)

        data = Phi, r, actions
        fixed = {c: _width(Scaled(c), settings, *data) for c in SCALES}
        best = min(SCALES, key=fixed.__getitem__)
        grid, standard = (_width(mixture, settings, *data) for mixture in (Grid(SCALES), Standard()))
        rows.append(Row(dim, float(norm), best, fixed[best], grid, standard))
    return rows


def _width(mixture: Mixture, settings: GridScaleSettings, Phi: Array, r: Array, actions: Array) -> float:
    cs = MartingaleMixture(
        Phi.shape[1],
        sigma=settings.sigma,
        norm_bound=settings.norm_bound,
        delta=settings.delta,
        mixture=mixture,
    ).update(Phi, r)
    return float(np.mean(cs.upper(actions) - cs.lower(actions)))


def table(rows: list[Row]) -> str:
    """Markdown: widths relative to the best fixed scale."""
    lines = ["| d | norm of θ* | best c | its width | Grid | Standard |", "|---|---|---|---|---|---|"]
    for row in rows:
        excess = f"{row.grid / row.best - 1.0:+.1%} | {row.standard / row.best - 1.0:+.1%}"
        lines.append(f"| {row.dim} | {row.norm:.2f} | {row.best_scale:g} | {row.best:.3f} | {excess} |")
    return "\n".join(lines)


def sweep() -> str:
    """Markdown: the worst of the twenty problems, for little and much data, little and much noise."""
    lines = ["| T | σ | Grid, worst | Grid, mean | Standard, worst | Standard, mean |", "|---|---|---|---|---|---|"]
    for rounds in (20, 100, 500, 1000):
        for sigma in (0.1, 0.5):
            rows = run(GridScaleSettings(rounds=rounds, sigma=sigma))
            cells = []
            for name in ("grid", "standard"):
                excess = [getattr(row, name) / row.best - 1.0 for row in rows]
                cells.append(f"{max(excess):+.1%} | {np.mean(excess):+.1%}")
            lines.append(f"| {rounds} | {sigma} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(run(GridScaleSettings())), sweep(), sep="\n\n")  # noqa: T201 (a script)

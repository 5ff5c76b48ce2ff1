"""`mixbandit demo`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from mixbandit import plots
from mixbandit.cli.shared import console
from mixbandit.paper import fig1
from mixbandit.paper import regret as regret_experiment
from mixbandit.paper.regret import RegretSettings
from mixbandit.simulate.runner import run


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the function and the data.")] = 0,
) -> None:
    """Redraw Figure 1 of the paper, error bars for the same data, and let bandits act on these error bars."""
    result = fig1.run(fig1.Fig1Settings(seed=seed))
    path = out / "figure1.png"
    plots.save(fig1.draw(result), path)
    widths = result.mean_widths
    table = Table(title="Figure 1: mean width of the error bars")
    table.add_column("method")
    for column in ("mean width", "narrower than OFUL by", "contains the truth"):
        table.add_column(column, justify="right")
    for method, (lower, upper) in result.bands.items():
        inside = bool(((lower <= result.truth) & (result.truth <= upper)).all())
        narrower = 1.0 - widths[method] / widths["OFUL"]
        table.add_row(method, f"{widths[method]:.3f}", f"{narrower:.1%}", "everywhere" if inside else "NO")
    console.print(table)
    console.print(f"Picture: {path}", highlight=False)
    _demo_bandits(out, seed)


def _demo_bandits(out: Path, seed: int) -> None:
    """Three bandits on one problem, and the certificate of the best one."""
    settings = RegretSettings(rounds=200, seed=seed)
    environment = regret_experiment.problem(settings, 0)
    fig, (ax,) = plots.figure(width=5.0)
    console.print(f"\nThree bandits search a box for the best action, with {settings.rounds} noisy rewards each:")
    for i, name in enumerate(("OFUL", "AMM-UCB", "CMM-UCB")):
        policy = regret_experiment.player(dataclasses.replace(settings, algorithm=name), environment, 0)
        records = run(policy, environment, settings.rounds)
        plots.curve(ax, records.column("round") + 1.0, records.cumulative_regret, label=name, position=2 - i)
        console.print(f"  {name} lost {records.cumulative_regret[-1]:.1f} against always playing the best action.")
    ax.set(xlabel="round", ylabel="cumulative regret", ylim=(0.0, None))
    ax.legend()
    path = out / "regret.png"
    plots.save(fig, path)
    console.print(f"\nThe certificate of CMM-UCB, which does not know that the optimum is {environment.best(0):.4g}:")
    console.print(str(policy.certificate()), highlight=False)
    console.print(f"Picture: {path}", highlight=False)

"""`mixbandit paper`: every figure and table of the paper, redrawn and compared."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from mixbandit._extras import import_extra
from mixbandit.cli.shared import Meter, console, expand, metered, spoken
from mixbandit.paper import table1
from mixbandit.paper.parallel import BACKENDS, Workers, cluster
from mixbandit.paper.parts import BANDITS, PARTS, REPETITIONS, ROUNDS, Part, Plan, record_claims
from mixbandit.paper.published import TABLE1, Claim
from mixbandit.paper.svm import SvmTuning

OUT = Path("out/paper")


def paper(
    what: Annotated[list[str], typer.Argument(help=f"One or more of {', '.join(sorted(PARTS))}; or all.")],
    reps: Annotated[
        int | None,
        typer.Option(
            "--reps",
            "-n",
            min=1,
            help="Repetitions; by default as many as on the page results/paper of the documentation.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", "-T", min=1, help="Rounds of the bandits.")] = ROUNDS,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    backend: Annotated[str, typer.Option(help=f"Where to run them: {', '.join(BACKENDS)}.")] = "loky",
    out: Annotated[Path, typer.Option(help="Folder for results and pictures; a stopped run resumes from it.")] = OUT,
) -> None:
    """Reproduce the figures and tables of the paper, and say which of its claims hold here.

    Fewer repetitions or rounds give a preview: numbers, pictures and the time of a full run, but no verdicts. The
    numbers do not depend on the number of jobs, the backend or interruptions.
    """
    wanted = expand(what, tuple(PARTS))
    if backend not in BACKENDS:
        raise typer.BadParameter(f"{backend!r} is not one of {', '.join(BACKENDS)}", param_hint="--backend")
    _check_before_hours_of_work(wanted, out)
    workers = Workers(jobs, backend)
    judged: list[Part] = []
    with cluster(workers):
        for name in (name for name in PARTS if name in wanted):
            with metered(out) as meter:
                plan = Plan(out, reps, rounds, seed, workers, meter)
                part = PARTS[name](plan)
            # Jobs, backend and folder do not affect the numbers, so the recorded command leaves them out.
            played = f" --rounds {rounds}" if name in BANDITS else ""
            command = f"mixbandit paper {name} --reps {plan.repetitions(name)}{played} --seed {seed}"
            console.print(f"\n[bold]{part.title}[/bold]")
            if name == "table1":
                console.print(_accuracies(part.results))
            if plan.share(name) < 1:  # beside the results of a full run, never in their place
                console.print(_preview(plan, name, meter), highlight=False, markup=False)
                paths = part.write(out / "preview", command=command)
            else:
                judged.append(part)
                console.print(_claims(part.claims))
                paths = [*part.write(out, command=command), record_claims(out, part, command)]
            console.print(f"Written: {', '.join(map(str, paths))}", highlight=False)
    claims = [claim for part in judged for claim in part.claims if part.name != "deviations"]
    if len(judged) > 1 and claims:
        kept = sum(claim.holds for claim in claims)
        console.print(f"\n{kept} of {len(claims)} claims of the paper hold here.", highlight=False)


def _check_before_hours_of_work(wanted: Sequence[str], out: Path) -> None:
    """Fail early if something is missing."""
    import_extra("matplotlib.figure", extra="plots")
    if any(name in BANDITS for name in wanted):
        import_extra("sklearn", extra="experiments")
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK):
        raise typer.BadParameter(f"cannot write to {out}", param_hint="--out")


def _preview(plan: Plan, name: str, meter: Meter) -> str:
    """What a small run is, and what the full one takes."""
    n, played = plan.repetitions(name), name in BANDITS
    done = f"{n} repetition{'s' * (n > 1)}" + (f" × {plan.rounds} rounds" if played else "")
    full = f"{REPETITIONS[name]} repetitions" + (f" × {ROUNDS} rounds" if played else "")
    takes = "its duration is not known, because all of these results were already stored"
    if meter.pace is not None:
        counted = meter.total * min(1.0, REPETITIONS[name] / n)  # of the repetitions done, those that the full run has
        takes = f"about {spoken(meter.pace * counted / plan.share(name))} at this pace"
    chosen = {"--seed": plan.seed, "--jobs": plan.workers.jobs, "--backend": plan.workers.backend, "--out": plan.folder}
    usual = {"--seed": 0, "--jobs": 1, "--backend": "loky", "--out": OUT}
    options = [text for o, value in chosen.items() if value != usual[o] for text in (o, str(value))]
    return (
        f"This is a preview of {done}, made in {spoken(meter.elapsed)}. It does not judge the claims of the paper.\n"
        f"The full run is {full}: {takes}.\n  {shlex.join(['mixbandit', 'paper', name, *options])}"
    )


def _claims(claims: Sequence[Claim]) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False)
    for column in ("claim", "seen here", "holds"):
        table.add_column(column)
    for claim in claims:
        table.add_row(claim.text, claim.seen, "yes" if claim.holds else "[bold]no[/bold]")
    return table


def _accuracies(results: Sequence[SvmTuning]) -> Table:
    """In the paper's form: an algorithm a row, the best in bold, the published number in brackets."""
    cells = {(c.algorithm, c.dataset, c.measure): c for c in table1.cells(results)}
    table = Table(box=box.SIMPLE, caption="mean over repetitions, ± standard deviation, (published)")
    table.padding = (0, 1, 0, 0)
    table.add_column("", no_wrap=True)
    for dataset in TABLE1:
        for measure in ("mean", "max"):
            table.add_column(f"{dataset.capitalize()}\n{measure} acc", justify="right", no_wrap=True)
    for algorithm in TABLE1["raisin"]:
        row = []
        for dataset in TABLE1:
            for measure in table1.MEASURES:
                cell = cells[algorithm, dataset, measure]
                ours = f"[bold]{cell.ours:.3f}[/bold]" if cell.rank == 1 else f"{cell.ours:.3f}"
                spread = "" if math.isnan(cell.deviation) else f"±{cell.deviation:.3f}"
                row.append(f"{ours}\n{spread}\n({cell.paper:.3f})")
        table.add_row(algorithm, *row)
    return table

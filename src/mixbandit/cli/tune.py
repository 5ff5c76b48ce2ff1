"""`mixbandit tune`: an Optuna study, run by processes, with a certificate at the end."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mixbandit.cli import stating
from mixbandit.cli.exits import FAILED, REFUTED, code_after
from mixbandit.cli.objectives import parts_of
from mixbandit.cli.running import Tuning
from mixbandit.cli.shared import console, patiently
from mixbandit.cli.storage import check_may_be_tuned, resolved
from mixbandit.cli.watching import watch_on
from mixbandit.cli.workers import COMPLETE, Job
from mixbandit.errors import STATEMENTS, AssumptionsMissing
from mixbandit.tuning import Assumptions, Space, StudyCertificate
from mixbandit.tuning.assumptions import FRESH
from mixbandit.tuning.tables import masked


def tune(
    context: typer.Context,
    objective: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:OBJECTIVE",
            help="A function in a module of the current folder. It is called with a dict of parameters if --space is "
            "given, otherwise with an Optuna trial. It returns a number.",
        ),
    ],
    space: Annotated[Path | None, typer.Option(help="A TOML file with one table per parameter.")] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="How many trials to search with, including those of earlier runs.")
    ] = 100,
    confirm: Annotated[int, typer.Option(min=0, help="How many further trials may confirm the finalists.")] = 0,
    storage: Annotated[
        str | None,
        typer.Option(help="An Optuna storage: its URL, or the path of a journal. By default a journal in this folder."),
    ] = None,
    study: Annotated[str | None, typer.Option(help="The name of the study. By default MODULE:OBJECTIVE.")] = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, help="How many processes run trials, at most 8 per core."),
    ] = 1,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Stop trials early whose repeated measurements show that they are worse. Only without --space: the "
            "objective calls trial.report(score, step) and trial.should_prune().",
        ),
    ] = False,
    reward_range: stating.Range = None,
    samples: stating.Samples = None,
    rows: stating.Rows = None,
    pool: stating.Pool = None,
    sigma: stating.Sigma = None,
    noise: stating.Noise = None,
    norm_bound: stating.NormBound = None,
    delta: stating.Delta = 0.05,
    direction: stating.Direction = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed for choosing trials.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0, help="Start no trial after this many seconds.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; the rest goes to stderr.")] = False,
) -> None:
    """Tune a function, and certify the result.

    The trials are an Optuna study. The same command again resumes it and runs the remaining trials. Ctrl-C ends running
    trials, which then count as failed; a second Ctrl-C kills them at once. To have the best configuration certified,
    state what is known about values, as for `certify`. Otherwise it is only searched for.

    Exits with 3 if the data refute the assumptions, with 2 if input is wrong, with 1 if one trial after another fails
    or if confirmations are missing because they failed.
    """
    module, name = parts_of(objective)
    known = _stated(
        direction, reward_range=reward_range, samples=samples, rows=rows, pool=pool, sigma=sigma, noise=noise,
        norm_bound=norm_bound, delta=delta,
    )  # fmt: skip
    if confirm and known is None:
        raise AssumptionsMissing(f"--confirm needs a statement about values; {STATEMENTS}")
    if prune and space is not None:
        raise typer.BadParameter(
            "with --space the objective gets no trial and cannot report steps", param_hint="--prune"
        )
    if prune and known is not None and not confirm:
        raise typer.BadParameter("after pruning, only confirmations can be certified: add, for example, --confirm 10",
                                 param_hint="--prune")  # fmt: skip
    source = f"{module}.{name}.journal" if storage is None else storage
    check_may_be_tuned(source)
    found_space = None if space is None else Space.from_toml(space)
    job = Job(objective, source, resolved(source), study or objective, found_space, known, seed, trials, prune)
    out = Console(stderr=True) if as_json else console
    tuning = Tuning(job, confirm, jobs, timeout, watch_on(out))
    stop = tuning.run(direction)
    if stop.signalled is not None:
        lost = "" if not stop.lost else f" Running trials that count as failed: {stop.lost}."
        _say(out, f"Stopped: {tuning.standing}.{lost} Run the same command again to resume.")
        raise typer.Exit(code_after(stop.signalled))
    _say(out, f"{tuning.standing}.")
    if not any(trial.state.name == COMPLETE for trial in tuning.study.get_trials(deepcopy=False)):
        _say(out, "No trial was completed.")
        raise typer.Exit(FAILED)
    found = _certificate(tuning)
    if as_json:
        typer.echo(json.dumps(_as_dict(tuning, found), default=str))
    else:
        _say(out, _in_words(tuning, found))
        _say_next(out, tuning, context)
    failed = tuning.failed_confirmations
    if failed:
        done = f"{tuning.standing.confirmed} of {confirm} confirmations were completed"
        _say(out, f"{done}: {failed} failed. Run the same command again to retry them.")
    if found is not None and not found.trusted:
        raise typer.Exit(REFUTED)
    if failed:
        raise typer.Exit(FAILED)


def _stated(direction: str | None, **options: Any) -> Assumptions | None:
    """What the options state; None if they say nothing about values."""
    if any(value is not None for name, value in options.items() if name != "delta"):
        known = Assumptions(**stating.stated_by(direction, **options))
        known.check_rows_vary()
        return known
    if direction is not None:
        stating.checked_direction(direction)
    return None


def _say(out: Console, text: str) -> None:
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def _certificate(tuning: Tuning) -> StudyCertificate | None:
    """What is guaranteed; None if nothing was stated."""
    known = tuning.assumptions
    if known is None:
        return None
    from mixbandit.integrations.optuna.certifying import certify_study

    with patiently("certifying the best configuration"):
        return certify_study(tuning.study, known, tuning.job.space)


def _in_words(tuning: Tuning, found: StudyCertificate | None) -> str:
    if found is not None:
        return str(found)
    best = tuning.study.best_trial
    return f"The best value seen is {best.value:.4g}, with {best.params}. If values are noisy, it is partly luck."


def _as_dict(tuning: Tuning, found: StudyCertificate | None) -> dict[str, Any]:
    done = tuning.standing
    best: dict[str, Any] = {"certified": False}
    if found is None:
        best |= {"parameters": tuning.study.best_trial.params, "value": tuning.study.best_trial.value}
    else:
        best = {"certified": found.trusted, **json.loads(found.to_json())}
    where = {"study": tuning.job.study, "storage": masked(tuning.job.source)}
    return {**where, "searched": done.searched, "confirmed": done.confirmed, "failed": done.failed, **best}


def _say_next(out: Console, tuning: Tuning, context: typer.Context) -> None:
    """Commands that read the study, of those that there are."""
    known, source = tuning.job.assumptions, shlex.quote(masked(tuning.job.source))
    commands = []
    if known is not None:
        stated = f"{source} --study {shlex.quote(tuning.job.study)}{_options(known)}"
        commands = [("certify", f"mixbandit certify {stated} --details")]
        commands.append(("report", f"mixbandit report {stated} -o report.html"))
    group: Any = None if context.parent is None else context.parent.command
    there = [] if group is None else group.list_commands(context)
    told = [command for name, command in commands if name in there] + [f"optuna-dashboard {source}"]
    _say(out, "Look closer:\n" + "\n".join(f"  {command}" for command in told))


def _options(known: Assumptions) -> str:
    """The assumptions as options of the command line."""
    told = ""
    if known.reward_range is not None:
        told += f" --range {known.reward_range[0]:g} {known.reward_range[1]:g}"
    if known.rows == FRESH:
        told += " --rows fresh"
    for name in ("samples", "pool", "sigma", "noise", "norm_bound"):
        if getattr(known, name) is not None:
            told += f" --{name.replace('_', '-')} {getattr(known, name)}"
    return told if known.delta == Assumptions().delta else f"{told} --delta {known.delta:g}"

"""`mixbandit certify` and `mixbandit confirm`: what an existing run guarantees, and which trials would tell most."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from mixbandit.cli import stating
from mixbandit.cli.exits import REFUTED
from mixbandit.cli.shared import console, patiently
from mixbandit.cli.stating import history_in, stated_by
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.certification import certified, judged
from mixbandit.tuning.confirming import finalists_of, next_confirmation
from mixbandit.tuning.fixed_rows import on_fixed_rows
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.selection import NOMINATION
from mixbandit.tuning.study_certificate import StudyCertificate
from mixbandit.tuning.tables import masked


def certify(
    source: stating.Source,
    reward_range: stating.Range = None,
    samples: stating.Samples = None,
    sigma: stating.Sigma = None,
    noise: stating.Noise = None,
    norm_bound: stating.NormBound = None,
    planned: stating.Planned = None,
    delta: stating.Delta = 0.05,
    direction: stating.Direction = None,
    value: stating.Value = None,
    parameter: stating.Parameter = None,
    study: stating.StudyName = None,
    ordered: stating.Ordered = None,
    rows: Annotated[
        str, typer.Option(help="fresh: new rows for every value; fixed: all values are about the same rows.")
    ] = "fresh",
    fixed_list: Annotated[
        bool | None, typer.Option("--fixed-list", help="With --rows fixed: a grid, chosen before any value was seen.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Say what it rests on, and where the best can be.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Certify the best configuration of a run: what it is worth at least, and how much better others can be.

    Any tuner's run will do. Exits with 3 if the data refute the assumptions, with 2 if input is wrong or missing, with
    1 if something else fails.
    """
    stated = stated_by(
        direction,
        reward_range=reward_range,
        samples=samples,
        sigma=sigma,
        noise=noise,
        norm_bound=norm_bound,
        planned=planned,
        delta=delta,
    )
    with patiently(f"reading {masked(source)}") as tell:
        history = history_in(source, study)
        found: StudyCertificate | None = on_fixed_rows(
            history, Assumptions(**stated), rows=rows, fixed_list=fixed_list, space=None, value=value,
            parameters=parameter, rng=0,
        )  # fmt: skip
        if found is None:
            # The printed certificate starts with the warning that `certify` would give.
            found = certified(
                history, None, value=value, parameters=parameter, ordered=ordered, stated=stated, progress=tell
            )
        if details:
            tell("looking for where the best can still be")
        text = found.to_json() if as_json else found.details() if details else str(found)
    console.print(text, highlight=False, markup=False, soft_wrap=True)
    if not details and not as_json:
        console.print("--details says what this rests on.", highlight=False, style="dim")
    if not found.trusted:
        raise typer.Exit(REFUTED)


def confirm(
    source: stating.Source,
    n: Annotated[int, typer.Option("--n", min=1, help="How many confirmations are left, this one included.")] = 20,
    finalists: Annotated[int, typer.Option(min=1, help="How many configurations to choose from.")] = 3,
    reward_range: stating.Range = None,
    samples: stating.Samples = None,
    sigma: stating.Sigma = None,
    noise: stating.Noise = None,
    norm_bound: stating.NormBound = None,
    delta: stating.Delta = 0.05,
    direction: stating.Direction = None,
    value: stating.Value = None,
    parameter: stating.Parameter = None,
    study: stating.StudyName = None,
    ordered: stating.Ordered = None,
) -> None:
    """The next trial that confirms a finalist, chosen from what the run says now, as a line of JSON.

    Run it, add it to the run together with its `mixbandit_nomination`, as a column of the file or a user attribute of
    the trial, and ask again. Nothing is changed here, and nothing is printed if all finalists but one are known to be
    worse.
    """
    stated = stated_by(
        direction, reward_range=reward_range, samples=samples, sigma=sigma, noise=noise, norm_bound=norm_bound,
        delta=delta,
    )  # fmt: skip
    with patiently(f"reading {masked(source)}"):
        history = history_in(source, study)
        known = Assumptions(**stated)
        run = read_run(history, direction=known.direction, value=value, parameters=parameter, ordered=ordered)
        judgement = judged(run, known.towards(run.direction))
        before = () if run.nominations is None else finalists_of(run.rows, run.nominations)
        chosen = next_confirmation(judgement, n, finalists, before)
    if chosen is None:
        return
    parameters: dict[str, Any] = judgement.given(chosen.row)
    typer.echo(json.dumps({"parameters": parameters, NOMINATION: chosen.number}, default=str))

"""`mixbandit certify` and `mixbandit confirm`: what an existing run guarantees, and which trials would tell most."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from mixbandit.cli.exits import REFUTED
from mixbandit.cli.shared import console, patiently
from mixbandit.cli.stating import FixedList, Given, states_a_run
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.certification import judged
from mixbandit.tuning.confirming import finalists_of, next_confirmation
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.selection import NOMINATION
from mixbandit.tuning.tables import masked


@states_a_run
def certify(
    given: Given,
    fixed_list: FixedList = None,
    details: Annotated[
        bool, typer.Option("--details", help="Also say what it is based on, and where the best can be.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> None:
    """Certify the best configuration of a run: its guaranteed worth, and how much better others can be.

    Works with any tuner's run. Exits with 3 if the data refute the assumptions, with 2 if input is wrong or missing,
    and with 1 if something else fails.
    """
    with patiently(f"reading {masked(given.source)}") as tell:
        # The printed certificate starts with the warning that the function `certify` would give.
        found = given.certificate(given.history(), fixed_list, tell)
        if details:
            tell("looking for where the best can still be")
        text = found.to_json() if as_json else found.details() if details else str(found)
    console.print(text, highlight=False, markup=False, soft_wrap=True)
    if not details and not as_json:
        console.print("Use --details to see what this is based on.", highlight=False, style="dim")
    if not found.trusted:
        raise typer.Exit(REFUTED)


@states_a_run
def confirm(
    given: Given,
    n: Annotated[int, typer.Option("--n", min=1, help="How many confirmations are left, including this one.")] = 20,
    finalists: Annotated[int, typer.Option(min=1, help="How many configurations to choose from.")] = 3,
) -> None:
    """Print the next trial that confirms a finalist, chosen from the run so far, as a line of JSON.

    Run it, add it to the run together with its `mixbandit_nomination` (a column of the file or a user attribute of the
    trial), and ask again. This command changes nothing, and prints nothing once all finalists but one are known to be
    worse.
    """
    with patiently(f"reading {masked(given.source)}"):
        known = Assumptions(**given.stated)
        run = read_run(
            given.history(),
            direction=known.direction,
            value=given.value,
            parameters=given.parameters,
            ordered=given.ordered,
        )
        judgement = judged(run, known.towards(run.direction))
        before = () if run.nominations is None else finalists_of(run.rows, run.nominations)
        chosen = next_confirmation(judgement, n, finalists, before)
    if chosen is None:
        return
    parameters: dict[str, Any] = judgement.given(chosen.row)
    typer.echo(json.dumps({"parameters": parameters, NOMINATION: chosen.number}, default=str))

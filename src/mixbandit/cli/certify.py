"""`mixbandit certify`: a certificate for an existing run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mixbandit._checks import as_path
from mixbandit.cli.exits import REFUTED
from mixbandit.cli.shared import console, patiently
from mixbandit.cli.storage import is_address, is_journal, study_in
from mixbandit.errors import InvalidInput
from mixbandit.tuning.assumptions import DIRECTIONS, Assumptions, Stated
from mixbandit.tuning.certification import certified
from mixbandit.tuning.tables import masked


def certify(
    source: Annotated[
        str, typer.Argument(help="A CSV file with a column of values, or an Optuna storage: its URL, or its journal.")
    ],
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", metavar="LOW HIGH", help="The range of single results.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of independent results whose mean a value is. AUC, F1 and R² are not means: use --sigma.",
        ),
    ] = None,
    sigma: Annotated[float | None, typer.Option(help="The noise level of a value, instead of --samples.")] = None,
    norm_bound: Annotated[float | None, typer.Option(help="Bound on the norm; required without --range.")] = None,
    delta: Annotated[float, typer.Option(help="The guarantee has probability 1 − δ, if what is stated holds.")] = 0.05,
    direction: Annotated[str | None, typer.Option(help=" or ".join(DIRECTIONS))] = None,
    value: Annotated[str | None, typer.Option(help="The column of values in a file.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(help="A column of parameters in a file; repeat it for each. By default params_… or all others."),
    ] = None,
    study: Annotated[str | None, typer.Option(help="The study in a storage, if there are several.")] = None,
) -> None:
    """Certify the best configuration of a run, and say which ones can still be the best.

    Any tuner's run will do. Exits with 3 if the data refute the assumptions, with 2 if input is wrong or missing, with
    1 if something else fails.
    """
    stated: Stated = {
        "reward_range": reward_range,
        "samples": samples,
        "sigma": sigma,
        "norm_bound": norm_bound,
        "delta": delta,
    }
    if direction is not None:
        if direction not in DIRECTIONS:
            raise typer.BadParameter(f"{direction!r} is not one of {', '.join(DIRECTIONS)}", param_hint="--direction")
        stated["direction"] = direction
    Assumptions(**stated).check_complete()  # before minutes of reading
    with patiently(f"reading {masked(source)}") as tell:
        history = _history(source, study)
        # The printed certificate starts with the warning that `certify` would give.
        found = certified(history, None, value=value, parameters=parameter, stated=stated, progress=tell)
        tell("looking for where the best can still be")
        text = str(found)
    console.print(text, highlight=False, markup=False)
    if not found.trusted:
        raise typer.Exit(REFUTED)


def _history(source: str, study: str | None) -> Any:
    """The path, or the study in a storage."""
    path = as_path(source, "the source")
    if is_address(source) or is_journal(path):
        return study_in(source, study)
    if not path.exists():
        raise InvalidInput(f"there is no file {masked(source)}")
    if study is not None:
        raise InvalidInput(f"--study chooses a study of an Optuna storage, and {masked(source)} is none")
    return path

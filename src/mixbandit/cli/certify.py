"""`mixbandit certify`: a certificate for an existing run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from mixbandit._extras import import_extra
from mixbandit.cli.shared import console
from mixbandit.errors import AssumptionsMissing, InvalidInput
from mixbandit.tuning.assumptions import DIRECTIONS, Stated
from mixbandit.tuning.certification import certified


def certify(
    source: Annotated[str, typer.Argument(help="A CSV file with a column of values, or the URL of an Optuna storage.")],
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", metavar="LOW HIGH", help="The range of single results.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="The number of results that a value averages.")] = None,
    sigma: Annotated[float | None, typer.Option(help="The noise level of a value, instead of --samples.")] = None,
    norm_bound: Annotated[float | None, typer.Option(help="Bound on the norm; required without --range.")] = None,
    delta: Annotated[float, typer.Option(help="The guarantee has probability 1 − δ, if what is stated holds.")] = 0.05,
    direction: Annotated[str | None, typer.Option(help=" or ".join(DIRECTIONS))] = None,
    value: Annotated[str | None, typer.Option(help="The column of values in a file.")] = None,
    study: Annotated[str | None, typer.Option(help="The study in a storage, if there are several.")] = None,
) -> None:
    """Certify the best configuration of a run, and say which ones can still be the best.

    Any tuner's run will do. Exits with 1 if the data refute the assumptions, with 2 if input is wrong or missing.
    """
    if direction is not None and direction not in DIRECTIONS:
        raise typer.BadParameter(f"{direction!r} is not one of {', '.join(DIRECTIONS)}", param_hint="--direction")
    history = _history(source, study)
    try:
        stated: Stated = {
            "reward_range": reward_range,
            "samples": samples,
            "sigma": sigma,
            "norm_bound": norm_bound,
            "delta": delta,
        }
        if direction is not None:
            stated["direction"] = direction
        found = certified(history, None, value=value, stated=stated)  # the printed certificate starts with the warning
    except AssumptionsMissing as error:
        advice = "here: --range LOW HIGH and --samples N, or --sigma S with --range or --norm-bound B"
        raise typer.BadParameter(f"{error} ({advice})") from error
    except InvalidInput as error:
        raise typer.BadParameter(f"{error}") from error
    console.print(str(found), highlight=False, markup=False)
    if not found.trusted:
        raise typer.Exit(1)


def _history(source: str, study: str | None) -> Any:
    """The path, or the study in a storage."""
    if not re.match(r"[a-z0-9+]+://", source):
        if not Path(source).is_file():
            raise typer.BadParameter(f"there is no file {source}")
        return source
    sqlite = re.match(r"sqlite:///(.+)", source)
    if sqlite and not Path(sqlite[1]).is_file():  # SQLite would create one
        raise typer.BadParameter(f"there is no file {sqlite[1]}")
    optuna = import_extra("optuna", extra="optuna")
    names = optuna.get_all_study_names(storage=source)
    if not names:
        raise typer.BadParameter(f"there is no study in {source}")
    if study is None and len(names) > 1:
        raise typer.BadParameter(f"there are several studies, choose one with --study: {', '.join(sorted(names))}")
    if study is not None and study not in names:
        raise typer.BadParameter(f"there is no study {study!r}; the studies are {', '.join(sorted(names))}")
    return optuna.load_study(study_name=study or names[0], storage=source)

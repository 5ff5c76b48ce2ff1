"""Options that state what is known about values, shared by the commands that need it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mixbandit._checks import as_path
from mixbandit.cli.storage import is_address, is_journal, study_in
from mixbandit.errors import InvalidInput
from mixbandit.tuning.assumptions import DIRECTIONS, NOISES, Assumptions, Stated
from mixbandit.tuning.tables import masked

Source = Annotated[
    str, typer.Argument(help="A CSV file with a column of values, or an Optuna storage: its URL, or its journal.")
]
Range = Annotated[
    tuple[float, float] | None, typer.Option("--range", metavar="LOW HIGH", help="The range of single results.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The number of independent results whose mean a value is. AUC, F1 and R² are not means: use --sigma.",
    ),
]
Sigma = Annotated[float | None, typer.Option(help="The noise level of a value, instead of --samples.")]
Noise = Annotated[
    str | None, typer.Option(help=f"{' or '.join(NOISES)}: noise of one level that is learnt; never for accuracies.")
]
NormBound = Annotated[float | None, typer.Option(help="Bound on the norm; required without --range.")]
Planned = Annotated[
    int | None, typer.Option(min=1, help="The number of configurations, if it was fixed before the first trial.")
]
Delta = Annotated[float, typer.Option(help="The guarantee has probability 1 − δ, if what is stated holds.")]
Direction = Annotated[str | None, typer.Option(help=" or ".join(DIRECTIONS))]
Value = Annotated[str | None, typer.Option(help="The column of values in a file.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option(help="A column of parameters in a file; repeat it for each. By default params_… or all others."),
]
StudyName = Annotated[str | None, typer.Option(help="The study in a storage, if there are several.")]
Ordered = Annotated[
    bool | None, typer.Option("--ordered", help="The rows of the file are in the order of play. Or name it `number`.")
]


def stated_by(direction: str | None, **options: Any) -> Stated:
    """What the options state, checked before minutes of reading."""
    found: Stated = {name: value for name, value in options.items() if value is not None}  # type: ignore[assignment]
    if direction is not None:
        found["direction"] = checked_direction(direction)
    Assumptions(**found).check_complete()
    return found


def checked_direction(direction: str) -> str:
    """The direction, if it is one."""
    if direction not in DIRECTIONS:
        raise typer.BadParameter(f"{direction!r} is not one of {', '.join(DIRECTIONS)}", param_hint="--direction")
    return direction


def history_in(source: str, study: str | None) -> Any:
    """The path, or the study in a storage."""
    path = as_path(source, "the source")
    if is_address(source) or is_journal(path):
        return study_in(source, study)
    if not path.exists():
        raise InvalidInput(f"there is no file {masked(source)}")
    if study is not None:
        raise InvalidInput(f"--study chooses a study of an Optuna storage, and {masked(source)} is none")
    return path

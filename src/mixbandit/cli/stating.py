"""Options that state what is known about values, shared by the commands that need it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from mixbandit._checks import as_path
from mixbandit.cli.storage import is_address, is_journal, study_in
from mixbandit.errors import InvalidInput
from mixbandit.tuning.assumptions import DIRECTIONS, NOISES, UNSTATED, Assumptions, Stated
from mixbandit.tuning.certification import certified
from mixbandit.tuning.fixed_rows import on_fixed_rows
from mixbandit.tuning.study_certificate import StudyCertificate
from mixbandit.tuning.tables import masked

Source = Annotated[
    str, typer.Argument(help="A CSV file with a column of values, or an Optuna storage: its URL or its journal file.")
]
Range = Annotated[
    tuple[float, float] | None, typer.Option("--range", metavar="LOW HIGH", help="The range of single results.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The number of independent results that a value averages. AUC, F1 and R² are not averages: use --sigma.",
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        help="With --samples. fresh: new rows for every value; pool: drawn with replacement from one pool of --pool "
        "rows; fixed: all values were measured on the same rows (certify only)."
    ),
]
Pool = Annotated[int | None, typer.Option(min=1, help="The number of rows in the pool that all values are drawn from.")]
Sigma = Annotated[float | None, typer.Option(help="The noise level of a value, instead of --samples.")]
Noise = Annotated[
    str | None,
    typer.Option(help=f"{' or '.join(NOISES)}: noise of one level, which is learnt; never use it for accuracies."),
]
NormBound = Annotated[float | None, typer.Option(help="Bound on the norm; required without --range.")]
Planned = Annotated[
    int | None, typer.Option(min=1, help="The number of configurations, if it was fixed before the first trial.")
]
Delta = Annotated[float, typer.Option(help="The guarantee has probability 1 − δ, if the stated assumptions hold.")]
Direction = Annotated[str | None, typer.Option(help=" or ".join(DIRECTIONS))]
Value = Annotated[str | None, typer.Option(help="The column of values in a file.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        help="A column of a parameter in a file; repeat the option for each. By default params_… or all other columns."
    ),
]
StudyName = Annotated[str | None, typer.Option(help="The study in a storage, if there are several.")]
Ordered = Annotated[
    bool | None,
    typer.Option("--ordered", help="The rows of the file are in the order of play. Not needed with a column `number`."),
]


FixedList = Annotated[
    bool | None, typer.Option("--fixed-list", help="With --rows fixed: a grid, chosen before any value was seen.")
]


_STATE_ROWS = (
    "mixbandit: --samples without --rows is deprecated: state --rows fresh if every value was measured on new rows, or "
    "--pool N if its rows are drawn with replacement from one set of N rows. Until then, new rows are assumed."
)


@dataclasses.dataclass(frozen=True)
class Given:
    """A run, and what the options state about it."""

    source: str
    study: str | None
    value: str | None
    parameters: Sequence[str] | None
    ordered: bool | None
    stated: Stated

    def history(self) -> Any:
        """The path, or the study in a storage."""
        path = as_path(self.source, "the source")
        if is_address(self.source) or is_journal(path):
            return study_in(self.source, self.study)
        if not path.exists():
            raise InvalidInput(f"there is no file {masked(self.source)}")
        if self.study is not None:
            raise InvalidInput(f"--study chooses a study in an Optuna storage, but {masked(self.source)} is not one")
        return path

    def certificate(self, history: Any, fixed_list: bool | None, progress: Callable[[str], None]) -> StudyCertificate:
        """The certificate of the run, which says itself if the data refute the assumptions."""
        columns: dict[str, Any] = {"value": self.value, "parameters": self.parameters}
        known = Assumptions(**self.stated)
        found = on_fixed_rows(history, known, fixed_list=fixed_list, space=None, rng=0, **columns)
        if found is not None:
            return found
        return certified(history, known, ordered=self.ordered, progress=progress, **columns)


def _given(
    source: Source,
    reward_range: Range = None,
    samples: Samples = None,
    rows: Rows = None,
    pool: Pool = None,
    sigma: Sigma = None,
    noise: Noise = None,
    norm_bound: NormBound = None,
    planned: Planned = None,
    delta: Delta = 0.05,
    direction: Direction = None,
    value: Value = None,
    parameter: Parameter = None,
    study: StudyName = None,
    ordered: Ordered = None,
) -> Given:
    """What the options state, checked before minutes of reading."""
    stated = stated_by(
        direction, reward_range=reward_range, samples=samples, rows=rows, pool=pool, sigma=sigma, noise=noise,
        norm_bound=norm_bound, planned=planned, delta=delta,
    )  # fmt: skip
    return Given(source, study, value, parameter, ordered, stated)


def stated_by(direction: str | None, **options: Any) -> Stated:
    """What options state about values, and about the direction."""
    found: Stated = {name: value for name, value in options.items() if value is not None}  # type: ignore[assignment]
    if direction is not None:
        found["direction"] = checked_direction(direction)
    if "samples" in found and "rows" not in found and "pool" not in found:
        found["rows"] = UNSTATED  # a Python warning would point at no line of the user's
        typer.echo(_STATE_ROWS, err=True)
    Assumptions(**found).check_complete()
    return found


def checked_direction(direction: str) -> str:
    """The direction, if it is one."""
    if direction not in DIRECTIONS:
        raise typer.BadParameter(f"{direction!r} is not one of {', '.join(DIRECTIONS)}", param_hint="--direction")
    return direction


def states_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command whose first argument is a `Given` the options that make one."""
    shared = inspect.signature(_given, eval_str=True).parameters
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        given = _given(**{name: options.pop(name) for name in shared})
        command(given, **options)

    source, *others = shared.values()
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (source, *own, *others)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run

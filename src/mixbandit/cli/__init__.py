"""The command line."""

from __future__ import annotations

from typing import Annotated

import typer

import mixbandit
from mixbandit.cli.bench import bench
from mixbandit.cli.certify import certify, confirm
from mixbandit.cli.demo import demo
from mixbandit.cli.exits import Commands
from mixbandit.cli.measurements import coverage, delays, kernels, regret
from mixbandit.cli.paper import paper
from mixbandit.cli.report import report
from mixbandit.cli.shared import console
from mixbandit.cli.tune import tune

app = typer.Typer(
    help="Sequential decisions with guarantees: anytime-valid error bars for linear models.",
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
)
for _command in (demo, tune, certify, report, confirm, paper, coverage, regret, delays, kernels, bench):
    app.command()(_command)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"mixbandit {mixbandit.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass

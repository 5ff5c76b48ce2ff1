"""Play tuners on tasks, and summarise the results: python -m benchmarks.tuning play|summary|versus --help."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mixbandit.paper.parallel import Workers, gather_all

from . import outside
from .play import COLUMNS, PEERS, TuningSettings, simulate
from .summary import summarise
from .tasks import DEVELOPMENT, HELD_OUT, MADE_UP
from .versus import compare

SETS = {
    "development": DEVELOPMENT,
    "made-up": tuple(MADE_UP),
    "held-out": HELD_OUT,
    "outside-development": outside.DEVELOPMENT,
    "functions-development": outside.DEVELOPMENT_FUNCTIONS,
    "tables": outside.TABLES,
    "functions": outside.FUNCTIONS,
    "unseen": outside.UNSEEN,
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    commands = parser.add_subparsers(required=True)
    play = commands.add_parser("play", help="play the missing runs; every finished run is saved at once")
    play.add_argument(
        "--tasks", nargs="+", default=["development"], help=f"names of tasks, or of sets: {', '.join(SETS)}"
    )
    play.add_argument("--tuners", nargs="+", default=["mixbandit", *PEERS])
    play.add_argument("--options", nargs="+", default=["{}"], help="of mixbandit's tuner, as JSON; each is played")
    play.add_argument("--seeds", type=int, default=20)
    play.add_argument("--trials", type=int, default=200)
    play.add_argument("--jobs", type=int, default=2)
    play.add_argument("--out", type=Path, default=Path("out/tuning"))
    play.set_defaults(run=_play)
    summary = commands.add_parser("summary", help="tables and a picture of everything that was played")
    summary.add_argument("--out", type=Path, default=Path("out/tuning"))
    summary.add_argument("--to", type=Path, default=Path("docs/results/tuning"))
    summary.set_defaults(run=lambda given: summarise(given.out, given.to))
    versus = commands.add_parser("versus", help="wins, ranks and regret on tasks that nobody here made")
    versus.add_argument("--out", type=Path, default=Path("out/outside"))
    versus.add_argument("--to", type=Path, default=Path("docs/results/searching"))
    versus.add_argument("--trials", type=int, nargs="+", default=[50, 100, 200])
    versus.set_defaults(run=lambda given: compare(given.out, given.to, given.trials))
    given = parser.parse_args()
    given.run(given)


def _play(given: argparse.Namespace) -> None:
    names = [name for part in given.tasks for name in SETS.get(part, (part,))]
    cells = (
        TuningSettings(name, tuner, options, given.trials)
        for tuner in given.tuners
        for options in (["{}"] if tuner in PEERS else given.options)
        for name in names
    )

    def show(label: str, done: int) -> None:
        end = "\n" if done == given.seeds else ""
        print(f"\r{label}: {done} of {given.seeds}", end=end, file=sys.stderr, flush=True)

    where = {"folder": given.out, "workers": Workers(given.jobs), "progress": show}
    gather_all("tuning", simulate, cells, COLUMNS, given.seeds, **where)


if __name__ == "__main__":
    main()

"""How often certificates are wrong, and how low their floors are.

python -m benchmarks.certificates histories|play|summary|example|maxima --help
python -m benchmarks.certificates floors|digits|audits|shortfalls --help
python -m benchmarks.certificates attacks --help
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import attacks, audits, floors, histories, maxima, shortfalls
from .accuracies import tasks
from .example import example
from .functions import KINDS, functions
from .play import jobs, play_all
from .publish import publish
from .summary import summarise

RESULTS, FLOORS = Path("docs/results/certificates"), Path("docs/results/floors")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    commands = parser.add_subparsers(required=True)

    some = argparse.ArgumentParser(add_help=False)
    some.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    some.add_argument("--functions", nargs="+", choices=functions(), default=list(functions()), metavar="NAME")
    stored = argparse.ArgumentParser(add_help=False)
    stored.add_argument("--seeds", type=int, default=3)
    stored.add_argument("--histories", type=Path, default=histories.FOLDER, help="the folder they are stored in")

    made = commands.add_parser("histories", parents=[some, stored], help="make the missing histories")
    made.set_defaults(run=lambda given: histories.make_all(_names(given), given.seeds, given.histories))

    settings = argparse.ArgumentParser(add_help=False)
    settings.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="KEYWORD=VALUE",
        help="keywords of certify, as Python expressions of mb, np, space and samples: norm_bound=3 "
        "'mixture=mb.mixtures.Scaled(0.2)'; None leaves one out",
    )
    play = commands.add_parser("play", parents=[some, stored, settings], help="certify the missing runs of a label")
    play.add_argument("--label", required=True, help="names the file of results")
    play.add_argument("--limit", type=int, help="play only this many runs")
    play.add_argument("--processes", type=int, default=1)
    play.add_argument("--out", type=Path, default=Path("out/certificates"), help="the folder of the file")
    play.set_defaults(run=_play)
    summary = commands.add_parser("summary", help="tables of some labels, each compared with the first")
    kept = sorted(RESULTS.glob("*.csv"), key=lambda path: (path.stem != "before", path.stem))
    summary.add_argument("files", nargs="*", type=Path, default=kept, help=f"by default those in {RESULTS}")
    summary.add_argument("--to", type=Path, help="also write a table and a picture for the documentation there")
    summary.set_defaults(run=_summary)
    cliff = commands.add_parser("example", parents=[settings], help="a function with a cliff, certified many times")
    cliff.add_argument("--runs", type=int, default=40)
    cliff.set_defaults(run=lambda given: example(given.runs, _settings(given)))
    heavy = commands.add_parser("maxima", parents=[some], help="compare the stored maxima with those of a search")
    heavy.set_defaults(run=lambda given: maxima.compare(_names(given)))
    _add_floors(commands)
    attacked = commands.add_parser(
        "attacks", help="selection, order and reuse: how often each still makes a floor wrong"
    )
    attacked.add_argument(
        "--attacks", nargs="+", choices=attacks.ATTACKS, default=list(attacks.ATTACKS), metavar="NAME"
    )
    attacked.add_argument("--runs", type=int, default=attacks.RUNS)
    attacked.add_argument("--processes", type=int, default=1)
    attacked.add_argument("--out", type=Path, default=Path("out/attacks.csv"), help="the file of results")
    attacked.set_defaults(
        run=lambda given: attacks.play_all(given.attacks, given.runs, out=given.out, processes=given.processes)
    )
    given = parser.parse_args()
    given.run(given)


def _add_floors(commands: Any) -> None:
    """The commands about floors: three that play, and their tables."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--label", required=True, help="names the file of results")
    common.add_argument("--processes", type=int, default=1)
    common.add_argument("--out", type=Path, default=Path("out/floors"), help="the folder of the file")
    for command, names in (("floors", list(tasks())), (floors.DIGITS, [floors.DIGITS])):
        play = commands.add_parser(command, parents=[common], help=f"tune, confirm and certify: {', '.join(names)}")
        play.add_argument("--seeds", type=int, default=floors.SEEDS[command])
        play.add_argument("--tasks", nargs="+", choices=names, default=names, metavar="NAME")
        play.add_argument("--way", choices=floors.WAYS, default=floors.default_way(), help="how to confirm")
        play.set_defaults(run=_play_floors, command=command)
    audited = commands.add_parser("audits", parents=[common], help="how often repeats show training noise")
    audited.add_argument("--seeds", type=int, default=audits.SEEDS)
    audited.add_argument("--tasks", nargs="+", choices=tasks(), default=audits.TASKS, metavar="NAME")
    audited.set_defaults(
        run=lambda given: audits.play_all(
            given.label, given.tasks, given.seeds, out=given.out, processes=given.processes
        )
    )
    tables = commands.add_parser("shortfalls", help="tables of floors, digits and audits, label beside label")
    kept = sorted(FLOORS.glob("*.csv"), key=lambda path: (path.stem.rpartition("_")[2] != "before", path.stem))
    tables.add_argument("files", nargs="*", type=Path, default=kept, help=f"by default those in {FLOORS}")
    tables.add_argument("--picture", type=Path, help="draw the shortfalls to this file as well")
    tables.set_defaults(run=_show_shortfalls)


def _show_shortfalls(given: argparse.Namespace) -> None:
    print(shortfalls.summarise(given.files))
    if given.picture is not None:
        shortfalls.draw(given.files, given.picture)


def _play_floors(given: argparse.Namespace) -> None:
    floors.play_all(
        given.command,
        given.label,
        given.tasks,
        given.seeds,
        way=given.way,
        out=given.out,
        processes=given.processes,
    )


def _play(given: argparse.Namespace) -> None:
    play_all(
        given.label,
        jobs(_names(given), given.seeds)[: given.limit],
        _settings(given),
        out=given.out,
        folder=given.histories,
        processes=given.processes,
    )


def _summary(given: argparse.Namespace) -> None:
    print(summarise(given.files))
    if given.to is not None:
        publish(given.files, given.to)


def _settings(given: argparse.Namespace) -> dict[str, str]:
    settings = {}
    for text in given.set:
        name, found, value = text.partition("=")
        if not found:
            raise SystemExit(f"--set takes KEYWORD=VALUE, got {text!r}")
        settings[name] = value
    return settings


def _names(given: argparse.Namespace) -> list[str]:
    return [name for name in given.functions if functions()[name].kind in given.kinds]


if __name__ == "__main__":
    main()

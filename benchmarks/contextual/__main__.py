"""Play contextual bandits and summarise what they earned: python -m benchmarks.contextual play|summary --help."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from mixbandit.paper.parallel import Workers, gather_all

from . import tables, worlds
from .play import COLUMNS, Settings, simulate
from .players import PLAYERS
from .summary import read, summarise

SETS = {"development": tables.DEVELOPMENT, "held-out": tables.HELD_OUT, "simulators": tuple(worlds.SIMULATORS)}


# Every time that anything held out was played.
LOOKS = Path(__file__).parent / "looks.csv"


def looked(worlds: list[str], players: list[tuple[str, str]]) -> None:
    """Keep a record of a look at what is held out."""
    who = "; ".join(f"{player} {options}" for player, options in players)
    with LOOKS.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow([f"{datetime.now(UTC):%Y-%m-%d}", " ".join(worlds), who])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contextual", description=__doc__)
    parser.add_argument("what", choices=["play", "summary"], help="play what is missing, or read what was played")
    parser.add_argument("--worlds", nargs="+", default=["development"], help=f"names, or sets: {', '.join(SETS)}")
    parser.add_argument("--players", nargs="+", default=list(PLAYERS), choices=list(PLAYERS))
    parser.add_argument("--options", nargs="+", default=["{}"], help="of mixbandit's player, as JSON; each is played")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--late", type=int, default=0, help="rounds until a reward is told")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/contextual"), help="runs; they are resumed from there")
    parser.add_argument("--to", type=Path, default=Path("out/contextual/summary"), help="where tables are written")
    given = parser.parse_args()
    names = [name for part in given.worlds for name in SETS.get(part, (part,))]
    players = [
        (player, options)
        for player in given.players
        for options in (given.options if player == "mixbandit" else ["{}"])
    ]
    if given.what == "summary":
        earned = read(given.out, names, players, given.seeds, given.rounds, given.late)
        command = f"python -m benchmarks.contextual {shlex.join(sys.argv[1:])}"
        seeds = f"seeds: 0 to {given.seeds - 1}; rounds: {given.rounds}; late: {given.late}"
        print(summarise(earned, given.to, f"mixbandit: {version('mixbandit')}; command: {command}; {seeds}"))
        return
    if held_out := sorted(set(names) & set(tables.HELD_OUT)):
        looked(held_out, players)
    cells = (Settings(name, player, options, given.rounds, given.late) for player, options in players for name in names)

    def show(label: str, done: int) -> None:
        end = "\n" if done == given.seeds else ""
        print(f"\r{label}: {done} of {given.seeds}", end=end, file=sys.stderr, flush=True)

    where = {"folder": given.out, "workers": Workers(given.jobs), "progress": show}
    gather_all("contextual", simulate, cells, COLUMNS, given.seeds, **where)


if __name__ == "__main__":
    main()

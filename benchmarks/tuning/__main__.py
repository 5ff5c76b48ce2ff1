"""Play tuners on tasks: python -m benchmarks.tuning --tasks … --tuners … --seeds 20 --jobs 2."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mixbandit.experiments.parallel import Workers, gather

from .play import COLUMNS, PEERS, TuningSettings, simulate
from .tasks import DEVELOPMENT, HELD_OUT

SETS = {"development": DEVELOPMENT, "held-out": HELD_OUT}


def main() -> None:
    """Play what is not there yet; every finished run is on disk at once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=["development"], help="names, or development, or held-out")
    parser.add_argument("--tuners", nargs="+", default=["mixbandit", *PEERS])
    parser.add_argument("--options", default="{}", help="of mixbandit's tuner, as JSON")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/tuning"))
    given = parser.parse_args()
    names = [name for part in given.tasks for name in SETS.get(part, (part,))]
    workers = Workers(given.jobs)
    for tuner in given.tuners:
        for name in names:
            settings = TuningSettings(name, tuner, "{}" if tuner in PEERS else given.options, given.trials)

            def show(done: int, label: str = settings.label) -> None:
                print(f"\r{label}: {done} of {given.seeds}", end="", file=sys.stderr, flush=True)

            gather("tuning", simulate, settings, COLUMNS, given.seeds, folder=given.out, workers=workers, progress=show)
            print(file=sys.stderr)


if __name__ == "__main__":
    main()

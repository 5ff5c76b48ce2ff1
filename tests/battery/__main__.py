"""The battery at length: `python -m tests.battery`, or `make battery`.

Every chunk of work is kept as soon as it is done, so that Ctrl-C loses little and the same command resumes. When all
is done, it writes docs/results/battery.md and docs/results/battery.csv from what was kept. Exits with 1 if anything
failed.
"""

import argparse
import functools
import hashlib
import json
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import Phase

import mixbandit
from tests.battery import machine
from tests.battery.page import write_page
from tests.battery.parts import PARTS, Part
from tests.battery.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.battery", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all by default: {', '.join(PARTS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of the full length of every part, such as 0.01")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/battery"), help="what is done is kept here")
    parser.add_argument("--no-page", action="store_true", help="leave docs/results/battery.md as it is")
    parser.add_argument("--first", action="store_true", help="stop at the first part that fails")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    if given.first:  # whether anything fails is asked, not why
        machine.SHRINK = (Phase.generate,)
    done = {}
    try:
        for name in given.parts or PARTS:
            done[name] = _carried_out(name, PARTS[name], given)
            if given.first and done[name][0].failures:
                break
    except KeyboardInterrupt:
        print(f"\nStopped. Run the same command again to resume from {given.out}.")
        return 130
    failures = sum(len(tally.failures) for tally, _ in done.values())
    if set(done) == set(PARTS) and not given.no_page:
        write_page(done, " ".join(["python -m tests.battery", *sys.argv[1:]]))
    print(f"{sum(tally.tried for tally, _ in done.values())} tried, {failures} failed")
    return 1 if failures else 0


def _carried_out(name: str, part: Part, given: argparse.Namespace) -> tuple[Tally, float]:
    """The tally of a part and the seconds it took, in chunks of which the finished ones are read from disk."""
    budget = max(1, round(part.budget * given.share))
    whole, seconds, begun = Tally(part.title), 0.0, 0
    while begun < budget:
        size = min(part.chunk, budget - begun)
        file = given.out / _code() / f"{name}-{given.seed}-{begun}-{size}.json"
        if not file.exists():
            _show(name, begun, budget, whole)
            start = time.monotonic()
            # A chunk has a seed of its own, so that any of them can be run again alone.
            found = part.run(size, given.seed * 1_000_003 + begun, lambda n, b=begun: _show(name, b + n, budget, whole))
            file.parent.mkdir(parents=True, exist_ok=True)
            kept = {"outcomes": found.outcomes, "failures": found.failures, "seconds": time.monotonic() - start}
            file.with_suffix(".part").write_text(json.dumps(kept))
            file.with_suffix(".part").replace(file)
        kept = json.loads(file.read_text())
        whole.outcomes += Counter(kept["outcomes"])
        whole.failures += kept["failures"]
        seconds += kept["seconds"]
        begun += size
    print(f"\r{whole} ({seconds:.0f} s)", flush=True)
    return whole, seconds


@functools.cache
def _code() -> str:
    """A hash of the code: what other code did is not a result."""
    found = hashlib.sha256()
    for folder in (Path(mixbandit.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _show(name: str, done: int, budget: int, so_far: Tally) -> None:
    if sys.stdout.isatty():
        print(f"\r{name}: {done}/{budget}, {len(so_far.failures)} failed ", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())

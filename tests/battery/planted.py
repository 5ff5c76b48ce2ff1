"""Does the battery find bugs? Plant them on purpose, one at a time: `python -m tests.battery.planted`.

A bug is an edit of one file in a copy of the package. The battery, at a fiftieth of its length, runs on the copy and
must exit with a failure. Write the edits without looking at the battery, or they prove nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import mixbandit
from tests.battery.bugs import BUGS

ROOT = Path(__file__).parent.parent.parent


class Found(NamedTuple):
    by: str  # the part that found it; empty if none did
    told: str


def find(file: str, old: str, new: str, share: float) -> Found:
    """Run the battery on a copy of the package in which `old` reads `new`."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "mixbandit"
        shutil.copytree(Path(mixbandit.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        text = (copy / file).read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{file} has the text of this bug {text.count(old)} times, not once: {old!r}")
        (copy / file).write_text(text.replace(old, new))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([name, str(ROOT)]), "NUMBA_CACHE_DIR": name}
        command = [sys.executable, "-W", "ignore", "-m", "tests.battery", "--share", str(share), "--first", "--no-page"]
        done = subprocess.run(
            [*command, "--out", f"{name}/out"], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        told = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        if not done.returncode:
            return Found("", "")
        by = next((line.split(":")[0] for line in told if " failed" in line and " 0 failed" not in line), "an error")
        return Found(by, next((line.strip() for line in told if "FAILED" in line), told[-1] if told else ""))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.battery.planted", description=__doc__)
    parser.add_argument("--share", type=float, default=0.02, help="of the full length of the battery")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of some bugs")
    given = parser.parse_args()
    chosen = [i for i in range(len(BUGS)) if not given.only or i in given.only]
    found = 0
    for i in chosen:
        what, file, old, new = BUGS[i]
        result = find(file, old, new, given.share)
        found += bool(result.by)
        verdict = f"found by {result.by}: {result.told[:150]}" if result.by else "NOT FOUND"
        print(f"{i}. {what} ({file}): {verdict}", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())

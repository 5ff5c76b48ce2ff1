"""docs/results/battery.md and docs/results/battery.csv, written by the run they report."""

import csv
import io
import os
import platform
from pathlib import Path

import numpy as np
import scipy

import mixbandit
from mixbandit._files import write_atomically
from tests.battery.parts import PARTS
from tests.battery.tally import Tally

ROOT = Path(__file__).parent.parent.parent
HEADINGS = {
    "inputs": ("Inputs tried", "Each was accepted and gave sound answers, or was refused with one of our errors."),
    "faults": (
        "Faults survived",
        "After each fault the state was the one before the call or the one after it, never a mix.",
    ),
    "statements": (
        "Statements attacked",
        "Studies with a known truth, run, pruned, ordered, written down and looked at in random ways, at δ = 5 %. A "
        "failure is more floors above the truth than δ allows.",
    ),
    "load": ("Load held", "Every reader saw a whole file, and every result and trial was stored exactly once."),
}
INTRODUCTION = """# The battery

**{failed} of {tried:,} hostile inputs, faults and operations failed.** That says nothing about inputs of other kinds.

The battery puts policies, contextual bandits and a tuner through random sequences of calls, damages files and
studies, passes wrong values to calls, interrupts them at random instructions and kills them; eight processes share
one file. It also selects, orders, prunes and reuses trials at random, and compares floors with the truth. A *failure*
is something that no user should see: an exception that is not ours, false answers, lost or doubled data, or a state
that changed despite an error.

`make test` runs a few seconds of each part; `make battery` runs all of it. This page is written by the run it reports:

```sh
{command}
```

It resumes after Ctrl-C, exits with 1 if anything failed, and keeps its figures in `docs/results/battery.csv`.
Made with mixbandit {version}, Python {python}, numpy {numpy}, scipy {scipy} on {cores} cores ({machine}).
Seeds come from the command and start at 0 by default.
"""


def write_page(done: dict[str, tuple[Tally, float]], command: str, root: Path = ROOT) -> None:
    """The page and its figures."""
    facts = {
        "command": command,
        "version": mixbandit.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "tried": sum(tally.tried for tally, _ in done.values()),
        "failed": sum(len(tally.failures) for tally, _ in done.values()),
    }
    text = INTRODUCTION.format(**facts)
    for under, (heading, meaning) in HEADINGS.items():
        rows = [name for name in done if PARTS[name].under == under]
        text += f"\n## {heading}\n\n{meaning}\n\n"
        text += "| what | tried | failed | what came of it | seconds |\n|---|---|---|---|---|\n"
        for name in rows:
            tally, seconds = done[name]
            came = "; ".join(f"{n:,} {outcome}" for outcome, n in tally.outcomes.most_common(6))
            text += f"| {PARTS[name].title} | {tally.tried:,} | {len(tally.failures)} | {came} | {seconds:.0f} |\n"
    failures = [line for tally, _ in done.values() for line in tally.failures]
    if failures:
        text += "\n## Failures\n\n```\n" + "\n".join(failures) + "\n```\n"
    write_atomically(root / "docs" / "results" / "battery.md", text)
    lines = io.StringIO()
    out = csv.writer(lines, lineterminator="\n")
    out.writerow(("part", "outcome", "count"))
    for name, (tally, _) in done.items():
        out.writerows((name, outcome, n) for outcome, n in tally.outcomes.most_common())
        out.writerow((name, "failed", len(tally.failures)))
    made = f"# mixbandit: {facts['version']}; command: {command}\n"
    write_atomically(root / "docs" / "results" / "battery.csv", made + lines.getvalue())

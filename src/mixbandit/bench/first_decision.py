"""How long a new process takes to its first decision."""

from __future__ import annotations

import functools
import os
import statistics
import subprocess
import sys
from typing import Any

from mixbandit.bench.timing import Say, seconds

_NUMPY = "import numpy, scipy"
_SCRIPTS = {
    "Python": "pass",
    _NUMPY: _NUMPY,
    "import mixbandit": "import mixbandit",
    "import mixbandit, first decision": """
import numpy, mixbandit
bandit = mixbandit.ContextualBandit(arms=["a", "b", "c"], reward_range=(0, 1), rng=0)
bandit.tell(bandit.ask(numpy.full(20, 0.1)), 1.0)
""",
}


def measure(*, quick: bool, say: Say) -> list[dict[str, Any]]:
    """A row per script: milliseconds of a whole process, and what that is beyond importing numpy and scipy."""
    times: dict[str, list[float]] = {name: [] for name in _SCRIPTS}
    # Compiled to bytecode before, as pip leaves an installed package.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for repeat in range(4 if quick else 10):
        for name, script in _SCRIPTS.items():
            say(f"first decision: {name}")
            run = functools.partial(subprocess.run, [sys.executable, "-c", script], check=True, env=environment)
            taken = seconds(run)
            if repeat:  # files come from memory
                times[name].append(taken)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        {"process": name, "milliseconds": 1e3 * median, "beyond_numpy": 1e3 * (median - medians[_NUMPY])}
        for name, median in medians.items()
    ]

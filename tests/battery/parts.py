"""The parts of the battery, with the length of each in the long run."""

from collections.abc import Callable
from typing import NamedTuple

from tests.battery import (
    bad_values,
    contextual,
    faults,
    fuzz,
    load,
    policies,
    selections,
    state_files,
    studies,
    tables,
    tuners,
)
from tests.battery.tally import Tally


class Part(NamedTuple):
    title: str
    run: Callable[..., Tally]
    budget: int  # cases in the long run; seconds of fuzzing
    chunk: int  # kept on disk when done
    under: str  # the heading on the page


WHOLE = 10**6  # more than the table of bad values has entries: each is tried once

PARTS = {
    "policies": Part("Steps in lives of a policy", policies.run, 100_000, 5_000, "inputs"),
    "contextual bandits": Part("Steps in lives of a contextual bandit", contextual.run, 50_000, 5_000, "inputs"),
    "tuners": Part("Steps in lives of a tuner", tuners.run, 25_000, 5_000, "inputs"),
    "state files": Part("State files, damaged and forged in turn", state_files.run, 40_000, 2_000, "inputs"),
    "tables": Part("Mutated CSV files", tables.run, 20_000, 2_000, "inputs"),
    "studies": Part("Mutated Optuna studies", studies.run, 20_000, 1_000, "inputs"),
    "bad values": Part(
        "Bad values for every argument of every public callable", bad_values.run, WHOLE, WHOLE, "inputs"
    ),
    "interrupts": Part("Ctrl-C at a random instruction or moment", faults.interrupts, 3_000, 500, "faults"),
    "kills": Part("SIGKILL at a random moment", faults.kills, 200, 50, "faults"),
    "load": Part("Operations of eight processes at once", load.run, 10_000, 10_000, "load"),
    "selections": Part("Ways to select, order, prune, reuse and stop", selections.run, 2_000, 500, "statements"),
    "fuzz": Part("Inputs of a coverage-guided fuzzer (atheris)", fuzz.run, 600, 600, "inputs"),
}

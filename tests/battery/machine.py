"""Running Hypothesis state machines by the step, reproducibly."""

import traceback
import warnings
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test

from mixbandit.errors import AssumptionsRefutedWarning
from tests.battery.tally import Progress, Tally, silent

STEPS = 50  # of a life
SHRINK = (Phase.generate, Phase.shrink)  # find the shortest life that fails, which takes minutes


class Life(RuleBasedStateMachine):
    """A state machine that counts its steps, and does not mind being told that assumptions are refuted."""

    tally: Tally
    progress: Progress = staticmethod(silent)

    def __init__(self):
        super().__init__()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)

    def teardown(self):
        self._warnings.__exit__(None, None, None)

    @invariant()
    def count(self):
        self.tally.note("steps")
        if self.tally.tried % 100 == 0:
            self.progress(self.tally.tried)


def live(machine, name, budget, number, progress=silent):
    """About `budget` steps of a machine; a failure is reported with the shortest life that Hypothesis finds."""
    tally = Tally(name)
    kind = seed(number)(type(machine.__name__, (machine,), {"tally": tally, "progress": staticmethod(progress)}))
    options = settings(
        max_examples=1,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=SHRINK,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    # Few lives at a time, so that long runs show progress and lives do not all grow from the first ones.
    life = 0
    while tally.tried < budget:
        kind = seed(number * 1_000_003 + life)(kind)
        lives = min(50, max(1, (budget - tally.tried) // STEPS))
        try:
            run_state_machine_as_test(kind, settings=settings(options, max_examples=lives))
        except Exception as error:
            for each in getattr(error, "exceptions", (error,)):
                tally.fail(f"seed {number}, life {life}: {_told(each)}")
            break
        life += lives
    return tally


def _told(error):
    """Where it happened, what, and the shortest life that leads there."""
    *_, last = traceback.extract_tb(error.__traceback__)
    notes = "\n".join(getattr(error, "__notes__", ()))
    return f"{Path(last.filename).name}:{last.lineno}: {type(error).__name__}: {str(error)[:400]}\n{notes}"

"""Random ways to select, order, prune, reuse and stop: floors are compared with the truth, which is known.

A run tunes a few configurations whose values are means of yes-or-no results. How trials are chosen, given up, finished,
written down and looked at is drawn at random. A certificate may be wrong with probability δ, so single wrong floors are
counted; a chunk fails if there are more than δ allows.
"""

import io
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
import pandas as pd
from optuna.trial import TrialState
from scipy.stats import binom

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler
from tests.battery.tally import Progress, Tally, silent

DELTA = 0.05
TOO_MANY = 1e-4  # probability that a chunk of honest certificates fails
SAMPLES, STEPS = 40, 4  # a value averages 40 results, reported in 4 parts where a pruner looks
CHOOSING = ("uniform", "greedy", "stay with the winner")
PRUNING = ("never", "median", "below a half", "worse than the best")
FINISHING = ("in order", "reversed", "at random")
WRITING = ("study", "frame", "frame, sorted by value", "frame, shuffled", "csv", "pairs")
ROWS = ("fresh", "pool")


@dataclass(frozen=True)
class Way:
    """One way to run a study, and to read its certificate."""

    truths: tuple[float, ...]
    trials: int
    choosing: str
    pruning: str
    finishing: str
    writing: str
    rows: str
    pool: int
    confirmations: int
    looks: tuple[int, ...]  # after how many finished trials a certificate is read


def drawn(rng: np.random.Generator) -> Way:
    """A way at random."""
    k = int(rng.integers(2, 9))
    truths = np.full(k, rng.uniform(0.2, 0.95)) if rng.random() < 0.6 else rng.uniform(0.1, 0.98, size=k)
    trials = int(rng.integers(6, 200))
    looks = np.unique(rng.integers(2, trials + 1, size=3))
    return Way(
        tuple(map(float, truths)),
        trials,
        str(rng.choice(CHOOSING)),
        str(rng.choice(PRUNING)),
        str(rng.choice(FINISHING)),
        str(rng.choice(WRITING)),
        str(rng.choice(ROWS, p=(0.7, 0.3))),
        int(rng.integers(30, 400)),
        int(rng.choice((0, 4, 10))),
        (*map(int, looks), trials),
    )


class World:
    """Values of configurations: on new rows, or on rows drawn from one pool."""

    def __init__(self, way: Way, rng: np.random.Generator) -> None:
        self._rng, self._way = rng, way
        self._results = rng.random((len(way.truths), way.pool)) < np.array(way.truths)[:, None]

    def truth(self, which: int) -> float:
        """What a certificate of this run is about."""
        return float(self._results[which].mean()) if self._way.rows == "pool" else self._way.truths[which]

    def part(self, which: int) -> float:
        """A mean of some results of a configuration."""
        n = SAMPLES // STEPS
        if self._way.rows == "pool":
            return float(self._rng.choice(self._results[which], size=n).mean())
        return float(self._rng.binomial(n, self._way.truths[which])) / n


class Player:
    """Runs a study in some way; certificates are read while it runs."""

    def __init__(self, way: Way, rng: np.random.Generator) -> None:
        self.way, self.rng, self.world = way, rng, World(way, rng)
        self.study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
        self.space = {"which": optuna.distributions.IntDistribution(0, len(way.truths) - 1)}
        rows: Any = {"pool": way.pool} if way.rows == "pool" else {"rows": "fresh"}
        self.known = mb.Assumptions(reward_range=(0, 1), samples=SAMPLES, delta=DELTA, **rows)

    def play(self) -> list[tuple[float, float]]:
        """The (floor, truth) of every certificate that was trusted."""
        found, finished, waiting = [], 0, []
        for _ in range(self.way.trials):
            self.study.enqueue_trial({"which": self._chosen()})
            waiting.append(self.study.ask(self.space))
            # Up to four trials run at once, and finish in an order that does not depend on their values.
            while len(waiting) >= (1 if self.way.finishing == "in order" else 4):
                finished += self._finish(waiting)
                if finished in self.way.looks:
                    found += self._look()
        while waiting:
            finished += self._finish(waiting)
        if self.way.confirmations and self._values():
            for trial in MixBanditSampler(assumptions=self.known).confirm(self.study, self.way.confirmations):
                self._measure(trial, confirming=True)
        return found + self._look()

    def _chosen(self) -> int:
        values, k = self._values(), len(self.way.truths)
        if self.way.choosing == "uniform" or not values or self.rng.random() < 0.2:
            return int(self.rng.integers(k))
        if self.way.choosing == "greedy":
            means = {which: np.mean([v for w, v in values if w == which]) for which, _ in values}
            return max(means, key=lambda which: float(means[which]))
        return max(values, key=lambda pair: pair[1])[0]

    def _values(self) -> list[tuple[int, float]]:
        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [(trial.params["which"], trial.value) for trial in done]

    def _finish(self, waiting: list[optuna.Trial]) -> int:
        place = {"in order": 0, "reversed": -1, "at random": int(self.rng.integers(len(waiting)))}[self.way.finishing]
        self._measure(waiting.pop(place))
        return 1

    def _measure(self, trial: optuna.Trial, confirming: bool = False) -> None:
        which, parts = trial.suggest_int("which", 0, len(self.way.truths) - 1), []
        for step in range(STEPS):
            parts.append(self.world.part(which))
            if self.way.pruning != "never":
                trial.report(float(np.mean(parts)), step)
            if not confirming and step and self._is_pruned(float(np.mean(parts)), step):
                self.study.tell(trial, state=TrialState.PRUNED)
                return
        self.study.tell(trial, float(np.mean(parts)))

    def _is_pruned(self, mean: float, step: int) -> bool:
        if self.way.pruning == "below a half":
            return mean < 0.5
        values = [value for _, value in self._values()]
        if self.way.pruning == "never" or len(values) < 3:
            return False
        return mean < (np.median(values) if self.way.pruning == "median" else max(values) - 0.1)

    def _look(self) -> list[tuple[float, float]]:
        try:
            found = mb.certify(self._written(), self.known)
        except mb.InvalidInput:  # such as a single configuration, or pruned trials without confirmations
            return []
        return [(found.interval[0], self.world.truth(found.parameters["which"]))] if found.trusted else []

    def _written(self) -> Any:
        if self.way.writing == "study":
            return self.study
        frame = self.study.trials_dataframe()
        if self.way.writing == "pairs":
            if any(trial.state == TrialState.PRUNED for trial in self.study.get_trials(deepcopy=False)):
                return self.study  # pairs cannot say that others were given up
            done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            return [(trial.params, trial.value) for trial in done]
        if self.way.writing == "csv":
            return pd.read_csv(io.StringIO(frame.to_csv()))
        if "sorted" in self.way.writing:
            return frame.sort_values("value", ascending=bool(self.rng.random() < 0.5))
        return frame.sample(frac=1.0, random_state=0) if "shuffled" in self.way.writing else frame


def run(budget: int, seed: int, progress: Progress = silent) -> Tally:
    """Play so many studies."""
    tally, wrong = Tally("Ways to select, order, prune and reuse"), []
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        for case in range(budget):
            rng = np.random.default_rng([seed, case])
            way = drawn(rng)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
                    floors = Player(way, rng).play()
            except Exception as error:  # whatever a user should not see
                tally.fail(f"seed {seed}, case {case}: {type(error).__name__}: {error} in {way}")
                continue
            if any(floor > truth + 1e-9 for floor, truth in floors):
                wrong.append(case)
                tally.note("a floor above the truth")
            else:
                tally.note("floors, all true" if floors else "nothing certified")
            progress(case + 1)
    finally:
        optuna.logging.set_verbosity(level)
    if binom.sf(len(wrong) - 1, budget, DELTA) < TOO_MANY:
        tally.fail(f"seed {seed}: {len(wrong)} of {budget} runs have a floor above the truth, cases {wrong}")
    return tally

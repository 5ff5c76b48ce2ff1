"""Ways to get a false statement by selection, order and reuse: how often each still works.

Each attack once made certificates wrong far more often than δ (docs/explanation/attacks.md). It plays a run whose truth
is known, asks for a certificate as a user would, and compares its floor with the truth. A run ends in one of four ways:

- `held`: a floor was stated, and it is true;
- `wrong`: a floor was stated, and it is false. At most a share δ of runs may end so;
- `conditional`: the certificate names the condition that this attack violates;
- `refused`: the certificate guarantees nothing, or there is none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from threadpoolctl import threadpool_limits

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler

from . import omissions
from .records import Records, Row, number
from .verdicts import CONDITIONAL, DELTA, HELD, REFUSED, WRONG, Verdict, judged, judged_if

RUNS = 200
OUTCOMES = (HELD, WRONG, CONDITIONAL, REFUSED)
# What the first configuration in order of play has of δ for its own trials.
FIRST_SHARE = 0.2 * DELTA / 2


def pruned(rng: np.random.Generator, confirmations: int = 0) -> Verdict:
    """Two configurations of truth ½; a median pruner stops trials whose first measurements are unlucky."""

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("which", ["a", "b"])
        values: list[float] = []
        for step in range(5):
            values.append(rng.binomial(20, 0.5) / 20)
            trial.report(float(np.mean(values)), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(values))

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=int(rng.integers(2**31))),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
    )
    study.optimize(objective, n_trials=500)
    known = mb.Assumptions(reward_range=(0, 1), samples=100, rows="fresh", delta=DELTA)
    if confirmations:
        for trial in MixBanditSampler(assumptions=known).confirm(study, confirmations):
            study.tell(trial, objective(trial))
    found = mb.certify(study, known)
    return judged([(found.interval[0], 0.5)]) if found.trusted else Verdict(REFUSED)


def reversed_completion(rng: np.random.Generator, configurations: int) -> Verdict:
    """Configurations of truth ½, 20 values each, that finish in the reverse of the order in which they began.

    Whoever looks knows the truth, and asks for a certificate when a configuration's own values have been luckiest.
    """
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    space: dict[str, BaseDistribution] = {"which": IntDistribution(1, configurations)}
    for place in range(configurations):
        for _ in range(20):
            study.enqueue_trial({"which": place + 1})
    begun = [[study.ask(space) for _ in range(20)] for _ in range(configurations)]
    known = mb.Assumptions(reward_range=(0, 1), samples=20, rows="fresh", delta=DELTA)
    floors = []
    for trials in reversed(begun):
        watched = mb.MeanSequence((0, 1), FIRST_SHARE)
        for trial in trials:
            value = rng.binomial(20, 0.5) / 20
            study.tell(trial, value)
            if watched.update([value], samples=20).lower() > 0.5:
                floors.append((mb.certify(study, known).of(trial.params).lower, 0.5))
                break
    return judged(floors) if floors else Verdict(HELD)


def late_misses(rng: np.random.Generator, *, strict: bool) -> Verdict:
    """Clicks are told at once, misses 100 readers later; the certificate is read after 400 readers."""
    rates = np.array([0.5, 0.4, 0.3])
    bandit = mb.CMMUCB(
        3, actions=np.eye(3), sigma=0.5, norm_bound=1.0, delta=DELTA, rng=int(rng.integers(2**31)), strict=strict
    )
    late, floors = [], []
    for reader in range(400):
        choice = bandit.ask()
        if rng.random() < choice.action @ rates:
            bandit.tell(choice, 1.0)
        else:
            late.append(choice)
        if len(late) > 100:
            bandit.tell(late.pop(0), 0.0)
        if reader % 20 == 19:
            found = bandit.certificate()
            if names_arrival(found):
                return Verdict(CONDITIONAL)
            if found.trusted:
                floors.append((found.lower, float(found.action @ rates)))
    return judged(floors) if floors else Verdict(REFUSED)


def names_arrival(found: mb.Certificate) -> bool:
    """Whether a certificate says that it rests on when results arrived."""
    return "arriv" in str(found)


def luckiest_shard_first(rng: np.random.Generator) -> Verdict:
    """A hundred sites report to a centre, the luckiest first; the centre looks after each report."""
    rate, floors = 0.5, []
    shards = [rng.binomial(1, rate, size=50).astype(float) for _ in range(100)]
    centre: Any = mb.MartingaleMixture(1, sigma=0.5, norm_bound=1.0, delta=DELTA)
    for rewards in sorted(shards, key=lambda r: -r.mean()):
        site = mb.MartingaleMixture(1, sigma=0.5, norm_bound=1.0, delta=DELTA)
        centre = centre.merge(site.update(np.ones((len(rewards), 1)), rewards)) or centre
        floors.append((float(centre.lower([[1.0]])[0]), rate))
    return judged_if(str(centre), "when shards were merged did not depend", floors)


def one_pool(rng: np.random.Generator) -> Verdict:
    """Coin-flip labels, one pool of 300 rows; a climb keeps every change of weights that the pool's rows like."""
    features, labels = rng.normal(size=(300, 10)), rng.choice([-1, 1], size=300)
    weights, best, history, floors = np.zeros(10), -1.0, [], []
    for _ in range(150):
        candidate = weights + 0.3 * rng.normal(size=10)
        candidate /= np.linalg.norm(candidate)
        drawn = rng.integers(300, size=100)
        value = float((np.sign(features[drawn] @ candidate) == labels[drawn]).mean())
        history.append(({f"w{i}": float(w) for i, w in enumerate(candidate)}, value))
        if value >= best:
            best, weights = value, candidate
    known = mb.Assumptions(reward_range=(0, 1), samples=100, pool=300, delta=DELTA)
    found = mb.certify(history, known)
    if not found.trusted:
        return Verdict(REFUSED)
    chosen = np.array([found.parameters[f"w{i}"] for i in range(10)])
    floors.append((found.interval[0], float((np.sign(features @ chosen) == labels).mean())))
    floors.append((found.on_new_rows[0], 0.5))
    return judged(floors)


def stratified(rng: np.random.Generator) -> Verdict:
    """400 groups of two classes and coin-flip labels: stratified folds tell a model the counts of the rows left out."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.model_selection import GridSearchCV

    class Balance(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """Predicts the class of a group that its training rows have more of, or less of."""

        def __init__(self, sign: int = 1) -> None:
            self.sign = sign

        def fit(self, X: Any, y: Any) -> Balance:
            self.classes_ = np.unique(y)
            self.balance_ = np.zeros(400)
            np.add.at(self.balance_, X[:, 0], np.where(y % 2 == 1, 1.0, -1.0))
            return self

        def predict(self, X: Any) -> Any:
            return 2 * X[:, 0] + (self.sign * self.balance_[X[:, 0]] > 0)

    groups = np.repeat(np.arange(400), 10)
    labels = 2 * groups + rng.integers(2, size=len(groups))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the least populated class has too few members
        search = GridSearchCV(Balance(), {"sign": [-1, 1]}, cv=5).fit(groups[:, None], labels)
        found = mb.certify(search, reward_range=(0, 1), samples=len(labels) // 5, delta=DELTA)
    return judged([(found.interval[0], 0.5)]) if found.proven else Verdict(REFUSED)


ATTACKS: Mapping[str, Callable[[np.random.Generator], Verdict]] = {
    "a foreign pruner": pruned,
    "a foreign pruner, 20 confirmations": lambda rng: pruned(rng, 20),
    "60 configurations complete in reverse": lambda rng: reversed_completion(rng, 60),
    "200 configurations complete in reverse": lambda rng: reversed_completion(rng, 200),
    "misses arrive late": lambda rng: late_misses(rng, strict=False),
    "misses arrive late, strict": lambda rng: late_misses(rng, strict=True),
    "the luckiest shard reports first": luckiest_shard_first,
    "rows drawn from one pool": one_pool,
    "stratified folds of many classes": stratified,
    "a list of stratified splits": omissions.stratified_in_disguise,
    "only lucky trials end": omissions.only_lucky_trials_end,
    "only lucky rows are kept": omissions.only_lucky_rows_are_kept,
    "misses are cancelled": omissions.misses_are_cancelled,
    "our pages, rows not stated": lambda rng: omissions.as_our_pages_did(rng, states_the_pool=False),
    "our pages, pool stated": lambda rng: omissions.as_our_pages_did(rng, states_the_pool=True),
    "looks around the 500th trial": omissions.looks_around_a_change,
    "searches by other scores": omissions.another_score,
    "looks around the first pruning": omissions.looks_around_the_first_pruning,
    "an inferred space grows": omissions.a_space_that_grows,
}

RUN = ("attack", "seed")
COLUMNS = (*RUN, "outcome", "floor", "truth")


def _place(row: Mapping[str, str]) -> tuple[int, int]:
    return list(ATTACKS).index(row["attack"]), int(row["seed"])


FORM = Records(COLUMNS, RUN, _place, "attacks")


@dataclass(frozen=True)
class Job:
    """One run of an attack."""

    attack: str
    seed: int


def play(job: Job) -> Row:
    """Attack once."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng([list(ATTACKS).index(job.attack), job.seed])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
        try:
            verdict = ATTACKS[job.attack](rng)
        except mb.InvalidInput:
            verdict = Verdict(REFUSED)
    values = (job.attack, str(job.seed), verdict.outcome, number(verdict.floor), number(verdict.truth))
    return dict(zip(COLUMNS, values, strict=True))


def play_all(names: Sequence[str], runs: int, *, out: Path, processes: int = 1) -> None:
    """Play the runs that the file lacks, and print the table."""
    comment = f"mixbandit: {version('mixbandit')}; command: python -m benchmarks.certificates attacks; seeds from 0; "
    comment += f"delta: {DELTA}"
    wanted: dict[tuple[str, ...], Job] = {(name, str(seed)): Job(name, seed) for seed in range(runs) for name in names}
    FORM.resume(out, comment, wanted, play, processes)
    print(summarise(out))


def summarise(path: Path) -> str:
    """Shares of outcomes by attack, in per cent; ± is the standard error of a share."""
    _, rows = FORM.read(path)
    lines = ["| attack | runs | wrong, % | conditional, % | refused, % |", "|---|---|---|---|---|"]
    for name in ATTACKS:
        outcomes = [row["outcome"] for row in rows if row["attack"] == name]
        if outcomes:
            shares = (_share(outcomes.count(outcome), len(outcomes)) for outcome in (WRONG, CONDITIONAL, REFUSED))
            lines.append(f"| {name} | {len(outcomes)} | {' | '.join(shares)} |")
    return "\n".join(lines)


def _share(count: int, runs: int) -> str:
    share = count / runs
    return f"{100 * share:.1f} ± {100 * math.sqrt(share * (1 - share) / runs):.1f}"

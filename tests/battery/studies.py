"""Studies that other tools, hands and crashes have changed: the sampler goes on, and says nothing false."""

import contextlib
import copy
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LEFT_OUT, LOWER, UPPER, MixBanditSampler
from mixbandit.tuning import default_model
from tests.battery.tally import Progress, Tally, silent

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
DISTRIBUTIONS = {"a": IntDistribution(1, 3), "b": CategoricalDistribution(["u", "v"])}
TRIALS = 12
# What takes long is done in one case of so many.
CERTIFIED, IN_A_DATABASE = 5, 400
JUNK: list[Any] = [
    None, 0, -1, 7.5, "", "x", "mixbandit", True, [], [1, 2], {}, {"a": "x"}, {"a": None}, {"a": math.nan},
    {"a": 10**400}, {"b": -1}, {"b": 5}, {"a": 1e300}, {"a": [1]}, {"z": 1.0}, {"": 0},
]  # fmt: skip
VALUES: list[Any] = [math.inf, -math.inf, math.nan, 1.7, -3.0, 1e200, None, [], [0.5, 0.5], 0.0, 1.0, 0.25]
OTHERS: list[Any] = [
    IntDistribution(1, 9), IntDistribution(2, 2), IntDistribution(2**60, 2**60 + 10),
    FloatDistribution(1.0, 3.0), FloatDistribution(0.5, 8.0, log=True), FloatDistribution(1.0, 3.0, step=0.5),
    FloatDistribution(-1e308, 1e308), FloatDistribution(1.0, 1.0 + 1e-15),
    CategoricalDistribution([1, 2, 3]), CategoricalDistribution([1, True, 2]), CategoricalDistribution([1]),
    CategoricalDistribution([math.nan, None, 1.0]), CategoricalDistribution(["ü" * 3000, "", "\0"]),
]  # fmt: skip
ODD_NAMES = [
    "",
    " ",
    "a:b",
    "mixbandit:parameters",
    "x" * 400,
    "ä\n\t",
    "'; DROP TABLE trials; --",
    "params_a",
    "value",
]


def base() -> list[FrozenTrial]:
    """The trials of a study that nobody has touched."""
    sampler = MixBanditSampler(seed=0, n_startup_trials=3, **STATED)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for number in range(TRIALS):
        trial = study.ask(DISTRIBUTIONS)
        if number not in (5, 11):
            study.tell(trial, 0.2 * trial.params["a"] + 0.1 * (trial.params["b"] == "u"))
        elif number == 5:
            study.tell(trial, state=TrialState.FAIL)
    return study.get_trials()


def one(trials: list[FrozenTrial], rng: np.random.Generator) -> FrozenTrial:
    return trials[int(rng.integers(len(trials)))]


def pick(options: Any, rng: np.random.Generator) -> Any:
    return options[int(rng.integers(len(options)))]


def drop(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(1, len(trials) + 1))):
        del trials[int(rng.integers(len(trials)))]


def duplicate(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    trials.insert(int(rng.integers(len(trials) + 1)), copy.deepcopy(one(trials, rng)))


def shuffle(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    trials[:] = [trials[i] for i in rng.permutation(len(trials))]


def our_attribute(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    trial = one(trials, rng)
    name = pick(["mixbandit:parameters", "mixbandit:parameters:0", "mixbandit:parameters:1", "mixbandit:part:x:0"], rng)
    trial.system_attrs = {**trial.system_attrs, name: pick(JUNK, rng)}
    if rng.random() < 0.7:  # finished trials are hardly ever asked
        trial.state, trial.params, trial.distributions = TrialState.RUNNING, {}, {}


def attributes_of_others(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    trial = one(trials, rng)
    trial.user_attrs = {**trial.user_attrs, pick([LOWER, UPPER, LEFT_OUT, "x"], rng): pick(JUNK, rng)}
    trial.system_attrs = {**trial.system_attrs, pick(["fixed_params", "x"], rng): pick(JUNK, rng)}


def without_attributes(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    for trial in trials:
        if rng.random() < 0.5:
            trial.system_attrs, trial.user_attrs = {}, {}


def value(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    new = pick(VALUES, rng)
    one(trials, rng)._values = new if new is None or isinstance(new, list) else [new]


def state(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    one(trials, rng).state = pick(list(TrialState), rng)


def missing_parameter(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    trial, name = one(trials, rng), pick(list(DISTRIBUTIONS), rng)
    trial.params = {n: v for n, v in trial.params.items() if n != name}
    trial.distributions = {n: d for n, d in trial.distributions.items() if n != name}


def other_distribution(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    """Of one trial or of all, with values that belong to it, so that Optuna would write it."""
    name, distribution = pick(list(DISTRIBUTIONS), rng), pick(OTHERS, rng)
    for trial in trials if rng.random() < 0.5 else [one(trials, rng)]:
        low = distribution.choices[0] if isinstance(distribution, CategoricalDistribution) else distribution.low
        trial.params = {**trial.params, name: low}
        trial.distributions = {**trial.distributions, name: distribution}


def outside(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    """As an enqueued trial can be."""
    trial = one(trials, rng)
    if "a" in trial.params:
        trial.params = {**trial.params, "a": pick([0, 4, -(10**9), 2**60], rng)}


def foreign_parameter(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    name = pick(ODD_NAMES, rng)
    for trial in trials if rng.random() < 0.5 else [one(trials, rng)]:
        trial.params = {**trial.params, name: float(rng.random())}
        trial.distributions = {**trial.distributions, name: FloatDistribution(0.0, 1.0)}


def foreign_trial(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    kind = pick(list(TrialState), rng)
    number = float(rng.random()) if kind == TrialState.COMPLETE else None
    trials.append(optuna.create_trial(state=kind, value=number, params={}, distributions={}))


def constraint(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    for trial in trials:
        if rng.random() < 0.5:
            with_one = {"constraints:c": float(rng.normal())}
            trial.system_attrs = {**trial.system_attrs, **(with_one if rng.random() < 0.5 else {"constraints": [1.0]})}


def nothing_usable(trials: list[FrozenTrial], rng: np.random.Generator) -> None:
    """Every trial failed, was pruned, or ended with an infinite value."""
    for trial in trials:
        trial.state = pick((TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE), rng)
        trial.values = [math.inf] if trial.state == TrialState.COMPLETE else None


MUTATIONS: list[Callable[[list[FrozenTrial], np.random.Generator], None]] = [
    drop, duplicate, shuffle, our_attribute, attributes_of_others, without_attributes, value, value, state,
    missing_parameter, other_distribution, outside, foreign_parameter, foreign_trial, constraint, nothing_usable,
]  # fmt: skip


def mutated(trials: list[FrozenTrial], rng: np.random.Generator) -> tuple[list[FrozenTrial], str]:
    """A copy, with one to three mutations, and their names."""
    found, names = copy.deepcopy(trials), []
    for _ in range(int(rng.integers(1, 4))):
        mutate = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        if found:
            mutate(found, rng)
            names.append(mutate.__name__)
    return found, "+".join(names)


def opened(trials: list[FrozenTrial], sampler: optuna.samplers.BaseSampler, database: bool) -> optuna.Study:
    """A study of these trials, whatever Optuna would think of them."""
    storage = optuna.storages.RDBStorage("sqlite:///:memory:") if database else optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, direction="maximize", sampler=sampler)
    if database:
        for trial in trials:
            with contextlib.suppress(Exception):  # what a database cannot hold is not in it
                study._storage.create_new_trial(study._study_id, template_trial=trial)
        return study
    for number, trial in enumerate(trials):
        blank = storage.create_new_trial(study._study_id)
        trial.number, trial._trial_id = number, blank
        trial.datetime_start = trial.datetime_start or storage.get_trial(blank).datetime_start
        storage._studies[study._study_id].trials[number] = trial
    return study


def go_on(study: optuna.Study) -> FrozenTrial:
    """What a study does next: one trial asked and told, another asked. The first of them, as it ended."""
    told = study.tell(study.ask(DISTRIBUTIONS), 0.5)
    study.ask(DISTRIBUTIONS)
    return study.get_trials(deepcopy=False)[told.number]


class Plain(optuna.samplers.RandomSampler):
    """Random values for what all trials share: what any sampler of Optuna's asks of a study."""

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        shared = optuna.search_space.IntersectionSearchSpace().calculate(study)
        return {name: distribution for name, distribution in shared.items() if not distribution.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {name: self.sample_independent(study, trial, name, d) for name, d in search_space.items()}


def refuses(trials: list[FrozenTrial], database: bool) -> bool:
    """Whether Optuna cannot go on with such a study either, without our sampler."""
    try:
        go_on(opened(trials, Plain(seed=0), database))
    except Exception:
        return True
    return False


def contradicted(study: optuna.Study) -> bool:
    """Whether a completed trial has a value that cannot be, as stated."""
    values = [t.values[0] for t in study.get_trials(states=(TrialState.COMPLETE,)) if t.values and len(t.values) == 1]
    return any(not -1e-6 <= v <= 1.0 + 1e-6 for v in values if not math.isnan(v))


@contextlib.contextmanager
def small_and_silent() -> Iterator[None]:
    """Few features, so that cases are quick; warnings and logs are not what is tested."""
    before, logger = default_model.FEATURES, logging.getLogger("mixbandit")
    level = logger.level
    default_model.FEATURES = 8
    logger.setLevel(logging.CRITICAL)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        default_model.FEATURES = before
        logger.setLevel(level)


def attempt(trials: list[FrozenTrial], case: int, rng: np.random.Generator) -> str:
    """Go on with a mutated study; the outcome in a word, or an AssertionError."""
    changed, _ = mutated(trials, rng)
    kept, database = copy.deepcopy(changed), case % IN_A_DATABASE == 1
    options: dict[str, Any] = STATED if rng.random() < 0.8 else {}
    sampler = MixBanditSampler(seed=case, n_startup_trials=int(rng.integers(3)) * 6, **options)
    study = opened(changed, sampler, database)
    try:
        told = go_on(study)
    except Exception:
        if refuses(kept, database):
            return "refused by Optuna itself"
        raise
    assert told.state == TrialState.COMPLETE, "the trial did not end as it was told"
    # A trial that was waiting may have an interval from before.
    claims = LOWER in told.user_attrs and told.number >= len(kept)
    assert not (claims and contradicted(study)), "an interval although values contradict the range"
    if case % CERTIFIED or not options:
        return "went on"
    try:
        certificate = sampler.certificate(study)
    except mb.MixbanditError as error:
        return f"went on, certificate refused: {type(error).__name__}"
    assert not (certificate.trusted and contradicted(study)), "trusted although values contradict the range"
    return f"went on, certificate {'trusted' if certificate.trusted else 'not trusted'}"


def run(budget: int, seed: int, progress: Progress = silent) -> Tally:
    """Mutate a study `budget` times."""
    tally = Tally("studies")
    with small_and_silent():
        trials = base()
        for case in range(budget):
            rng = np.random.default_rng([seed, case])
            try:
                tally.note(attempt(trials, case, rng))
            except Exception as error:
                names = mutated(trials, np.random.default_rng([seed, case]))[1]
                tally.fail(f"seed {seed}, case {case} ({names}): {type(error).__name__}: {error}"[:500])
            progress(case + 1)
    return tally

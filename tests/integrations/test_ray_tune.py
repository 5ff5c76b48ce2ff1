"""Ray Tune with our sampler, by `OptunaSearch(sampler=…)`, on a real local Ray."""

import itertools
from collections import Counter

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LOWER, MixBanditSampler

pytestmark = pytest.mark.heavy
KNOWN = mb.Assumptions(reward_range=(0.0, 1.0), samples=100, rows="fresh")
TRIALS, TOGETHER = 16, 2


class Watching(MixBanditSampler):
    """Remembers how many trials were pending at each choice."""

    pending = []  # noqa: RUF012 - of the class, because Ray copies samplers

    def sample_relative(self, study, trial, search_space):
        if search_space:
            self.pending.append(len(self.tuner(study).pending))
        return super().sample_relative(study, trial, search_space)


def train(config):
    """Fails in a part of the space."""
    import time

    time.sleep(0.2)
    if config["x"] < 0.15:
        raise RuntimeError("diverged")
    off = 0.05 if config["inner"]["kind"] == "b" else 0.0
    return {"accuracy": round(0.95 - off - 0.5 * (config["x"] - 0.7) ** 2, 2)}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A finished experiment: Ray's results, and the study that it left in a journal."""
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch

    folder = tmp_path_factory.mktemp("ray")
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "journal")))
    sampler = Watching(assumptions=KNOWN, seed=0, n_startup_trials=6)
    search = OptunaSearch(metric="accuracy", mode="max", sampler=sampler, storage=storage, study_name="tune")
    ray.init(num_cpus=TOGETHER, include_dashboard=False, log_to_driver=False)
    try:
        tuner = tune.Tuner(
            train,
            param_space={"x": tune.uniform(0.0, 1.0), "inner": {"kind": tune.choice(["a", "b"])}, "epochs": 3},
            tune_config=tune.TuneConfig(
                search_alg=search, num_samples=TRIALS, max_concurrent_trials=TOGETHER, reuse_actors=True
            ),
            run_config=tune.RunConfig(storage_path=str(folder), name="experiment", verbose=0),
        )
        results = tuner.fit()
    finally:
        ray.shutdown()
    return results, optuna.load_study(study_name="tune", storage=storage)


def test_every_trial_of_ray_is_one_of_the_study(played):
    results, study = played
    states = Counter(trial.state for trial in study.trials)
    assert states == {TrialState.COMPLETE: TRIALS - results.num_errors, TrialState.FAIL: results.num_errors}
    assert results.num_errors >= 1
    of_ray = {(r.config["x"], r.config["inner"]["kind"], r.metrics["accuracy"]) for r in results if r.error is None}
    complete = study.get_trials(states=(TrialState.COMPLETE,))
    assert of_ray == {(t.params["x"], t.params["inner/kind"], t.value) for t in complete}
    assert sum(LOWER in t.user_attrs for t in complete) >= len(complete) - TOGETHER


def test_trials_that_run_at_the_same_time_are_pending_and_differ(played):
    _, study = played
    assert max(Watching.pending) == TOGETHER - 1
    for one, other in itertools.combinations(study.trials, 2):
        together = max(one.datetime_start, other.datetime_start) < min(one.datetime_complete, other.datetime_complete)
        assert not (together and one.params == other.params)


def test_the_study_has_a_certificate(played):
    _, study = played
    found = mb.certify(study, KNOWN)
    assert found.t == len(study.get_trials(states=(TrialState.COMPLETE,)))
    assert found.left_out["FAIL"] == TRIALS - found.t
    assert found.lower > 0.7
    assert MixBanditSampler(assumptions=KNOWN).certificate(study).to_json() == found.to_json()

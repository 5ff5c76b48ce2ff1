"""The pruner for repeated measurements: what it prunes, what it says, and what is certified after it."""

import gc
import logging
import pickle
import weakref

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import LEFT_OUT, LOWER, CertifiedPruner, MixBanditSampler
from mixbandit.tuning.selection import PRUNED

optuna.logging.set_verbosity(optuna.logging.ERROR)
STEPS = 30


def make(pruner, direction="maximize", storage=None, sampler=None):
    sampler = sampler or optuna.samplers.RandomSampler(seed=0)
    return optuna.create_study(direction=direction, pruner=pruner, storage=storage, sampler=sampler)


def play(study, values, *, look=lambda step: True):
    """Run a trial that reports these values; after how many steps it was pruned, None if it was not."""
    trial = study.ask()
    for i, value in enumerate(values):
        trial.report(value, i)
        if look(i) and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return i + 1
    study.tell(trial, float(np.nanmean(values)))
    return None


def noisy(seed, worth, scale=0.05):
    return worth + scale * np.random.default_rng(seed).normal(size=STEPS)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("known", [{}, {"sigma": 0.05}, {"reward_range": (-1.0, 2.0), "samples": 1000}])
def test_a_worse_trial_is_pruned_and_says_why(known, direction):
    study, sign = make(CertifiedPruner(**known), direction), 1.0 if direction == "maximize" else -1.0
    assert play(study, noisy(0, 0.5)) is None
    assert play(study, noisy(1, 0.5 + 0.1 * sign)) is None
    after = play(study, noisy(2, 0.5))
    assert after is not None
    assert 2 <= after <= 15
    said = study.trials[2].user_attrs[PRUNED]
    assert said.startswith("worse than trial 1, which led (p = 0.0")
    assert f"after {after} steps" in said
    assert play(study, noisy(3, 0.5 + 0.1 * sign)) is None
    assert all(PRUNED not in study.trials[i].user_attrs for i in (0, 1, 3))


def test_bets_on_the_range_alone_find_large_differences():
    study = make(CertifiedPruner(reward_range=(0.0, 1.0)))
    play(study, np.full(STEPS, 1.0))
    assert play(study, np.full(STEPS, 0.2)) is not None
    assert play(study, np.full(STEPS, 0.98)) is None


@pytest.mark.parametrize("every", [1, 2, 7])
def test_how_often_it_looks_does_not_matter(every):
    """What is known after a step does not depend on earlier looks; it is only noticed later."""
    values, exact = noisy(2, 0.45), []
    for often in (1, every):
        study = make(CertifiedPruner())
        play(study, noisy(0, 0.5))
        exact.append(play(study, values, look=lambda step, often=often: step % often == often - 1))
    assert exact[1] == every * -(-exact[0] // every)


def test_another_process_and_every_storage_say_the_same(tmp_path):
    journal = optuna.storages.journal.JournalFileBackend(f"{tmp_path}/journal.log")
    storages = [None, f"sqlite:///{tmp_path}/study.db", optuna.storages.JournalStorage(journal)]
    said = []
    for storage in storages:
        study = make(CertifiedPruner(), storage=storage)
        play(study, noisy(0, 0.5))
        assert play(study, noisy(1, 0.45)) is not None
        said.append(study.trials[1].user_attrs[PRUNED])
        # A trial that other processes go on with, from what is stored.
        study = make(CertifiedPruner(), storage=storage)
        play(study, noisy(0, 0.5))
        trial = study.ask()
        for i in range(STEPS):
            study.pruner = pickle.loads(pickle.dumps(study.pruner))
            trial.report(noisy(1, 0.45)[i], i)
            if optuna.Trial(study, trial._trial_id).should_prune():
                break
        said.append(study.trials[1].user_attrs[PRUNED])
    assert len(set(said)) == 1


def test_a_trial_is_compared_with_those_that_had_ended_when_it_began():
    study = make(CertifiedPruner())
    late = study.ask()
    for i, value in enumerate(noisy(1, 0.4)):
        late.report(value, i)
    play(study, noisy(0, 0.5))
    assert not late.should_prune()
    study.tell(late, 0.4)
    assert play(study, noisy(2, 0.4)) is not None


def test_trials_that_failed_or_break_constraints_are_no_opponents():
    study = make(CertifiedPruner())
    failed = study.ask()
    for i, value in enumerate(noisy(0, 0.9)):
        failed.report(value, i)
    study.tell(failed, state=TrialState.FAIL)
    assert play(study, noisy(1, 0.5)) is None
    infeasible = study.ask()
    infeasible.set_constraint("memory", 1.0)
    for i, value in enumerate(noisy(0, 0.9)):
        infeasible.report(value, i)
    study.tell(infeasible, 0.9)
    assert play(study, noisy(2, 0.5)) is None
    # A pruned one is, as far as it went.
    assert play(study, noisy(3, 0.3)) is not None
    assert study.trials[-1].state == TrialState.PRUNED
    assert play(study, noisy(4, 0.5)) is None


def objective(trial, worth, wrong=()):
    """Accuracies on 100 rows, one per step."""
    rng = np.random.default_rng([9, trial.number])
    values = []
    for step in range(10):
        values.append(7.0 if trial.number in wrong and step == 0 else rng.binomial(100, worth(trial)) / 100)
        trial.report(values[-1], step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(np.mean(values))


def by_x(trial):
    return 0.9 - 0.6 * (trial.suggest_float("x", 0.0, 1.0) - 0.6) ** 2


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_value_outside_the_range_ends_its_trial_and_not_the_study(n_jobs, caplog):
    study = make(CertifiedPruner(reward_range=(0.0, 1.0), samples=100))
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        study.optimize(lambda trial: objective(trial, by_x, wrong=(2, 5)), n_trials=8, n_jobs=n_jobs)
    assert len(study.trials) == 8
    for number in (2, 5):
        trial = study.trials[number]
        assert trial.state == TrialState.PRUNED
        assert trial.user_attrs[LEFT_OUT] == "with a value outside reward_range, 7 at step 0"
        assert len(trial.intermediate_values) == 1
    assert sum("is pruned, with a value outside" in record.message for record in caplog.records) == 2


@pytest.mark.parametrize("known", [{}, {"sigma": 0.05}])
def test_values_that_are_not_finite(known, caplog):
    """If nothing is stated they are left out; with a level they contradict it."""
    study = make(CertifiedPruner(**known))
    play(study, noisy(0, 0.5))
    values = noisy(1, 0.5)
    values[4] = float("nan")
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        assert play(study, values) == (5 if known else None)
    assert len(caplog.records) == 1
    # Such a step of an earlier trial is no opponent's.
    assert play(study, noisy(2, 0.5)) is None


def test_after_a_pruning_certificates_go_by_confirmations_alone(tmp_path):
    sampler = MixBanditSampler(seed=0, n_startup_trials=5, reward_range=(0.0, 1.0), samples=1000, rows="fresh")
    study = make(CertifiedPruner(), sampler=sampler)
    study.optimize(lambda trial: objective(trial, by_x), n_trials=25)
    pruned = [trial.number for trial in study.trials if trial.state == TrialState.PRUNED]
    assert pruned
    assert any(LOWER in trial.user_attrs for trial in study.trials[: pruned[0]])
    assert not any(LOWER in trial.user_attrs for trial in study.trials[pruned[0] + 1 :])
    tables = [study, study.trials_dataframe()]
    for table in tables:
        with pytest.raises(mb.InvalidInput, match="confirm"):
            mb.certify(table, reward_range=(0, 1), samples=1000, rows="fresh")
    with pytest.raises(mb.InvalidInput, match="only confirmations can be certified"):
        sampler.certificate(study)
    # Confirmations are not pruned, however poor they are.
    for trial in sampler.confirm(study, 4):
        for step in range(10):
            trial.report(0.0, step)
            assert not trial.should_prune()
        study.tell(trial, np.random.default_rng(trial.number).binomial(1000, by_x(trial)) / 1000)
    found = sampler.certificate(study)
    assert found.t == 4
    assert found.left_out["not confirmed, in a run that pruned unlucky trials"] == 25 - len(pruned)
    frame = study.trials_dataframe()
    frame.to_csv(tmp_path / "study.csv")
    for table in (study, frame, tmp_path / "study.csv"):
        again = mb.certify(table, reward_range=(0, 1), samples=1000, rows="fresh")
        assert (again.t, again.interval) == (found.t, pytest.approx(found.interval, abs=1e-12))
    tuner = mb.Tuner(mb.Space({"x": mb.Float(0.0, 1.0)}), reward_range=(0, 1), samples=1000, rows="fresh")
    tuner.learn(study)
    assert tuner.told == 4


def test_a_trial_that_returns_its_mean_instead_of_stopping_is_no_longer_like_others():
    """As in the example of Optuna's Wilcoxon pruner."""
    study = make(CertifiedPruner())

    def returning(trial):
        trial.suggest_float("x", 0.0, 1.0)
        values = []
        for i, value in enumerate(noisy(trial.number, 0.5 if trial.number < 2 else 0.3)):
            values.append(value)
            trial.report(value, i)
            if trial.should_prune():
                break
        return float(np.mean(values))

    study.optimize(returning, n_trials=3)
    assert PRUNED in study.trials[2].user_attrs
    frame = study.trials_dataframe()
    for table in (study, frame, frame[frame["user_attrs_mixbandit_pruned"].isna()]):
        with pytest.raises(mb.InvalidInput, match="only confirmations can be certified"):
            mb.certify(table, reward_range=(0, 1), samples=1000, rows="fresh")


def test_a_table_of_completed_trials_alone_still_knows():
    study = make(CertifiedPruner())
    study.optimize(lambda trial: objective(trial, by_x), n_trials=20)
    frame = study.trials_dataframe()
    assert (frame["state"] == "PRUNED").any()
    with pytest.raises(mb.InvalidInput, match="only confirmations"):
        mb.certify(frame[frame["state"] == "COMPLETE"], reward_range=(0, 1), samples=1000, rows="fresh")


@pytest.mark.parametrize("known", [{"reward_range": (0.0, 1.0), "samples": 100}, {"sigma": 0.05}])
def test_a_trial_that_was_ended_by_a_value_outside_the_range_refutes_it(known):
    """Otherwise those without such a value would be certified as if nothing had happened."""
    rows = {"rows": "fresh"} if "samples" in known else {}
    sampler = MixBanditSampler(seed=0, **{**known, **rows, "reward_range": (0.0, 1.0)})
    study = make(CertifiedPruner(**known), sampler=sampler)

    def sometimes(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(4):
            trial.report(float("nan") if trial.number % 4 == 2 and step == 2 else 0.5 + 0.1 * x, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 0.5 + 0.1 * x

    study.optimize(sometimes, n_trials=8)
    for trial in study.trials[3:]:
        assert LOWER not in trial.user_attrs
    with pytest.raises(mb.InvalidInput, match="only confirmations"):
        mb.certify(study, sigma=0.05, reward_range=(0, 1))
    for trial in sampler.confirm(study, 2):
        study.tell(trial, 0.5 + 0.1 * trial.suggest_float("x", 0.0, 1.0))
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = sampler.certificate(study)
    assert not found.trusted


def test_a_clone_of_a_failed_trial_has_the_opponents_of_that_trial():
    study = make(CertifiedPruner())
    failed = study.ask()
    for i, value in enumerate(noisy(1, 0.4)):
        failed.report(value, i)
    study.tell(failed, state=TrialState.FAIL)
    play(study, noisy(0, 0.5))
    first = study.trials[0]
    clone = optuna.trial.create_trial(
        state=TrialState.WAITING, intermediate_values=first.intermediate_values, system_attrs={"failed_trial": 0}
    )
    study.add_trial(clone)
    trial = study.ask()
    assert trial.number == 2
    assert not trial.should_prune()


def test_a_trial_that_has_ended_and_values_beyond_all_limits_raise_nothing():
    study = make(CertifiedPruner())
    play(study, [1e308, *np.ones(STEPS)])
    trial = study.ask()
    with np.errstate(all="raise"):
        for i, value in enumerate([-1e308, *np.full(20, 1e-300)]):
            trial.report(value, i)
            pruned = trial.should_prune()
    assert pruned
    study.tell(trial, state=TrialState.FAIL)
    assert pickle.loads(pickle.dumps(study.pruner)).prune(study, study.trials[1])


def test_a_pruner_does_not_keep_studies_alive():
    pruner = CertifiedPruner()
    storage = optuna.storages.InMemoryStorage()
    gone = weakref.ref(storage)
    study = make(pruner, storage=storage)
    play(study, noisy(0, 0.5))
    play(study, noisy(1, 0.5))
    del study, storage
    gc.collect()
    assert gone() is None


def test_pruning_for_another_reason_leaves_certificates_as_they_are():
    study = make(optuna.pruners.NopPruner())
    study.optimize(lambda trial: objective(trial, by_x), n_trials=6)
    study.tell(study.ask(), state=TrialState.PRUNED)
    assert mb.certify(study, reward_range=(0, 1), samples=1000, rows="fresh").t == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [({"delta": 0.0}, "delta"), ({"delta": 0.95}, "delta"), ({"reward_range": (1, 0)}, "low < high"),
     ({"samples": 3}, "samples needs reward_range"), ({"sigma": 0.0}, "sigma"), ({"delta": "x"}, "delta"),
     ({"reward_range": (0, 1), "samples": 2, "sigma": 1.0}, "not both"),
     ({"reward_range": (0, 1), "samples": 0}, "samples")],
)  # fmt: skip
def test_bad_settings_are_refused(options, message):
    with pytest.raises(mb.InvalidInput, match=message):
        CertifiedPruner(**options)

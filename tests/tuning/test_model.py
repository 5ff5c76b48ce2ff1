"""The model of a function: a kernel, features beyond so many trials, or what the user says."""

import numpy as np
import optuna
import pytest

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.tuning import assumptions, default_model, modelling
from mixbandit.tuning.default_model import default_kernel, default_suspects, in_words
from mixbandit.tuning.evidence import SHARES
from tests.helpers.runs import SPACE, noisy

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}


@pytest.fixture
def few(monkeypatch):
    for module in (assumptions, default_model, modelling):
        monkeypatch.setattr(module, "MOST_ROWS", 20)
    return 20


def history(n, seed=0):
    rng = np.random.default_rng(seed)
    return [(p, noisy(p, rng)) for p in SPACE.sample(n, rng=seed)]


def test_the_default_is_a_kernel_that_a_certificate_describes():
    found = mb.certify(history(30), space=SPACE, **STATED)
    assert "change smoothly: no jump inside a parameter's range" in found.model
    assert "would go unnoticed" in found.details()
    assert mb.Tuner(SPACE, **STATED).moment.model.kernel == default_kernel(SPACE)


def test_many_trials_are_certified_with_features_and_that_is_said(few):
    one, more = (mb.certify(history(n), space=SPACE, **STATED) for n in (few, few + 1))
    assert "random features" not in one.model
    assert f"Beyond {few} trials, 100 random features stand in for it" in more.details()


def test_a_tuner_turns_to_features_when_there_are_too_many_trials(few, tmp_path):
    tuner, rng = mb.Tuner(SPACE, **STATED, rng=0), np.random.default_rng(0)
    values = []
    for _ in range(few + 4):
        trial = tuner.ask()
        values.append((trial.parameters, noisy(trial.parameters, rng)))
        tuner.tell(trial, values[-1][1])
        if tuner.told == few - 2:
            tuner.save(tmp_path / "early")
    assert tuner.moment.model.kernel is None
    assert tuner.told == few + 4
    assert "stand in for it" in tuner.certificate().details()
    whole = mb.certify(values, space=SPACE, **STATED)
    assert "stand in for it" in whole.model
    assert tuner.interval(whole.action) == pytest.approx(whole.interval)
    resumed = mb.Tuner.load(tmp_path / "early")  # and it still knows where to change
    for parameters, value in values[resumed.told :]:
        resumed.tell(resumed.adopt(parameters), value)
    assert resumed.interval(whole.action) == pytest.approx(whole.interval)
    tuner.save(tmp_path / "late")
    assert mb.Tuner.load(tmp_path / "late").ask().parameters == tuner.ask().parameters


def test_a_sampler_does_so_too(few):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rng = np.random.default_rng(0)
    sampler = MixBanditSampler(**STATED, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: rng.binomial(100, 0.8 - trial.suggest_float("x", 0, 1) ** 2 / 3) / 100, few + 3)
    assert sampler.tuner(study).moment.model.kernel is None
    assert sampler.certificate(study).t == few + 3


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (mb.Matern(1.5, 0.5), "expected values in the function space of Matern"),
        ([mb.RBF(0.4), mb.Matern(1.5, 0.5)], "of one of 2 kernels"),
        (mb.RandomFourier(SPACE.dim, 30, 0.5, rng=0), "expected values linear in the features"),
    ],
    ids=["kernel", "kernels", "features"],
)
def test_users_have_the_last_word(model, words, tmp_path):
    found = mb.certify(history(25), space=SPACE, features=model, **STATED)
    assert words in found.model
    tuner = mb.Tuner(SPACE, **STATED, features=model, rng=0).learn(history(25))
    assert tuner.certificate().lower == pytest.approx(found.lower, abs=1e-6)
    tuner.save(tmp_path / "t")
    assert mb.Tuner.load(tmp_path / "t").ask().parameters == tuner.ask().parameters


def test_a_kernel_for_rows_of_another_length_is_refused():
    with pytest.raises(mb.InvalidInput, match="length"):
        mb.certify(history(5), space=SPACE, features=mb.RBF([1.0, 2.0]), **STATED)


def test_a_cliff_is_refuted_and_a_smooth_function_is_not():
    space, rng = mb.Space({"x": mb.Float(0.0, 1.0)}), np.random.default_rng(0)
    xs = rng.uniform(size=100)
    smooth = [({"x": x}, rng.binomial(100, 0.8 - 0.4 * (x - 0.4) ** 2) / 100) for x in xs]
    cliff = [({"x": x}, rng.binomial(100, 0.7 + 0.25 * x if x < 0.7 else 0.1) / 100) for x in xs]
    assert mb.certify(smooth, space=space, **STATED).trusted
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not mb.certify(cliff, space=space, **STATED).trusted
    tuner = mb.Tuner(space, **STATED, rng=0)
    tuner.learn(cliff)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        assert not tuner.interval({"x": 0.5}).trusted
    assert not tuner.recommend().trusted


def test_suspects_jump_along_numbers_not_along_categories():
    one, some = mb.Space({"x": mb.Float(0, 1)}), SPACE
    assert len(default_suspects(one)) == 4
    assert len(default_suspects(some)) in (4, 5)
    wide = mb.Space({"c": mb.Categorical([str(i) for i in range(300)]), "x": mb.Float(0, 1), "y": mb.Float(0, 1)})
    assert len(str(default_suspects(wide))) < 2000


def test_words_know_features_that_only_look_alike():
    other = mb.Tuner(SPACE, **STATED, features=mb.RandomFourier(SPACE.dim, 101, 0.3, rng=1)).moment.model
    assert in_words(other, SPACE) == "expected values linear in the features"


@pytest.mark.parametrize("stated", [{"samples": 100}, {"sigma": 0.1}, {"noise": "gaussian"}, {"samples": 1}])
def test_all_sequences_of_a_growing_run_share_one_budget(stated, monkeypatch):
    """Somebody who looks at 500, 1,000, 2,000 and more trials spends the model's part of δ once."""
    monkeypatch.setattr(modelling, "_MOST_LEARNT", 5)
    monkeypatch.setattr(modelling, "_MOST_BOUNDED", 10)
    monkeypatch.setattr(modelling, "MOST_ROWS", 20)
    monkeypatch.setattr(assumptions, "MOST_ROWS", 20)
    known, space = mb.Assumptions(reward_range=(0.0, 1.0), **stated), mb.Space({"x": mb.Float(0.0, 1.0)})
    spent = []
    for n in (1, 5, 6, 10, 11, 20, 21, 30):
        rows = np.linspace(0.0, 1.0, n)[:, None]
        found = modelling.certifying(known, space, None, None, rows, np.zeros(n), ordered=True)
        kind = type(found.rule).__name__, type(found.model).__name__, str(getattr(found.rule, "mixture", ""))
        spent.append((kind, found.rule.delta))
    by_kind = dict(spent)
    assert len(by_kind) == len(set(spent)) == (2 if "noise" in stated else 3)  # one share each, however often used
    assert sum(by_kind.values()) <= SHARES.model * known.delta * (1 + 1e-12)
    assert spent[0][1] == pytest.approx(0.9 * SHARES.model * known.delta)

"""Pictures of a study's certificate: what they show, and what they refuse."""

import json
import math
import sys

import numpy as np
import optuna
import pytest

import mixbandit as mb
from mixbandit.integrations.optuna import CertifiedPruner, MixBanditSampler, plot_certificate, plot_worths
from mixbandit.tuning.moments import floors_over_time
from tests.integrations.studies import STATED, make, simple

HOSTILE = "<b>x</b> & $a$ `|\n\ud800"


def noisy(trial, rng):
    return rng.binomial(100, simple(trial)) / 100


def played(n=16, direction="maximize", confirmations=4, **options):
    study, rng = make(direction, **{**STATED, **options}), np.random.default_rng(0)

    def objective(trial):
        value = noisy(trial, rng)
        if trial.number == 5:
            raise optuna.TrialPruned
        if trial.number == 7:
            raise RuntimeError
        return value if direction == "maximize" else 1.0 - value

    study.optimize(objective, n_trials=n, catch=RuntimeError)
    for trial in study.sampler.confirm(study, confirmations):
        study.tell(trial, objective(trial))
    return study


def trace(figure, name):
    (found,) = [trace for trace in figure.data if trace.name.startswith(name)]
    return found


def title(figure):
    return figure.layout.title.text.partition("<br>")[0]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_picture_shows_every_trial_as_what_it_is(direction):
    study = played(direction=direction)
    figure, certificate = plot_certificate(study), study.sampler.certificate(study)
    values = {trial.number: trial.value for trial in study.trials if trial.value is not None}
    dots, confirmed = trace(figure, "Values"), trace(figure, "Confirmations")
    assert dict(zip((*dots.x, *confirmed.x), (*dots.y, *confirmed.y), strict=True)) == values
    assert list(confirmed.x) == [t.number for t in study.trials if "mixbandit_nomination" in t.user_attrs]
    assert (list(trace(figure, "pruned").x), list(trace(figure, "failed").x)) == ([5], [7])
    # The best so far, the guaranteed value over time, and the interval now.
    best = trace(figure, "Best value so far")
    ahead = max if direction == "maximize" else min
    assert best.y[-1] == ahead(values.values())
    assert [best.y[0], best.x[0]] == [values[0], 0]
    at_the_time = trace(figure, "Guaranteed at the time")
    floors = floors_over_time(certificate)
    assert list(at_the_time.y) == pytest.approx([floor.guaranteed for floor in floors])
    assert list(at_the_time.x) == [sorted(values)[floor.trials - 1] for floor in floors]
    now = trace(figure, "Expected value of the recommended one")
    ends = now.y[0] - now.error_y.array[0], now.y[0] + now.error_y.array[0]
    assert ends == pytest.approx(certificate.interval)
    (line,) = figure.layout.shapes
    assert line.y0 == line.y1 == certificate.best_possible
    # The verdict in a line.
    end, word = (
        (certificate.interval[0], "at least") if direction == "maximize" else (certificate.interval[1], "at most")
    )
    assert title(figure).startswith(f"Expected value {word} {end:.4g}; nothing is ")
    assert f"by more than {certificate.gap:.4g}" in title(figure)
    assert f"x = {study.trials[2].params['x']:.6g}" in dots.hovertext[2]
    json.dumps(json.loads(figure.to_json()), allow_nan=False)
    assert "bdata" not in figure.to_json()  # which older versions of plotly.js, as in dashboards, do not read


def test_assumptions_come_from_the_call_or_the_sampler_or_a_certificate():
    study = played()
    mine, known = plot_certificate(study), mb.Assumptions(**STATED)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    for options in (STATED, {"assumptions": known}, {"certificate": mb.certify(study, known)}):
        assert plot_certificate(study, **options).to_json() == mine.to_json()
    for draw in (plot_certificate, plot_worths):
        with pytest.raises(mb.AssumptionsMissing, match="state reward_range"):
            draw(study)
        with pytest.raises(mb.InvalidInput, match="already"):
            draw(study, certificate=mb.certify(study, known), samples=3, reward_range=(0, 1))
        with pytest.raises(mb.InvalidInput, match="certificate must be a StudyCertificate"):
            draw(study, certificate=3)
        with pytest.raises(mb.InvalidInput, match="made by hand"):
            draw(study, certificate=mb.tuning.StudyCertificate({"x": 0.5}, 0.1, 0.2, 0.3, 0.2, "range"))
        with pytest.raises(mb.InvalidInput, match="not about this study"):
            draw(played(8), certificate=mb.certify(study, known))
        with pytest.raises(mb.InvalidInput, match="must be an Optuna study"):
            draw([1, 2], **STATED)
        with pytest.raises(mb.InvalidInput, match="target_name"):
            draw(study, target_name=3, **STATED)
        with pytest.raises(mb.InvalidInput, match="no completed trial"):
            draw(optuna.create_study(), **STATED)
        with pytest.raises(mb.InvalidInput, match="single objective"):
            draw(optuna.create_study(directions=["maximize", "minimize"]), **STATED)
    with pytest.raises(mb.InvalidInput, match="n must be"):
        plot_worths(study, n=0, **STATED)
    assert "loss" in plot_certificate(study, target_name="loss", **STATED).layout.yaxis.title.text
    narrow = {"x": mb.Float(-0.1, 0.1), "y": mb.Float(0.01, 1.0, log=True)}
    with pytest.raises(mb.InvalidInput, match="x must lie between"):
        plot_certificate(study, space=narrow, **STATED)


def test_an_older_certificate_shows_what_came_since():
    study = played()
    before = study.sampler.certificate(study)
    # A trial that began earlier may end later.
    early = study.ask()
    study.optimize(lambda trial: noisy(trial, np.random.default_rng(1)), n_trials=2)
    study.tell(early, noisy(early, np.random.default_rng(2)))
    figure = plot_certificate(study, certificate=before)
    assert list(trace(figure, "Since the certificate").x) == [trial.number for trial in study.trials[-3:]]
    assert len(trace(figure, "Values").x) + len(trace(figure, "Confirmations").x) == before.t


def test_refuted_assumptions_are_said_in_red():
    study, rng = make(n_startup_trials=0, sigma=1e-3, reward_range=(0.0, 1.0)), np.random.default_rng(0)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(lambda t: 0.0 * t.suggest_float("x", 0.0, 1.0) + rng.choice([0.2, 0.8]), n_trials=12)
    for draw in (plot_certificate, plot_worths):
        with pytest.warns(mb.AssumptionsRefutedWarning):
            figure = draw(study)
        assert title(figure) == "The values refute the stated assumptions: nothing here is guaranteed"
        assert figure.layout.title.font.color == "#B00020"
    with pytest.warns(mb.AssumptionsRefutedWarning):
        figure = plot_certificate(study)
    assert trace(figure, "Not guaranteed: refuted").x[-1] == 11
    assert figure.layout.shapes == ()
    assert "(not guaranteed)" in trace(figure, "Expected value of the recommended one").name


@pytest.mark.parametrize("value", [1.7, -math.inf])
def test_values_outside_the_range_are_shown_apart(value):
    study = make(**STATED)
    study.optimize(simple, n_trials=6)
    trial = study.ask()
    simple(trial)
    study.tell(trial, value)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        study.optimize(simple, n_trials=6)
    with pytest.warns(mb.AssumptionsRefutedWarning):
        figure = plot_certificate(study)
    outside = trace(figure, "left out")
    assert list(outside.x) == [6]
    assert f"{value:g}" in outside.hovertext[0]
    assert 6 not in trace(figure, "Values").x
    # What was guaranteed before it came is drawn as such.
    assert max(trace(figure, "Guaranteed at the time").x) == 5
    assert min(trace(figure, "Not guaranteed: refuted").x) > 6
    assert max(figure.layout.yaxis.range) < 1.5


def test_names_and_choices_are_shown_as_they_are():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    choices = ["<i>a</i>", "b$c$"]
    study.optimize(lambda t: 0.4 + 0.1 * choices.index(t.suggest_categorical(HOSTILE, choices)), n_trials=6)
    for draw in (plot_certificate, plot_worths):
        text = draw(study, target_name=HOSTILE, **STATED).to_json()
        text.encode()
        read = json.dumps(json.loads(text), ensure_ascii=False)
        assert "&lt;b&gt;x&lt;/b&gt; &amp; &#36;a&#36; `|" in read
        assert not any(tag in read for tag in ("<b>x", "<i>", "$"))


def test_the_worths_are_those_of_the_best_configurations():
    study = played()
    certificate, figure = study.sampler.certificate(study), plot_worths(study, n=3)
    intervals, own = figure.data
    assert len(intervals.y) == 3
    low = np.array(intervals.x) - np.array(intervals.error_x.array)
    assert list(low) == sorted(low, reverse=True)
    everyone = sorted((certificate.of(t.params).lower for t in study.trials if t.value is not None), reverse=True)
    assert low[0] == pytest.approx(everyone[0])
    use = certificate.parameters
    (place,) = [i for i, text in enumerate(intervals.hovertext) if f"x = {use['x']:.6g}" in text]
    assert [v for v, y in zip(own.x, own.y, strict=True) if y == place] == [
        t.value for t in study.trials if t.value is not None and t.params == use
    ]


def test_constraints():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    for i in range(8):
        trial = study.ask()
        value = simple(trial)
        trial.set_constraint("c", 1.0 if i in (0, 3, 5) else -1.0)
        study.tell(trial, value)
    figure = plot_certificate(study, **STATED)
    assert list(trace(figure, "Not known to be feasible").x) == [0, 3, 5]
    assert trace(figure, "Best value so far").y[0] is None
    assert min(trace(figure, "Guaranteed at the time").x) > 0
    assert len(plot_worths(study, **STATED).data[0].y) == 5


def test_far_bounds_do_not_squeeze_the_values():
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: 500.0 + t.suggest_float("x", 0, 1), n_trials=5)
    figure = plot_certificate(study, sigma=5.0, reward_range=(0.0, 1000.0))
    low, high = figure.layout.yaxis.range
    assert 495.0 < low < high < 506.0
    assert figure.layout.shapes == ()


def test_without_plotly_the_message_says_what_to_install(monkeypatch):
    study = played(6, confirmations=1)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(mb.errors.MissingDependency, match=r"mixbandit\[dashboard\]"):
        plot_certificate(study)


def test_after_a_pruning_the_certificate_counts_confirmations_and_the_picture_says_so():
    rng, sampler = np.random.default_rng(0), MixBanditSampler(seed=0, **STATED)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=CertifiedPruner())

    def measured(trial):
        worth, values = simple(trial), []
        for step in range(10):
            values.append(worth + 0.02 * rng.normal())
            trial.report(values[-1], step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.clip(np.mean(values), 0.0, 1.0))

    study.optimize(measured, n_trials=20)
    for trial in sampler.confirm(study, 3):
        study.tell(trial, measured(trial))
    drawn = {trace.name: len(trace.x) for trace in plot_certificate(study).data}
    complete = len(study.get_trials(states=(optuna.trial.TrialState.COMPLETE,)))
    assert complete < 23
    assert drawn["Confirmations"] == 3
    assert drawn["Not counted: unlucky ones were pruned"] == complete - 3
    assert "Since the certificate" not in drawn
    plot_worths(study)


def test_a_samplers_study_needs_no_word():
    study = played(6, confirmations=1)
    with pytest.raises(mb.InvalidInput, match="the sampler already has the space"):
        plot_certificate(study, space={"x": mb.Float(0.0, 1.0)})
    study.sampler = MixBanditSampler(seed=0)
    with pytest.raises(mb.AssumptionsMissing):
        plot_certificate(study)

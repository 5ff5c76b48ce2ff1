"""Certificates in Optuna's dashboard, read back through the dashboard itself."""

import io
import json
import logging
import pickle
import re
import shutil
import subprocess
import sys
import threading
import wsgiref.simple_server
from wsgiref.util import setup_testing_defaults

import optuna
import optuna_dashboard
import pytest

import mixbandit as mb
from mixbandit.integrations.optuna import Publish, plot_certificate, publish
from mixbandit.integrations.optuna.note import escaped, with_section
from tests.integrations.studies import STATED, make, simple
from tests.integrations.test_optuna_pictures import HOSTILE

PICTURES = {"mixbandit-certificate", "mixbandit-worths"}


def storage_of(kind, folder):
    if kind == "memory":
        return optuna.storages.InMemoryStorage()
    if kind == "sqlite":
        return optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{folder}/journal.log"))


def shown(study):
    """What the dashboard tells a browser about the study."""
    answered, environ = [], {"PATH_INFO": f"/api/studies/{study._study_id}", "QUERY_STRING": "after=0"}
    setup_testing_defaults(environ)
    environ["wsgi.input"] = io.BytesIO()
    body = optuna_dashboard.wsgi(study._storage)(environ, lambda status, headers, *_: answered.append(status))
    told = json.loads(b"".join(body))
    assert answered == ["200 OK"], told
    return told


def pictures(study):
    return {each["id"]: json.loads(each["graph_object"]) for each in shown(study)["plotly_graph_objects"]}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_a_published_certificate_is_in_the_dashboard(kind, tmp_path):
    study = make(storage=storage_of(kind, tmp_path), **STATED)
    study.optimize(simple, n_trials=12)
    assert shown(study)["plotly_graph_objects"] == []
    found = publish(study)
    note, drawn = shown(study)["note"]["body"], pictures(study)
    assert set(drawn) == PICTURES
    assert drawn["mixbandit-certificate"] == json.loads(plot_certificate(study).to_json())
    for line in str(found).split("\n"):
        assert escaped(line) in note
    low, high = found.interval
    for cell in (
        f"| Expected value | in \\[{low:.4g}, {high:.4g}\\] |",
        f"| Gap | {found.gap:.4g} (proven: {found.proof}) |",
        "| δ | 0.05 |",
        "| Trusted | yes |",
        f"| Assumptions | {escaped(found.assumptions)} |",
        "| Audit | The 12 values do not contradict",
        "Based on 12 values; the last is that of trial 11.",
    ):
        assert cell in note


@pytest.mark.parametrize(
    "kind", ["sqlite", *(pytest.param(kind, marks=pytest.mark.heavy) for kind in ("memory", "journal"))]
)
def test_publishing_again_replaces_and_keeps_what_the_user_wrote(kind, tmp_path):
    study = make(storage=storage_of(kind, tmp_path), **STATED)
    study.optimize(simple, n_trials=12)
    optuna_dashboard.save_note(study, "# Mine\n\nbefore")
    publish(study, certificate=mb.certify(study, **STATED))
    optuna_dashboard.save_note(study, optuna_dashboard.get_note(study) + "\n\nafter, longer: " + "z" * 3000)
    first = shown(study)["note"]["body"]
    study.optimize(simple, n_trials=2)
    publish(study)
    second, drawn = shown(study)["note"]["body"], pictures(study)
    for note, count in ((first, 12), (second, 14)):
        assert note.startswith("# Mine\n\nbefore\n\n")
        assert note.endswith("\n\nafter, longer: " + "z" * 3000)
        assert note.count("### Certificate") == 1
        assert f"Based on {count} values" in note
    assert set(drawn) == PICTURES
    publish(study, **{**STATED, "delta": 0.2})
    assert shown(study)["note"]["body"].count("| δ | 0.2 |") == 1


def test_a_damaged_mark_costs_nothing_that_the_user_wrote():
    once = with_section("mine", "one")
    assert with_section(once, "two") == once.replace("one", "two")
    begin = once.partition("\n\n")[2].partition("\n")[0]
    cut = f"{begin}\n\nhalf\n\nkeep me"
    twice = with_section(with_section(cut, "one"), "two")
    assert "keep me" in twice
    assert "two" in twice
    assert "one" not in twice
    both = with_section(f"{once}\n\nbetween\n\n{once}", "new")
    assert (both.count("new"), both.count("between"), both.count("one")) == (1, 1, 0)
    assert with_section("  \n", "x") == with_section("", "x")
    assert "\\1 \\g<0>" in with_section(once, "\\1 \\g<0>")


def test_what_cannot_be_certified_changes_nothing():
    study = optuna.create_study(direction="maximize")
    for options, error in ((STATED, mb.InvalidInput), ({}, mb.AssumptionsMissing), ({"sigma": -1.0}, mb.InvalidInput)):
        with pytest.raises(error):
            publish(study, **options)
    with pytest.raises(mb.InvalidInput, match="must be an Optuna study"):
        publish("study", **STATED)
    assert study._storage.get_study_system_attrs(study._study_id) == {}


def test_hostile_names_are_shown_as_they_are_and_refutation_is_said(tmp_path):
    storage = storage_of("sqlite", tmp_path)
    study = optuna.create_study(direction="maximize", storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
    name, choices = HOSTILE.replace("\ud800", ""), ["<i>a</i>", "[b](http://c) | **d**"]
    study.optimize(lambda t: 0.4 + 0.1 * choices.index(t.suggest_categorical(name, choices)), n_trials=6)
    study.add_trial(
        optuna.create_trial(
            params={name: choices[0]},
            distributions={name: optuna.distributions.CategoricalDistribution(choices)},
            value=3.0,
        )
    )
    with pytest.warns(mb.AssumptionsRefutedWarning):
        found = publish(study, **STATED)
    assert not found.trusted
    note = shown(study)["note"]["body"]
    plain = re.sub(r"\\.", "", note)
    assert not re.search(r"[<>`\]]|\*\*d", plain.replace("[mixbandit-begin]", "").replace("[mixbandit-end]", ""))
    assert "| Trusted | NO: the values refute the assumptions |" in note
    assert "| Not counted | 1 with a value outside reward\\_range |" in note
    assert "WARNING" in note


@pytest.mark.parametrize("n_jobs", [1, pytest.param(4, marks=pytest.mark.heavy)])
def test_a_callback_keeps_the_dashboard_current(n_jobs, tmp_path):
    study, callback = make(storage=storage_of("sqlite", tmp_path), **STATED), Publish(every=5)
    study.optimize(simple, n_trials=13, n_jobs=n_jobs, callbacks=[callback])
    assert callback.every == 5
    assert 10 <= callback.certificate.t <= 13
    note = shown(study)["note"]["body"]
    assert f"Based on {callback.certificate.t} values" in note
    assert note.count("### Certificate") == 1
    assert set(pictures(study)) == PICTURES
    copy = pickle.loads(pickle.dumps(Publish(every=3, **STATED)))
    copy(study, study.trials[-1])
    assert copy.certificate.t == 13


def test_a_callback_never_ends_a_study(caplog, monkeypatch):
    study, callback = make("minimize", **STATED), Publish(every=2, **STATED)
    with caplog.at_level(logging.WARNING, logger="mixbandit"):
        with pytest.warns(mb.AssumptionsRefutedWarning) as warned:
            study.optimize(lambda t: simple(t) + 7.0 * (t.number == 3), n_trials=10, callbacks=[callback])
        assert sum("the data refute" in str(each.message) for each in warned) == 1
        assert (callback.certificate.trusted, callback.certificate.t) == (False, 9)
        unstated = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        unstated.optimize(simple, n_trials=4, callbacks=[Publish(every=1)])
        two = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.RandomSampler(seed=0))
        two.optimize(lambda t: (simple(t), 0.0), n_trials=4, callbacks=[Publish(every=1, **STATED)])

        def broken(*_, **__):
            raise OSError("the disk is full")

        monkeypatch.setattr(optuna_dashboard, "save_note", broken)
        full = make(**STATED)
        full.optimize(simple, n_trials=4, callbacks=[Publish(every=1)])
    assert [len(each.trials) for each in (study, unstated, two, full)] == [10, 4, 4, 4]
    said = [r.message for r in caplog.records if "was not published" in r.message]
    assert len(said) == 3
    for why in ("nothing bounds the noise", "single objective", "the disk is full"):
        assert sum(why in message for message in said) == 1


def test_bad_settings_are_refused(monkeypatch):
    for options, message in (
        ({"every": 0}, "every"),
        ({"space": 3}, "space must be a Space"),
        ({"samples": 3}, "nothing bounds"),
        ({"assumptions": 3}, "must be an Assumptions"),
    ):
        with pytest.raises(mb.MixbanditError, match=message):
            Publish(**options)
    study = make(**STATED)
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    for call in (lambda: publish(study, **STATED), Publish):
        with pytest.raises(mb.errors.MissingDependency, match=r"optuna_dashboard.*mixbandit\[dashboard\]"):
            call()


def test_a_long_study_makes_a_short_picture(monkeypatch):
    monkeypatch.setattr("mixbandit.integrations.optuna.dashboard._MOST_DOTS", 10)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: 0.5 + 0.1 * t.suggest_float("x", 0, 1), n_trials=26)
    publish(study, **STATED)
    (dots,) = [each for each in pictures(study)["mixbandit-certificate"]["data"] if each["name"].startswith("Values")]
    assert dots["name"] == "Values (1 in 3)"
    assert dots["x"] == list(range(0, 26, 3))


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.heavy
def test_a_browser_shows_the_note_and_the_pictures(tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.fail("this test needs a browser: apt-get install -y chromium")
    study = make(**STATED)
    study.optimize(simple, n_trials=12)
    found = publish(study)
    server = wsgiref.simple_server.make_server(
        "127.0.0.1", 0, optuna_dashboard.wsgi(study._storage), handler_class=Quiet
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def page(name):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
        flags += [
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={tmp_path}/profile",
        ]
        address = f"http://127.0.0.1:{server.server_port}/dashboard/studies/{study._study_id}{name}"
        command = [browser, *flags, "--virtual-time-budget=20000", "--window-size=1400,2600", "--dump-dom", address]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout

    try:
        drawn, note = page(""), page("/note")
    finally:
        server.shutdown()
        server.server_close()
    for text in ("Guaranteed at the time: at least", f"Expected value at least {found.lower:.4g}", "Its own values"):
        assert text in drawn
    assert "What the best configurations are worth" in drawn
    assert re.search(r"<td[^>]*>Gap</td>", note)
    assert "mixbandit-begin" not in note

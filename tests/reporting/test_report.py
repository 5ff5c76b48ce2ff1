"""A report says what the certificate says, says what it leaves out, and carries nothing that runs or loads."""

import functools
import html
import importlib.metadata
import math
import re

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import mixbandit as mb
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput
from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.reporting import drawing, gathering, wording
from mixbandit.tuning.possible import Possible
from tests.helpers.pages import CHOICES, EVIL, HOSTILE, KNOWN, Page, hostile, noisy, svm, svm_history, svm_space

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "section", "p", "ul", "li",
    "i", "div", "dl", "dt", "dd", "small", "figure", "figcaption", "table", "thead", "tbody", "tr", "th",
    "td", "span", "b", "footer", "svg", "g", "path", "rect", "circle", "text",
}  # fmt: skip


COURSES = {}


@pytest.fixture(autouse=True)
def courses(monkeypatch):
    """What was guaranteed on the way takes nearly all the time of a page: it is computed once for a certificate."""

    def course(certificate, progress):
        if id(certificate) not in COURSES:
            COURSES[id(certificate)] = certificate, gathering.course(certificate, progress)
        return COURSES[id(certificate)][1]

    monkeypatch.setattr("mixbandit.reporting.page.course", course)


ON_FIXED_ROWS = mb.Assumptions(reward_range=(0, 1), samples=100, rows="fixed")


def read(certificate, **options):
    return Page(mb.report(certificate, **options))


def quiet(title, page):
    """Whether a section is missing."""
    return title not in page.of("h2")


def test_the_verdict_comes_first_and_every_question_has_a_section():
    page = read(svm(), title="Our model", default={"C": 1.0, "kernel": "poly", "degree": 3})
    assert page.of("h1") == ["Our model"]
    assert page.of("h2") == [
        "What was seen, and what is certain",
        "The recommended configuration against the default",
        "Around the recommended configuration",
        "Where the best can still be",
        "What was assumed, and whether the data agree",
    ]
    first, second, *_ = page.of("p")
    assert first.startswith(f"Use C = {svm().parameters['C']:.4g}, kernel = rbf: its expected value is at least ")
    assert f"{svm().lower:.4g}" in first
    assert second == str(svm()).split("\n")[1]
    for sentence in (*svm().findings(), *svm().reservations()):
        assert sentence in page.of("li")
    assert svm().assumptions in page.text
    assert "delta = 0.05 is divided: 0.02 for the model" in page.text
    assert page.of("footer") == [f"Made by mixbandit {importlib.metadata.version('mixbandit')} from 40 trials."]
    assert repr(svm().parameters["C"]) in page.of("td")


def test_nothing_runs_and_nothing_is_loaded():
    for certificate in (svm(), hostile()):
        source = mb.report(certificate, title=EVIL)
        page = Page(source)
        assert set(page.tags) <= ALLOWED
        names = {name for name, _ in page.attributes}
        assert not names & {"src", "href", "srcset", "data", "action", "background"}
        assert not [name for name in names if name.startswith("on")]
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
        assert ("content", policy) in page.attributes
        assert "http" not in source.replace("http-equiv", "")
        assert "url(" not in source
        assert "@import" not in source


def test_names_and_choices_are_text_whatever_they_are():
    page = read(hostile(), title=EVIL, default=hostile().judgement.own.trials.configurations[3])
    assert page.of("h1") == [EVIL]
    for name in HOSTILE[:4]:
        assert name in page.of("td")
        assert name in page.of("h3")
    assert "line\\nbreak\\ttab\\x00\\x1b[31m" in page.of("td")
    assert "日本語 🙂 👩‍👩‍👧 \\ud800 \\u202eback" in page.of("td")
    assert f"{'x' * 300}… (2,000 characters)" in page.of("td")
    assert f"{CHOICES[1]}" in page.text
    assert "(1, 2, 3)" in page.text
    assert max(len(text) for text in page.of("text")) < 60  # drawn text cannot wrap


@given(st.text())
def test_escaped_text_reads_as_it_was(text):
    escaped = wording.escaped(text)
    escaped.encode()
    assert not set(escaped) & set("<>\"'")
    plain = html.unescape(escaped)
    assert all(c.isprintable() or c == "\u200d" for c in plain)
    if text.isprintable():
        assert plain == text


def test_the_same_certificate_gives_the_same_bytes(tmp_path):
    again = mb.certify(list(svm_history()), KNOWN, space=svm_space())
    one, other = mb.report(svm(), tmp_path / "a.html"), mb.report(again, tmp_path / "b.html")
    assert one == other
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes() == one.encode()
    mb.report(svm(), tmp_path / "a.html", title="new")
    assert "<title>new</title>" in (tmp_path / "a.html").read_text()


# --- over time


def test_what_was_guaranteed_is_what_a_certificate_would_have_said():
    found = gathering.course(svm(), lambda doing: None)
    assert found.moments[-1] == 40
    assert found.guaranteed[-1] == svm().lower
    for t, floor in list(zip(found.moments.tolist(), found.guaranteed, strict=True))[:-1:3]:
        then = mb.certify(list(svm_history()[:t]), KNOWN, space=svm_space())
        assert floor == pytest.approx(then.lower, abs=2e-3), t


def test_the_luck_of_the_best_value_is_told():
    values = [value for _, value in svm_history()]
    text = read(svm()).text
    assert (
        f"The best single value is {max(values):.4g}, the value of trial {1 + values.index(max(values))} of 40." in text
    )
    assert f"What is certain is {svm().lower:.4g}: the best of many noisy values is partly luck." in text


def test_a_constrained_study_shows_what_was_known_about_feasible_trials():
    def constrained(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("x", x - 0.5)
        return 0.5 + 0.4 * x

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(constrained, n_trials=12)
    certificate = mb.certify(study, KNOWN)
    page = read(certificate)
    assert "guaranteed for the best configuration by then: at least this" in page.text
    assert "are not known to be feasible" in page.text
    found = gathering.course(certificate, lambda doing: None)
    assert found.guaranteed[-1] == certificate.lower
    feasible = [trial.value for trial in study.trials if trial.params["x"] <= 0.5]
    assert (found.guaranteed <= max(feasible)).all()


def test_without_an_order_of_play_values_are_shown_alone():
    history = [({"C": float(i)}, 0.5 + (i * 7 % 10) / 40) for i in range(20)]
    page = read(mb.certify(history, KNOWN, ordered=False))
    assert "What was seen" in page.of("h2")
    assert "because the order of play is not known" in page.text
    assert "in the order of the file" in page.text
    assert ("class", "line floor") not in page.attributes
    assert ("class", "line seen") not in page.attributes


def test_more_values_than_can_be_drawn_are_counted():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": np.tile([0.0, 0.5, 1.0], 1000), "value": rng.normal(0.5, 0.1, 3000)})
    page = read(mb.certify(table, mb.Assumptions(sigma=0.1, reward_range=(0, 1)), ordered=True))
    assert "1,500 of 3,000 values are drawn, evenly spaced." in page.text
    assert "values lie outside the picture" in page.text


# --- slices and the region still possible


def test_slices_show_the_bounds_of_configurations():
    judgement = svm().judgement
    found = {each.name: each for each in gathering.slices(svm(), judgement)}
    assert list(found) == ["C", "kernel"]
    for i in (0, 17, 60):
        worth = svm().of({**svm().parameters, "C": found["C"].values[i]})
        assert worth.trials == 0
        assert (found["C"].low[i], found["C"].high[i]) == pytest.approx(worth.interval)
    middle = svm_space()["degree"].decode(np.array([0.5]))
    other = svm().of({**svm().parameters, "kernel": "poly", "degree": middle})
    assert (found["kernel"].low[1], found["kernel"].high[1]) == pytest.approx(other.interval)
    text = read(svm()).text
    assert "because the recommended configuration does not use them: degree." in text
    assert "Parameters that matter only for another choice are set to the middle of their range there." in text


def test_dots_are_the_trials_in_which_a_parameter_matters():
    space = svm_space()
    history = [({"C": 1.0, "kernel": "poly", "degree": 2 + i % 4}, 0.9) for i in range(8)]
    history += [({"C": 2.0 + i, "kernel": "rbf"}, 0.3) for i in range(4)]
    certificate = mb.certify(history, KNOWN, space=space)
    found = {each.name: each for each in gathering.slices(certificate, certificate.judgement)}
    positions, values = found["degree"].dots
    assert len(positions) == 8
    assert set(values) == {0.9}
    assert sorted(set(found["kernel"].dots[0])) == [0.0, 1.0]


@functools.cache
def ruled_out():
    rng = np.random.default_rng(0)
    space = mb.Space({"x": mb.Float(0, 1), "k": mb.Categorical(["good", "bad"]), "n": mb.Int(1, 3)})
    history = [
        (c, 0.8 - 0.8 * (c["x"] - 0.3) ** 2 - 0.3 * (c["k"] == "bad") + rng.normal(0, 0.005))
        for c in space.sample(150, rng=0)
    ]
    return mb.certify(history, sigma=0.005, reward_range=(0, 1), space=space)


def test_what_is_ruled_out_is_shaded_and_told():
    certificate = ruled_out()
    possible = {part.name: part for part in certificate.possible}
    assert possible["k"].values == ("good",)
    assert 0.0 < possible["x"].share < 0.7
    source = mb.report(certificate)
    page = Page(source)
    assert "bad (ruled out)" in page.text
    drawn = source.partition("<h3>x</h3>")[2].partition("</svg>")[0]
    axis = re.search(r'class="axis" d="M([0-9.]+) [0-9.]+V[0-9.]+H([0-9.]+)"', drawn)
    shaded = [float(width) for width in re.findall(r'class="ruled-out" [^>]*width="([0-9.]+)"', drawn)]
    assert sum(shaded) == pytest.approx((1.0 - possible["x"].share) * (float(axis[2]) - float(axis[1])), abs=1.0)
    assert "the best cannot be here" in page.text
    low, high = possible["x"].values[0]
    assert f"{low:.4g} to {high:.4g}" in page.of("td")
    assert f"{possible['x'].share:.0%}" in page.of("td")
    assert "No value of any single parameter is ruled out yet" in read(svm()).text


@pytest.mark.heavy
def test_of_many_parameters_those_left_out_are_named():
    rng = np.random.default_rng(0)
    space = mb.Space({f"p{i}": mb.Float(0, 1) for i in range(30)})
    history = [(c, float(np.clip(0.9 - 0.6 * c["p7"] + rng.normal(0, 0.02), 0, 1))) for c in space.sample(30, rng=0)]
    page = read(mb.certify(history, KNOWN, space=space))
    drawn = page.of("h3")[:12]
    assert drawn[0] == "p7"
    note = next(text for text in page.of("p") if "Not drawn: " in text)
    named = note.partition("Not drawn: ")[2].rstrip(".").split(", ")
    assert sorted([*drawn, *named]) == sorted(space)
    assert page.of("p")[0].startswith("Use the configuration below: ")
    assert set(space) <= set(page.of("td"))


def test_of_many_choices_those_left_out_are_counted():
    space = mb.Space({"k": mb.Categorical(range(25)), "x": mb.Float(0, 1)})
    page = read(mb.certify([(c, 0.5) for c in space.sample(12, rng=0)], KNOWN, space=space))
    assert "Not drawn: 15 choices of k." in page.text


def test_choices_that_are_tuples_are_no_intervals():
    assert str(Possible("layers", ((64, 32, 16), ("a", "b")), 1.0, of_choices=True)) == (
        "layers: (64, 32, 16), ('a', 'b') (everything)"
    )
    assert str(Possible("x", ((0.25, 0.5),), 0.25)) == "x: 0.25 to 0.5 (25%)"


# --- against the default


def test_the_default_is_compared():
    certificate = ruled_out()
    default = {"x": 0.3, "k": "bad", "n": 1}
    page, found = read(certificate, default=default), certificate.improvement(over=default)
    assert found.lower > 0.0
    assert f"It is better than the default, by at least {found.lower:.4g}: " in page.text
    assert {"recommended", "default"} <= set(page.of("th"))
    first = read(svm(), default="first")
    assert "The recommended configuration against the first trial" in first.of("h2")
    unclear = read(svm(), default={"C": 3.0, "kernel": "rbf"})
    assert "Whether it is better than the default is not certain: the difference lies between −" in unclear.text
    same = read(svm(), default=svm().parameters)
    assert "The recommended configuration is the default." in same.of("p")
    assert quiet("The recommended configuration", same)
    assert "was not stated, so the recommended one is not compared with it" in read(svm()).text


def test_columns_that_never_vary_may_be_part_of_the_default():
    table = pd.DataFrame({"x": np.linspace(0, 1, 8), "seed": 3, "value": 0.5})
    page = read(mb.certify(table, KNOWN, ordered=True), default={"x": 0.5, "seed": 3})
    assert "The recommended configuration against the default" in page.of("h2")


@pytest.mark.parametrize(
    ("default", "says"),
    [
        ("second", '"first"'),
        (3, '"first"'),
        ({"C": 1.0}, "'kernel' missing"),
        ({"C": 1e9, "kernel": "rbf"}, "C must lie between"),
        ({"C": 1.0, "kernel": "rbf", "gamma": 1.0}, "'gamma' unknown"),
    ],
)
def test_a_default_that_makes_no_sense_is_refused(default, says, tmp_path):
    with pytest.raises(InvalidInput, match=says):
        mb.report(svm(), tmp_path / "a.html", default=default)
    assert not (tmp_path / "a.html").exists()


def test_other_input_that_makes_no_sense_is_refused():
    with pytest.raises(InvalidInput, match="certificate must be"):
        mb.report({"parameters": {}})
    with pytest.raises(InvalidInput, match="title must be text"):
        mb.report(svm(), title=3)
    with pytest.raises(InvalidInput, match="path must be"):
        mb.report(svm(), b"a.html")
    unordered = mb.certify([({"C": float(i % 3)}, 0.5) for i in range(6)], KNOWN, ordered=False)
    with pytest.raises(InvalidInput, match="there is no first trial"):
        mb.report(unordered, default="first")


# --- other certificates


def test_a_study_that_minimises():
    space = mb.Space({"lr": mb.Float(1e-5, 1e-1, log=True)})
    rng = np.random.default_rng(0)
    history = [(c, 1.0 + 0.1 * (math.log10(c["lr"]) + 3) ** 2 + rng.normal(0, 0.05)) for c in space.sample(20, rng=0)]
    certificate = mb.certify(history, sigma=0.05, norm_bound=5.0, direction="minimize", space=space)
    page = read(certificate, default={"lr": 1e-5})
    assert f"at most {certificate.interval[1]:.4g}" in page.of("dd")
    assert f"The best single value is {min(value for _, value in history):.4g}" in page.text
    assert "guaranteed for the best configuration by then: at most this" in page.text
    assert gathering.course(certificate, lambda doing: None).guaranteed[-1] == certificate.interval[1]
    (along,) = gathering.slices(certificate, certificate.judgement)
    assert (along.low[5], along.high[5]) == pytest.approx(certificate.of({"lr": along.values[5]}).interval)


def test_what_the_data_refute_is_said_first():
    with pytest.warns(AssumptionsRefutedWarning):
        certificate = mb.certify(noisy(), reward_range=(0, 1), samples=100_000, rows="fresh")
    page = read(certificate, default="first")
    (kind, first) = page.texts[1]
    assert kind == "div"
    assert first.startswith("WARNING: ")
    assert first.endswith("Nothing on this page is guaranteed.")
    assert "nothing" in page.of("dd")
    assert "The data refute it." in page.of("p")
    assert "Nothing is guaranteed about the difference from the first trial." in page.of("p")
    assert any(text.startswith("REFUTED") for text in page.of("li"))
    assert quiet("Around the recommended configuration", page)
    assert quiet("Where the best can still be", page)
    assert "are left out: the data refute the assumptions." in page.text


def test_one_trial_and_constant_values():
    one = read(mb.certify([({"x": 0.1}, 0.5)], KNOWN, space=mb.Space({"x": mb.Float(0, 1)})))
    assert "The only value is 0.5; what is certain is" in one.text
    for value in (0.0, 0.5, 1.0):
        page = read(mb.certify([({"x": i / 10}, value) for i in range(10)], KNOWN))
        assert f"The best single value is {value:g}" in page.text
    large = [({"x": i / 10}, 1e9) for i in range(10)]
    assert "1e+09" in read(mb.certify(large, sigma=1.0, reward_range=(1e9 - 1, 1e9 + 1))).text


def test_ranges_that_are_hard_to_draw():
    space = mb.Space({
        "wide": mb.Float(-1e308, 1e308),
        "tiny": mb.Float(1.0, 1.0 + 1e-12),
        "big": mb.Int(1, 10**300, log=True),
        "small": mb.Float(1e-300, 1e-290, log=True),
        "steps": mb.Float(0.0, 1.0, step=0.25),
        "one": mb.Categorical(["only"]),
    })  # fmt: skip
    source = mb.report(mb.certify([(c, 0.5) for c in space.sample(6, rng=0)], KNOWN, space=space))
    page = Page(source)
    assert [name for name in page.of("h3") if name in space] == list(space)
    assert "nan" not in source.lower().replace("finance", "")
    assert "inf" not in [text.lower() for text in page.of("text")]


def test_a_list_without_a_model():
    finalists = [({"C": 1.0}, 0.93), ({"C": 10.0}, 0.95), ({"C": 100.0}, 0.7)]
    certificate = mb.certify_finalists(finalists, samples=1000, reward_range=(0, 1))
    page = read(certificate, default={"C": 100.0})
    assert page.of("p")[0].startswith("Use C = 10: on new rows")
    assert "It is better than the default, by at least" in page.text
    assert "The configurations measured" in page.of("h2")
    assert quiet("Around the recommended configuration", page)
    assert quiet("Where the best can still be", page)
    assert f"[{certificate.intervals[2][0]:.4g}, {certificate.intervals[2][1]:.4g}]" in page.of("td")
    assert "The recommended configuration is the default." in read(certificate, default={"C": 10.0}).of("p")
    with pytest.raises(InvalidInput, match="is not among the 3 configurations"):
        mb.report(certificate, default={"C": 2.0})
    many = mb.certify_finalists([({"C": float(i)}, 0.5) for i in range(30)], samples=50, reward_range=(0, 1))
    assert quiet("The configurations measured", read(many))  # all the same
    many = mb.certify_finalists([({"C": float(i)}, i / 40) for i in range(30)], samples=50, reward_range=(0, 1))
    assert "These are the 20 of 30 configurations with the best guaranteed values." in read(many).text


def test_values_on_the_same_rows_guarantee_nothing():
    certificate = mb.certify([({"C": float(i)}, 0.8 + i / 100) for i in range(10)], ON_FIXED_ROWS)
    page = read(certificate, default={"C": 1.0})
    assert page.of("p")[0].startswith("ON THESE ROWS ONLY, the best of 10 is C = 9")
    assert "nothing" in page.of("dd")
    assert "Nothing is guaranteed about the difference from the default." in page.of("p")
    assert quiet("The configurations measured", page)


def test_a_search_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, cv=3).fit(x, x[:, 0] > 0)
    page = read(mb.certify(search, ON_FIXED_ROWS))
    assert page.of("p")[0].startswith("Use C = ")


def test_certificates_of_a_tuner_and_of_a_sampler():
    tuner = mb.Tuner(svm_space(), KNOWN, rng=0)
    for parameters, value in svm_history()[:6]:
        tuner.learn([(parameters, value)])
    assert "based on" not in read(tuner.certificate()).of("h2")
    assert "6" in read(tuner.certificate()).of("dd")
    study = optuna.create_study(direction="maximize")
    for parameters, value in svm_history()[:6]:
        floats = {"C": optuna.distributions.FloatDistribution(1e-2, 1e2, log=True)}
        study.add_trial(optuna.create_trial(params={"C": parameters["C"]}, distributions=floats, value=value))
    page = read(MixBanditSampler(assumptions=KNOWN).certificate(study), default="first")
    assert "The recommended configuration against the first trial" in page.of("h2")


def test_a_certificate_made_by_hand_says_what_it_knows():
    bare = mb.StudyCertificate({"C": 1.0}, 0.5, 0.7, 0.9, 0.4, "search", assumptions="a", model="m", delta=0.05, t=3)
    page = read(bare)
    assert page.of("p")[0].startswith("Use C = 1: its expected value is at least 0.5")
    assert "are left out: this certificate was made by hand." in page.text


# --- axes


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3.2, 7.9), (0.911, 0.934), (1e-9, 3e-9), (-1e300, 1e300), (5, 6e5)]
)
def test_ticks_are_round_numbers_within(low, high):
    found = drawing.ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 * abs(low) <= tick.at <= high + 1e-9 * abs(high) for tick in found)
    assert len({tick.label for tick in found}) == len(found)


def test_ticks_that_four_digits_do_not_tell_apart_are_ends():
    assert [tick.label for tick in drawing.ticks(1e9, 1e9 + 1)] == ["1e+09", "+1"]
    assert [tick.label for tick in drawing.log_ticks(1e-5, 1e-1)] == ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1"]
    assert [tick.label for tick in drawing.log_ticks(0.3, 3.0)] == ["0.5", "1", "2"]

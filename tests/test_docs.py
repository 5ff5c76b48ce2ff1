"""The code on the pages runs, their commands exist, and their numbers and promises are no more than what holds."""

import csv
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOLD = [*PAGES, *ROOT.glob("optunahub/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r"at (all times|every moment) at once")
# Each was on a page once, and says more than holds.
FALSE = (
    r"error bars that hold at all times at once",
    r"some ten rewards more than features",
    r"four runs of 180",
    r"intervals cover(ed)? in (180 of 180|every run)",
    r"new validation data for every trial",
    r"a new split, or 100 rows",
    r"a bad one (leaves them valid:|widens them but never invalidates them)",
    r"contradict (them|your assumptions), the set becomes empty",
    r"has ‖θ‖ of about s√d",
)
COUNTS = {3: "three", 5: "five", 6: "six", 7: "seven"}


def flat(path):
    """The text of a file with single spaces, so that line breaks do not matter."""
    return re.sub(r"\s+", " ", path.read_text())


def rows(name):
    lines = (RESULTS / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), scope)


def test_there_is_code_to_run():
    assert sum(len(BLOCK.findall(page.read_text())) for page in PAGES) >= 6


@pytest.mark.parametrize(
    ("page", "folder", "tables"),
    [
        ("results/paper", "paper", 5),
        ("results/tuners-0.1", "tuning", 6),
        ("results/coverage", ".", 5),
        ("results/literature", ".", 1),
        ("how-to/kernels", "kernels", 3),
        ("results/honesty", "honesty", 1),
        ("results/reuse", ".", 1),
        ("results/searching", "searching", 3),
        ("results/search-cv", "search_cv", 1),
        ("results/pruners", "pruners", 1),
        ("results/workers", ".", 1),
    ],
)
def test_the_tables_of_a_page_are_those_of_its_results(page, folder, tables):
    from mixbandit.paper.page import filled

    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert filled(text, ROOT / "docs" / "results" / folder) == text
    assert text.count("<!-- table") >= tables


@pytest.mark.parametrize("sentence", FALSE)
def test_a_sentence_that_was_found_false_does_not_come_back(sentence):
    assert [path.name for path in TOLD if re.search(sentence, flat(path).replace("*", ""))] == []


def test_a_page_names_the_model_where_it_first_promises():
    promising = [path for path in TOLD if path.suffix == ".md" and PROMISE.search(flat(path))]
    assert len(promising) >= 5
    for path in promising:
        text = flat(path)
        before = text[: PROMISE.search(text).end() + 300]
        assert "linear in" in before or "function space" in before, path.name


def test_the_commands_on_the_pages_exist():
    from mixbandit.cli import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    commands |= {group.name for group in app.registered_groups}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = re.sub(r"```python.*?```", "", page.read_text(), flags=re.DOTALL)
        told = "\n".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))
        assert set(re.findall(r"(?:`|^)mixbandit ([a-z]+)", told, re.MULTILINE)) <= commands, page.name
        assert set(re.findall(r"(?:`|^)make ([a-z-]+)", told, re.MULTILINE)) <= targets, page.name
        for path in re.findall(r"\b((?:examples|benchmarks|docs|tests|optunahub)/[\w/.-]*[\w/])", told):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


def test_the_numbers_of_the_readme_are_those_of_the_results():
    """Where a measurement is repeated, its sentence has to follow."""
    text = flat(ROOT / "README.md")
    promised = [row for row in rows("coverage.csv") if row["guarantee"] == "anytime"]
    runs, kinds = sum(int(row["runs"]) for row in promised), len({row["sequence"] for row in promised})
    worst = max(int(row["misses"]) / int(row["runs"]) for row in promised)
    assert f"In {runs:,} simulated runs of {COUNTS.get(kinds, kinds)} sequences" in text
    assert f"in more than {100 * worst:.1f} % of runs" in text

    width = {row["method"]: float(row["mean width"]) for row in rows("paper/fig1.csv")}
    narrower = [100 * (1 - width[name] / width["OFUL"]) for name in ("CMM-UCB", "AMM-UCB")]
    assert (
        f"are {narrower[0]:.0f} % narrower than OFUL's on average, the closed-form ones (AMM) {narrower[1]:.0f} %"
        in text
    )

    regret = {row["algorithm"]: row for row in rows("regret.csv")}
    less = [100 * (1 - float(regret[n]["final"]) / float(regret["OFUL"]["final"])) for n in ("CMM-UCB", "AMM-UCB")]
    assert f"CMM-UCB was {less[0]:.0f} % below OFUL's, that of AMM-UCB {less[1]:.0f} % below" in text
    assert {row[name] for row in regret.values() for name in ("regret_missed", "certificate_missed")} == {"0"}

    measured = json.loads((RESULTS / "bench/bounds.json").read_text(encoding="utf-8"))
    faster = {row["method"]: [] for row in measured["bounds"]}
    for row in measured["bounds"]:
        if row["norm_bound"] != "10":
            faster[row["method"]].append(row["times_faster_than_cvxpy"])
    exact, plain = faster["exact, 1,000 actions"], faster["exact, 1,000 actions, numpy only"]
    assert "take 1,800 to 3,600 times less" in text
    assert 1800 <= min(exact) <= max(exact) <= 3600
    assert "with numpy alone 580 to 760 times less" in text
    assert 580 <= min(plain) <= max(plain) <= 760
    played = json.loads((RESULTS / "bench/rounds.json").read_text(encoding="utf-8"))["rounds"]
    few = {row["player"]: row["microseconds"] for row in played if (row["d"], row["arms"]) == (20, 10)}
    assert "takes about 75 µs. VowpalWabbit takes 1.5 times as long, river's LinUCB three times" in text
    assert 70 <= few["CMM-UCB"] <= 80
    assert few["VowpalWabbit squarecb"] >= 1.5 * few["CMM-UCB"]
    assert few["river LinUCBDisjoint"] >= 3 * few["CMM-UCB"]
    assert "MABWiser's eleven times" in text
    assert few["MABWiser LinUCB"] >= 11 * few["CMM-UCB"]

    far = [abs(float(r["difference"])) for r in rows("paper/table1.csv")
           if r["measure"] == "mean" and r["algorithm"] in ("CMM-UCB", "AMM-UCB", "OFUL")]  # fmt: skip
    assert "within 0.02 of the published means" in text
    assert max(far) <= 0.02


def test_what_the_readme_says_of_the_tuner_is_in_its_results():
    """Shares of runs in which the tuner is ahead, in the order of the sentence."""
    text = flat(ROOT / "README.md")
    played = [row for row in rows("searching/wins.csv") if row["trials"] == "100"]
    found = {(row["tasks"], row["against"], row["what"]): row["share, %"] for row in played}
    order = (("TPE", "mean"), ("TPE", "floor"), ("CMA-ES", "recommended"), ("TPE", "recommended"))
    told, floor, cma, tpe = (found["tables", *key] for key in order)
    assert f"earned more than TPE's in {told} % of the runs" in text
    assert f"above that of `certify` on TPE's trials in {floor} %" in text
    assert f"better than that of CMA-ES in {cma} %, and than that of TPE in {tpe} %" in text
    for tasks, words in (("unseen", "it is"), ("functions", "on six others")):
        shares = [found[tasks, *key] for key in order]
        assert f"{words} {shares[0]}, {shares[1]}, {shares[2]} and {shares[3]} %" in text
    answers = [row["answer"] for row in rows("tuning/verdict.csv")]  # of version 0.1.0, in docs/results/tuners-0.1.md
    assert answers == ["9 of 9 tasks", "3 of 9 tasks", "180 of 180 runs"]

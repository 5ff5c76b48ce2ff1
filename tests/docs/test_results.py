"""Numbers on the pages are those of the results beside them."""

import csv
import json

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, flat, name

RESULTS = DOCS / "results"
# Pages with tables that are made from results, the folder of these, and how many tables there are at least.
TABLES = [
    ("results/paper", "paper", 5),
    ("results/harm", "harm", 2),
    ("results/tuners-0.1", "tuning", 6),
    ("results/coverage", ".", 5),
    ("results/blocks", "blocks", 1),
    ("results/literature", ".", 1),
    ("results/kernels", "kernels", 3),
    ("results/honesty", "honesty", 1),
    ("results/reuse", ".", 1),
    ("results/harm", "harm", 2),
    ("results/searching", "searching", 1),
    ("results/searching-by-task", "searching", 2),
    ("results/search-cv", "search_cv", 1),
    ("results/pruners", "pruners", 1),
    ("results/workers", ".", 1),
]
COUNTS = {3: "three", 5: "five", 6: "six", 7: "seven"}


def rows(name):
    lines = (RESULTS / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize(("page", "folder", "tables"), TABLES)
def test_the_tables_of_a_page_are_those_of_its_results(page, folder, tables):
    from mixbandit.paper.page import filled

    text = (DOCS / f"{page}.md").read_text()
    assert filled(text, RESULTS / folder) == text
    assert text.count("<!-- table") >= tables


def test_every_page_with_such_tables_is_checked():
    marked = {name(page) for page in PAGES if "<!-- table" in page.read_text()}
    assert marked == {f"docs/{page}.md" for page, _, _ in TABLES}


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
    assert "1,800 to 3,600 times faster" in text
    assert 1800 <= min(exact) <= max(exact) <= 3600
    assert "with numpy alone 580 to 760 times faster" in text
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
    """Shares of runs in which the tuner is ahead, row by row of the table."""
    text = flat(ROOT / "README.md")
    played = [row for row in rows("searching/wins.csv") if row["trials"] == "100"]
    found = {(row["tasks"], row["against"], row["what"]): row["share, %"] for row in played}
    order = (("TPE", "mean"), ("TPE", "floor"), ("CMA-ES", "recommended"), ("TPE", "recommended"))
    words = (
        "mean value of its trials, against TPE",
        "floor, against `certify` on TPE's trials",
        "recommended configuration, against CMA-ES",
        "recommended configuration, against TPE",
    )
    for told, key in zip(words, order, strict=True):
        shares = " | ".join(f"{found[tasks, *key]} %" for tasks in ("tables", "unseen", "functions"))
        assert f"| {told} | {shares} |" in text
    answers = [row["answer"] for row in rows("tuning/verdict.csv")]  # of version 0.1.0, in docs/results/tuners-0.1.md
    assert answers == ["9 of 9 tasks", "3 of 9 tasks", "180 of 180 runs"]

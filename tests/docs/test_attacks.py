"""Every test that the page of attacks names exists."""

import csv
import re
from collections import Counter

import pytest
from benchmarks.certificates import attacks
from scipy.stats import binom

from tests.docs.test_theorems import ROOT, names_in

PAGE = ROOT / "docs" / "explanation" / "attacks.md"
TABLE = ROOT / "docs" / "results" / "attacks.csv"
RESULTS = ("attack", "runs", "wrong", "conditional", "refused")
NAMED = sorted(set(re.findall(r"`(tests/[^`\n]+)`", PAGE.read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name):
    path, _, test = name.partition("::")
    assert (ROOT / path).is_file()
    assert not test or test in names_in(path)


def test_every_attack_has_a_guard_and_a_test():
    rows = [line.strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [row for row in rows if row[0].strip() != "attack" and len(row) != len(RESULTS)]
    assert len(found) > 20
    for row in found:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row
        assert row[3].strip().strip("`") in NAMED


def test_the_table_is_that_of_the_file_and_has_every_attack():
    table = attacks.summarise(TABLE)
    page = PAGE.read_text()
    assert table in page
    worst = max(table.splitlines()[2:], key=lambda line: float(line.split("|")[3].split("±")[0]))
    assert f"the most that any attack had is {worst.split('|')[3].strip()} %." in page
    assert len(table.splitlines()) == 2 + len(attacks.ATTACKS)


def test_no_attack_is_wrong_more_often_than_delta():
    """As far as its runs tell; each has at least fifty, all from seed 0 on."""
    with TABLE.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs, wrong = Counter(row["attack"] for row in rows), Counter()
    for row in rows:
        wrong[row["attack"]] += row["outcome"] == "wrong"
        assert (row["outcome"] == "wrong") <= (float(row["floor"]) >= float(row["truth"]))
    for name in attacks.ATTACKS:
        assert runs[name] >= 50
        assert {int(row["seed"]) for row in rows if row["attack"] == name} == set(range(runs[name]))
        assert binom.sf(wrong[name] - 1, runs[name], attacks.DELTA) > 0.05

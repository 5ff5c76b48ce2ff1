"""Every test that the page of attacks names exists."""

import re

import pytest

from tests.docs.test_theorems import ROOT, names_in

PAGE = ROOT / "docs" / "explanation" / "attacks.md"
NAMED = sorted(set(re.findall(r"`(tests/[^`\n]+)`", PAGE.read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name):
    path, _, test = name.partition("::")
    assert (ROOT / path).is_file()
    assert not test or test in names_in(path)


def test_every_attack_has_a_guard_and_a_test():
    rows = [line.strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    attacks = [row for row in rows if row[0].strip() != "attack"]
    assert len(attacks) > 20
    for row in attacks:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row
        assert row[3].strip().strip("`") in NAMED

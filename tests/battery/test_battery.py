"""A few seconds of every part of the battery; `python -m tests.battery` runs them at length."""

import pytest

from tests.battery.parts import PARTS
from tests.battery.tally import Tally

# Cases of each part that fit in a second.
BRIEF = {
    "policies": 150,
    "contextual bandits": 150,
    "tuners": 100,
    "state files": 150,
    "tables": 150,
    "studies": 30,
    "selections": 8,
    "interrupts": 100,
    "kills": 10,
}


@pytest.mark.parametrize("name", BRIEF)
def test_nothing_is_found(name):
    found = PARTS[name].run(BRIEF[name], 0)
    assert found.tried >= BRIEF[name]
    assert not found.failures, str(found)


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(set(PARTS) - {"fuzz", "bad values"}))  # the latter has tests of its own
def test_nothing_is_found_in_a_longer_run(name):
    part = PARTS[name]
    found = part.run(max(10, part.budget // 50), 1)
    assert not found.failures, str(found)


def test_a_tally_counts_and_says_how_to_reproduce():
    tally = Tally("something")
    tally.note("refused")
    tally.fail("seed 1, case 2: what happened")
    assert tally.tried == 2
    assert "seed 1, case 2" in str(tally)

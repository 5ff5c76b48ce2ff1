"""The table of bad values is complete, finds what it should, and its page says what happens."""

import time
from pathlib import Path

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.errors import InvalidInput
from tests.battery import bad_values
from tests.battery.call import Call
from tests.battery.odd_values import PLAIN, values
from tests.battery.public_calls import CALLS, EXCLUDED, discovered, is_excluded

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"


def test_every_public_callable_takes_part_or_says_why_not():
    found, called = discovered(), {call.name for call in CALLS}
    assert sorted(name for name in found if name not in called and not is_excluded(name)) == []
    assert sorted(called - set(found)) == []
    assert all(EXCLUDED.values())


def test_every_argument_takes_part(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = discovered()
    assert {call.label: set(found[call.name]) ^ set(call.parameters) for call in CALLS} == {
        call.label: set() for call in CALLS
    }


def test_valid_calls_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in CALLS:
        first = call.parameters[0]
        name = "False" if isinstance(call.arguments()[first], bool) else "valid"  # by name, booleans are valid
        outcome = bad_values.tried(
            bad_values.Case(call, first, name), {name: lambda call=call, first=first: call.arguments()[first]}
        )
        assert outcome.what == "worked", (call.label, outcome)


def test_a_sample_of_the_table_finds_nothing():
    tally = bad_values.run(400, seed=1)
    assert tally.tried >= 400
    assert tally.failures == [], tally


def test_runs_are_reproducible():
    outcomes = [bad_values.run(20, seed=7).outcomes for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    done = []
    bad_values.run(3, seed=7, progress=done.append)
    assert done == [1, 2, 3]


@pytest.mark.heavy
def test_the_whole_table_finds_nothing():
    everything = len(bad_values.cases())
    tally = bad_values.run(everything, seed=0)
    assert everything <= tally.tried
    assert tally.failures == [], tally


class Careless:
    """Everything that the table should find."""

    def __init__(self):
        self.changed = 0

    def state_dict(self):
        return {"changed": self.changed}

    def foreign(self, x):
        return float(x)

    def nan(self, x):
        return float("nan")

    def hangs(self, x):
        time.sleep(60.0)

    def changes(self, x):
        self.changed += 1
        raise InvalidInput("too late")

    def truthy(self, x):
        return bool(x)

    def masked(self, x):
        return float(np.asarray(x).ravel()[0])

    def verbose(self, x):
        raise InvalidInput(f"got {x!r}" * 100)

    def lost_file(self, x):
        raise OSError("no such file")


@pytest.mark.parametrize(
    ("method", "valid", "value", "found"),
    [
        ("foreign", 0.5, "None", "TypeError"),
        ("nan", 0.5, "0.5", "NaN"),
        ("hangs", 0.5, "0.5", "longer than"),
        ("changes", 0.5, "0.5", "the state changed"),
        ("truthy", True, "1", "accepted as True or False"),
        ("masked", 0.5, "masked array ()", "accepted"),
        ("foreign", 0.5, "'0.5'", "accepted as a number"),
        ("verbose", 0.5, "['a', 'b']", "a message of"),
        ("lost_file", 0.5, "0.5", "OSError"),
    ],
)
def test_the_table_finds_what_it_should(method, valid, value, found, monkeypatch):
    monkeypatch.setattr(bad_values, "SECONDS", 0.1)
    call = Call(f"Careless.{method}", lambda: {"x": valid}, Careless)
    outcome = bad_values.tried(bad_values.Case(call, "x", value), values())
    assert outcome.what == "failed"
    assert found in outcome.message


def test_an_object_that_fails_in_use_is_found():
    call = Call("FromCallable", lambda: {"function": None, "dim_in": 2, "dim": 2})
    broken = {"broken": lambda: lambda actions: 1 / 0}
    outcome = bad_values.tried(bad_values.Case(call, "function", "broken"), broken)
    assert (outcome.what, "ZeroDivisionError" in outcome.message) == ("failed", True)


@pytest.mark.parametrize("name", ["Arms", "Box", "MartingaleMixture", "Policy.tell", "Policy.cancel", "Tuner.tell"])
def test_the_page_is_up_to_date(name):
    section = bad_values.section(name)
    assert section.count("\n") > 4
    assert section in PAGE.read_text("utf-8"), "write it again: python -m tests.battery.bad_values"


def test_the_page_names_every_error_and_every_callable():
    page = PAGE.read_text("utf-8")
    errors = [name for name, kind in vars(mb.errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert [name for name in errors if f"`{name}`" not in page] == []
    titles = {line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")}
    assert titles <= set(bad_values.callables())
    # The round is ignored by environments that do not depend on it; all else refuses something.
    quiet = [name for name in bad_values.callables() if name not in titles]
    assert all(name.endswith((".offer", ".best")) or "Environment.best" in name for name in quiet), quiet


def test_plain_values_do_not_depend_on_other_packages():
    assert set(PLAIN) <= set(values())
    assert all(type(make()).__module__.partition(".")[0] != "numpy" for make in PLAIN.values())

"""What a user adds outside the package is saved, killed, loaded, resumed and checked like what is in it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._files import digest, read_state, write_state
from mixbandit.bandits import Policy
from mixbandit.storage import list_of, record
from tests.extending.outside import Cautious, Powers, Running, Sometimes, Wave
from tests.extending.playing import ARMS, MADE, STATED, begun, play

ROOT = Path(__file__).parents[2]


def test_a_killed_process_is_resumed_by_another_to_the_bit(tmp_path):
    command = [sys.executable, "-m", "tests.extending.playing"]
    ends = [
        subprocess.run([*command, verb, str(tmp_path)], cwd=ROOT, check=False).returncode for verb in ("write", "read")
    ]
    assert ends == [-signal.SIGKILL, 0]
    written, read = (json.loads((tmp_path / f"{verb}.json").read_text()) for verb in ("write", "read"))
    assert read == written
    assert set(written) == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_a_state_comes_back_as_it_was(name, tmp_path):
    policy = begun(name)
    policy.save(tmp_path / "policy")
    mb.save(policy.sequence, tmp_path / "sequence")
    loaded, sequence = mb.load(tmp_path / "policy"), mb.load(tmp_path / "sequence")
    assert (type(loaded), type(sequence)) == (type(policy), type(policy.sequence))
    assert digest(loaded.state_dict()) == digest(policy.state_dict())
    rows = np.full((1, sequence.dim_in), 0.15) if policy.actions.rows is None else policy.actions.rows
    np.testing.assert_array_equal(sequence.upper(rows), policy.sequence.upper(rows))
    assert play(loaded, 3) == play(policy, 3)


def _set(*path):
    *places, name, value = path

    def spoil(state):
        for place in places:
            state = state[place]
        state[name] = value

    return spoil


@pytest.mark.parametrize(
    ("name", "spoil", "says"),
    [
        ("rule", _set("rule", "share", "x"), r"^policy\.rule\.share must be a number, got 'x'"),
        ("rule", lambda s: s["rule"].pop("share"), r"^policy\.rule lacks 'share'"),
        ("feature map", _set("sequence", "features", "features", "dim", 11),
         r"^policy\.sequence\.features\.features\.dim must be an integer between 1 and 10, got 11"),
        ("kernel", _set("sequence", "kernel", "kernels", 0, "frequency", -1.0),
         r"^policy\.sequence\.kernel\.kernels\[0\]\.frequency must be positive and finite, got -1\.0"),
        ("mixture", _set("sequence", "mixture", "members", 1, "c", "x"),
         r"^policy\.sequence\.mixture\.members\[1\]\.c must be a number, got 'x'"),
        ("mixture and features", _set("sequence", "mixture", "c", "x"),
         r"^policy\.sequence\.mixture\.c must be a number, got 'x'"),
        ("mixture and features", _set("sequence", "cost", "sums", np.zeros(2)),
         r"^cost\.sums must have shape \(1,\), got \(2,\)"),
        ("mixture and features", _set("sequence", "cost", "sums", np.array([np.nan])),
         r"^policy\.sequence\.cost\.sums\[0\] must be finite"),
        ("mixture and features", lambda s: s["sequence"]["cost"].pop("sums"), r"cost lacks 'sums'"),
        ("sequence", _set("sequence", "caution", None), r"^policy\.sequence\.caution must be a number, got None"),
        ("sequence", _set("sequence", "largest", [1.0]), r"^policy\.sequence\.largest must be a number, got \[1\.0\]"),
        ("sequence", lambda s: s["sequence"].pop("largest"), r"^policy\.sequence lacks 'largest'"),
        ("belief", lambda s: s["sequence"].pop("blocks"), r"^policy\.sequence lacks 'blocks'"),
        ("belief", _set("sequence", "arms", 4), r"^policy\.sequence: there must be 4 blocks, got 3"),
        ("belief", _set("sequence", "sigma", -1.0), r"^policy\.sequence\.sigma must be positive and finite, got -1\.0"),
        ("belief", _set("sequence", "blocks", 1, "type", "Else"),
         r"^policy\.sequence\.blocks\[1\] is a confidence sequence of unknown type 'Else'"),
        ("belief", _set("sequence", "blocks", 2, "norm_bound", "x"),
         r"^policy\.sequence\.blocks\[2\]\.norm_bound must be a number, got 'x'"),
        ("response", _set("sequence", "reward_range", [2.0, 1.0]), r"^policy\.sequence\.reward_range must"),
        ("response", lambda s: s["sequence"].pop("cost"), r"lacks 'cost'"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_place(name, spoil, says, tmp_path):
    state = begun(name).state_dict()
    spoil(state)
    write_state(tmp_path / "file", state)
    with pytest.raises(mb.DamagedState, match=says):
        mb.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "path", "says"),
    [
        ("rule", ("rule",), r"^policy\.rule is an acting rule of unknown type 'Else'"),
        ("feature map", ("sequence", "features", "features"),
         r"^policy\.sequence\.features\.features is a feature map of unknown type 'Else'"),
        ("kernel", ("sequence", "kernel"), r"^policy\.sequence\.kernel is a kernel of unknown type 'Else'"),
        ("mixture", ("sequence", "mixture"), r"^policy\.sequence\.mixture is a mixture of unknown type 'Else'"),
        ("sequence", ("sequence",), r"^policy\.sequence is a confidence sequence of unknown type 'Else'"),
        ("sequence", ("actions",), r"^policy\.actions is actions of unknown type 'Else'"),
        ("sequence", (), "holds a 'Else', which this mixbandit does not know"),
    ],
)  # fmt: skip
def test_an_unknown_kind_is_named(name, path, says, tmp_path):
    state = begun(name).state_dict()
    _set(*path, "type", "Else")(state)
    write_state(tmp_path / "file", state)
    with pytest.raises(mb.DamagedState, match=f"{says}; if it is your own, import the module that defines it first"):
        mb.load(tmp_path / "file")


def test_loading_imports_nothing(tmp_path):
    """A file that names a kind cannot make a fresh process import the module that has it."""
    mb.save(Cautious(2, sigma=0.1), tmp_path / "sequence")
    begun("rule").save(tmp_path / "rule")
    code = (
        "import sys, mixbandit as mb\n"
        "for file in sys.argv[1:]:\n"
        "    try:\n        mb.load(file)\n    except mb.DamagedState as error:\n        print(error)\n"
        "print([name for name in sys.modules if 'outside' in name])"
    )
    files = [str(tmp_path / name) for name in ("sequence", "rule")]
    printed = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, check=True).stdout
    sequence, rule, modules = printed.splitlines()
    assert "holds a 'Cautious', which this mixbandit does not know; if it is your own, import the module" in sequence
    assert "policy.rule is an acting rule of unknown type 'Sometimes'; if it is your own, import the module" in rule
    assert modules == "[]"


@pytest.mark.parametrize(
    ("base", "kind", "known"),
    [
        (mb.Kernel, "RBF", "mixbandit.kernels.stationary.RBF"),
        (mb.Kernel, "Wave", "tests.extending.outside.wave.Wave"),
        (mb.FeatureMap, "Powers", "tests.extending.outside.powers.Powers"),
        (mb.Mixture, "Running", "tests.extending.outside.running.Running"),
        (mb.UCB, "Patient", "tests.extending.outside.Patient"),
        (mb.UCB, "OFULSequence", "mixbandit.sequences.oful.OFULSequence"),  # both have files of their own
        (mb.ConfidenceSequence, "Tuner", "mixbandit.tuning.tuner.Tuner"),
    ],
)
def test_a_kind_belongs_to_one_class(base, kind, known):
    before = dict(base.family.kinds)
    with pytest.raises(mb.InvalidInput, match=rf"Second must state a kind of its own: '{kind}' is the kind of {known}"):
        type("Second", (base,), {"kind": kind, "schema": record({})})
    assert base.family.kinds == before


def test_a_class_may_be_defined_again():
    """As a cell of a notebook does that runs twice; the last definition counts."""
    cell = "class OfACell(mb.Kernel):\n    kind, schema = 'OfACell', record({})"
    classes = []
    for _ in range(2):
        names = {"mb": mb, "record": record, "__name__": "__main__"}
        exec(cell, names)
        classes.append(names["OfACell"])
    assert mb.Kernel.family.kinds.pop("OfACell") is classes[1]


def test_a_kind_needs_a_schema():
    with pytest.raises(mb.InvalidInput, match="Bare states a kind, but no schema"):
        type("Bare", (mb.Mixture,), {"kind": "Bare"})


def test_a_class_without_a_kind_of_its_own_is_code(tmp_path):
    """Also where it derives from one that has: files would load something else."""

    class Louder(Wave):
        pass

    class Rarely(Sometimes):
        pass

    class Mine(mb.UCB):
        pass

    class Slow(Running):
        pass

    sequence = mb.MartingaleMixture(1, **STATED)
    for made in (
        mb.UCB(mb.KernelMixture(Louder(1.0), **STATED), ARMS),
        Policy(sequence, ARMS, rule=Rarely(0.1)),
        Mine(sequence, ARMS),
        mb.UCB(mb.MartingaleMixture(1, **STATED, mixture=mb.Grid([Slow(1.0)])), ARMS),
    ):
        with pytest.raises(mb.NotStorable, match=r"(Louder|Rarely|Mine|Slow) .*cannot be stored.*state its `kind`"):
            mb.save(made, tmp_path / "file")
    assert not list(tmp_path.iterdir())


class Sum(mb.FeatureMap):
    """The features of several maps, side by side."""

    kind = "Sum"
    schema = record({"parts": list_of(mb.FeatureMap.family, least=1)})

    def __init__(self, parts):
        self.parts, self.dim_in, self.dim = parts, parts[0].dim_in, sum(part.dim for part in parts)

    def evaluate(self, actions):
        return np.hstack([part.evaluate(actions) for part in self.parts])

    def pullback(self, actions, v):
        ends = np.cumsum([0, *(part.dim for part in self.parts)])
        pairs = zip(self.parts, ends[:-1], ends[1:], strict=True)
        return sum(part.pullback(actions, v[:, i:j]) for part, i, j in pairs)


def test_a_map_that_contains_code_is_passed_again(tmp_path):
    """A registered map is no exception to this, whatever is in it."""
    features = Sum([Powers(2), mb.FromCallable(np.sin, 1, 1)])
    mb.save(mb.MartingaleMixture(features, **STATED), tmp_path / "code")
    with pytest.raises(mb.InvalidInput, match="'sin' is code and is not stored: pass it again"):
        mb.load(tmp_path / "code")
    assert mb.load(tmp_path / "code", features).features is features
    with pytest.raises(mb.InvalidInput, match="differ from the stored Sum"):
        mb.load(tmp_path / "code", Sum([Powers(2), mb.FromCallable(np.tan, 1, 1)]))
    mb.save(mb.MartingaleMixture(Sum([Powers(2), mb.Identity(1)]), **STATED), tmp_path / "whole")
    assert [part.dim for part in mb.load(tmp_path / "whole").features.parts] == [2, 1]
    assert "probe" not in read_state(tmp_path / "whole")["features"]


@pytest.mark.parametrize("kind", [["Powers"], 3, None, {"type": "Powers"}])
def test_a_kind_is_text(kind, tmp_path):
    state = begun("feature map").state_dict()
    state["sequence"]["features"]["features"] |= {"type": kind, "probe": np.zeros((3, 3))}
    write_state(tmp_path / "file", state)
    with pytest.raises(mb.DamagedState, match=r"^policy\.sequence\.features\.features\.type must be"):
        mb.load(tmp_path / "file")

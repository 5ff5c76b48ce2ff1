"""One file, atomic, checked; and a file of this version that must load for ever."""

import hashlib
import json
import math
import os
import random
import shutil
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import mixbandit as mb
from mixbandit import _files
from mixbandit._files import read_state, write_state
from mixbandit.certificates import certificate
from tests.helpers.worlds import make, play

FIXTURES = Path(__file__).parent / "fixtures"


def test_values_come_back_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    state = {
        "text": "θ* ≤ 5\n",
        "numbers": [0, -1, 2**130, 0.1, 1e-300, float("inf"), float("-inf"), True, None],
        "floats": rng.normal(size=(3, 4)),
        "fortran": np.asfortranarray(rng.normal(size=(3, 4))),
        "strided": rng.normal(size=(6, 4))[::2],
        "big endian": np.arange(3.0).astype(">f8"),
        "integers": np.arange(5, dtype=np.uint64),
        "flags": np.array([True, False]),
        "empty": np.empty((0, 7)),
        "scalar": np.float64(0.3),
        "nested": {"a": {"b": [{"c": np.array(2.0)}]}},
    }
    write_state(tmp_path / "file", state)
    back = read_state(tmp_path / "file")
    assert back["text"] == state["text"]
    assert back["numbers"] == state["numbers"]
    for name in ("floats", "fortran", "strided", "big endian", "integers", "flags", "empty"):
        np.testing.assert_array_equal(back[name], state[name])
        assert back[name].dtype == state[name].dtype.newbyteorder("=")
        assert back[name].shape == state[name].shape
    assert back["nested"]["a"]["b"][0]["c"] == 2.0
    write_state(tmp_path / "nan", {"x": float("nan"), "y": np.array([np.nan])})
    assert np.isnan(read_state(tmp_path / "nan")["x"])


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, b"bytes", np.array(["a"]), np.array([None]), 1j])
def test_what_is_not_plain_is_refused_and_the_old_file_stays(value, tmp_path):
    write_state(tmp_path / "file", {"old": 1})
    with pytest.raises(mb.NotStorable, match="state"):
        write_state(tmp_path / "file", {"value": {"inside": [value]}})
    assert read_state(tmp_path / "file") == {"old": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


MARKERS = ("__float__", "__array__", "__escaped__")


@pytest.mark.parametrize("name", MARKERS)
@pytest.mark.parametrize("value", [0.5, "nan", "inf", "<f8", float("nan"), None, [1, "nan"], {"x": 1}])
def test_a_mapping_may_have_any_keys(name, value, tmp_path):
    """The names that stand for arrays and infinities in a file are names like any others for a user."""
    nested = {name: {other: {name: value} for other in MARKERS}}
    states = [{name: value}, {name: value, "shape": [2], "data": "AAAA"}, {"a": [{name: value}]}, nested]
    for state in states:
        write_state(tmp_path / "file", state)
        assert repr(read_state(tmp_path / "file")) == repr(state)


def test_files_from_before_keys_were_escaped_still_load(tmp_path):
    """Only the exact form of an array or an infinity was ever special to a careful reader."""
    body = b'{"parameters":{"__float__":0.5,"__array__":2,"__escaped__":0.25},"high":{"__float__":"inf"}}'
    whole = f"mixbandit-state 2 {hashlib.sha256(body).hexdigest()}\n".encode() + body
    (tmp_path / "file").write_bytes(whole)
    assert read_state(tmp_path / "file") == {
        "parameters": {"__float__": 0.5, "__array__": 2, "__escaped__": 0.25},
        "high": math.inf,
    }


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 500 + "1" + "}" * 500,
        '{"a":' * 220 + "1" + "}" * 220,
        '{"a":' + "9" * 5000 + "}",
        '{"a":' + "9" * 4100 + "}",  # which Python still reads, unless told otherwise
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        "[1]",
        "",
        '{"a":"\xff"}',
        '{"a":{"__array__":"O","shape":[1],"data":"AAAAAAAAAAA="}}',
        '{"a":{"__array__":"(1000000000,)f8","shape":[0],"data":""}}',
        '{"a":{"__array__":"<f8","shape":[-1],"data":"AAAAAAAAAAA="}}',
        '{"a":{"__array__":"<f8","shape":[1000000000000],"data":"AAAAAAAAAAA="}}',
        '{"a":{"__array__":"<f8","shape":[0,' + "9" * 30 + '],"data":""}}',
        '{"a":{"__array__":"<f8","shape":[true],"data":"AAAAAAAAAAA="}}',
        '{"a":{"__array__":"<f8","shape":1,"data":"AAAAAAAAAAA="}}',
        '{"a":{"__array__":"<f8","shape":[1],"data":"AAAA"}}',
        '{"a":{"__array__":"<f8","shape":[1],"data":5}}',
        '{"a":{"__array__":"<f8","shape":[1],"data":"*"}}',
        '{"a":{"__array__":"|b1","shape":[1],"data":"Bw=="}}',
    ],
    ids=lambda body: body[:40],
)
def test_what_is_not_a_plain_tree_is_refused_before_it_is_built(body, tmp_path):
    content = body.encode("latin-1")
    (tmp_path / "file").write_bytes(
        b"mixbandit-state 2 " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    )
    with pytest.raises(mb.DamagedState, match=r"file (cannot be read|holds a list)"):
        read_state(tmp_path / "file")


@pytest.mark.parametrize(
    "first", [b"mixbandit-state " + b"9" * 5000 + b" x\n", b"\0" * 5000, "mixbandit-state ２ x\n".encode()]
)
def test_a_strange_first_line_is_refused(first, tmp_path):
    (tmp_path / "file").write_bytes(first + b"{}")
    with pytest.raises(mb.DamagedState, match="was not saved by mixbandit"):
        read_state(tmp_path / "file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(mb.DamagedState, match="was not saved by mixbandit"):
        mb.load("/dev/zero")


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    deep = []
    for _ in range(200):
        deep = [deep]
    for value in (deep, 10**5000, -(10**4000)):
        with pytest.raises(mb.NotStorable, match=r"nested|integer of more than 4000 digits"):
            write_state(tmp_path / "file", {"value": value})
    write_state(tmp_path / "file", {"value": -(10**4000) + 1})
    assert read_state(tmp_path / "file") == {"value": -(10**4000) + 1}


def test_nothing_is_executed_and_nothing_is_pickled(tmp_path):
    make("CMMUCB").save(tmp_path / "file")
    first, _, body = (tmp_path / "file").read_bytes().partition(b"\n")
    assert first.startswith(b"mixbandit-state 2 ")
    assert json.loads(body)["type"] == "CMMUCB"


def test_every_damaged_byte_is_noticed(tmp_path):
    policy = make("CMMUCB")
    play(policy, 3)
    policy.save(tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    rng = random.Random(0)
    for position in [*range(90), *rng.sample(range(90, len(good)), 300)]:
        damaged = bytearray(good)
        damaged[position] ^= 1 << rng.randrange(8)
        (tmp_path / "bad").write_bytes(damaged)
        with pytest.raises(mb.DamagedState):
            mb.load(tmp_path / "bad")


@pytest.mark.parametrize("keep", [0, 1, 10, 80, 100, -1])
def test_a_truncated_file_is_noticed(keep, tmp_path):
    make("CMMUCB").save(tmp_path / "good")
    (tmp_path / "bad").write_bytes((tmp_path / "good").read_bytes()[:keep])
    with pytest.raises(mb.DamagedState, match=r"bad (is|was|cannot)"):
        mb.load(tmp_path / "bad")


def test_a_newer_file_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "FORMAT", 3)
    make("CMMUCB").save(tmp_path / "file")
    monkeypatch.undo()
    with pytest.raises(mb.DamagedState, match=r"newer mixbandit, in format 3.*up to 2.*upgrade"):
        mb.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda s: s.update(type="Oracle"), "Oracle"),
        (lambda s: s.pop("sequence"), "lacks 'sequence'"),
        (lambda s: s["ledger"].update(next_id="many"), "policy.ledger.next_id must be an integer.*'many'"),
        (lambda s: s["sequence"].update(sigma="x"), "policy.sequence.sigma must be a number, got 'x'"),
        (lambda s: s["sequence"].update(sigma=-1.0), "policy.sequence.sigma must be positive and finite, got -1.0"),
        (
            lambda s: s["sequence"]["features"].update(weights=[[1.0]]),
            "policy.sequence.features.offset must have shape",
        ),
        (lambda s: s["ledger"].update(next_id=1), "only 1 were ever made"),
        (lambda s: s.update(rng={"bit_generator": "Dice"}) or s.pop("seed"), "Dice"),
        (lambda s: s["actions"].update(type="Ball"), "Ball"),
        (lambda s: s["sequence"].update(type="Oracle"), "Oracle"),
        (lambda s: s["sequence"].update(version=99), "policy.sequence.version must be 1, got 99"),
        (lambda s: s["sequence"]["statistics"].update(count=-3), "statistics"),
        (lambda s: s.update(history={}), "lacks 'ids'"),
    ],
)
def test_a_whole_file_with_a_wrong_content_is_refused(spoil, says, tmp_path):
    policy = make("CMMUCB")
    play(policy, 3)
    policy.ask()
    state = policy.state_dict()
    spoil(state)
    write_state(tmp_path / "file", state)
    with pytest.raises(mb.DamagedState, match=says):
        mb.load(tmp_path / "file")


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mb.load(tmp_path / "nowhere")


def test_a_sequence_can_be_saved_too(tmp_path):
    cs = mb.OFULSequence(2, sigma=0.1, norm_bound=1.0).update([[1.0, 0.0]], [0.5])
    mb.save(cs, tmp_path / "sub" / "sequence")
    assert mb.load(tmp_path / "sub" / "sequence").upper([[1.0, 1.0]]) == cs.upper([[1.0, 1.0]])
    with pytest.raises(mb.InvalidInput, match="only bandits, tuners"):
        mb.save({}, tmp_path / "file")


def test_a_users_forecaster_is_refused_by_name(tmp_path):
    class Oracle:
        def predict(self, x):
            return 0.0, 1.0

        def update(self, x, r):
            pass

    policy = mb.CMMUCB(2, sigma=0.1, norm_bound=1.0, mixture=Oracle())
    with pytest.raises(mb.NotStorable, match="Oracle"):
        policy.save(tmp_path / "file")


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_random_generator_of_numpy_is_kept(bits, tmp_path):
    policy = make("FreqTS", rng=np.random.Generator(getattr(np.random, bits)(3)))
    play(policy, 2)
    policy.save(tmp_path / "file")
    np.testing.assert_array_equal(play(mb.load(tmp_path / "file"), 4), play(policy, 4))


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.mixbandit")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_still_load(path):
    """`expected.json` holds what the version that wrote a file chose next; a new format gets new files beside these."""
    expected = json.loads((FIXTURES / "expected.json").read_text())[path.stem]
    policy = mb.load(path)
    assert policy.rounds == expected["rounds"]
    assert [choice.id for choice in policy.pending] == expected["pending"]
    probe = np.array([[0.25, 0.75]])
    assert policy.sequence.upper(probe)[0] == pytest.approx(expected["upper"], rel=1e-9)
    assert policy.certificate().lower == pytest.approx(expected["lower"], rel=1e-6)
    np.testing.assert_allclose(policy.ask().action, expected["next"], atol=1e-4)


def test_there_are_such_files():
    assert {path.stem for path in FIXTURES.glob("*.mixbandit")} >= {"0.1.0-arms", "0.1.0-box"}


def killed_saves(folder, kills, seed):
    """Children save on and on and are killed: what is left must load and be the last completed save or a later one."""
    rng = random.Random(seed)
    policy = make("CMMUCB")
    file = folder / "policy"
    policy.save(file)
    for _ in range(kills):
        before = mb.load(file).rounds
        reader, writer = os.pipe()
        with warnings.catch_warnings():  # numpy's threads are idle, and the child only computes and writes
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:  # saves states with more and more rounds, and reports each that is done
            try:
                policy = mb.load(file)
                while True:
                    policy.ask()
                    policy.save(file)
                    os.write(writer, f"{policy.rounds}\n".encode())
            finally:
                os._exit(1)
        os.close(writer)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reader) as reports:
            completed = [int(line) for line in reports.read().split()]
        after = mb.load(file).rounds
        assert after >= max([before, *completed])
        assert after <= max([before, *completed]) + 1
    policy.save(file)
    assert [path.name for path in folder.iterdir()] == ["policy"]  # nothing is left of what was killed


def test_a_kill_during_save_loses_nothing(tmp_path):
    killed_saves(tmp_path, 20, seed=0)


@pytest.mark.heavy
def test_two_hundred_kills_during_save_lose_nothing(tmp_path):
    killed_saves(tmp_path, 200, seed=1)


OTHERS = json.loads((FIXTURES / "expected-others.json").read_text())


@pytest.mark.parametrize("name", ["adaptive", "gaussian", "grid", "general_lambda", "oful", "bayes"])
def test_sequences_of_version_0_1_0_go_on(name):
    """Written by 0.1.0 after thirty rewards, with what it said then and after ten more."""
    cs = mb.load(FIXTURES / f"0.1.0-{name}.sequence")
    assert cs.upper([[0.3, 0.6]])[0] == pytest.approx(OTHERS[name]["upper"], rel=1e-12)
    cs.update(OTHERS["data"]["X"], OTHERS["data"]["r"])
    assert cs.upper([[0.3, 0.6]])[0] == pytest.approx(OTHERS[name]["later"], rel=1e-12)


def test_a_tuner_of_version_0_1_0_goes_on():
    expected = OTHERS["tuner"]
    tuned = mb.Tuner.load(FIXTURES / "0.1.0.tuner")
    assert (tuned.told, len(tuned.history)) == (expected["told"], expected["history"])
    assert [trial.id for trial in tuned.pending] == expected["pending"]
    assert tuned.pending[0].interval == pytest.approx(tuple(expected["interval"]))
    acted_on = certificate(tuned.moment, tuned.space.region, np.random.default_rng(0))
    assert acted_on.lower + 0.5 == pytest.approx(expected["lower"], rel=1e-6)
    # What is certified, though, follows from the values by today's rules.
    history = [(told.parameters, told.value) for told in tuned.history]
    anew = mb.certify(history, tuned.assumptions, space=tuned.space, mixture=mb.Scaled(0.1))
    assert tuned.certificate().lower == pytest.approx(anew.lower, rel=1e-6)
    tuned.tell(tuned.pending[0], 0.7)
    assert tuned.ask().parameters
    assert tuned.told == expected["told"] + 1


def test_a_run_of_version_0_1_0_goes_on(tmp_path):
    shutil.copy(FIXTURES / "0.1.0.run", tmp_path / "run")
    phi = mb.RandomFourier(2, 6, rng=1)
    arms = mb.Arms(np.random.default_rng(2).uniform(size=(6, 2)))
    environment = mb.LinearEnvironment(phi, np.ones(6) * 0.2, arms, sigma=0.1, seed=1)
    policy = mb.CMMUCB(phi, actions=arms, sigma=0.1, norm_bound=2.0, delta=0.05, rng=5)
    records = mb.run(policy, environment, 10, checkpoint=tmp_path / "run", progress=False)
    assert [record.reward for record in records][:7] == OTHERS["run"]["rewards"]
    assert (len(records), policy.moment.t) == (10, 10)


def test_a_stored_kernel_takes_no_features(tmp_path):
    cs = mb.KernelMixture(mb.RBF(0.3), sigma=0.1, norm_bound=1.0).update([[0.5]], [0.2])
    mb.save(cs, tmp_path / "kernel.json")
    with pytest.raises(mb.InvalidInput, match="stored model is a kernel, which needs no features; got 3"):
        mb.load(tmp_path / "kernel.json", features=3)
    assert mb.load(tmp_path / "kernel.json").t == 1

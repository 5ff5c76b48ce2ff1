"""Runs: records, late rewards, batches, stopping, interruption and going on."""

import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.bandits import Policy, Thompson, Uniformly
from mixbandit.simulate.records import Record

PHI = mb.RandomFourier(dim_in=2, dim=6, lengthscale=0.6, rng=0)
THETA = np.random.default_rng(0).normal(size=6)
ARMS = mb.Arms(np.random.default_rng(1).uniform(size=(8, 2)), labels=list("abcdefgh"))
TIMES = ("ask_seconds", "tell_seconds")


def world(**options):
    return mb.LinearEnvironment(PHI, THETA, ARMS, sigma=0.1, **options)


def bandit(make=mb.CMMUCB, **options):
    return make(PHI, **{"actions": ARMS, "sigma": 0.1, "norm_bound": 5.0, "rng": 0, **options})


def same(one, other):
    """Everything but the clock."""
    return one.to_frame().drop(columns=[*TIMES]).equals(other.to_frame().drop(columns=[*TIMES]))


def test_records_hold_what_happened():
    policy, environment = bandit(), world()
    records = mb.run(policy, environment, 30)
    assert len(records) == policy.rounds == policy.sequence.t == 30
    values = PHI(records.column("action")) @ THETA
    np.testing.assert_allclose(records.column("expected"), values)
    best = (PHI(ARMS.actions) @ THETA).max()
    np.testing.assert_allclose(records.cumulative_regret, np.cumsum(best - values), atol=1e-12)
    assert set(records.column("label")) <= set("abcdefgh")
    assert (records.column("lower") <= values).all()
    assert (values <= records.column("upper")).all()
    assert (records.column("ask_seconds") > 0).all()
    np.testing.assert_array_equal(records.column("told"), np.arange(30))
    assert "rounds=30, cumulative regret" in repr(records)
    with pytest.raises(mb.InvalidInput, match="columns round, id"):
        records.column("colour")


def test_records_export(tmp_path):
    records = mb.run(bandit(), world(), 12)
    records.to_csv(tmp_path / "run.csv")
    table, frame = pd.read_csv(tmp_path / "run.csv"), records.to_frame()
    assert list(table.columns) == list(frame.columns)
    np.testing.assert_array_equal(table["reward"], records.column("reward"))  # to the bit
    np.testing.assert_array_equal(table[["action_0", "action_1"]], records.column("action"))
    records.plot().savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 5000


def test_a_users_function_without_known_optimum(tmp_path):
    environment = mb.FunctionEnvironment(lambda a: float(a.sum()), mb.Box([0, 0], [1, 1]))
    records = mb.run(bandit(actions=environment.actions), environment, 5)
    assert np.isnan(records.column("regret")).all()
    assert not records.regret_known
    records.plot().savefig(tmp_path / "run.png")
    records.to_csv(tmp_path / "run.csv")
    assert pd.read_csv(tmp_path / "run.csv")["expected"].isna().all()
    mb.Records().to_csv(tmp_path / "empty.csv")


def test_changing_arms_and_contexts():
    environment = mb.ChangingArms(3, [1.0, -1.0, 0.5], arms=6, sigma=0.1)
    records = mb.run(mb.CMMUCB(3, sigma=0.1, norm_bound=2.0, rng=0), environment, 60)
    assert records.column("regret")[-20:].mean() < records.column("regret")[:20].mean()
    contextual = mb.LinearEnvironment(
        mb.Interaction(1, 1), [1.0], [-1.0, 1.0], sigma=0.1, context=lambda rng: rng.uniform(-1, 1, size=1)
    )
    policy = mb.CMMUCB(mb.Interaction(1, 1), actions=contextual.actions, sigma=0.1, norm_bound=2.0, rng=0)
    records = mb.run(policy, contextual, 40)
    assert records.column("context").shape == (40, 1)
    assert records.column("regret")[20:].max() == pytest.approx(0.0, abs=1e-9)
    assert "context_0" in records.to_frame().columns


@pytest.mark.parametrize("delay", [3, lambda t, reward: t % 4], ids=["fixed", "function"])
def test_late_rewards(delay):
    policy = bandit()
    records = mb.run(policy, world(), 20, delay=delay)
    waits = [3] * 20 if delay == 3 else [t % 4 for t in range(20)]
    np.testing.assert_array_equal(records.column("told"), np.arange(20) + waits)
    still_out = sum(t + w > 19 for t, w in enumerate(waits))
    assert policy.sequence.t == 20 - still_out
    assert len(policy.pending) == still_out


def test_rewards_that_never_come():
    policy = bandit()
    records = mb.run(policy, world(), 10, delay=lambda t, reward: None if t % 2 else 0)
    assert policy.sequence.t == 5
    assert np.isnan(records.column("told")).sum() == 5
    assert policy.pending == ()
    assert policy.regret_bound().rounds == 10  # they were played, and count
    strict = bandit(strict=True)
    mb.run(strict, world(), 10, delay=lambda t, reward: None if t == 2 else 0)
    assert strict.sequence.t == 9  # what is lost holds nothing back


def test_batches():
    policy = bandit()
    records = mb.run(policy, world(), 10, batch=4)
    assert len(records) == 10
    np.testing.assert_array_equal(records.column("round"), np.arange(10))
    assert len({tuple(a) for a in records.column("action")[:4]}) == 4


def test_stopping_needs_a_proof():
    policy = bandit()
    records = mb.run(policy, world(), 3000, stop_when=mb.stop_when(gap=0.2, every=5))
    assert len(records) < 3000
    assert "proven (enumerated)" in records.stopped
    assert policy.certificate().gap <= 0.2
    assert len(records) % 5 == 0
    # In eight dimensions only a search knows the optimum, and that is no reason to stop.
    phi = mb.RandomFourier(dim_in=8, dim=4, lengthscale=3.0, rng=0)
    box = mb.Box(np.zeros(8), np.ones(8))
    policy = mb.CMMUCB(phi, actions=box, sigma=0.01, norm_bound=3.0, rng=0)
    environment = mb.LinearEnvironment(phi, np.ones(4) / 2, box, sigma=0.01)
    records = mb.run(policy, environment, 30, stop_when=mb.stop_when(gap=100.0))
    assert records.stopped is None
    assert policy.certificate().gap < 100.0
    assert not policy.certificate().proven


@pytest.mark.parametrize("make", [mb.CMMUCB, mb.FreqTS])
@pytest.mark.parametrize("region", ["arms", "box"])
def test_a_run_goes_on_from_its_checkpoint_as_if_nothing_had_happened(make, region, tmp_path):
    def fresh():
        actions = ARMS if region == "arms" else mb.Box([0.0, 0.0], [1.0, 1.0])
        environment = mb.LinearEnvironment(PHI, THETA, actions, sigma=0.1, seed=4)
        return bandit(make, actions=actions), environment

    policy, environment = fresh()
    whole = mb.run(policy, environment, 25, delay=2)
    file = tmp_path / "checkpoint"
    for rounds in (7, 8, 19):
        mb.run(*fresh(), rounds, delay=2, checkpoint=file)
    last, environment = fresh()
    parts = mb.run(last, environment, 25, delay=2, checkpoint=file)
    assert same(parts, whole)
    np.testing.assert_array_equal(last.sequence.upper([[0.5, 0.5]]), policy.sequence.upper([[0.5, 0.5]]))
    assert last.regret_bound() == policy.regret_bound()


def test_records_may_be_continued_by_hand():
    policy, environment = bandit(), world()
    records = mb.run(policy, environment, 5)
    assert mb.run(policy, environment, 12, records=records) is records
    assert same(records, mb.run(bandit(), world(), 12))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "checkpoint"
    mb.run(bandit(), world(), 3, checkpoint=file)
    for policy, environment, says in [
        (bandit(), world(seed=9), "another environment"),
        (bandit(sigma=0.2), world(), "sigma"),
        (bandit(exploration=0.5), world(), "exploration"),
        (bandit(mb.FreqTS), world(), "run of CMMUCB"),
        (bandit(strict=True), world(), "strict"),
        (bandit(actions=ARMS.actions[:4]), world(), "chooses from Arms"),
        (bandit(), mb.LinearEnvironment(PHI, THETA, ARMS, sigma=0.1, noise="uniform"), "another environment"),
    ]:
        with pytest.raises(mb.InvalidInput, match=says):
            mb.run(policy, environment, 5, checkpoint=file)
        assert policy.rounds == 0
    bandit().save(tmp_path / "policy")
    with pytest.raises(mb.DamagedState, match="not of a run"):
        mb.run(bandit(), world(), 5, checkpoint=tmp_path / "policy")


def test_an_interrupted_round_is_not_half_played():
    class Slow(mb.FunctionEnvironment):
        def reward(self, t, choice):
            if t == 4:
                raise KeyboardInterrupt
            return super().reward(t, choice)

    policy = bandit()
    environment = Slow(lambda a: float(a.sum()), ARMS)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        mb.run(policy, environment, 9)
    assert "after 4 of 9 rounds" in interrupted.value.__notes__[0]
    assert len(interrupted.value.records) == 4
    assert policy.pending == ()
    assert policy.sequence.t == 4
    assert policy.regret_bound().widths is not None
    again = mb.run(policy, mb.FunctionEnvironment(lambda a: float(a.sum()), ARMS), 9, records=interrupted.value.records)
    assert len(again) == 9


@pytest.mark.parametrize("make", [mb.Uniform, mb.FreqTS, mb.CMMUCB])
@pytest.mark.parametrize("region", [ARMS, mb.Box([0.0, 0.0], [1.0, 1.0])], ids=["arms", "box"])
def test_an_interrupt_while_playing_leaves_no_trace(make, region, tmp_path):
    """It lands in `reward` most of the time; the choice is taken back to the bit, and made again on resuming."""

    class Interrupted(mb.LinearEnvironment):
        def reward(self, t, choice):
            if t == 5 and not resumed:
                raise KeyboardInterrupt
            return super().reward(t, choice)

    def fresh():
        policy = bandit(make, actions=region, keep_history=True)
        return policy, Interrupted(PHI, THETA, region, sigma=0.1)

    resumed, file = False, tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        mb.run(*fresh(), 12, batch=2, delay=1, checkpoint=file)
    resumed = True
    policy, environment = fresh()
    parts = mb.run(policy, environment, 12, batch=2, delay=1, checkpoint=file)
    other, environment = fresh()
    assert same(parts, mb.run(other, environment, 12, batch=2, delay=1))
    assert policy.regret_bound() == other.regret_bound()


@pytest.mark.parametrize("strict", [False, True])
def test_rewards_under_way_are_not_forgotten_between_calls(strict):
    policy, environment = bandit(strict=strict), world()
    records = mb.run(policy, environment, 10, delay=3)
    assert policy.sequence.t == 7
    mb.run(policy, environment, 40, records=records, delay=3)
    assert policy.sequence.t == 37
    assert [choice.number for choice in policy.pending] == [37, 38, 39]


def test_a_stopped_run_may_go_on_and_rules_are_judged_anew():
    policy, environment = bandit(), world()
    records = mb.run(policy, environment, 2000, stop_when=mb.stop_when(gap=0.5, every=1))
    first = len(records)
    assert records.stopped
    assert len(mb.run(policy, environment, 2000, records=records, stop_when=mb.stop_when(gap=0.5, every=1))) == first
    assert len(mb.run(policy, environment, first + 5, records=records)) == first + 5
    assert records.stopped is None
    mb.run(policy, environment, 2000, records=records, stop_when=mb.stop_when(gap=0.1, every=1))
    assert policy.certificate().gap <= 0.1


def test_the_environments_actions_serve_a_policy_without():
    policy = bandit(actions=None)
    assert set(mb.run(policy, world(), 6).column("label")) <= set("abcdefgh")
    with pytest.raises(mb.InvalidInput, match="stop_when needs a policy with fixed actions"):
        mb.run(bandit(actions=None), world(), 6, stop_when=mb.stop_when(gap=0.1))


def test_what_cannot_be_stored_is_known_before_the_first_round(tmp_path):
    played = []
    policy = bandit(actions=mb.Arms(ARMS.actions, labels=[("tuple", i) for i in range(8)]))
    with pytest.raises(mb.NotStorable, match="tuple"):
        mb.run(policy, mb.FunctionEnvironment(played.append), 5, checkpoint=tmp_path / "file")
    assert played == []


def test_every_error_carries_the_records():
    with pytest.raises(mb.AssumptionsRefuted) as refuted:
        mb.run(bandit(norm_bound=0.1), mb.LinearEnvironment(PHI, 10 * THETA, ARMS, sigma=0.1), 60)
    assert len(refuted.value.records) > 0
    assert "stopped after" in refuted.value.__notes__[0]


def test_a_resumed_sequence_is_the_one_the_user_holds(tmp_path):
    sequences = []
    for _ in range(2):
        sequences.append(mb.MartingaleMixture(PHI, sigma=0.1, norm_bound=5.0))
        mb.run(mb.UCB(sequences[-1], ARMS, rng=0), world(), 5 * len(sequences), checkpoint=tmp_path / "file")
    assert [cs.t for cs in sequences] == [5, 10]


def test_an_error_of_the_environment_loses_no_round(tmp_path):
    def breaks(action):
        if len(kept) == 6:
            raise OSError("the machine is on fire")
        return 0.1

    kept = mb.Records()
    policy = bandit()
    with pytest.raises(OSError, match="fire"):
        mb.run(policy, mb.FunctionEnvironment(breaks), 9, records=kept, checkpoint=tmp_path / "checkpoint")
    assert len(kept) == 6
    assert policy.pending == ()
    resumed = bandit()
    mb.run(resumed, mb.FunctionEnvironment(lambda a: 0.1), 7, checkpoint=tmp_path / "checkpoint")
    assert resumed.sequence.t == 7


@pytest.mark.parametrize("reward", [float("nan"), "bad", None])
def test_a_useless_reward_is_an_error(reward):
    policy = bandit()
    with pytest.raises(mb.InvalidInput, match="reward"):
        mb.run(policy, mb.FunctionEnvironment(lambda a: reward), 3)
    assert policy.pending == ()


@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_ctrl_c_in_a_real_process(tmp_path):
    script = f"""
import mixbandit as mb, numpy as np, time
phi = mb.RandomFourier(dim_in=2, dim=6, rng=0)
box = mb.Box([0, 0], [1, 1])
policy = mb.CMMUCB(phi, actions=box, sigma=0.1, norm_bound=5.0, rng=0)
environment = mb.FunctionEnvironment(lambda a: float(a.sum()), box)
try:
    mb.run(policy, environment, 100000, checkpoint={str(tmp_path / "checkpoint")!r}, checkpoint_seconds=0.2)
except KeyboardInterrupt as interrupted:
    assert policy.pending == () and policy.sequence.t == len(interrupted.records), policy
    print("interrupted", len(interrupted.records))
    raise
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        time.sleep(0.05)
        if (tmp_path / "checkpoint").exists():
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130), errors
    assert "call again to resume from" in errors
    count = int(output.split()[1])
    phi = mb.RandomFourier(dim_in=2, dim=6, rng=0)
    box = mb.Box([0, 0], [1, 1])
    policy = mb.CMMUCB(phi, actions=box, sigma=0.1, norm_bound=5.0, rng=0)
    environment = mb.FunctionEnvironment(lambda a: float(a.sum()), box)
    records = mb.run(policy, environment, count + 2, checkpoint=tmp_path / "checkpoint")
    assert len(records) == count + 2


def test_progress_is_reported():
    seen = []
    mb.run(bandit(), world(), 4, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    mb.run(bandit(), world(), 4, progress=True)  # a bar, on no terminal
    mb.run(bandit(), world(), 4, progress=False)


def test_a_refutation_stops_a_run_or_marks_it():
    environment = mb.LinearEnvironment(PHI, 10 * THETA, ARMS, sigma=0.1)
    with pytest.raises(mb.AssumptionsRefuted):
        mb.run(bandit(norm_bound=0.1), environment, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
        records = mb.run(bandit(norm_bound=0.1, on_empty="inflate"), environment, 60)
    assert not records.column("trusted")[-1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mb.run("policy", world(), 3), "policy must be"),
        (lambda: mb.run(bandit(), lambda a: 1.0, 3), "FunctionEnvironment"),
        (lambda: mb.run(bandit(), world(), 0), "rounds"),
        (lambda: mb.run(bandit(), world(), 3, batch=0), "batch"),
        (lambda: mb.run(bandit(), world(), 3, delay=-1), "delay"),
        (lambda: mb.run(bandit(), world(), 3, delay=None), "delay"),
        (lambda: mb.run(bandit(actions=3 * ARMS.actions), world(), 3), "chooses from"),
        (lambda: mb.run(bandit(), world(), 3, stop_when=0.1), "stop_when"),
        (lambda: mb.stop_when(gap=-1.0), "gap"),
    ],
)
def test_bad_arguments_are_refused(call, says):
    with pytest.raises(mb.InvalidInput, match=says):
        call()


def test_a_record_knows_its_regret():
    fields = {"id": 0, "action": np.zeros(1), "label": None, "context": None, "lower": 0.0, "upper": 1.0}
    rest = {"trusted": True, "reward": 0.0, "told": 0, "ask_seconds": 0.0, "tell_seconds": 0.0}
    assert Record(round=0, expected=0.25, best=1.0, **fields, **rest).regret == 0.75
    assert Record(round=0, expected=None, best=1.0, **fields, **rest).regret is None


@pytest.mark.parametrize("option", ["quick", "track_regret"])
def test_a_checkpoint_is_of_a_run_with_the_same_options(option, tmp_path):
    """They were overwritten in silence by those of the file."""
    given = {"quick": True, "track_regret": False}
    mb.run(bandit(), world(), 3, checkpoint=tmp_path / "run", progress=False)
    with pytest.raises(mb.InvalidInput, match=f"another policy .{option}: "):
        mb.run(bandit(**{option: given[option]}), world(), 6, checkpoint=tmp_path / "run", progress=False)


def test_a_checkpoint_is_of_a_run_with_the_same_rule(tmp_path):
    def playing(rule):
        return Policy(bandit().sequence.copy(), bandit().actions, rule=rule, rng=0)

    mb.run(playing(Thompson()), world(), 3, checkpoint=tmp_path / "run", progress=False)
    with pytest.raises(mb.InvalidInput, match=r"another policy \(rule: .*Uniform.* and .*Thompson"):
        mb.run(playing(Uniformly()), world(), 6, checkpoint=tmp_path / "run", progress=False)


@pytest.mark.parametrize("odd", [None, "x", np.nan, 1.0, 1j, [], {}, np.array([0, 1]), True])
def test_an_index_that_is_none_is_refused(odd):
    records = mb.Records()
    with pytest.raises(mb.InvalidInput, match="index of records"):
        _ = records[odd]
    for beyond in (0, -1, 10**400):
        with pytest.raises(mb.InvalidInput, match="there are 0 records"):
            _ = records[beyond]
        with pytest.raises(IndexError):
            _ = records[beyond]
    assert records[:3] == []


@pytest.mark.parametrize("name", ["delay", "progress"])
@pytest.mark.parametrize("function", [lambda: 1, lambda one: 1, lambda one, two, three: 1, len])
def test_functions_of_other_arguments_are_refused_before_the_first_round(name, function):
    policy = bandit()
    before = policy.state
    with pytest.raises(mb.InvalidInput, match=f"{name} must take"):
        mb.run(policy, world(), 3, **{name: function})
    assert policy.state is before

"""Damaged and forged state files: each is refused by name, or what it holds works.

Damage changes the bytes of a real file. Forgery changes its tree of values, anywhere and anyhow, and the checksum is
right. What loads must then work in use: ask, tell, bounds, a certificate, save, load again, without a foreign error and
without NaN.
"""

import base64
import functools
import hashlib
import json
import math
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit._files import FORMAT, MAGIC, encoded, read_state
from tests.battery.call import SAME_IDS
from tests.battery.tally import Progress, Tally, silent

STATED = {"sigma": 0.2, "norm_bound": 2.0, "delta": 0.05}
ARMS = np.array([[0.1, 0.9], [0.8, 0.3], [0.5, 0.5], [-0.4, 0.7]])
# What objects that were never saved say as well: data may refute what is stated, rewards lie outside of their range,
# and arms be too large to learn from.
ANSWERS = re.compile(r"refute|features\[.*must be finite and at most 1e\+50|must lie in reward_range")


# What is saved: policies, sequences, tuners, spaces and runs, small but with something in every field.


def _phi():
    return mb.RandomFourier(2, 3, lengthscale=0.7, rng=0)


def _played(policy, rounds=4, pending=2, **options):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        policy.tell(policy.ask(**options), float(rng.normal(scale=0.2)))
    if pending:
        policy.ask(n=pending, **options)
    return policy


def _data(sequence, n=4):
    rng = np.random.default_rng(1)
    return sequence.update(rng.uniform(size=(n, sequence.features.dim_in)), 0.2 * rng.normal(size=n))


def _strict():
    arms = mb.Arms(ARMS, labels=["a", 2, 0.5, "θ"])
    policy = mb.CMMUCB(_phi(), actions=arms, **STATED, strict=True, keep_history=True, rng=1)
    _played(policy, pending=3)
    return policy.tell(policy.pending[-1], 0.1, 0.3)


def _contextual():
    phi = mb.Interaction(1, mb.WithConstant(1))
    policy = mb.AMMUCB(phi, actions=[[0.1], [0.9], [0.4]], **STATED, keep_history=True, rng=1)
    return _played(policy, context=[0.5])


def _offered():
    policy = mb.CMMUCB(mb.Disjoint(1, 3), **STATED, keep_history=True, rng=1)
    return _played(policy, arms=mb.Arms(range(3), labels=["a", "b", "c"]), context=[0.5])


def _mixed_box():
    space = mb.Space({"x": mb.Float(0, 1), "k": mb.Categorical(["a", "b"]), "n": mb.Int(1, 3)}, {"n": ("k", ["a"])})
    policy = mb.UCB(mb.MartingaleMixture(mb.RandomLayer(4, 3, rng=0), **STATED), space.region, quick=True, rng=2)
    return _played(policy, 2, 1)


def _tuner():
    space = {"x": mb.Float(0.1, 10, log=True), "k": mb.Categorical(["a", 1, None, math.inf]), "n": mb.Int(1, 3)}
    phi = mb.WithConstant(mb.RandomFourier(6, 3, rng=0))
    tuner = mb.Tuner(
        mb.Space(space, {"n": ("k", ["a", 1])}),
        reward_range=(0, 1),
        samples=50,
        rows="fresh",
        features=phi,
        initial=2,
        rng=1,
    )
    for i in range(4):
        tuner.tell(tuner.ask(), 0.5 + 0.1 * i)
    confirmation = tuner.confirm(2, finalists=1)
    tuner.tell(next(confirmation), 0.7)
    next(confirmation)
    tuner.adopt({"x": 0.1, "k": None})
    tuner.ask(2)
    return tuner


def _environment():
    return mb.LinearEnvironment(_phi(), np.array([0.3, -0.2, 0.1]), mb.Arms(ARMS), sigma=0.2, seed=1)


def _runner(**options):
    return mb.CMMUCB(_phi(), actions=mb.Arms(ARMS), **STATED, rng=5, **options)


def _mixture(mixture):
    return lambda: _data(mb.MartingaleMixture(_phi(), **STATED, mixture=mixture, reward_range=(-3, 3)))


def _decided(arms, contexts, **options):
    """A bandit with rewards on time, late and never, and arms that came and went."""
    bandit = mb.ContextualBandit(arms, rng=3, **options)
    with SAME_IDS:
        first, *late = bandit.ask_many(contexts)
        bandit.tell(first, 0.4).tell_many(late[1:3], [0.2, 0.9]).cancel(late[0])
        bandit.remove_arm("b").add_arm("d", {"size": 3.0, "kind": "y"} if isinstance(arms, dict) else None)
        bandit.ask(contexts[1], arms=["a", "d"])
        bandit.add_arm("b")
    return bandit


def _by_name():
    contexts = [{"tokens": 10.0 * t, "topic": ("code", "chat")[t % 2], "urgent": t == 3, "f": None} for t in range(6)]
    return _decided(["a", "b", 3], [*contexts, {"tokens": None, "topic": 4.0, "new": 1.0}])


def _described():
    arms = {"a": {"size": 1.0, "kind": "x"}, "b": {"size": 2.0, "kind": "y"}}
    return _decided(arms, [[0.1 * t, 0.5] for t in range(5)], features=2, floor=0.1, reward_range=(-1, 1))


def _blocks(one):
    blocks = mb.Blocks(one, ["a", 3, "θ"]).remove(3)
    blocks.add("late")
    return blocks.update([[0.1, 0.2, 0], [0.3, 0.4, 1], [0.5, 0.1, 0], [0.5, 0.5, 3]], [0.1, 0.2, -0.1, 0.3])


def _taught():
    blocks = _blocks(mb.MartingaleMixture(2, **STATED))
    blocks.add("taught", taught=True)
    return blocks.update([[0.2, 0.2, 4]], [0.1])


SAVED: dict[str, Callable[[], Any]] = {
    "strict arms": _strict,
    "box": lambda: _played(mb.AMMUCB(_phi(), actions=mb.Box([0, 0], [1, 1]), **STATED, quick=True, rng=1), 2, 1),
    "mixed box": _mixed_box,
    "context": _contextual,
    "offered arms": _offered,
    "OFUL": lambda: _played(mb.OFUL(2, actions=ARMS, **STATED, rng=1)),
    "IDS": lambda: _played(mb.IDS(2, actions=ARMS, **STATED, rng=1)),
    "FreqTS": lambda: _played(mb.FreqTS(2, actions=ARMS, **STATED, rng=1)),
    "Standard": _mixture(mb.Standard()),
    "Linear": _mixture(mb.Linear([0.1, 0.0, -0.1], np.diag([1.0, 2.0, 0.5]))),
    "Adaptive": _mixture(mb.Adaptive()),
    "SemiAdaptive": _mixture(mb.Grid([mb.SemiAdaptive(0.1), mb.SemiAdaptive(1.0, mb.RBF(0.5))])),
    "Gaussian": _mixture(mb.Gaussian(0.1, mb.RBF([0.5, 1.0]))),
    "kernels": _mixture(mb.Gaussian(0.1, mb.RBF([0.5, 1.0]) * (mb.OverlapKernel([0, 1]) + mb.LinearKernel().on([1])))),
    "Grid": _mixture(mb.Grid([0.1, mb.Adaptive(0.2, mb.Matern(1.5)), mb.Adaptive()])),
    "unknown noise": lambda: _data(mb.UnknownNoise(_phi(), norm_bound=2.0, misspecification=0.01)),
    "bounded": lambda: _data(mb.BoundedMixture(_phi(), norm_bound=2.0, reward_range=(-5.0, 5.0), samples=100)),
    "general lambda": lambda: _data(mb.GeneralLambda(_phi(), **STATED, lam=20.0)),
    "OFUL sequence": lambda: _data(mb.OFULSequence(_phi(), **STATED)),
    "IGP": lambda: _data(mb.IGPSequence(_phi(), **STATED, horizon=100)),
    "several multipliers": lambda: _played(mb.AMMUCB(2, actions=ARMS, **STATED, alpha=[0.01, 0.1], rng=1)),
    "Bayes": lambda: _data(mb.BayesCredible(_phi(), sigma=0.2, mixture=mb.Scaled(0.3))),
    "tuner": _tuner,
    "space": lambda: _tuner().space,
    "run": _runner,
    "contextual bandit": _by_name,
    "arms with features": _described,
    "blocks": lambda: _blocks(mb.MartingaleMixture(2, **STATED)),
    "blocks with a taught arm": _taught,
    "blocks of unknown noise": lambda: _blocks(mb.UnknownNoise(2, norm_bound=2.0)),
}


@functools.cache
def tree(name: str) -> Any:
    """What is in a file of this name, as JSON."""
    made = SAVED[name]()
    if name == "run":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run"
            mb.run(made, _environment(), 5, delay=2, checkpoint=file, progress=False)
            state = read_state(file)
        for row in state["records"]["rows"]:  # measured times would make every run of the battery another one
            row["ask_seconds"] = row["tell_seconds"] = 0.001
        return encoded(state, "run")
    state = made.state_dict()
    if isinstance(made, mb.ContextualBandit):
        for event in state["events"]:
            event["time"] = 1.7e9  # the same in every run of the battery
    return encoded(state, "state")


# In use.


def _finite(*values):
    for value in values:
        assert np.isfinite(np.asarray(value, dtype=float)).all(), f"not finite: {value}"


def _use_sequence(sequence):
    rows = np.full((2, sequence.features.dim_in), 0.5)
    if isinstance(sequence.features, mb.Disjoint):
        rows[:, -1] = 0.0
    sequence.silent = True
    for _ in range(2):
        _finite(sequence.upper(rows), sequence.lower(rows), sequence.upper(rows, alpha=sequence.alpha0))
        sequence.update(rows, [0.1, -0.1])
    repr(sequence)


def _use_blocks(blocks):
    blocks.silent = True
    width = blocks.dim_in - 1
    for _ in range(2):
        for label in blocks.labels:
            row = np.array([[*np.full(width, 0.5), blocks.moment.arms.labels.index(label)]])
            _finite(blocks.upper(row), blocks.lower(row), blocks.of(label).upper(row[:, :-1]))
            blocks.update(row, [0.1])
        _finite(*blocks.interval(np.full(width, 0.5)))
        if blocks.growing:
            blocks.add(f"after {blocks.t}")
    repr(blocks)
    str(blocks.ledger)


def _use_bandit(bandit):
    width = getattr(getattr(bandit.state.features, "features", None), "dim_in", None)
    contexts = [{}, {"tokens": 5.0, "topic": "code"}] if width is None else [np.full(width, 0.5)] * 2
    low, high = bandit.reward_range
    for name in bandit.open:
        bandit.tell(name, 0.5 * (low + high))
    if bandit.arms:
        choices = [bandit.ask(contexts[0]), *bandit.ask_many(contexts)]
        for choice in choices:
            shares = np.asarray(choice.probabilities)
            _finite(shares)
            assert abs(shares.sum() - 1.0) < 1e-9
            assert shares.min() >= bandit.floor / len(shares) * (1.0 - 1e-9)
        bandit.tell_many(choices, [low, high, 0.5 * (low + high)])
        found = bandit.interval(contexts[0], norm_bound=1.0)
        _finite(found.lower, found.upper, found.estimate, found.shortfall)
        str(found)
        bandit.remove_arm(bandit.arms[0])
    assert not bandit.open
    repr(bandit)


def _use_policy(policy, thorough):
    policy.sequence.silent = True
    width = policy.sequence.features.dim_in
    own = width if policy.actions is None else policy.actions.dim
    offer = {} if own == width else {"context": np.full(width - own, 0.5)}
    if policy.actions is None:
        arms = np.full((2, width), 0.5)
        arms[:, -1] = 0.0, 1.0
        offer["arms"] = arms
    asked = policy.ask(n=2, **offer)
    for choice in (*asked, *policy.pending):
        _finite(choice.lower, choice.upper, choice.action)
    for choice in policy.pending:
        policy.tell(choice, 0.1)
    assert not policy.pending
    over = {("over" if name == "arms" else name): value for name, value in offer.items()}
    if thorough or isinstance(policy.actions, mb.Arms | None):
        found = policy.certificate(**over, proof="search" if isinstance(policy.actions, mb.Box) else None)
        _finite(found.lower, found.upper, found.gap)
        if isinstance(policy.actions, mb.Arms | None):
            _finite(policy.regret_bound().rounds, policy.regret_bound().hindsight or 0.0)
    _finite(policy.ask(**offer).upper)
    repr(policy)


def _use_tuner(tuner, thorough):
    _finite(*(trial.interval for trial in tuner.pending))
    tuner.tell(tuner.ask(), tuner.assumptions.offset)
    for trial in tuner.pending:
        tuner.tell(trial, tuner.assumptions.offset)
    _finite(tuner.ask().interval, *(told.interval for told in tuner.history if told.interval is not None))
    repr(tuner)
    if thorough:
        tuner.to_frame()
        _finite(tuner.recommend().interval)


def _use_space(space):
    for parameters in (*space.sample(2, rng=0), *space.spread(2, rng=0)):
        assert space.same(space.decode(space.encode(parameters)), parameters)
    space.region.sample(2, np.random.default_rng(0))


def use(name: str, file: Path, thorough: bool) -> None:
    """Load a file and work with what it holds; an error of ours while loading becomes `_Refused`."""
    if name == "run":
        policy = _runner()
        policy.sequence.silent = True
        records = mb.run(policy, _environment(), 7, delay=2, checkpoint=file, progress=False)
        assert len(records) >= 7
        _finite(records.column("upper"), records.column("reward"))
        records.to_rows()
        return
    try:
        loaded = mb.Space.from_state_dict(read_state(file)) if name == "space" else mb.load(file)
    except mb.MixbanditError as error:
        raise _Refused(error) from error
    if name == "space":
        _use_space(loaded)
        return
    try:
        if isinstance(loaded, mb.Tuner):
            _use_tuner(loaded, thorough)
        elif isinstance(loaded, mb.Policy):
            _use_policy(loaded, thorough)
        elif isinstance(loaded, mb.ContextualBandit):
            _use_bandit(loaded)
        elif isinstance(loaded, mb.Blocks):
            _use_blocks(loaded)
        else:
            _use_sequence(loaded)
    except (mb.AssumptionsRefuted, mb.InvalidInput) as error:
        if not ANSWERS.search(str(error)):
            raise
    mb.save(loaded, file)
    mb.load(file)


class _Refused(Exception):
    """An error of ours at load."""


# Forgery.

NUMBERS = (0, 1, -1, 2, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, -0.5, 1e-9, 1e-30, 1e-320, 1e30, 1e50,
           1e100, 1e200, 1e308, -1e308, -0.0, 5e-324)  # fmt: skip
SPECIAL = (None, True, False, "", "x", "nan", "__array__", "Box", "raise", "a", [], {}, [[]], [0], [0.5, 0.7],
           {"type": "x"}, {"__float__": "nan"}, {"__float__": "inf"}, {"__float__": "-inf"}, {"__float__": "x"},
           {"__escaped__": {}}, {"__escaped__": {"__float__": 1}}, {"__array__": "<f8"},
           {"__array__": "O", "shape": [1], "data": "AAAAAAAAAAA="},
           {"__array__": "<f8", "shape": [2**40, 2**20], "data": "AAAAAAAAAAA="})  # fmt: skip
TYPES = ("CMMUCB", "AMMUCB", "UCB", "OFUL", "IDS", "FreqTS", "Greedy", "Uniform", "Policy", "ThompsonSampling",
         "InformationDirected", "UniformSampling", "MartingaleMixture", "OFULSequence", "BayesCredible", "UnknownNoise",
         "BoundedMixture", "Bank", "IGPSequence", "GeneralLambda", "ResidualBallSequence", "Tuner", "Run", "Arms",
         "Box", "MixedBox", "Identity",
         "RandomFourier", "RandomLayer", "WithConstant", "Interaction", "Disjoint", "FromCallable", "Standard",
         "Scaled", "Linear", "Gaussian", "Adaptive", "SemiAdaptive", "Grid", "RBF", "Matern",
         "ConstantKernel", "LinearKernel", "PolynomialKernel", "SumKernel", "ProductKernel", "OnColumns",
         "OverlapKernel", "ConditionalKernel", "Float", "Int", "Categorical",
         "Optimism", "Thompson", "Uniformly", "LeastRegretPerInformation",
         "ContextualBandit", "Blocks", "NamedContexts", "MappedContexts", "RidgePerArm", "SharedRidge", "Optimistic",
         "decided in context", "reward", "decision cancelled", "arm added", "arm removed")  # fmt: skip


def _places(node, found=None):
    """All containers of the tree with their keys or indices; arrays count as one."""
    found = [] if found is None else found
    for key, part in list(node.items() if isinstance(node, dict) else enumerate(node)):
        found.append((node, key))
        if isinstance(part, dict | list) and not _is_array(part):
            _places(part, found)
    return found


def _is_array(node):
    return isinstance(node, dict) and node.keys() == {"__array__", "shape", "data"}


def _is_plain(node):
    return node is None or isinstance(node, bool | int | float) or _is_array(node)


def _array(values):
    return encoded(np.asarray(values, dtype=float), "array")


def _pick(rng, things):
    return things[int(rng.integers(len(things)))]


def _other_array(rng, node):
    """An array with another entry, size, shape, type or scale."""
    try:
        values = np.frombuffer(base64.b64decode(node["data"])).reshape(node["shape"]).copy()
    except (TypeError, ValueError):  # changed before
        values = np.zeros((2, 2))
    match int(rng.integers(8)):
        case 0 if values.size:
            i = int(rng.integers(values.size))
            at = values.flat[i]
            others = (np.nan, np.inf, -np.inf, 1e308, *(float(n) for n in NUMBERS if abs(n) < 1e300))
            similar = (0.0, -at, 2.0 * at, 0.5 * at, at + 1.0, at * (1.0 + 1e-6), 1e3 * at)
            values.flat[i] = _pick(rng, others if rng.random() < 0.4 else similar)
        case 1:
            values = values * float(10.0 ** _pick(rng, (-300, -30, -3, -1, 1, 3, 20, 60, 200)))
        case 2:
            values = values.T if values.ndim > 1 else values[None]
        case 3 if values.ndim:
            values = values[:-1] if rng.random() < 0.5 else np.concatenate((values, values[-1:]))
        case 4:
            values = values.reshape(-1) if rng.random() < 0.5 else np.zeros((0, 3))
        case 5:
            values = -values
        case 6:
            shapes = ([], [0], [-1], [2**62, 2], ["2"], [[]], None, [True], [1e3], node["shape"])
            return {**node, "shape": _pick(rng, shapes)}
        case 7:
            names = ("<i8", ">f8", "<f4", "|b1", "|u1", "O", "<M8[s]", "V8", "<c16", "", None)
            return {**node, "__array__": _pick(rng, names)}
    return _array(values)


def _similar(rng, node):
    """A value of the same kind."""
    if node is None or isinstance(node, bool):
        return _pick(rng, (None, True, False, 0, 1.0))
    if isinstance(node, int):
        return _pick(rng, (node + 1, node - 1, 0, 1, 2 * node, -node, 2.0, 10**6, 2**53, 2**60))
    return _pick(
        rng, (0.5 * node, 2.0 * node, -node, 0.0, 1.0, 1e-3 * node, 1e3 * node, 1e-15, 1e15, 1e-60, 1e60, 1e-180)
    )


def _forge(rng, root):
    """One change somewhere in the tree."""
    places = _places(root)
    if not places:  # all of it has been removed already
        return
    subtle = rng.random() < 0.5 and [(where, key) for where, key in places if _is_plain(where[key])]
    where, key = _pick(rng, subtle or places)
    node = where[key]
    roll = rng.random()
    if subtle and not _is_array(node):
        where[key] = _similar(rng, node)
    elif _is_array(node) and (subtle or roll < 0.6):
        where[key] = _other_array(rng, node)
    elif key == "type" and roll < 0.7:
        where[key] = _pick(rng, TYPES)
    elif roll < 0.45:
        where[key] = _pick(rng, NUMBERS if rng.random() < 0.5 else SPECIAL)
    elif roll < 0.6:
        del where[key]
    elif roll < 0.7:
        other, name = _pick(rng, _places(root))
        where[key] = json.loads(json.dumps(other[name]))
    elif roll < 0.8:
        if isinstance(where, list):
            where.insert(int(rng.integers(len(where) + 1)), json.loads(json.dumps(node)))
        else:
            where[_pick(rng, ("x", "type", "__float__", "cost", f"{key}_"))] = node
    elif roll < 0.9:
        other, name = _pick(rng, _places(root))
        mine, theirs = json.dumps(node), json.dumps(other[name])
        where[key] = json.loads(theirs)
        if name in other if isinstance(other, dict) else name < len(other):
            other[name] = json.loads(mine)
    elif roll < 0.95:
        depth = int(_pick(rng, (1, 2, 60, 150)))
        for _ in range(depth):
            node = [node] if rng.random() < 0.5 else {"a": node}
        where[key] = node
    else:
        where[key] = _array(rng.normal(size=tuple(rng.integers(0, 4, size=int(rng.integers(0, 4))))))


def _text(rng, root):
    """The tree as text, sometimes with what no JSON writer of ours would write."""
    text = json.dumps(root, separators=(",", ":"))
    if rng.random() < 0.95:
        return text
    token = _pick(
        rng,
        (
            "NaN",
            "-Infinity",
            "1e999",
            "9" * 5000,
            "[" * 3000 + "]" * 3000,
            '{"a":1,"a":2}',
            "[",
            "",
            "tru",
            '"\\ud800"',
        ),
    )
    at = text.find(":", int(rng.integers(len(text))))
    end = min((i for i in (text.find(",", at), text.find("}", at)) if i > 0), default=at + 1)
    return text[: at + 1] + token + text[end:]


def with_checksum(body: bytes) -> bytes:
    """A state file with this body."""
    return f"{MAGIC} {FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def forged(case: int, seed: int) -> tuple[str, bytes, bool]:
    """What is forged, the file, and whether it is used thoroughly."""
    rng = np.random.default_rng([seed, case])
    name = _pick(rng, list(SAVED))
    root = json.loads(json.dumps(tree(name)))
    for _ in range(int(_pick(rng, (1, 1, 1, 2, 3)))):
        _forge(rng, root)
    return name, with_checksum(_text(rng, root).encode()), rng.random() < 0.05


def run(budget: int, seed: int, progress: Progress = silent) -> Tally:
    """Damaged and forged files in turn, so many of both together."""
    tally = Tally("state files")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        for case in range(budget):
            reproduction = f"seed {seed} case {case}"
            if case % 2:
                name, content, thorough = forged(case, seed)
                file.write_bytes(content)
                action = functools.partial(use, name, file, thorough)
                _judge(tally, action, f"{reproduction}: forged {name}", may_refuse=name == "run")
            else:
                _damage(tally, file, case, seed, reproduction)
            progress(case + 1)
    return tally


def _judge(tally, action, reproduction, *, may_refuse):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)
            action()
    except _Refused:
        tally.note("forged and refused")
    except mb.MixbanditError as error:
        if may_refuse:
            tally.note("forged and refused")
        else:
            tally.fail(f"{reproduction}: in use, {type(error).__name__}: {error!s:.200}")
    except Exception as error:
        tally.fail(f"{reproduction}: {type(error).__name__}: {error!s:.200}")
    else:
        tally.note("forged, loaded and worked")


# Damage.


def _damaged(rng, content):
    """The bytes with a few changed, lost, doubled or exchanged."""
    data = bytearray(content)
    at = int(rng.integers(len(data)) if rng.random() < 0.7 else rng.integers(min(len(data), 90)))
    length = int(rng.integers(1, 40))
    match int(rng.integers(7)):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            del data[at:]
        case 2:
            del data[at : at + length]
        case 3:
            data[at:at] = rng.bytes(length)
        case 4:
            data[at:at] = data[at : at + length]
        case 5:
            data[at : at + length] = bytes(len(data[at : at + length]))
        case 6:
            data[at : at + length] = data[at : at + length][::-1]
    return bytes(data)


def _damage(tally, file, case, seed, reproduction):
    rng = np.random.default_rng([seed, case])
    name = _pick(rng, list(SAVED))
    good = with_checksum(json.dumps(tree(name), separators=(",", ":")).encode())
    bad = _damaged(rng, good)
    file.write_bytes(bad)
    try:
        read_state(file)
    except mb.DamagedState:
        tally.note("damaged and refused")
    except Exception as error:
        tally.fail(f"{reproduction}: damaged {name}: {type(error).__name__}: {error!s:.200}")
    else:
        if bad == good:
            tally.note("not changed by the damage")
        else:
            tally.fail(f"{reproduction}: damaged {name}: it was read all the same")

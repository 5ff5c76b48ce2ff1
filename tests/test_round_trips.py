"""Everything that can be made comes back from a file as it was, and gives the same bounds, however extreme."""

import itertools
import math

import numpy as np
import pytest

import mixbandit as mb
from mixbandit._files import digest, read_state, write_state

SIGMAS = (1e-20, 1e-11, 1.0, 1e20)
NORMS = (1e-20, 1e20)
DELTAS = (1e-200, 1 - 1e-16)
ROWS = np.array([[0.3, 0.6], [0.9, 0.1], [0.5, 0.5]])


def same_bounds(one, other):
    """Bounds, or the same error of ours, from both."""
    for alpha in (None, "alpha0"):
        found = []
        for sequence in (one, other):
            sequence.silent = True
            try:
                at = None if alpha is None else sequence.alpha0
                found.append((sequence.upper(ROWS, alpha=at).tolist(), sequence.lower(ROWS, alpha=at).tolist()))
            except mb.MixbanditError as error:
                found.append(str(error))
        assert repr(found[0]) == repr(found[1])


def came_back(made, path):
    mb.save(made, path)
    loaded = mb.load(path)
    assert digest(loaded.state_dict()) == digest(made.state_dict())
    assert type(loaded) is type(made)
    return loaded


SEQUENCES = {
    "martingale": lambda sigma, norm, delta: mb.MartingaleMixture(2, sigma=sigma, norm_bound=norm, delta=delta),
    "misspecified": lambda sigma, norm, delta: mb.MartingaleMixture(
        2,
        sigma=sigma,
        norm_bound=norm,
        delta=delta,
        misspecification=1e-3,
        reward_range=(-1e10, 1e10),
        on_empty="inflate",
    ),
    "OFUL": lambda sigma, norm, delta: mb.OFULSequence(2, sigma=sigma, norm_bound=norm, delta=delta),
    "IGP": lambda sigma, norm, delta: mb.IGPSequence(2, sigma=sigma, norm_bound=norm, delta=delta, eta=0.1),
    "OFUL with alpha": lambda sigma, norm, delta: mb.OFULSequence(
        2, sigma=sigma, norm_bound=norm, delta=delta, alpha=1e-40
    ),
    "Bayes": lambda sigma, norm, delta: mb.BayesCredible(2, sigma=sigma, norm_bound=norm, delta=delta),
    "unknown noise": lambda sigma, norm, delta: mb.UnknownNoise(2, norm_bound=norm, delta=delta),
    "bounded": lambda sigma, norm, delta: mb.BoundedMixture(
        2, norm_bound=norm, delta=delta, reward_range=(-1.0, 1.0), samples=100, on_empty="inflate"
    ),
    "general lambda": lambda sigma, norm, delta: mb.GeneralLambda(2, sigma=sigma, norm_bound=norm, delta=delta),
}


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_with_extreme_settings_come_back(kind, tmp_path):
    for sigma, norm, delta in itertools.product(SIGMAS, NORMS, DELTAS):
        sequence = SEQUENCES[kind](sigma, norm, delta)
        same_bounds(came_back(sequence, tmp_path / "empty"), sequence)
        sequence.update(ROWS, [0.1, -0.1, 0.0])
        loaded = came_back(sequence, tmp_path / "full")
        same_bounds(loaded, sequence)
        same_bounds(loaded.update(ROWS, [0.2, 0.1, 0.0]), sequence.update(ROWS, [0.2, 0.1, 0.0]))


@pytest.mark.parametrize("growing", [True, False])
def test_arms_with_extreme_settings_and_labels_come_back(growing, tmp_path):
    labels, rows = ["", "θ\x00\ud800", -(2**70), 1e300, -math.inf, "1", 1], np.column_stack((ROWS, [0, 5, 6]))
    probes = np.column_stack((np.tile(ROWS, (7, 1)), np.arange(21) % 7))
    for sigma, norm, delta in itertools.product(SIGMAS, NORMS, (1e-195, DELTAS[-1])):
        one = mb.MartingaleMixture(2, sigma=sigma, norm_bound=norm, delta=delta)
        sequence = mb.Blocks(one, labels, growing=growing)
        sequence.silent = True
        for values in ([0.1, -0.1, 0.0], [0.2, 0.1, 0.0]):
            loaded = came_back(sequence, tmp_path / "file")
            loaded.silent = True
            assert loaded.labels == labels
            for each in (sequence, loaded):
                each.update(rows, values, sigma=sigma)
            for alpha in (None, one.alpha0):
                found = [
                    (each.lower(probes, alpha).tolist(), each.upper(probes, alpha).tolist())
                    for each in (sequence, loaded)
                ]
                assert found[0] == found[1]
            assert digest(loaded.state_dict()) == digest(sequence.state_dict())
        if growing:
            sequence.add(" a.b[0]")
            came_back(sequence.remove(""), tmp_path / "file")


MIXTURES = {
    "tiny scale": mb.Scaled(1e-20),
    "huge scale": mb.Scaled(1e20),
    "linear": mb.Linear([1e40, -0.0], [[1e40, 0.0], [0.0, 1e30]]),
    "gaussian": mb.Gaussian(-0.0, mb.RBF(1e-20, 1e20)),
    "gaussian with a length-scale per input": mb.Gaussian(1e10, mb.Matern(0.5, [1e20, 0.1], 1e-20)),
    "adaptive": mb.Adaptive(),
    "adaptive with little noise": mb.Adaptive(1e-4),
    "adaptive kernel": mb.Adaptive(0.3, mb.Matern(2.5)),
    "semi-adaptive": mb.SemiAdaptive(0.3),
    "semi-adaptive kernel": mb.SemiAdaptive(1e-20, mb.Matern(2.5)),
    "combined kernels": mb.Gaussian(
        0.5, 1e-20 * mb.ConditionalKernel(mb.PolynomialKernel(3).on([1]), [0]) + mb.OverlapKernel([0, 1], 1e-20)
    ),
    "grid of unequal weights": mb.Grid([0.1, 1.0, 1e20], [1e-12, 1.0, 3.0]),
    "grid of grids": mb.Grid([mb.Grid([mb.Grid([1.0, 2.0, 3.0]), mb.Adaptive()], [0.1, 0.7]), 0.1], [1 / 3, 1 / 7]),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_come_back_to_the_bit(name, tmp_path):
    sequence = mb.MartingaleMixture(2, sigma=0.3, norm_bound=1e3, mixture=MIXTURES[name], on_empty="inflate")
    sequence.silent = True
    rng = np.random.default_rng(0)
    for start in (0, 3):
        loaded = came_back(sequence, tmp_path / "file")
        same_bounds(loaded, sequence)
        X, r = rng.uniform(size=(3, 2)), rng.normal(size=3)
        for each in (sequence, loaded):
            each.update(X, r, sigma=[0.3, 1e-3, 10.0] if start else None)
        assert digest(loaded.state_dict()) == digest(sequence.state_dict())


def test_weights_that_are_normalised_stay_as_they_are():
    rng = np.random.default_rng(0)
    for _ in range(200):
        grid = mb.Grid([1.0] * 7, rng.uniform(size=7))
        assert (mb.Grid(grid.members, grid.weights).weights == grid.weights).all()


FEATURES = {
    "identity": 2,
    "fourier": mb.RandomFourier(2, 3, [1e-20, 1e20], rng=0),
    "layer": mb.RandomLayer(2, 3, "relu", rng=0),
    "constant": mb.WithConstant(mb.WithConstant(2, 1e-20), 1e20),
    "interaction": mb.Interaction(mb.WithConstant(1), mb.RandomFourier(1, 2, rng=1)),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_come_back(name, tmp_path):
    sequence = mb.MartingaleMixture(FEATURES[name], sigma=0.1, norm_bound=2.0).update(ROWS, [0.1, 0.0, 0.2])
    same_bounds(came_back(sequence, tmp_path / "file"), sequence)


@pytest.mark.parametrize("kind", [mb.CMMUCB, mb.AMMUCB, mb.OFUL, mb.IDS, mb.FreqTS, mb.Greedy, mb.Uniform])
@pytest.mark.parametrize("sigma", [1e-20, 1e-11, 1e20])
def test_policies_with_extreme_noise_come_back(kind, sigma, tmp_path):
    arms = mb.Arms(ROWS, labels=["", "θ\x00\ud800", 2**70])
    policy = kind(2, actions=arms, sigma=sigma, norm_bound=1.0, rng=0)
    came_back(policy, tmp_path / "file")
    policy.ask(n=2)
    loaded = came_back(policy, tmp_path / "file")
    assert [choice.label for choice in loaded.pending] == [choice.label for choice in policy.pending]
    for each in (policy, loaded):
        each.tell(each.pending[0], 0.0)
    same_bounds(loaded.sequence, policy.sequence)


NAMES = ("__float__", "__array__", "__escaped__", "shape", "data", "type", "θ", " ", "a.b[0]", "\x00", "\ud800")
CHOICES = (
    True,
    1,
    1.0,
    0,
    False,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    None,
    "",
    "1",
    "nan",
    "__float__",
    2**63,
    -(2**70),
)


def spaces():
    yield mb.Space({name: mb.Float(0, 1) for name in NAMES})
    yield mb.Space({"__float__": mb.Float(0, 1)})
    yield mb.Space({"__float__": mb.Categorical(["nan", "inf"])})
    yield mb.Space({"__array__": mb.Categorical(["<f8"]), "shape": mb.Int(1, 3), "data": mb.Categorical(["AAAA"])})
    yield mb.Space(
        {"k": mb.Categorical(CHOICES), "x": mb.Float(1e-300, 1e300, log=True)}, {"x": ("k", [math.nan, 1.0])}
    )
    yield mb.Space({"x": mb.Float(-0.0, 5e-324), "y": mb.Float(-1e100, 1e100, step=1e99), "n": mb.Int(-(2**40), 2**40)})


@pytest.mark.parametrize("number", range(6))
def test_spaces_and_tuners_come_back(number, tmp_path):
    space = list(spaces())[number]
    write_state(tmp_path / "space", space.state_dict())
    loaded = mb.Space.from_state_dict(read_state(tmp_path / "space"))
    assert repr(loaded) == repr(space)
    tuner = mb.Tuner(space, reward_range=(0, 1), samples=10, rows="fresh", rng=0, initial=3)
    for i in range(4):
        tuner.tell(tuner.ask(), 0.1 * i)
    tuner.ask(2)
    again = came_back(tuner, tmp_path / "tuner")
    assert repr(again.history) == repr(tuner.history)
    assert repr([trial.parameters for trial in again.pending]) == repr([trial.parameters for trial in tuner.pending])
    for each in (tuner, again):
        each.tell(each.pending[0], 0.5)
    assert repr(again.ask().parameters) == repr(tuner.ask().parameters)


@pytest.mark.parametrize("stated", [
    {"sigma": 1e-20, "norm_bound": 1e-9},
    {"sigma": 1e-15, "norm_bound": 1.0, "delta": 1e-200},
    {"sigma": 1e9, "reward_range": (-1e9, 1e9), "direction": "minimize"},
    {"reward_range": (-1e-9, 1e-9), "samples": 2**40, "misspecification": 1e-12},
])  # fmt: skip
def test_tuners_with_extreme_assumptions_come_back(stated, tmp_path):
    tuner = mb.Tuner({"x": mb.Float(0, 1)}, **stated, rng=0, initial=1)
    came_back(tuner, tmp_path / "file")
    tuner.tell(tuner.ask(), 0.0)
    again = came_back(tuner, tmp_path / "file")
    assert again.interval({"x": 0.3}) == tuner.interval({"x": 0.3})


def wild_sequence(case):
    """A sequence whose stored numbers follow from each other, with settings and data of any size; None if refused."""
    rng = np.random.default_rng([11, case])

    def size(most):
        return float(10.0 ** rng.uniform(-most, most))

    kernel = mb.RBF(size(3), size(8)) if rng.random() < 0.5 else mb.Matern(float(rng.choice([0.5, 1.5, 2.5])), size(3))
    beta = None if rng.random() < 0.5 else size(10)
    scale = size(8)
    mixture = [
        mb.Adaptive(beta),
        mb.Gaussian(0.0, kernel),
        mb.Adaptive(beta, kernel),
        mb.SemiAdaptive(scale),
        mb.SemiAdaptive(scale, kernel),
    ][case % 5]
    sequence = mb.MartingaleMixture(
        2, sigma=size(10), norm_bound=size(8), mixture=mb.Grid([mixture]), on_empty="inflate"
    )
    sequence.silent = True
    rows = rng.normal(size=(int(rng.integers(1, 40)), 2)) * size(8)
    rows = rows[rng.integers(len(rows), size=int(rng.integers(1, 60)))] * (1.0 + 1e-12 * rng.normal())
    levels = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-10, 10, size=len(rows))
    try:
        with np.errstate(all="ignore"):
            sequence.update(rows, size(8) * rng.normal(size=len(rows)), levels)
            finite = np.isfinite(sequence.upper(rows[:1])).all()
    except (mb.MixbanditError, OverflowError, FloatingPointError):
        return None
    return sequence if finite else None


@pytest.mark.parametrize("case", range(75))
def test_no_true_state_is_taken_for_a_damaged_one(case, tmp_path):
    """The checks of what is stored allow for rounding, however badly conditioned the numbers are."""
    sequence = wild_sequence(case)
    if sequence is not None:
        came_back(sequence, tmp_path / "file")

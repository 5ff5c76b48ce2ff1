"""The paper's bandit problem: tune a support vector machine by its accuracy on a few validation points.

The paper says what is tuned, and leaves the rest open; we decide it here. A repetition splits a data
set at random into 50 % training, 25 % validation and 25 % test rows and scales columns to mean 0 and variance 1 on the
training rows. An action a in the unit box sets C = 10^(−2 + 4a₀) and, for column i, the length-scale 10^(−2 + 3aᵢ) of a
Gaussian kernel. The reward is the accuracy on 100 validation points drawn with replacement: its expectation is the
validation accuracy, and by Hoeffding's lemma it is 0.05-sub-Gaussian. Tables and curves report the test accuracy.

All algorithms get the same split, the same features and, round by round, the same validation points. The function is
not linear in 20 random features: bounds on it are not guaranteed here, and the experiment does not need them to be.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, one_of, positive_int, probability
from mixbandit._extras import import_extra
from mixbandit.actions import Box
from mixbandit.bandits import Policy
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput
from mixbandit.features import RandomLayer
from mixbandit.mixtures import Adaptive, Standard
from mixbandit.paper.datasets import Dataset, load_dataset
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.regret import ALGORITHMS

PAPER_DATASETS = ("raisin", "maternal", "banknotes")
PAPER_ALGORITHMS = ("CMM-UCB", "AMM-UCB", "OFUL", "IDS", "Freq-TS")
MIXTURES = {"standard": Standard, "adaptive": Adaptive}
# Rounds between two recorded radii.
RADIUS_EVERY = 5
# Below e^−700 kernel values are as good as 0, and further down arithmetic gets slow.
_LEAST_EXPONENT = -700.0
_KERNEL_MEGABYTES = 100


@dataclass(frozen=True)
class SvmSettings:
    """One algorithm on one data set."""

    dataset: str = "raisin"
    algorithm: str = "CMM-UCB"
    mixture: str = "standard"
    rounds: int = 500
    dim: int = 20
    activation: str = "tanh"
    sigma: float = 0.05
    norm_bound: float = 10.0
    delta: float = 0.01
    validation_draws: int = 100
    training: float = 0.5  # share of the rows; half of the rest validates, half tests
    candidates: int = 0  # the number of random points to choose from each round; 0 for the whole box
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.algorithm, tuple(ALGORITHMS), "algorithm")
        one_of(self.mixture, tuple(MIXTURES), "mixture")
        if self.mixture != "standard" and self.algorithm not in ("CMM-UCB", "AMM-UCB"):
            raise InvalidInput(f"{self.algorithm} has no mixture to choose, got mixture={self.mixture!r}")
        for name in ("rounds", "dim", "validation_draws"):
            positive_int(getattr(self, name), name)
        probability(self.delta, "delta")
        probability(self.training, "training")
        if self.candidates:
            positive_int(self.candidates, "candidates")

    @property
    def label(self) -> str:
        special = [self.mixture] if self.mixture != "standard" else []
        special += [f"{self.candidates} candidates"] if self.candidates else []
        special += [f"{self.training:.0%} training"] if self.training != 0.5 else []
        return ", ".join((self.dataset, self.algorithm, *special))


class SvmTask:
    """Accuracies of support vector machines on one random split of a data set."""

    def __init__(self, dataset: Dataset, rng: np.random.Generator, training: float = 0.5) -> None:
        import_extra("sklearn", extra="experiments")
        n = len(dataset.y)
        order = rng.permutation(n)
        self._train, self._validation = int(training * n), int(0.5 * (1.0 - training) * n)
        X, self._y = dataset.X[order], dataset.y[order]
        spread = X[: self._train].std(axis=0)
        self._X = (X - X[: self._train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        self._exponents = np.empty((n, self._train))
        self.dim = 1 + X.shape[1]
        self.test_size = n - self._train - self._validation

    def correct(self, action: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which validation rows, and which test rows, the machine with these hyperparameters gets right."""
        from sklearn import config_context
        from sklearn.svm import SVC

        kernel = self._kernel(10.0 ** (3.0 * action[1:] - 2.0))
        # With our precomputed kernel a fit takes less than half the time that libsvm needs with its own.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            machine = SVC(C=float(10.0 ** (4.0 * action[0] - 2.0)), kernel="precomputed", cache_size=_KERNEL_MEGABYTES)
            machine.fit(kernel[: self._train], self._y[: self._train])
            right = machine.predict(kernel[self._train :]) == self._y[self._train :]
        return right[: self._validation], right[self._validation :]

    def _kernel(self, lengthscales: Array) -> Array:
        """exp(−½ ‖(x − x')/ℓ‖²) of all rows with the training rows, in memory that the next call reuses."""
        X = self._X / lengthscales
        half_squares = 0.5 * np.einsum("ij,ij->i", X, X)[:, None]
        ones = np.ones_like(half_squares)
        left, right = np.hstack((X, -half_squares, ones)), np.hstack((X, ones, -half_squares))
        np.matmul(left, right[: self._train].T, out=self._exponents)
        np.clip(self._exponents, _LEAST_EXPONENT, 0.0, out=self._exponents)
        return np.exp(self._exponents, out=self._exponents)


COLUMNS = ("mean", "maximum", "validation", "refuted", "choosing_ms", "fitting_ms", "test_size", "test", "radius")


@dataclass(frozen=True)
class SvmTuning:
    """Results of one algorithm on one data set, a row per repetition."""

    settings: SvmSettings
    accuracy: Array  # (repetitions, rounds), on the test rows
    validation: Array  # (repetitions,), mean over rounds of the expected reward
    refuted: Array  # 1 where the data refuted the assumptions
    choosing_ms: Array  # per round, of processor time: other work on the machine does not count
    fitting_ms: Array
    radius: Array | None  # (repetitions, looks), for AMM-UCB

    @property
    def mean(self) -> Array:
        """Per repetition."""
        return np.asarray(self.accuracy.mean(axis=1))

    @property
    def maximum(self) -> Array:
        return np.asarray(self.accuracy.max(axis=1))


def radius_rounds(rounds: int) -> list[int]:
    """The rounds after which the radius is recorded: regularly, and after the last one."""
    return sorted({*range(RADIUS_EVERY, rounds + 1, RADIUS_EVERY), rounds})


def player(settings: SvmSettings, features: RandomLayer, actions: Box | None, seed: np.random.SeedSequence) -> Policy:
    """The algorithm with the paper's settings. It continues when data refute the assumptions, as they do here."""
    mixture = {} if settings.mixture == "standard" else {"mixture": MIXTURES[settings.mixture]()}
    return ALGORITHMS[settings.algorithm](
        features,
        actions=actions,
        sigma=settings.sigma,
        norm_bound=settings.norm_bound,
        delta=settings.delta,
        on_empty="inflate",
        track_regret=False,
        rng=np.random.default_rng(seed),
        **mixture,
    )


def simulate(settings: SvmSettings, repetition: int) -> tuple[Any, ...]:
    """Play one repetition. Its seeds do not depend on the algorithm."""
    seeds = np.random.SeedSequence(settings.seed, spawn_key=(repetition,)).spawn(5)
    svm = SvmTask(load_dataset(settings.dataset), np.random.default_rng(seeds[0]), settings.training)
    features = RandomLayer(svm.dim, settings.dim, settings.activation, rng=np.random.default_rng(seeds[1]))
    box = Box(np.zeros(svm.dim), np.ones(svm.dim))
    policy = player(settings, features, None if settings.candidates else box, seeds[2])
    candidates = np.random.default_rng(seeds[4])
    validation, test, radii, kept = [], [], [], set(radius_rounds(settings.rounds))
    fitting, started = 0.0, time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)
        for draws in seeds[3].spawn(settings.rounds):
            choice = policy.ask(box.sample(settings.candidates, candidates) if settings.candidates else None)
            before = time.process_time()
            right, right_on_test = svm.correct(choice.action)
            fitting += time.process_time() - before
            drawn = np.random.default_rng(draws).integers(len(right), size=settings.validation_draws)
            policy.tell(choice, float(right[drawn].mean()))
            validation.append(float(right.mean()))
            test.append(int(right_on_test.sum()))
            if settings.algorithm == "AMM-UCB" and policy.rounds in kept:
                radii.append(policy.moment.closed_form.radius)
        refuted = int(policy.refuted)
    choosing = time.process_time() - started - fitting
    return (
        f"{np.mean(test) / svm.test_size:.6f}", f"{max(test) / svm.test_size:.6f}", f"{np.mean(validation):.6f}",
        refuted, f"{1e3 * choosing / settings.rounds:.4g}", f"{1e3 * fitting / settings.rounds:.4g}",
        svm.test_size, " ".join(map(str, test)), " ".join(f"{r:.6g}" for r in radii),
    )  # fmt: skip


def measure(
    settings: SvmSettings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> SvmTuning:
    """Play `repetitions` times, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("svm", simulate, settings, COLUMNS, repetitions, **how)
    radius = numbers(rows, "radius")
    return SvmTuning(
        settings=settings,
        accuracy=numbers(rows, "test") / numbers(rows, "test_size"),
        validation=numbers(rows, "validation")[:, 0],
        refuted=numbers(rows, "refuted")[:, 0],
        choosing_ms=numbers(rows, "choosing_ms")[:, 0],
        fitting_ms=numbers(rows, "fitting_ms")[:, 0],
        radius=radius if radius.size else None,
    )

"""Does a sequence hold at all times at once? Simulate it and count the runs in which it ever missed θ*.

A run draws θ*, plays T rounds and notes the first round after which the set does not contain θ*. Every design
chooses from fresh options each round, the adaptive ones by looking at the bounds:

- "iid": the first of a pool of actions;
- "optimistic": the largest upper bound in the pool, as a UCB algorithm does;
- "chasing": the action at which the truth is nearest to leaving its interval, with θ* known;
- "contexts": a context arrives and one of a few arms is chosen, the one with the largest upper bound. Every arm has
  parameters of its own (`Disjoint`), and θ* is all of them;
- "one mean": the same action every round, whose expected reward is the first coordinate of θ*. Looking after every
  round is the adversary here: it stops where the set has missed.

Rewards arrive in one of these ways, in the words of `paper.delays`:

- "at once";
- "independent": half of them late, whatever they are; they count in order of arrival;
- "by value": those with noise below 0 late, in order of arrival. Theory promises nothing here;
- "by value in order of play": the same, but a reward waits until all earlier ones are in.

Rewards that are on their way when a run ends do not count. Noise laws are σ-sub-Gaussian, as `environments.noisy`
describes them. Where rewards are means of results in [0, 1], expected rewards are "anywhere" or "near an end": all
below 0.05, or all above 0.95.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array, one_of, positive, positive_int, probability
from mixbandit.errors import InvalidInput
from mixbandit.features import Disjoint
from mixbandit.means import MeanSequence
from mixbandit.mixtures import Adaptive, Grid, Linear, Scaled
from mixbandit.paper.delays import DelaySettings, wait
from mixbandit.paper.general_lambda import GeneralLambda
from mixbandit.paper.parallel import ALONE, Workers, repeat
from mixbandit.paper.store import SIGNIFICANCE, ResultStore, binomial_interval, binomial_pvalue, write_table
from mixbandit.sequences import BayesCredible, BoundedMixture, MartingaleMixture, OFULSequence, UnknownNoise
from mixbandit.simulate.environments import NOISES, RANGED, noisy, results_per_reward

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DESIGNS = ("iid", "optimistic", "chasing", "contexts", "one mean")
MEANS = ("anywhere", "near an end")
POOL = 20
ARMS = 4  # in the design "contexts"
NEAR = 0.05  # an end

ARRIVALS: dict[str, DelaySettings] = {
    "at once": DelaySettings("at once"),
    "independent": DelaySettings("independent"),
    "by value": DelaySettings("by value"),
    "by value in order of play": DelaySettings("by value", strict=True),
}


class Measured(Protocol):
    """What is asked of a sequence."""

    @property
    def guarantee(self) -> str: ...
    def update(self, actions: Array, rewards: float, /) -> object: ...
    def contains(self, theta: Array, /) -> bool: ...
    def upper(self, actions: Array, /) -> Array: ...
    def lower(self, actions: Array, /) -> Array: ...


Factory = Callable[[Array, float, float], Measured]
"""Make a sequence from (θ*, σ, δ). Only deliberately right or wrong priors use more than θ*'s norm."""


class _Assumptions(TypedDict):
    sigma: float
    delta: float
    norm_bound: float


def _assumptions(theta: Array, sigma: float, delta: float) -> _Assumptions:
    # The norm bound is the tightest true one.
    return {"sigma": sigma, "delta": delta, "norm_bound": float(np.linalg.norm(theta))}


def _wrong_prior(theta: Array) -> Linear:
    """The paper's misspecified prior (Fig. 4): centred at −θ*, and confident."""
    return Linear(-theta, 0.1 * np.eye(len(theta)))


def _bounded(theta: Array, sigma: float, delta: float, *, exact: bool = False) -> BoundedMixture:
    bound, samples = float(np.linalg.norm(theta)), results_per_reward(sigma)
    return BoundedMixture(len(theta), norm_bound=bound, delta=delta, samples=samples, exact=exact)


class OneMean:
    """A `MeanSequence` that looks like a sequence for θ, of which it knows the first coordinate."""

    guarantee = "anytime"

    def __init__(self, sequence: MeanSequence, samples: int | None = None) -> None:
        self._sequence, self._samples = sequence, samples

    def update(self, actions: Array, rewards: float) -> None:
        """Learn a reward; there is one action."""
        self._sequence.update(rewards, self._samples)

    def contains(self, theta: Array) -> bool:
        """Whether the mean is in the interval."""
        return self._sequence.lower() <= float(theta[0]) <= self._sequence.upper()

    def upper(self, actions: Array) -> Array:
        """The same for all."""
        return np.full(len(actions), self._sequence.upper())

    def lower(self, actions: Array) -> Array:
        """The same for all."""
        return np.full(len(actions), self._sequence.lower())


SEQUENCES: dict[str, Factory] = {
    "standard": lambda th, s, d: MartingaleMixture(len(th), **_assumptions(th, s, d)),
    "scaled": lambda th, s, d: MartingaleMixture(len(th), **_assumptions(th, s, d), mixture=Scaled(0.1)),
    "wrong-prior": lambda th, s, d: MartingaleMixture(len(th), **_assumptions(th, s, d), mixture=_wrong_prior(th)),
    "grid": lambda th, s, d: MartingaleMixture(len(th), **_assumptions(th, s, d), mixture=Grid([0.01, 0.1, 1.0])),
    "adaptive": lambda th, s, d: MartingaleMixture(len(th), **_assumptions(th, s, d), mixture=Adaptive()),
    "lambda-half": lambda th, s, d: GeneralLambda(len(th), **_assumptions(th, s, d), lam=0.5 / s**2),
    "oful": lambda th, s, d: OFULSequence(len(th), **_assumptions(th, s, d)),
    "unknown-noise": lambda th, s, d: UnknownNoise(len(th), norm_bound=float(np.linalg.norm(th)), delta=d),
    "bounded": _bounded,
    "bounded-exact": functools.partial(_bounded, exact=True),
    "mean": lambda th, s, d: OneMean(MeanSequence((0.0, 1.0), d), results_per_reward(s)),
    "mean-sigma": lambda th, s, d: OneMean(MeanSequence(None, d, sigma=s)),
    "mean-gaussian": lambda th, s, d: OneMean(MeanSequence(None, d, noise="gaussian")),
    "bayes": lambda th, s, d: BayesCredible(len(th), **_assumptions(th, s, d)),
    "bayes-wrong": lambda th, s, d: BayesCredible(len(th), **_assumptions(th, s, d), mixture=_wrong_prior(th)),
}


_GAUSSIAN = ("unknown-noise", "mean-gaussian")
_IN_RANGE = ("bounded", "bounded-exact", "mean")
_ONE_MEAN = ("mean", "mean-sigma", "mean-gaussian")


def assumes_this_noise(sequence: str, noise: str) -> bool:
    """Whether the assumptions of a built-in sequence cover the noise: some are for Gaussian noise or a range alone."""
    return (sequence not in _GAUSSIAN or noise == "gaussian") and (sequence not in _IN_RANGE or noise in RANGED)


def assumes_this_design(sequence: str, design: str) -> bool:
    """Whether a built-in sequence speaks of what the design asks: those of one mean are for "one mean" alone."""
    return sequence not in _ONE_MEAN or design == "one mean"


_USUAL_SIGMA = 0.5


@dataclass(frozen=True)
class CoverageSettings:
    """One cell of the experiment; runs differ only in the streams of random numbers spawned for them.

    `dim` is the dimension of actions, or of contexts.
    """

    sequence: str = "standard"
    noise: str = "gaussian"
    design: str = "iid"
    dim: int = 5
    rounds: int = 200
    delta: float = 0.05
    sigma: float = _USUAL_SIGMA
    seed: int = 0
    feedback: str = "at once"
    late: int = 20  # how many rounds a late reward takes
    means: str = "anywhere"  # where expected rewards are; "near an end" is for rewards in a range

    def __post_init__(self) -> None:
        one_of(self.noise, NOISES, "noise")
        one_of(self.design, DESIGNS, "design")
        one_of(self.feedback, tuple(ARRIVALS), "feedback")
        one_of(self.means, MEANS, "means")
        if not assumes_this_noise(self.sequence, self.noise):
            assumed = "gaussian noise" if self.sequence in _GAUSSIAN else f"results in a range ({', '.join(RANGED)})"
            raise InvalidInput(f"the sequence {self.sequence!r} assumes {assumed}, got noise={self.noise!r}")
        if not assumes_this_design(self.sequence, self.design):
            raise InvalidInput(f"the sequence {self.sequence!r} is for one mean, got design={self.design!r}")
        if self.means != "anywhere" and self.noise not in RANGED:
            raise InvalidInput(f"means={self.means!r} needs results in a range, got noise={self.noise!r}")
        for name in ("dim", "rounds", "late"):
            object.__setattr__(self, name, positive_int(getattr(self, name), name))
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "seed", positive_int(self.seed + 1, "seed + 1") - 1)  # 0 is a valid seed
        noisy(0.5, self.noise, self.sigma, np.random.default_rng(0))  # rejects what cannot be simulated

    @property
    def label(self) -> str:
        return " / ".join((self.sequence, self.noise, *self.panel))

    @property
    def panel(self) -> tuple[str, ...]:
        """Design and feedback, and the rest where it is not the usual."""
        sigma = () if self.sigma == _USUAL_SIGMA else (f"σ = {self.sigma:g}",)
        return (self.design, self.feedback, *sigma, *(() if self.means == "anywhere" else (self.means,)))


@dataclass(frozen=True)
class Coverage:
    """The counts, and what they show."""

    settings: CoverageSettings
    guarantee: str
    first_misses: tuple[int, ...]  # per run, 0 for none

    @property
    def runs(self) -> int:
        return len(self.first_misses)

    @property
    def misses(self) -> int:
        return sum(time > 0 for time in self.first_misses)

    @property
    def pvalue(self) -> float:
        """The probability of at least this many misses at a true miss rate of δ."""
        return binomial_pvalue(self.misses, self.runs, self.settings.delta)

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper–Pearson 95 % interval of the miss rate."""
        return binomial_interval(self.misses, self.runs)

    @property
    def promised(self) -> bool:
        """Whether theory promises a miss rate of at most δ."""
        return self.guarantee == "anytime" and ARRIVALS[self.settings.feedback].valid

    @property
    def holds(self) -> bool:
        """Whether the misses are compatible with a miss rate of at most δ."""
        return self.pvalue >= SIGNIFICANCE


def draw(results: Sequence[Coverage]) -> Figure:
    """A panel per design, feedback and so on: share of runs missed over time, by sequence (colour) and noise (line)."""
    panels = list(dict.fromkeys(r.settings.panel for r in results))
    fig, axes = plots.figure(columns=len(panels), height=4.0, sharey=True)
    rounds, delta = results[0].settings.rounds, results[0].settings.delta
    for ax, panel in zip(axes, panels, strict=True):
        shown = {(r.settings.sequence, r.settings.noise): r.first_misses for r in results if r.settings.panel == panel}
        plots.miss_rates(ax, shown, rounds, delta)
        ax.set_title(", ".join(panel))
        ax.label_outer()
    axes[0].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(0.0, 0.97), ncols=2)
    return fig


def write_summary(path: Path, results: Sequence[Coverage], **known: object) -> None:
    """A CSV file with a row per cell, the version that made it, and other facts given."""
    columns = [field.name for field in dataclasses.fields(CoverageSettings)]
    columns += ["guarantee", "runs", "misses", "rate_low", "rate_high", "pvalue", "holds"]
    rows = []
    for r in results:
        low, high = r.interval
        row = [r.guarantee, r.runs, r.misses, f"{low:.5f}", f"{high:.5f}", f"{r.pvalue:.3g}", r.holds]
        rows.append([*dataclasses.asdict(r.settings).values(), *row])
    write_table(path, columns, rows, **known)


def write_by_sequence(path: Path, results: Sequence[Coverage], **known: object) -> None:
    """A CSV file with a row per sequence: its worst cell, its misses in all cells, and a verdict."""
    rows = []
    for name in dict.fromkeys(r.settings.sequence for r in results):
        cells = [r for r in results if r.settings.sequence == name]
        worst = max(cells, key=lambda r: r.misses / r.runs)
        where = ", ".join((worst.settings.noise, *worst.settings.panel))
        total = f"{sum(r.misses for r in cells)} of {sum(r.runs for r in cells)}"
        verdict = "within δ" if all(r.holds for r in cells) else "misses"
        there = f"{worst.misses} of {worst.runs}"
        rows.append([name, worst.guarantee, len(cells), total, where, there, verdict])
    columns = ["sequence", "guarantee", "cells", "runs missed", "worst cell", "runs missed there", "verdict"]
    write_table(path, columns, rows, **known)


def simulate(settings: CoverageSettings, run: int, factory: Factory) -> int:
    """The first round after which the set misses θ*, or 0."""
    world = World(settings, run)
    sequence = factory(world.theta, settings.sigma, settings.delta)
    for t in range(1, settings.rounds + 1):
        options = world.options()
        world.play(t, options[_choose(settings.design, sequence, options, world.theta)])
        for action, reward in world.arrived(t):
            sequence.update(action, reward)
            if not sequence.contains(world.theta):
                return t
    return 0


def measure(
    settings: CoverageSettings,
    runs: int,
    *,
    factory: Factory | None = None,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Coverage:
    """Simulate `runs` runs, resuming from those in `folder`.

    `factory` makes your own sequence; it must be picklable for more than one job. An interruption keeps the
    finished runs in `folder` and is re-raised.
    """
    if factory is None:
        one_of(settings.sequence, tuple(SEQUENCES), "sequence")
    elif settings.sequence in SEQUENCES:
        raise InvalidInput(f"your own factory needs a new name in the settings, not {settings.sequence!r}")
    make = SEQUENCES[settings.sequence] if factory is None else factory
    positive_int(runs, "runs")
    store = None if folder is None else ResultStore(folder, "coverage", settings, ("first_miss",))
    simulated = functools.partial(_simulate_named, settings, factory)
    seen = repeat(simulated, runs, store, workers=workers, progress=progress)
    guarantee = make(np.ones(settings.dim), settings.sigma, settings.delta).guarantee
    return Coverage(settings, guarantee, tuple(int(seen[run][0]) for run in range(runs)))


def _simulate_named(settings: CoverageSettings, factory: Factory | None, run: int) -> tuple[int]:
    # Built-in factories are looked up here, in the worker: a lambda cannot be sent between processes.
    return (simulate(settings, run, SEQUENCES[settings.sequence] if factory is None else factory),)


class World:
    """θ*, the options of each round, and rewards on their way.

    The seed and the run decide θ*, options and noise, whatever is chosen and however rewards arrive. (Only with
    results in a range does the noise, and with it what is drawn next, depend on what was chosen.)
    """

    def __init__(self, settings: CoverageSettings, run: int) -> None:
        self._settings, self._feedback = settings, ARRIVALS[settings.feedback]
        stream = np.random.SeedSequence([settings.seed, run])
        self._rng, self._of_delays = np.random.default_rng(stream), np.random.default_rng(stream.spawn(1)[0])
        self._disjoint = Disjoint(settings.dim, ARMS) if settings.design == "contexts" else None
        vectors = (1 if self._disjoint is None else ARMS, settings.dim)
        if settings.noise in RANGED:  # expected rewards, which are averages of coordinates, must be in it
            self.theta = self._rng.uniform(size=vectors).ravel()
            if settings.means == "near an end":
                self.theta = self._rng.integers(2) * (1.0 - NEAR) + NEAR * self.theta
        else:
            directions = self._rng.normal(size=vectors)
            self.theta = (directions / np.linalg.norm(directions, axis=1, keepdims=True)).ravel()
        self._underway: list[tuple[int, Array, float]] = []

    def options(self) -> Array:
        """Features of the actions to choose from this round, (POOL, dim); with contexts (ARMS, ARMS·dim)."""
        if self._settings.design == "one mean":
            return np.eye(1, self._settings.dim)
        if self._disjoint is None:
            return self._rows(POOL)
        context = np.repeat(self._rows(1), ARMS, axis=0)
        return self._disjoint(np.column_stack((context, np.arange(ARMS))))

    def play(self, t: int, action: Array) -> None:
        """Choose this action in round t."""
        reward = self.reward(action)
        noise = reward - float(action @ self.theta)
        # None would be a lost reward: no feedback here loses any.
        arrival = t + (wait(self._feedback.feedback, noise, self._of_delays, self._settings.late) or 0)
        if self._feedback.strict and self._underway:
            arrival = max(arrival, self._underway[-1][0])
        self._underway.append((arrival, action, reward))

    def arrived(self, t: int) -> list[tuple[Array, float]]:
        """Actions and rewards that arrive in round t, in order of play."""
        due = [(action, reward) for arrival, action, reward in self._underway if arrival <= t]
        self._underway = [part for part in self._underway if part[0] > t]
        return due

    def reward(self, action: Array) -> float:
        return noisy(float(action @ self.theta), self._settings.noise, self._settings.sigma, self._rng)

    def _rows(self, n: int) -> Array:
        dim = self._settings.dim
        if self._settings.noise in RANGED:
            return self._rng.dirichlet(np.ones(dim), size=n)
        return self._rng.normal(size=(n, dim)) / math.sqrt(dim)


def _choose(design: str, sequence: Measured, options: Array, theta: Array) -> int:
    if design in ("iid", "one mean"):
        return 0
    upper = sequence.upper(options)
    if design != "chasing":
        return int(np.argmax(upper))
    lower, truth = sequence.lower(options), options @ theta
    room = np.minimum(upper - truth, truth - lower) / (upper - lower)
    return int(np.argmin(room))

"""How much do the algorithms lose, and do their promises hold? Synthetic problems on a box.

A repetition draws random Fourier features, θ* ~ N(0, I) scaled down to norm B if needed, as the paper's figures do, and
plays T rounds on the unit box. All algorithms get the same problems and, round by round, the same noise. We count
the repetitions in which a statement was wrong: a regret bound below the regret, at any of the times checked; a
certificate that promises more than its action is worth, or that puts the optimum too low.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array, one_of, positive_int, probability
from mixbandit.actions import Box
from mixbandit.bandits import AMMUCB, CMMUCB, IDS, OFUL, FreqTS, Greedy, Policy, Uniform
from mixbandit.paper.functions import random_function
from mixbandit.paper.parallel import ALONE, Workers, gather, numbers
from mixbandit.paper.store import SIGNIFICANCE, binomial_pvalue, write_table
from mixbandit.simulate.environments import LinearEnvironment
from mixbandit.simulate.runner import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHMS: dict[str, Callable[..., Policy]] = {
    "CMM-UCB": CMMUCB,
    "AMM-UCB": AMMUCB,
    "OFUL": OFUL,
    "IDS": IDS,
    "Freq-TS": FreqTS,
    "Greedy": Greedy,
    "Uniform": Uniform,
}
# Times at which curves are drawn and promises are checked.
LOOKS = 20
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RegretSettings:
    """One algorithm on one family of problems."""

    algorithm: str = "CMM-UCB"
    dim_in: int = 2
    dim: int = 20
    lengthscale: float = 0.5
    rounds: int = 500
    sigma: float = 0.1
    norm_bound: float = 10.0
    delta: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.algorithm, tuple(ALGORITHMS), "algorithm")
        positive_int(self.rounds, "rounds")
        probability(self.delta, "delta")

    @property
    def looks(self) -> list[int]:
        """Rounds after which to check: about evenly spaced, the last one included."""
        return sorted({math.ceil(self.rounds * k / LOOKS) for k in range(1, LOOKS + 1)})


COLUMNS = ("widths", "hindsight", "gap", "proof", "regret_missed", "certificate_missed", "refuted",
           "milliseconds", "curve")  # fmt: skip


@dataclass(frozen=True)
class Regret:
    """Results of one algorithm, a row per repetition."""

    settings: RegretSettings
    curves: Array  # (repetitions, looks) cumulative regret
    widths: Array  # (repetitions,) bounds at the end
    hindsight: Array
    gap: Array
    proven: Array  # 1 where the certificate was proven at every look
    regret_missed: Array  # 1 where a bound was below the regret at some look
    certificate_missed: Array  # 1 where a proven certificate was wrong at some look
    refuted: Array  # 1 where the true assumptions were refuted
    milliseconds: Array  # per round, choosing and learning

    @property
    def final(self) -> Array:
        return self.curves[:, -1]

    def holds(self, misses: Array) -> bool:
        """Whether this many misses are compatible with a rate of at most δ, by a binomial test."""
        return binomial_pvalue(int(misses.sum()), len(misses), self.settings.delta) >= SIGNIFICANCE

    @property
    def promises_kept(self) -> bool:
        return all(self.holds(misses) for misses in (self.regret_missed, self.certificate_missed, self.refuted))


def problem(settings: RegretSettings, repetition: int) -> LinearEnvironment:
    """The same for every algorithm."""
    rng = np.random.default_rng([settings.seed, repetition])
    phi, theta = random_function(
        rng,
        dim_in=settings.dim_in,
        dim=settings.dim,
        lengthscale=settings.lengthscale,
        norm_bound=settings.norm_bound,
    )
    box = Box(np.zeros(settings.dim_in), np.ones(settings.dim_in))
    return LinearEnvironment(phi, theta, box, sigma=settings.sigma, seed=int(rng.integers(2**31)))


def player(settings: RegretSettings, environment: LinearEnvironment, repetition: int) -> Policy:
    """The algorithm, told what is true of the problem."""
    return ALGORITHMS[settings.algorithm](
        environment.features,
        actions=environment.actions,
        sigma=settings.sigma,
        norm_bound=settings.norm_bound,
        delta=settings.delta,
        keep_history=True,
        rng=np.random.default_rng([settings.seed, repetition, 1]),
    )


def simulate(settings: RegretSettings, repetition: int) -> tuple[Any, ...]:
    """Play one repetition, and check every promise at every look."""
    environment = problem(settings, repetition)
    policy = player(settings, environment, repetition)
    records, curve, proofs = None, [], set()
    regret_missed = certificate_missed = False
    seconds = 0.0
    optimum = environment.best(0)
    for look in settings.looks:
        started = time.perf_counter()
        records = run(policy, environment, look, records=records, progress=False)
        seconds += time.perf_counter() - started
        regret = float(records.cumulative_regret[-1])
        curve.append(regret)
        bound, found = policy.regret_bound(), policy.certificate()
        bounds = [b for b in (bound.widths, bound.hindsight) if b is not None]
        regret_missed |= any(b < regret * (1.0 - _ROUNDING) for b in bounds)
        worth = float(environment.features(found.action)[0] @ environment.theta)
        wrong = worth < found.lower - _ROUNDING or worth > found.upper + _ROUNDING
        too_low = optimum > found.optimum_upper + _ROUNDING or optimum - worth > found.gap + _ROUNDING
        certificate_missed |= wrong or (found.proven and too_low)
        proofs.add(found.proof)
    return (
        f"{bound.widths:.6g}", f"{bound.hindsight:.6g}", f"{found.gap:.6g}",
        "+".join(sorted(proofs)), int(regret_missed), int(certificate_missed), int(policy.refuted),
        f"{1e3 * seconds / settings.rounds:.4g}", " ".join(f"{x:.6g}" for x in curve),
    )  # fmt: skip


def measure(
    settings: RegretSettings,
    repetitions: int,
    *,
    folder: Path | None = None,
    workers: Workers = ALONE,
    progress: Callable[[int], None] = lambda done: None,
) -> Regret:
    """Play `repetitions` problems, resuming from those in `folder`."""
    how: dict[str, Any] = {"folder": folder, "workers": workers, "progress": progress}
    rows = gather("regret", simulate, settings, COLUMNS, repetitions, **how)
    scalars = (
        "widths",
        "hindsight",
        "gap",
        "regret_missed",
        "certificate_missed",
        "refuted",
        "milliseconds",
    )
    return Regret(
        settings=settings,
        curves=numbers(rows, "curve"),
        proven=np.array([float("search" not in row["proof"]) for row in rows]),
        **{name: numbers(rows, name)[:, 0] for name in scalars},
    )


def draw(results: Sequence[Regret]) -> Figure:
    """Cumulative regret over time, mean ± two standard errors; and what the bounds say at the end."""
    fig, (left, right) = plots.figure(columns=2, width=5.0, height=3.6)
    for i, r in enumerate(results):
        t, mean = np.array(r.settings.looks, dtype=np.float64), r.curves.mean(axis=0)
        error = 2.0 * r.curves.std(axis=0, ddof=1) / math.sqrt(len(r.curves)) if len(r.curves) > 1 else 0.0 * mean
        plots.curve(left, t, mean, label=r.settings.algorithm, position=i, low=mean - error, high=mean + error)
    left.set(xlabel="round", ylabel="cumulative regret", ylim=(0.0, None), xlim=(0.0, None))
    left.legend(fontsize="small")
    kinds = ("regret", "in hindsight", "widths")
    x = np.arange(len(results))
    for k, (kind, colour) in enumerate(zip(kinds, plots.COLOURS, strict=False)):
        values = [(r.final, r.hindsight, r.widths)[k].mean() for r in results]
        bars = right.bar(x + 0.25 * (k - 1.0), values, width=0.25, color=colour, label=kind, hatch=("", "//", "..")[k])
        right.bar_label(bars, fmt="%.0f", fontsize="x-small")
    right.set_xticks(x, [r.settings.algorithm for r in results])
    right.set(ylabel=f"after {results[0].settings.rounds} rounds", title="regret, and two bounds on it")
    right.legend(fontsize="small", loc="upper left")
    return fig


def write_summary(path: Path, results: Sequence[Regret]) -> None:
    """A CSV file with a row per algorithm, and the version that made it."""
    columns = [field.name for field in dataclasses.fields(RegretSettings)]
    means = ("final", "widths", "hindsight", "gap", "milliseconds")
    counts = ("proven", "regret_missed", "certificate_missed", "refuted")
    columns += ["repetitions", *means, "final_standard_error", *counts]
    rows = []
    for r in results:
        n = len(r.final)
        error = r.final.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
        row = [f"{getattr(r, name).mean():.5g}" for name in means] + [f"{error:.3g}"]
        row += [str(int(getattr(r, name).sum())) for name in counts]
        rows.append([*dataclasses.asdict(r.settings).values(), n, *row])
    write_table(path, columns, rows)

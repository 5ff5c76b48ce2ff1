"""The intervals of LinUCB in MABWiser and river beside ours, on the streams of `mixbandit coverage --design contexts`.

    pip install 'mixbandit[bench]'
    python benchmarks/linucb_coverage.py [--runs 200] [--out out/linucb] [--to docs/results/linucb_coverage.csv]

A context arrives, one of a few arms is chosen, and every arm has parameters of its own. Each player sees the same
contexts, noise and delays, and chooses for itself. Before every choice we look at its intervals for the expected
rewards of all arms. A run is missed if any of them, in any round, does not hold the truth. "Width needed" is the factor
by which all intervals would have to be stretched about their centres for 95 % of the runs not to be missed.

Theirs, with x the context, Xₖ and rₖ what arm k has returned:

- MABWiser: x·β̂ₖ ± α·√(xᵀ(XₖᵀXₖ + I)⁻¹x) with ridge estimates β̂ₖ. α is 1 by default. 1 + √(ln(2/δ)/2) is the α of the
  paper on LinUCB (Li et al., 2010), meant for one round and rewards that do not depend on earlier choices.
- river: x·mₖ ± √(1/β + xᵀSₖx), one standard deviation of a Bayesian regression with prior precision α = 1 and noise
  precision β = 1. It predicts a reward, noise included, so that it never gets narrower than 2/√β.

A run is stored in --out when it is done; the same command resumes there.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from river.bandit import LinUCBDisjoint

from mixbandit._checks import Array
from mixbandit.paper.coverage import ARMS, SEQUENCES, CoverageSettings, World
from mixbandit.paper.parallel import ALONE, gather
from mixbandit.paper.store import binomial_interval, write_table

COLUMNS = ("first_miss", "intervals_missed", "needed", "width", "last_width", "regret")
SCENARIOS = ((0.5, "at once"), (0.5, "independent"), (1.0, "at once"))  # noise level σ, how rewards arrive
ROUNDING = 1e-9


class Player(Protocol):
    """What is compared."""

    def intervals(self, options: Array) -> tuple[Array, Array]:
        """Lower and upper ends for the expected reward of every arm, (ARMS,); options are rows of features."""
        ...

    def score(self, lower: Array, upper: Array) -> Array:
        """The arm with the largest score is chosen."""
        ...

    def learn(self, action: Array, reward: float) -> None:
        """See the reward of an option."""
        ...


@dataclass
class Ours:
    """A confidence sequence, told the norm of θ* and, unless it is "unknown-noise", σ."""

    sequence: Any
    exploration: float = 1.0

    def intervals(self, options: Array) -> tuple[Array, Array]:
        return self.sequence.lower(options), self.sequence.upper(options)

    def score(self, lower: Array, upper: Array) -> Array:
        # As UCB(…, exploration=…) does it: intervals stay as they are, choices look at a part of their width.
        return (lower + upper) / 2 + self.exploration * (upper - lower) / 2

    def learn(self, action: Array, reward: float) -> None:
        self.sequence.update(action, reward)


class MABWiser:
    """Its `predict_expectations` are upper ends, for linear models: minus that of −x is the lower end of x."""

    def __init__(self, dim: int, alpha: float) -> None:
        self._mab = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=alpha))
        # It cannot predict before it is fitted; an empty context teaches it nothing.
        self._mab.fit(list(range(ARMS)), [0.0] * ARMS, np.zeros((ARMS, dim)))

    def intervals(self, options: Array) -> tuple[Array, Array]:
        _, context = parts(options[0])
        ends = self._mab.predict_expectations(np.array([context, -context]))
        upper, lower = (np.array([end[arm] for arm in range(ARMS)]) for end in ends)
        return -lower, upper

    def score(self, lower: Array, upper: Array) -> Array:
        return upper

    def learn(self, action: Array, reward: float) -> None:
        arm, context = parts(action)
        self._mab.partial_fit([arm], [reward], context[None, :])


class River:
    """Its bound is the mean plus one standard deviation of the regression of each arm."""

    def __init__(self, precision: float) -> None:
        self._policy: Any = LinUCBDisjoint(beta=precision, seed=0)  # typed in part only

    def intervals(self, options: Array) -> tuple[Array, Array]:
        context = named(parts(options[0])[1])
        # river has no public way to its bounds; this is what its own `pull` reads.
        models = self._policy._bayes_lin_regs
        seen = [models[arm].predict_one(context, with_dist=True) for arm in range(ARMS)]
        centre, deviation = np.array([d.mu for d in seen]), np.array([d.sigma for d in seen])
        return centre - deviation, centre + deviation

    def score(self, lower: Array, upper: Array) -> Array:
        return upper

    def learn(self, action: Array, reward: float) -> None:
        arm, context = parts(action)
        self._policy.update(arm, named(context), reward)


def parts(action: Array) -> tuple[int, Array]:
    """The arm and the context of a row of disjoint features, which is 0 outside of the arm's block."""
    blocks = action.reshape(ARMS, -1)
    arm = int(np.abs(blocks).sum(axis=1).argmax())
    return arm, blocks[arm]


def named(context: Array) -> dict[str, float]:
    return {str(i): float(value) for i, value in enumerate(context)}


PAPER_ALPHA = "MABWiser, α = 1 + √(ln(2/δ)/2)"
PLAYERS: dict[str, Callable[[CoverageSettings, Array], Player]] = {
    "mixbandit": lambda s, theta: Ours(SEQUENCES["standard"](theta, s.sigma, s.delta)),
    "mixbandit, acting on a fifth of the width": lambda s, theta: Ours(
        SEQUENCES["standard"](theta, s.sigma, s.delta), exploration=0.2
    ),
    "mixbandit, σ not told": lambda s, theta: Ours(SEQUENCES["unknown-noise"](theta, s.sigma, s.delta)),
    "OFUL (in mixbandit)": lambda s, theta: Ours(SEQUENCES["oful"](theta, s.sigma, s.delta)),
    "MABWiser, α = 1 (default)": lambda s, theta: MABWiser(s.dim, 1.0),
    "MABWiser, α = 1.5": lambda s, theta: MABWiser(s.dim, 1.5),
    PAPER_ALPHA: lambda s, theta: MABWiser(s.dim, 1 + math.sqrt(math.log(2 / s.delta) / 2)),
    "river, β = 1 (default)": lambda s, theta: River(1.0),
    "river, β = 1/σ²": lambda s, theta: River(1 / s.sigma**2),
}


@dataclass(frozen=True)
class Match:
    """One row of the table."""

    player: str
    sigma: float
    feedback: str
    rounds: int
    seed: int

    @property
    def world(self) -> CoverageSettings:
        return CoverageSettings(
            design="contexts", rounds=self.rounds, sigma=self.sigma, seed=self.seed, feedback=self.feedback
        )


def simulate(match: Match, run: int) -> tuple[Any, ...]:
    """One run: the values of COLUMNS."""
    world = World(match.world, run)
    player = PLAYERS[match.player](match.world, world.theta)
    first_miss, missed, needed, widths, regret = 0, 0, 0.0, [], 0.0
    for t in range(1, match.rounds + 1):
        options = world.options()
        truth = options @ world.theta
        lower, upper = player.intervals(options)
        outside = int(((truth < lower - ROUNDING) | (truth > upper + ROUNDING)).sum())
        missed += outside
        needed = max(needed, float((np.abs(2 * truth - lower - upper) / (upper - lower)).max()))
        if outside and not first_miss:
            first_miss = t
        widths.append(float((upper - lower).mean()))
        arm = int(np.argmax(player.score(lower, upper)))
        regret += float(truth.max() - truth[arm])
        world.play(t, options[arm])
        for action, reward in world.arrived(t):
            player.learn(action, reward)
    last = widths[-max(match.rounds // 10, 1) :]
    share = missed / (ARMS * match.rounds)
    return first_miss, share, needed, float(np.mean(widths)), float(np.mean(last)), regret


def row(match: Match, results: list[dict[str, str]]) -> list[Any]:
    """What is printed and written about all runs of a match."""
    values = {name: np.array([float(result[name]) for result in results]) for name in COLUMNS}
    n, misses = len(results), int((values["first_miss"] > 0).sum())
    low, high = binomial_interval(misses, n)
    error = values["regret"].std(ddof=1) / math.sqrt(n)
    return [
        f"{match.sigma:g}",
        match.feedback,
        match.player,
        f"{misses} of {n}",
        f"{100 * low:.1f}–{100 * high:.1f}",
        f"{100 * values['intervals_missed'].mean():.2f}",
        f"{np.quantile(values['needed'], 0.95):.2f}",
        f"{values['width'].mean():.2f}",
        f"{values['last_width'].mean():.2f}",
        f"{values['regret'].mean():.1f} ± {error:.1f}",
    ]


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="at least 2")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/linucb"), help="where runs are stored")
    parser.add_argument("--to", type=Path, default=None, help="a CSV file for the table")
    given = parser.parse_args()
    rows = []
    for match in (Match(p, *scenario, given.rounds, given.seed) for scenario in SCENARIOS for p in PLAYERS):

        def show(done: int, label: str = f"σ = {match.sigma:g}, {match.feedback}, {match.player}") -> None:
            print(f"\r{label}: {done} of {given.runs}", end="", file=sys.stderr, flush=True)

        found = gather("linucb", simulate, match, COLUMNS, given.runs, folder=given.out, workers=ALONE, progress=show)
        print(file=sys.stderr)
        rows.append(row(match, found))
        print(*rows[-1], sep=" | ", flush=True)
    if given.to is not None:
        columns = ["σ", "rewards arrive", "intervals of", "runs missed", "95 % interval, %", "intervals missed, %"]
        columns += ["width needed", "mean width", "at the end", "regret"]
        command = (
            f"python benchmarks/linucb_coverage.py --runs {given.runs} --rounds {given.rounds} --seed {given.seed}"
        )
        write_table(given.to, columns, rows, command=command, **versions())


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("mabwiser", "river")}


if __name__ == "__main__":
    main()

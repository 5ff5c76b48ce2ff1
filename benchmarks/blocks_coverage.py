"""How often bounds of `Blocks` are ever wrong, for any arm at any time, against an adversary who knows the truth.

    python benchmarks/blocks_coverage.py [--quick] [--runs 1000] [--out docs/results/blocks/coverage.csv]

Every arm has a parameter of its own, of norm B as stated. The adversary reads the evidence against each true parameter
(`log_evalue`), and always continues with the arm that is nearest to losing it, in the context whose interval is nearest
to missing the truth, scaled for a step that is not wasted by overshooting. An arm whose evidence has faded is left for
another one. A run stops, and is missed, as soon as the parameter of any arm leaves its set, or an interval its truth.

- chasing: six arms known at the start.
- arriving: two are known, and one more is added whenever the adversary has no hope left for those that are there.
- taught: the same, but those added are `taught`; the adversary picks their parameters, which oppose what was taught.
- coming back: arms are removed and brought back all the time, and rewards arrive for arms that have gone.
- restored: as "arriving", but saved and loaded every ten rounds.
- merged: six arms; shards of ten rewards each report to a centre, and the adversary sees the centre only.

Two more show what the guarantee does not cover:

- undone: a reward that lowers the evidence is undone and drawn again, up to five times.
- label reused: a new arm, with another parameter, is given under the label of an old one.

A run is stored in --store when it is done; the same command resumes there.
"""

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit._checks import Array
from mixbandit.paper.parallel import ALONE, gather
from mixbandit.paper.store import binomial_interval, binomial_pvalue, write_table

PROMISED = ("chasing", "arriving", "taught", "coming back", "restored", "merged")
DESIGNS = (*PROMISED, "undone", "label reused")
NOISES = ("gaussian", "rademacher")
COLUMNS = ("first_miss", "arms", "nearest", "refuted")
DELTA, SIGMA, BOUND, DIM = 0.05, 0.5, 1.0, 3
# An arm is left where the evidence against its parameter is less than this, in nats; and a run ends with so many arms.
FADED, MOST_ARMS = -4.0, 40
# φᵀV⁻¹φ of a step: smaller ones waste rounds, larger ones jump over the threshold.
STEP, CANDIDATES, SHARD, TRIES = 0.5, 12, 10, 5
ROUNDING = 1e-9


@dataclass(frozen=True)
class Attack:
    """One row of the table."""

    design: str
    noise: str
    rounds: int
    seed: int


class Adversary:
    """One run: the truth, the sequence, and what the adversary does."""

    def __init__(self, attack: Attack, run: int) -> None:
        key = [attack.seed, run, DESIGNS.index(attack.design), NOISES.index(attack.noise)]
        self.attack, self.rng = attack, np.random.default_rng(key)
        self.grows = attack.design in ("arriving", "taught", "restored")
        self.known = 2 if self.grows else 6
        self.one = mb.MartingaleMixture(DIM, sigma=SIGMA, norm_bound=BOUND, delta=DELTA)
        self.blocks = mb.Blocks(self.one, self.known, growing=attack.design != "chasing")
        self.shard = self.blocks.copy()
        self.truth = [self._parameter() for _ in range(self.known)]
        # What is missing to a refutation of each true parameter, in nats.
        self.missing = [-math.log(self._part(arm)) for arm in range(self.known)]
        self.start = list(self.missing)

    def play(self, t: int) -> int | None:
        """One round; the arm that has learnt, or None where the adversary cannot see that yet."""
        arm = int(np.argmin(self.missing))
        if self.grows and self.missing[arm] - self.start[arm] > -FADED and len(self.truth) < MOST_ARMS:
            arm = self._add()
        context = self._context(arm)
        if self.attack.design == "coming back":
            self._come_and_go(arm)
        if self.attack.design == "label reused" and t % 10 == 0:
            self.truth[arm] = self._parameter()
            self.blocks.remove(arm).add(arm)
        if self.attack.design == "restored" and t % 10 == 0:
            self.blocks = mb.Blocks.from_state_dict(self.blocks.state_dict())
        if self.attack.design == "merged":
            self.shard.update(np.append(context, arm), self._reward(arm, context))
            if t % SHARD:
                return None
            self.blocks, self.shard = self.blocks.merge(self.shard), mb.Blocks(self.one, 6)
            for each in range(6):
                self._look(each)
            return arm
        before, missing = self.blocks.copy(), self.missing[arm]
        self.blocks.update(np.append(context, arm), self._reward(arm, context))
        self._look(arm)
        tries = TRIES if self.attack.design == "undone" else 0
        while tries and self.missing[arm] > missing:
            self.blocks, tries = before.after(np.append(context, arm), self._reward(arm, context)), tries - 1
            self._look(arm)
        return arm

    def misses(self) -> bool:
        """Whether the parameter of any arm is outside of its set, or a truth of its interval."""
        if self.blocks.moment.is_empty:
            return True
        arm = int(np.argmin(self.missing))
        if not self.blocks.moment.members.of(arm).exact.contains(self.truth[arm], ROUNDING):
            return True
        if self.blocks.t % SHARD or not self.blocks.labels:
            return False
        context = self._worst(arm)
        found = self.blocks.interval(context)
        means = np.array([context @ theta for i, theta in enumerate(self.truth) if self._is_there(i)])
        slack = ROUNDING * np.linalg.norm(context) * BOUND
        return bool(((means < found.lower - slack) | (means > found.upper + slack)).any())

    def _part(self, arm: int) -> float:
        """An arm's part of δ, by the rule that is promised."""
        if self.attack.design == "chasing":
            return DELTA / self.known
        j = arm - self.known + 1
        return DELTA / (2 * self.known) if j <= 0 else DELTA / (2 * j * (j + 1))

    def _parameter(self) -> Array:
        found = self.rng.normal(size=DIM)
        return found * (BOUND / np.linalg.norm(found))

    def _reward(self, arm: int, context: Array) -> float:
        noise = self.rng.normal() if self.attack.noise == "gaussian" else self.rng.choice((-1.0, 1.0))
        return float(context @ self.truth[arm] + SIGMA * noise)

    def _add(self) -> int:
        theta, taught = self._parameter(), self.attack.design == "taught"
        if taught:
            centre = np.mean([self._estimate(arm)[0] for arm in range(len(self.truth))], axis=0)
            theta = -centre * (BOUND / np.linalg.norm(centre)) if np.linalg.norm(centre) else theta
        arm = self.blocks.add(taught=taught)
        self.truth.append(theta)
        self.missing.append(-math.log(self._part(arm)))
        self.start.append(self.missing[arm])
        return arm

    def _come_and_go(self, arm: int) -> None:
        if self._is_there(arm):
            self.blocks.remove(arm)
        elif self.rng.random() < 0.5:
            self.blocks.add(arm)

    def _is_there(self, arm: int) -> bool:
        return arm not in self.blocks.moment.arms.gone

    def _look(self, arm: int) -> None:
        belief = self.blocks.moment.members.of(arm)
        self.missing[arm] = -math.log(self._part(arm)) - float(belief.rule.log_evalue(belief.data, self.truth[arm]))

    def _estimate(self, arm: int) -> tuple[Array, Array]:
        """The estimate of an arm, and a root of V⁻¹."""
        closed: Any = self.blocks.moment.members.of(arm).closed_form
        ridge = self.blocks.moment.members.of(arm).data.ridge(self.blocks.alpha0)
        return closed.centre, ridge.root

    def _context(self, arm: int) -> Array:
        """The context whose interval is nearest to missing, of some."""
        estimate, root = self._estimate(arm)
        some: Array = self.rng.normal(size=(CANDIDATES, DIM))
        widths = np.linalg.norm(some @ root, axis=1)
        best = int(np.argmax(np.abs(some @ (estimate - self.truth[arm])) / widths))
        found: Array = some[best] * min(math.sqrt(STEP) / float(widths[best]), 100.0)
        return found

    def _worst(self, arm: int) -> Array:
        """The context in which the error is largest in half-widths of the closed form: V(θ̂ − θ*)."""
        estimate, root = self._estimate(arm)
        found = np.linalg.solve(root @ root.T, estimate - self.truth[arm])
        norm = np.linalg.norm(found)
        return found / norm if norm else np.ones(DIM)


def simulate(attack: Attack, run: int) -> tuple[Any, ...]:
    """One run: the values of COLUMNS."""
    adversary, first_miss, nearest = Adversary(attack, run), 0, math.inf
    for t in range(1, attack.rounds + 1):
        if adversary.play(t) is None:
            continue
        nearest = min(nearest, *adversary.missing)
        if adversary.misses():
            first_miss = t
            break
    return first_miss, len(adversary.truth), nearest, int(adversary.blocks.moment.is_refuted)


def row(attack: Attack, results: list[dict[str, str]]) -> list[Any]:
    """What is printed and written about all runs of an attack."""
    values = {name: np.array([float(result[name]) for result in results]) for name in COLUMNS}
    n, misses = len(results), int((values["first_miss"] > 0).sum())
    low, high = binomial_interval(misses, n)
    promised = attack.design in PROMISED
    return [
        attack.design,
        attack.noise,
        "yes" if promised else "no",
        f"{misses} of {n}",
        f"{100 * low:.1f}–{100 * high:.1f}",
        f"{binomial_pvalue(misses, n, DELTA):.3g}" if promised else "",
        f"{values['arms'].mean():.1f}",
        f"{np.median(values['nearest']):.2f}",
        f"{int(values['refuted'].sum())}",
    ]


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", type=Path, default=Path("out/blocks"), help="where runs are stored")
    parser.add_argument("--out", type=Path, default=None, help="a CSV file for the table")
    given = parser.parse_args()
    runs, rounds = (10, 40) if given.quick else (given.runs, given.rounds)
    columns = ["design", "noise", "promised", "runs missed", "95 % interval, %", "p-value of δ", "arms"]
    columns += ["nearest to a miss, nats", "runs refuted"]
    command = f"python benchmarks/blocks_coverage.py --runs {runs} --rounds {rounds} --seed {given.seed}"
    rows = []
    for attack in (Attack(design, noise, rounds, given.seed) for design in DESIGNS for noise in NOISES):

        def show(done: int, label: str = f"{attack.design}, {attack.noise}") -> None:
            print(f"\r{label}: {done} of {runs}", end="", file=sys.stderr, flush=True)

        found = gather("blocks", simulate, attack, COLUMNS, runs, folder=given.store, workers=ALONE, progress=show)
        print(file=sys.stderr)
        rows.append(row(attack, found))
        print(*rows[-1], sep=" | ", flush=True)
        if given.out is not None:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            write_table(given.out, columns, rows, command=command, seed=given.seed, delta=DELTA)


if __name__ == "__main__":
    main()

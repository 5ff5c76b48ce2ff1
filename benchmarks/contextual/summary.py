"""What was earned: shares of the best player's reward, wins against each other player, a picture."""

from __future__ import annotations

import csv
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from mixbandit import plots
from mixbandit.paper.store import ResultStore

from .play import COLUMNS, Settings


class Earned(NamedTuple):
    """What players earned in the same worlds."""

    worlds: list[str]
    players: list[str]
    rewards: np.ndarray  # (worlds, seeds, players)
    microseconds: np.ndarray  # of the median seed, (worlds, players)


def read(folder: Path, worlds: list[str], players: list[tuple[str, str]], seeds: int, rounds: int, late: int) -> Earned:
    """What `play` left in a folder. ValueError if anything is missing."""
    rewards = np.empty((len(worlds), seeds, len(players)))
    times = np.empty((len(worlds), len(players)))
    for i, world in enumerate(worlds):
        for j, (player, options) in enumerate(players):
            settings = Settings(world, player, options, rounds, late)
            rows = ResultStore(folder, "contextual", settings, COLUMNS).rows
            if missing := [seed for seed in range(seeds) if seed not in rows]:
                raise ValueError(f"{settings.label}: seeds {missing} were not played")
            table = np.array([rows[seed] for seed in range(seeds)], dtype=float)
            rewards[i, :, j] = table[:, COLUMNS.index("expected")]
            times[i, j] = np.median(table[:, COLUMNS.index("us")])
    names = [player if options == "{}" else f"{player} {options}" for player, options in players]
    return Earned(worlds, names, rewards, times)


def shares(earned: Earned) -> np.ndarray:
    """Of the reward of the player that earned most in the same world with the same seed, (worlds, seeds, players)."""
    return np.asarray(earned.rewards / earned.rewards.max(axis=2, keepdims=True))


def versus(earned: Earned, first: int, second: int) -> dict[str, float]:
    """How often one player is ahead of another: of pairs of worlds and seeds, and of worlds, with a sign test."""
    differences = earned.rewards[:, :, first] - earned.rewards[:, :, second]
    wins, losses = int((differences > 0.0).sum()), int((differences < 0.0).sum())
    means = differences.mean(axis=1)
    ahead, behind = int((means > 0.0).sum()), int((means < 0.0).sum())
    return {
        "pairs": wins / max(wins + losses, 1),
        "worlds_ahead": ahead,
        "worlds_behind": behind,
        "p": binomtest(ahead, ahead + behind).pvalue if ahead + behind else 1.0,
    }


def summarise(earned: Earned, to: Path, made_by: str) -> str:
    """Write tables, which say by what they were `made_by`, and a picture into a folder; returns a table to read."""
    to.mkdir(parents=True, exist_ok=True)
    share = shares(earned)
    mean, error = share.mean(axis=(0, 1)), share.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(share.shape[1])
    with (to / "shares.csv").open("w", newline="") as file:
        file.write(f"# {made_by}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["world", *earned.players])
        for world, row in zip(earned.worlds, earned.rewards.mean(axis=1), strict=True):
            writer.writerow([world, *(f"{value:.4f}" for value in row)])
        writer.writerow(["mean share", *(f"{value:.4f}" for value in mean)])
        writer.writerow(["standard error", *(f"{value:.4f}" for value in error)])
        writer.writerow(["median us", *(f"{value:.0f}" for value in np.median(earned.microseconds, axis=0))])
    with (to / "wins.csv").open("w", newline="") as file:
        file.write(f"# {made_by}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["player", "against", "share of pairs", "worlds ahead", "worlds behind", "p of a sign test"])
        for j, name in enumerate(earned.players):
            for k, other in enumerate(earned.players):
                if j != k:
                    found = versus(earned, j, k)
                    writer.writerow([name, other, f"{found['pairs']:.3f}", found["worlds_ahead"],
                                     found["worlds_behind"], f"{found['p']:.3g}"])  # fmt: skip
    _picture(earned, share, to / "shares.png")
    return "\n".join(f"{mean[j]:.3f} ± {error[j]:.3f}  {earned.players[j]}" for j in np.argsort(-mean))


def _picture(earned: Earned, share: np.ndarray, path: Path) -> None:
    """A row per player: its share in every world."""
    means = share.mean(axis=1)
    order = np.argsort(means.mean(axis=0))
    fig, (ax,) = plots.figure(width=7.0, height=0.5 * len(order) + 0.9)
    for place, j in enumerate(order):
        ax.plot(means[:, j], np.full(len(means), place), "o", color=plots.COLOURS[0], alpha=0.35, markersize=5)
        ax.plot(means[:, j].mean(), place, "|", color="black", markersize=16, markeredgewidth=2)
    ax.set_yticks(range(len(order)), [textwrap.fill(earned.players[j], 30) for j in order])
    ax.set(xlabel="share of the best player's reward: each world, and their mean", xlim=(None, 1.01))
    plots.save(fig, path)

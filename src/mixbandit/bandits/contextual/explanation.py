"""Why a decision was made: what was expected of each arm then, and which features said so."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbandit import plots
from mixbandit._checks import Array
from mixbandit.bandits.contextual.control import CONTROL
from mixbandit.bandits.contextual.events import DecidedInContext
from mixbandit.bandits.contextual.roster import Numbers
from mixbandit.bandits.contextual.state import State
from mixbandit.predictors import checked_contributions, checked_prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHER = "(no single feature)"
"""The name of what features contribute together."""
LOWEST = "(lowest possible reward)"
"""The name of what estimates start from, if it is not 0."""

# Contributions and arms that are shown.
_MOST_SHOWN = 8
_GREY = plots.COLOURS[8]
# A contribution below this share of the largest is not worth a word.
_LEAST_SHARE = 0.005
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Explanation:
    """What was expected when a decision was made; print it to read it.

    `estimate` and `spread` (K,) belong to `arms`, the arms that were eligible, in the order in which they came.
    `contributions[arm]` says what each feature added to the estimate of an arm; they sum to the estimate. Nothing about
    estimates is proven.
    """

    id: str
    arm: Hashable  # the one that was chosen
    group: str | None
    arms: tuple[Hashable, ...]
    estimate: Array
    spread: Array
    probabilities: Array
    runner_up: Hashable | None  # the arm with the highest estimate apart from the chosen one; None: there was no other
    contributions: dict[Hashable, dict[str, float]]
    rewards: int  # how many were known

    @property
    def probability(self) -> float:
        """The probability with which the arm was chosen."""
        return float(self.probabilities[self.arms.index(self.arm)])

    @property
    def margin(self) -> float | None:
        """How far the estimate of the chosen arm was above that of the runner-up; None if there was no other arm."""
        if self.runner_up is None:
            return None
        return float(self.estimate[self.arms.index(self.arm)] - self.estimate[self.arms.index(self.runner_up)])

    def __str__(self) -> str:
        count = f"{self.rewards:,} reward{'' if self.rewards == 1 else 's'}"
        lines = [f"{self.arm} was chosen with probability {self.probability:.4g}, after {count}{self._why()}"]
        width = max(len(str(arm)) for arm in self._shown())
        for arm in self._shown():
            i = self.arms.index(arm)
            lines.append(
                f"  {arm!s:<{width}}  {self.estimate[i]:.3g} ± {self.spread[i]:.2g}, "
                f"probability {self.probabilities[i]:.3g}"
            )
        left = len(self.arms) - len(self._shown())
        if left:
            lines.append(f"  and {left:,} more")
        lines.append(f"The estimate for {self.arm} adds up from {_listed(self.contributions[self.arm])}.")
        if self.runner_up is not None:
            lines.append(f"For {self.runner_up}: {_listed(self.contributions[self.runner_up])}.")
        lines.append("Estimates are predictions ± how uncertain the predictor was. Nothing about them is proven.")
        return "\n".join(lines)

    def _why(self) -> str:
        if self.runner_up is None:
            return ". No other arm was eligible."
        margin = self.margin
        assert margin is not None
        if self.group == CONTROL:
            return ", as the control, whatever was expected."
        if margin > 0.0:
            return f". Its estimate was the highest, by {margin:.3g} over {self.runner_up}."
        if margin == 0.0:
            return f". Its estimate and that of {self.runner_up} were equal."
        return f". The estimate for {self.runner_up} was higher, by {-margin:.3g}."

    def _shown(self) -> list[Hashable]:
        """The arms with the highest estimates, the chosen one first."""
        order = [self.arms[i] for i in np.argsort(-self.estimate, kind="stable")]
        return [self.arm, *(arm for arm in order if arm != self.arm)][:_MOST_SHOWN]

    def plot(self) -> Figure:
        """The estimates of the arms, and what the features contributed to the chosen one and the runner-up."""
        arms = self._shown()[::-1]
        names = _largest(self.contributions[self.arm])[::-1]
        fig, (left, right) = plots.figure(columns=2, height=1.0 + 0.3 * max(len(arms), len(names), 4), width=4.6)
        places = [self.arms.index(arm) for arm in arms]
        colours = [plots.COLOURS[0] if arm == self.arm else _GREY for arm in arms]
        left.barh(range(len(arms)), self.estimate[places], color=colours)
        left.errorbar(self.estimate[places], range(len(arms)), xerr=self.spread[places], fmt="none", ecolor="0.2")
        left.set_yticks(range(len(arms)), [_drawn(arm) for arm in arms])
        left.set(xlabel="estimate ± uncertainty", title=f"{_drawn(self.arm)} was chosen")
        shown = [(self.arm, plots.COLOURS[0], 0.2)]
        if self.runner_up is not None:
            shown.append((self.runner_up, _GREY, -0.2))
        for arm, colour, offset in shown:
            values = [self.contributions[arm].get(name, 0.0) for name in names]
            right.barh(np.arange(len(names)) + offset, values, height=0.4, color=colour, label=_drawn(arm))
        right.axvline(0.0, color="0.2", linewidth=0.8)
        right.set_yticks(range(len(names)), [_drawn(name) for name in names])
        right.set(xlabel="contribution to the estimate")
        right.legend()
        return fig


def explained(state: State, event: DecidedInContext, context: Any, reward_range: tuple[float, float]) -> Explanation:
    """Why a decision was made in this state, given its context as it was read then.

    Predictors know rewards in [0, 1]; what is said is in the range of rewards.
    """
    low, high = reward_range
    features = state.features.after(context)
    state = state.seeing(features)
    numbers: Numbers = state.roster.everyone if event.offered is None else event.offered
    labels = state.roster.names(numbers)
    offer = state.offer(features.row(context), numbers, labels)
    mean, spread = checked_prediction(state.predictor.predict(offer), (len(offer),))
    parts = checked_contributions(state.predictor.contributions(offer), offer)
    mean, spread, parts = low + (high - low) * mean, (high - low) * spread, (high - low) * parts
    names = [features.name(column) for column in range(parts.shape[1])]
    found = {}
    for label, own, each in zip(labels, mean.tolist(), parts, strict=True):
        known = {LOWEST: low} if low else {}
        for name, value in zip(names, each.tolist(), strict=True):
            known[name] = known.get(name, 0.0) + value  # two columns may have one name
        rest = own - sum(known.values())
        if abs(rest) > _ROUNDING * max(abs(own), abs(low), float(np.abs(each).sum())):
            known[OTHER] = known.get(OTHER, 0.0) + rest
        found[label] = known
    place = labels.index(event.label)
    others = [i for i in np.argsort(-mean, kind="stable").tolist() if i != place]
    return Explanation(
        event.id, event.label, event.group, labels, mean, spread, event.shares.array(),
        labels[others[0]] if others else None, found, state.counts.told,
    )  # fmt: skip


def _drawn(label: Hashable) -> str:
    """A label as matplotlib draws it as it is: it takes $ for mathematics, and hides what begins with _."""
    text = str(label).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _largest(parts: dict[str, float]) -> list[str]:
    """The features that contribute most."""
    order = sorted(parts, key=lambda name: -abs(parts[name]))[:_MOST_SHOWN]
    least = _LEAST_SHARE * abs(parts[order[0]])
    return [name for name in order if abs(parts[name]) > least] or order[:1]


def _listed(parts: dict[str, float]) -> str:
    """The largest contributions, in words."""
    names = _largest(parts)
    left = sum(value for name, value in parts.items() if name not in names)
    text = ", ".join(f"{name} {parts[name]:+.3g}" for name in names)
    others = sum(1 for name, value in parts.items() if value and name not in names)
    return f"{text}, {others} other feature{'' if others == 1 else 's'} {left:+.3g}" if others else text

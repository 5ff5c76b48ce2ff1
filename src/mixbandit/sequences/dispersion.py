"""What values in a known range say about their assumptions: scatter, suspected functions, and the audit.

Any forecaster gives an e-value against every function: with its cost C and the least Σ m ℓ(p, r) of functions within
the norm bound, ln M(θ*) ≥ min_θ Σ m ℓ(p, r) − C. **Scatter**: forecasters that expect values to spread more than their
results do, as they do if a model is trained anew for each value, refute the assumptions if they predict the values much
better than any function explains them. Without values at actions tried before, scatter can hardly be told from
roughness. **Suspects**: the same with forecasters on the kernels of functions that the model does not allow. Both tests
together have a δ of their own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mixbandit.data import Data
from mixbandit.mixtures import Bank
from mixbandit.models import DataModel
from mixbandit.sequences.refutation import Audit
from mixbandit.sequences.response import Response
from mixbandit.sets import LikelihoodSet, Problem, saturated

# Standard deviations that values may have beyond those of their results, in units of the range.
_SPREADS = (0.01, 0.02, 0.04, 0.08, 0.16)
SCATTER = Bank(scales=(0.003, 0.03), noises=(0.1,))
EXTRA = tuple(spread**2 for spread in _SPREADS)


class Testable(Protocol):
    """A rule for values in a known range."""

    delta: float
    norm_bound: float
    model: DataModel

    def likelihood(self, data: Data) -> Problem: ...

    def own_set(self, data: Data) -> LikelihoodSet: ...

    def budget(self, data: Data, log_density: float, delta: float) -> float: ...

    def noise_refuted(self, data: Data) -> bool: ...

    def suspect_refuted(self, data: Data) -> bool: ...


def refutes(bank: Bank, rule: Testable, data: Data, delta: float, extra: Sequence[float] = (0.0,)) -> bool:
    """Whether the bank predicts the values too well for any function within the norm bound, at level δ."""
    if not data.count:
        return False
    problem, trials = rule.likelihood(data), data.memory.trials
    # No forecaster costs less than knowing every value, and most functions cost little more than that.
    least = float(saturated(trials.values, trials.counts).sum())
    if not problem.with_budget(rule.budget(data, -least, delta)).is_empty():
        return False
    density = bank.log_density(rule.model, trials, extra)
    return problem.with_budget(rule.budget(data, density, delta)).is_empty()


@dataclass(frozen=True)
class BoundedAudit(Audit):
    """The findings about values in a known range; there is no sigma."""

    repeats: int | None = 0  # values at actions that were tried before; None where they are spoken of elsewhere

    @property
    def sentences(self) -> tuple[str, ...]:
        level, found = f"at level {self.delta:g}", []
        what = f"{self._function} with norm_bound={self.stated_norm_bound:g}"
        if self.noise_refuted:
            found.append(
                f"REFUTED {level}: the values scatter around every {what} more than means of independent results can. "
                f"Results of one value may depend on each other, samples may be too large, or {self._not_so}."
            )
        if self.suspect_refuted:
            found.append(
                f"REFUTED {level}: suspected functions, such as rougher ones, predict these {self.t} values far "
                f"better than any {what} can explain them."
            )
        if self.refuted:
            found.append(
                f"REFUTED {level}: no {what} explains these {self.t} values as means of independent results in "
                f"reward_range={self.reward_range}. The norm bound is too small, the results are not independent, or "
                f"{self._not_so}."
            )
        elif not (self.noise_refuted or self.suspect_refuted):
            found.append(f"The {self.t} values do not contradict the assumptions {level}.")
        if math.isinf(self.least_norm_bound):
            found.append("No norm bound, however large, would help.")
        elif self.least_norm_bound > 0.0:
            found.append(
                f"These data need norm_bound ≥ {self.least_norm_bound:.4g} (stated: {self.stated_norm_bound:.4g}); "
                f"smaller ones are refuted {level}."
            )
        return (*found, *self._about_repeats(), *self._hints())

    def without_repeats(self) -> BoundedAudit:
        return dataclasses.replace(self, repeats=None)

    def _about_repeats(self) -> list[str]:
        if self.repeats is None or self.noise_refuted:
            return []
        if not self.repeats:
            return [
                "No action was tried twice: whether values scatter more than their results, as when a model is "
                "trained anew for each value, was hardly tested. Repeat a few actions to test it."
            ]
        one = self.repeats == 1
        return [
            f"{self.repeats} value{'' if one else 's'} at actions tried before {'does' if one else 'do'} not show more "
            "scatter than results allow."
        ]


def audit(rule: Testable, data: Data, response: Response) -> BoundedAudit:
    """What the data say about the assumptions of a rule for values in a known range."""
    own, spectrum = rule.own_set(data), data.spectrum
    distinct = len(own.problem.likelihood.counts)
    return BoundedAudit(
        t=data.count,
        delta=rule.delta,
        refuted=own.is_empty,
        stated_norm_bound=rule.norm_bound,
        least_norm_bound=rule.norm_bound * own.problem.least_norm(),
        stated_sigma=None,
        refuted_sigma=None,
        residual_spread=None,
        unseen_directions=0 if data.dim is None else data.dim - spectrum.rank,
        condition=float(spectrum.singular[0] / spectrum.singular[-1]) if spectrum.rank and data.dim else 1.0,
        reward_range=response.range,
        noise_refuted=rule.noise_refuted(data),
        suspect_refuted=rule.suspect_refuted(data),
        kernel=data.dim is None,
        noise_tested=distinct < data.count,
        repeats=data.count - distinct,
    )

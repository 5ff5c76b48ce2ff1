"""Bounds on the cumulative regret: those known in advance, and those that depend on the data.

| symbol | meaning |
|---|---|
| T, d | rounds, dimension of the features |
| σ, B, δ | noise level, bound on ‖θ*‖, failure probability |
| L, C | bounds on ‖φ(a)‖ and on |φ(a)ᵀθ*|; C ≤ LB |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from mixbandit._checks import instance_of, multiplier, nonnegative, positive, positive_int, probability
from mixbandit._words import confidence
from mixbandit.errors import InvalidInput
from mixbandit.sequences import ConfidenceSequence


@dataclass(frozen=True)
class RegretBound:
    """Bounds on the regret of all choices so far, against the best action of every round.

    Under the assumptions of the sequence they hold at all times at once with probability ≥ 1−δ, whatever rule chose the
    actions. The exception is `proof` "search": the largest upper bound over a box was then found by a search, which may
    have missed it.
    """

    rounds: int
    widths: float | None  # Σ (largest upper bound − lower bound of the choice), at the time of choice
    hindsight: float | None  # Σ of today's bounds on how much the best action was better; needs keep_history
    proof: str  # of `widths`: "enumerated" or "search"
    hindsight_proof: str | None
    delta: float
    guarantee: str = "anytime"
    trusted: bool = True  # False: the assumptions are refuted
    condition: str = ""  # what else must hold, in words

    @property
    def best(self) -> float | None:
        """The smallest proven bound; None if nothing is proven."""
        if not self.trusted or self.guarantee != "anytime":
            return None
        proven = []
        if self.proof != "search":
            proven.append(self.widths)
        if self.hindsight_proof not in (None, "search"):
            proven.append(self.hindsight)
        known = [bound for bound in proven if bound is not None]
        return min(known) if known else None

    def __str__(self) -> str:
        def shown(bound: float | None, proof: str | None) -> str:
            if bound is None:
                return "not known"
            return f"at most {bound:.4g}" + (" (NOT PROVEN: by search)" if proof == "search" else "")

        lines = [
            f"Cumulative regret of {self.rounds} choice{'' if self.rounds == 1 else 's'}:",
            f"  from the widths of the bounds at the time of choice: {shown(self.widths, self.proof)}",
            f"  in hindsight: {shown(self.hindsight, self.hindsight_proof)}",
        ]
        if self.guarantee != "anytime":
            lines.append("The bounds are Bayesian: not guaranteed for this problem.")
        elif self.best is not None:
            lines.append(
                f"Proven bounds hold with probability at least {confidence(self.delta)}, at all times at once,"
            )
            lines.append(f"given what was stated, and that the model holds{self.condition}.")
        if not self.trusted:
            lines.append("WARNING: the data refute the stated assumptions; none of this is guaranteed.")
        return "\n".join(lines)


def analytic_width(sequence: ConfidenceSequence, action: ArrayLike) -> float:
    """2√(ρ(α₀) φ(a)ᵀV⁻¹φ(a)): what a round adds to the closed form of the data-dependent bound (thm:data_dep_regret).

    For optimism at α₀, sum it over rounds, computed before each reward is told. At the default multipliers it is never
    less than the term of `RegretBound.widths`.
    """
    instance_of(sequence, ConfidenceSequence, "sequence", "a confidence sequence such as MartingaleMixture")
    alpha = sequence.alpha0
    upper, lower = sequence.upper(action, alpha), sequence.lower(action, alpha)
    if len(upper) != 1:
        raise InvalidInput(f"action must be one action, got {len(upper)}")
    return float(upper[0] - lower[0])


def worst_case(
    rounds: int,
    *,
    dim: int,
    sigma: float,
    norm_bound: float,
    feature_norm: float,
    delta: float = 0.01,
    c: float = 1.0,
    reward_bound: float | None = None,
) -> float:
    """Regret of CMM-UCB and AMM-UCB after `rounds` rounds, known before the first (label thm:regret_bound).

    2/√ln2 · max{C, σ√(d ln(1 + cL²T/σ²d) + B²/c + 2 ln(1/δ))} · √(dT ln(1 + cL²T/σ²d)), for mixtures N(0, cΦΦᵀ)
    and α = σ²/c, with probability ≥ 1−δ for all T at once. `feature_norm` is L; `reward_bound` is C, by default LB.
    """
    T, d = positive_int(rounds, "rounds"), positive_int(dim, "dim")
    sigma, delta, c = positive(sigma, "sigma"), probability(delta, "delta"), positive(c, "c")
    B, L = positive(norm_bound, "norm_bound"), positive(feature_norm, "feature_norm")
    growth = d * math.log1p(c * L**2 * T / (sigma**2 * d))
    radius = sigma * math.sqrt(growth + B**2 / c - 2.0 * math.log(delta))
    return _elliptical(max(_reward_bound(reward_bound, L, B), radius), T, growth)


def worst_case_general(
    rounds: int,
    *,
    dim: int,
    sigma: float,
    norm_bound: float,
    feature_norm: float,
    alpha: float,
    sigma0: float = 1.0,
    prior_distance: float | None = None,
    delta: float = 0.01,
    reward_bound: float | None = None,
) -> float:
    """The same for mixtures N(Φθ₀, σ₀²ΦΦᵀ) and any α > 0, with probability ≥ 1−2δ (label thm:gen_regret_bound).

    `prior_distance` bounds ‖θ* − θ₀‖; by default B, which is right for θ₀ = 0. Two corrections: Lemma trace_2
    should read tr Σ ≤ dσ₀²; and tr(ΦᵀΦΣ) + (σ²/σ₀²) tr Σ is σ²d exactly, so that the σ²d with which the printed
    radius begins is not needed.
    """
    T, d = positive_int(rounds, "rounds"), positive_int(dim, "dim")
    sigma, sigma0, alpha = positive(sigma, "sigma"), positive(sigma0, "sigma0"), multiplier(alpha, "alpha")
    B, L = positive(norm_bound, "norm_bound"), positive(feature_norm, "feature_norm")
    delta = probability(delta, "delta")
    if delta > 0.5:
        raise InvalidInput(f"delta must be at most 1/2, because the bound fails with probability 2·delta; got {delta}")
    distance = B if prior_distance is None else nonnegative(prior_distance, "prior_distance")
    level = -2.0 * sigma**2 * math.log(delta)
    self_normalised = sigma**2 * d * math.log1p((T - 1) * L**2 / (alpha * d)) + level
    radius2 = (
        (sigma / sigma0 * distance) ** 2
        + sigma**2 * d * math.log1p((T - 1) * sigma0**2 * L**2 / (sigma**2 * d))
        + level
        + alpha * B**2
        + self_normalised
        + 2.0 * math.sqrt(alpha) * B * math.sqrt(self_normalised)
    )
    growth = d * math.log1p(L**2 * T / (alpha * d))
    return _elliptical(max(_reward_bound(reward_bound, L, B), math.sqrt(radius2)), T, growth)


def _elliptical(radius: float, T: int, growth: float) -> float:
    """2·radius·√(T Σ min(1, ‖φ‖²_{V⁻¹})), with the elliptical potential lemma (label lem:sum_norm)."""
    return 2.0 / math.sqrt(math.log(2.0)) * radius * math.sqrt(T * growth)


def _reward_bound(given: float | None, L: float, B: float) -> float:
    return L * B if given is None else positive(given, "reward_bound")

"""Policies by name: ways of acting, and the algorithms of the paper with its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import nonnegative, shown
from mixbandit._lazy import setting
from mixbandit.actions import Region
from mixbandit.bandits.base import Policy
from mixbandit.bandits.journal import Journal
from mixbandit.bandits.rules import ActingRule, LeastRegretPerInformation, Optimism, Thompson
from mixbandit.bandits.rules import Uniform as Uniformly
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import ConfidenceSequence, MartingaleMixture, OFULSequence

Actions = Region | ArrayLike | None
Rng = int | np.random.Generator | None
Phi = FeatureMap | int
Words = dict[str, Any]


class UCB(Policy):
    """Play the action with the largest estimate + `exploration`·(upper bound − estimate); at 1, the upper bound.

    With `alpha` it acts on closed-form bounds at that multiplier (AMM-UCB), or, given a list of them, on the best such
    bound for each action (DMM-UCB); with None, on the exact bounds (CMM-UCB). `exploration` below 1 is greedier and
    often earns more. It changes how the policy acts, never what it reports: bounds, certificates and data-dependent
    regret bounds are those of `sequence`, unscaled, and hold. Only the regret bounds known in advance
    (`regret.worst_case`) are lost, because they need exploration ≥ 1; `guarantee` mentions this too.

    The other options are those of `Policy`.
    """

    kind = "UCB"

    alpha: float | tuple[float, ...] | None = setting(
        "rule.alpha", "The multiplier, or several, of the bounds it acts on; None for exact bounds."
    )
    exploration: float = setting("rule.exploration", "The factor on upper bound − estimate, for acting.")

    def __init__(
        self,
        sequence: ConfidenceSequence,
        actions: Actions = None,
        alpha: float | Sequence[float] | None = None,
        exploration: float = 1.0,
        *,
        rng: Rng = None,
        strict: bool = False,
        keep_history: bool = False,
        track_regret: bool = True,
        quick: bool = False,
        journal: Journal | None = None,
    ) -> None:
        options: dict[str, Any] = {"strict": strict, "keep_history": keep_history, "quick": quick, "journal": journal}
        rule = Optimism(alpha, exploration)
        super().__init__(sequence, actions, rule=rule, rng=rng, track_regret=track_regret, **options)


class InformationDirected(Policy):
    """Information-directed sampling, deterministic (Kirschner & Krause 2018): least squared regret bound per
    information, with OFUL's bounds.
    """

    kind = "InformationDirected"

    def __init__(self, sequence: OFULSequence, actions: Actions = None, **options: Any) -> None:
        super().__init__(sequence, actions, rule=LeastRegretPerInformation(), **options)


class ThompsonSampling(Policy):
    """Thompson sampling with a frequentist guarantee (Agrawal & Goyal 2013): play what is best for a random
    parameter.
    """

    kind = "ThompsonSampling"

    def __init__(self, sequence: ConfidenceSequence, actions: Actions = None, **options: Any) -> None:
        super().__init__(sequence, actions, rule=Thompson(), **options)


class UniformSampling(Policy):
    """Play actions uniformly at random; it reports bounds like any other policy."""

    kind = "UniformSampling"

    def __init__(self, sequence: ConfidenceSequence, actions: Actions = None, **options: Any) -> None:
        super().__init__(sequence, actions, rule=Uniformly(), **options)


class Named(Policy):
    """What the named algorithms share: one list of keywords, of which each takes those that apply.

    Those that do not apply (among `mixture`, `reward_range`, `misspecification`, `alpha`, `exploration`) are rejected
    if given. The options from `strict` on are those of `Policy`.
    """

    takes: ClassVar[tuple[str, ...]] = ("mixture", "reward_range", "misspecification")
    # Makes an algorithm's sequence and rule from features, stated assumptions and other keywords given.
    _parts: ClassVar[Callable[..., tuple[ConfidenceSequence, ActingRule]]]

    def __init__(
        self,
        features: FeatureMap | int,
        *,
        actions: Actions = None,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        mixture: Mixture | Forecaster | None = None,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        alpha: float | Sequence[float] | None = None,
        exploration: float = 1.0,
        on_empty: str = "raise",
        rng: Rng = None,
        strict: bool = False,
        keep_history: bool = False,
        track_regret: bool = True,
        quick: bool = False,
        journal: Journal | None = None,
    ) -> None:
        deviation, scale = nonnegative(misspecification, "misspecification"), nonnegative(exploration, "exploration")
        optional = {
            "mixture": mixture,
            "reward_range": reward_range,
            "misspecification": deviation or None,
            "alpha": alpha,
            "exploration": None if scale == 1.0 else scale,
        }
        given = {name: value for name, value in optional.items() if value is not None}
        for name, value in given.items():
            if name not in self.takes:
                raise InvalidInput(f"{type(self).__name__} does not take {name}, got {name}={shown(value)}")
        stated = {"sigma": sigma, "norm_bound": norm_bound, "delta": delta, "on_empty": on_empty}
        sequence, rule = self._parts(features, stated, given)
        options: dict[str, Any] = {"strict": strict, "keep_history": keep_history, "quick": quick, "journal": journal}
        Policy.__init__(self, sequence, actions, rule=rule, rng=rng, track_regret=track_regret, **options)


def _mixture(features: Phi, stated: Words, given: Words) -> MartingaleMixture:
    known = {name: given[name] for name in ("mixture", "reward_range", "misspecification") if name in given}
    return MartingaleMixture(features, **stated, **known)


def _oful(features: Phi, stated: Words, given: Words) -> OFULSequence:
    return OFULSequence(features, **stated, alpha=given.get("alpha"))


class CMMUCB(Named, UCB):
    """The paper's CMM-UCB: optimism with exact bounds."""

    kind = "CMMUCB"
    takes = ("mixture", "reward_range", "misspecification", "exploration")

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        return _mixture(features, stated, given), Optimism(None, given.get("exploration", 1.0))


class AMMUCB(Named, UCB):
    """The paper's AMM-UCB: optimism with closed-form bounds, at the mixture's `alpha0` (σ², as in the paper, for
    the standard one) unless `alpha` is given, one multiplier or a list of them.
    """

    kind = "AMMUCB"
    takes = ("mixture", "reward_range", "misspecification", "alpha", "exploration")

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        sequence = _mixture(features, stated, given)
        return sequence, Optimism(given.get("alpha", sequence.alpha0), given.get("exploration", 1.0))


class OFUL(Named, UCB):
    """OFUL (Abbasi-Yadkori, Pál & Szepesvári 2011): optimism with its ellipsoid, at α = σ² unless given."""

    kind = "OFUL"
    takes = ("alpha", "exploration")

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        return _oful(features, stated, given), Optimism(None, given.get("exploration", 1.0))


class IDS(Named, InformationDirected):
    """Information-directed sampling (Kirschner & Krause 2018), deterministic, with OFUL's bounds."""

    kind = "IDS"
    takes = ("alpha",)

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        return _oful(features, stated, given), LeastRegretPerInformation()


class FreqTS(Named, ThompsonSampling):
    """Frequentist Thompson sampling (Agrawal & Goyal 2013); it reports the exact bounds of the mixture."""

    kind = "FreqTS"

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        return _mixture(features, stated, given), Thompson()


class Greedy(Named, UCB):
    """A baseline: play the action that the ridge estimate at α₀ rates best, which is optimism without exploration."""

    kind = "Greedy"

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        sequence = _mixture(features, stated, given)
        return sequence, Optimism(sequence.alpha0, 0.0)


class Uniform(Named, UniformSampling):
    """A baseline: play uniformly at random."""

    kind = "Uniform"

    @staticmethod
    def _parts(features: Phi, stated: Words, given: Words) -> tuple[ConfidenceSequence, ActingRule]:
        return _mixture(features, stated, given), Uniformly()

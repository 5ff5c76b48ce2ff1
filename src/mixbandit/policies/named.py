"""The algorithms by name, with the paper's settings: all take the same arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbandit.actions import Region
from mixbandit.confidence import MartingaleMixture, OFULSequence
from mixbandit.features import FeatureMap
from mixbandit.forecasters import Forecaster, Mixture
from mixbandit.policies.ids import InformationDirected
from mixbandit.policies.thompson import ThompsonSampling
from mixbandit.policies.ucb import UCB
from mixbandit.policies.uniform import UniformSampling

Actions = Region | ArrayLike | None
Rng = int | np.random.Generator | None


def CMMUCB(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    mixture: Mixture | Forecaster | None = None,
    reward_range: tuple[float, float] | None = None,
    misspecification: float = 0.0,
    on_empty: str = "raise",
    exploration: float = 1.0,
    rng: Rng = None,
    **options: Any,
) -> UCB:
    """The paper's CMM-UCB: optimism with exact bounds. `options` are those of `UCB`, as `strict` and `keep_history`."""
    sequence = MartingaleMixture(
        features,
        sigma=sigma,
        norm_bound=norm_bound,
        delta=delta,
        mixture=mixture,
        reward_range=reward_range,
        misspecification=misspecification,
        on_empty=on_empty,
    )
    return UCB(sequence, actions, exploration=exploration, rng=rng, **options)


def AMMUCB(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    mixture: Mixture | Forecaster | None = None,
    reward_range: tuple[float, float] | None = None,
    misspecification: float = 0.0,
    on_empty: str = "raise",
    exploration: float = 1.0,
    alpha: float | None = None,
    rng: Rng = None,
    **options: Any,
) -> UCB:
    """The paper's AMM-UCB: optimism with closed-form bounds, at the mixture's `alpha0` (σ², as in the paper, for
    the standard one) unless `alpha` is given.
    """
    sequence = MartingaleMixture(
        features,
        sigma=sigma,
        norm_bound=norm_bound,
        delta=delta,
        mixture=mixture,
        reward_range=reward_range,
        misspecification=misspecification,
        on_empty=on_empty,
    )
    chosen = sequence.alpha0 if alpha is None else alpha
    return UCB(sequence, actions, alpha=chosen, exploration=exploration, rng=rng, **options)


def OFUL(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    alpha: float | None = None,
    on_empty: str = "raise",
    exploration: float = 1.0,
    rng: Rng = None,
    **options: Any,
) -> UCB:
    """OFUL (Abbasi-Yadkori, Pál & Szepesvári 2011): optimism with its ellipsoid, at α = σ² unless given."""
    sequence = OFULSequence(features, sigma=sigma, norm_bound=norm_bound, delta=delta, alpha=alpha, on_empty=on_empty)
    return UCB(sequence, actions, exploration=exploration, rng=rng, **options)


def IDS(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    alpha: float | None = None,
    on_empty: str = "raise",
    rng: Rng = None,
    **options: Any,
) -> InformationDirected:
    """Information-directed sampling (Kirschner & Krause 2018), deterministic, with OFUL's bounds."""
    sequence = OFULSequence(features, sigma=sigma, norm_bound=norm_bound, delta=delta, alpha=alpha, on_empty=on_empty)
    return InformationDirected(sequence, actions, rng=rng, **options)


def FreqTS(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    on_empty: str = "raise",
    rng: Rng = None,
    **options: Any,
) -> ThompsonSampling:
    """Frequentist Thompson sampling (Agrawal & Goyal 2013); it reports the exact bounds of the standard mixture."""
    sequence = MartingaleMixture(features, sigma=sigma, norm_bound=norm_bound, delta=delta, on_empty=on_empty)
    return ThompsonSampling(sequence, actions, rng=rng, **options)


def Greedy(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    on_empty: str = "raise",
    rng: Rng = None,
    **options: Any,
) -> UCB:
    """A yardstick: play what the ridge estimate at α = σ² thinks best, which is optimism without exploration."""
    sequence = MartingaleMixture(features, sigma=sigma, norm_bound=norm_bound, delta=delta, on_empty=on_empty)
    return UCB(sequence, actions, alpha=sequence.alpha0, exploration=0.0, rng=rng, **options)


def Uniform(
    features: FeatureMap | int,
    *,
    actions: Actions = None,
    sigma: float,
    norm_bound: float,
    delta: float = 0.01,
    on_empty: str = "raise",
    rng: Rng = None,
    **options: Any,
) -> UniformSampling:
    """A yardstick: play anything."""
    sequence = MartingaleMixture(features, sigma=sigma, norm_bound=norm_bound, delta=delta, on_empty=on_empty)
    return UniformSampling(sequence, actions, rng=rng, **options)

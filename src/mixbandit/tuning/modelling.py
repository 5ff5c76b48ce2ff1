"""The confidence sequence that a certificate rests on: the tightest that what is stated allows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mixbandit._checks import SMALLEST_PROBABILITY, Array
from mixbandit.mixtures import Forecaster, Grid, Mixture, SemiAdaptive
from mixbandit.models import KernelListModel, as_model
from mixbandit.sequences import BoundedMixture, Moment, learnt
from mixbandit.tuning.assumptions import Assumptions, ModelLike, mixture_scales
from mixbandit.tuning.default_model import MOST_ROWS, default_kernel, default_suspects
from mixbandit.tuning.evidence import divided
from mixbandit.tuning.space import Space

# Forecasts that learn from every reward take O(t³) in all: up to this many.
_MOST_LEARNT = 500
# The bounded set takes O(t³), too, with a larger constant: some ten seconds for this many.
_MOST_BOUNDED = 1000
# How the model's part of δ is divided between the sequences that a growing run goes through, by how many there are.
# Looking before and after a change spends what both may: the first, which most runs never leave, keeps most of it.
_STAGES = {1: (1.0,), 2: (0.9, 0.1), 3: (0.9, 0.05, 0.05)}
# Of values that average fewer results, Hoeffding's σ certifies more, unless they are close to an end of the range.
_FEWEST_RESULTS = 10


def certifying(
    assumptions: Assumptions,
    space: Space,
    features: ModelLike | None,
    mixture: Mixture | Forecaster | None,
    rows: Array,
    rewards: Array,
    *,
    ordered: bool,
    levels: Array | None = None,
) -> Moment:
    """The model's moment after a run, at the model's part of δ; `levels` are σ_k, where they are not all the same.

    Values that are means of results in a range have no σ: the bounded set is far smaller near the ends of the range.
    It learns in order of play. Where that is not known, or values average few results, or a mixture is given, or there
    are too many trials, or several kernels, Hoeffding's σ stands in, as it does while a tuner acts.
    """
    single = features is None or not isinstance(as_model(features, space.dim), KernelListModel)
    plain = mixture is None and ordered
    several = assumptions.counts_results and (assumptions.samples or 1) >= _FEWEST_RESULTS
    bounded = several and plain and single and not assumptions.misspecification
    learning = plain and assumptions.noise is None and not bounded
    ends = [min(_MOST_BOUNDED, MOST_ROWS)] * bounded + [min(_MOST_LEARNT, MOST_ROWS)] * learning
    ends += [MOST_ROWS] * (features is None)
    stage = sum(end < len(rows) for end in ends)
    part = divided(assumptions.delta)["model"].weighted(*_STAGES[len(ends) + 1])[stage]
    # Where its part would be too small for a sequence, so are all others, which then say nothing.
    known = dataclasses.replace(assumptions, delta=max(part.delta, SMALLEST_PROBABILITY))
    if bounded and stage == 0:
        assert known.reward_range is not None
        low, high = known.reward_range
        # Rewards were checked, but may lie beyond the ends by rounding.
        inside = np.clip(rewards, low - known.offset, high - known.offset)
        return learnt(_bounded(known, space, features), rows, inside)
    if learning and stage == 0:
        mixture = Grid([SemiAdaptive(c) for c in mixture_scales(known)])
    moment: Moment = known.sequence(space, features, mixture, rows=len(rows)).moment
    return learnt(moment, rows, rewards, levels)


def _bounded(assumptions: Assumptions, space: Space, features: ModelLike | None) -> Moment:
    assert assumptions.reward_range is not None
    low, high = assumptions.reward_range
    known: dict[str, Any] = {} if features is not None else {"suspects": default_suspects(space)}
    model = as_model(default_kernel(space) if features is None else features, space.dim)
    moment: Moment = BoundedMixture(
        model,  # type: ignore[arg-type]
        norm_bound=assumptions.norm,
        delta=assumptions.delta,
        reward_range=(low - assumptions.offset, high - assumptions.offset),
        samples=assumptions.counted or 1,
        on_empty="inflate",
        **known,
    ).moment
    return moment

"""The default model of expected values over a space."""

from __future__ import annotations

import math

import numpy as np

from mixbandit.features import FeatureMap, RandomFourier, WithConstant
from mixbandit.kernels import RBF, ConstantKernel, Kernel, Matern, SumKernel
from mixbandit.models import Model
from mixbandit.tuning.parameters import Categorical
from mixbandit.tuning.space import Space

# Chosen by measurement (docs/how-to/tuning.md): the length-scale on the unit box, times the root of the number of
# parameters.
LENGTHSCALE = 0.2
# Beyond this many trials a kernel would take too long, and this many random Fourier features stand in for it.
MOST_ROWS, FEATURES = 2000, 100
_FEATURE_SEED = 0


def is_default(model: Model, space: Space) -> bool:
    """Whether nobody stated another model: it is the default kernel, or the features that stand in for it."""
    if model.kernel == default_kernel(space):
        return True
    return model.features is not None and _same_features(model.features, default_features(space))


def in_words(model: Model, space: Space) -> str:
    """What a model assumes of expected values."""
    if not is_default(model, space):
        return model.given.replace("rewards", "values")
    words = (
        "expected values that change smoothly: no jump inside a parameter's range, and nothing much narrower than "
        f"{LENGTHSCALE * math.sqrt(len(space)):.0%} of it. A spike that no trial came near would go unnoticed"
    )
    if model.features is None:
        return words
    return f"{words}. Beyond {MOST_ROWS:,} trials, {FEATURES} random features stand in for it"


def _same_features(one: FeatureMap, other: FeatureMap) -> bool:
    origin = np.zeros((1, other.dim_in))
    same_shape = (one.dim_in, one.dim) == (other.dim_in, other.dim)
    return type(one) is type(other) and same_shape and np.array_equal(one.evaluate(origin), other.evaluate(origin))


def default_kernel(space: Space) -> Kernel:
    """The default model of a function: a constant, and a smooth function around it."""
    return RBF(LENGTHSCALE * math.sqrt(len(space))) + ConstantKernel()


def default_suspects(space: Space) -> list[Kernel]:
    """What the default model must not be used for: functions that jump, in any direction or along one parameter, and
    functions that are two or four times as rough.
    """
    lengthscale, constant = LENGTHSCALE * math.sqrt(len(space)), ConstantKernel()
    jumps: list[Kernel] = [Matern(0.5, 2.0 * lengthscale), Matern(1.5, 0.5 * lengthscale)]
    bumps = [RBF(0.5 * lengthscale), RBF(0.25 * lengthscale)]
    numeric = [space.columns(name)[0] for name in space if not isinstance(space[name], Categorical)]
    if len(numeric) > 1:
        along = [Matern(0.5, 2.0 * LENGTHSCALE).on([column]) for column in numeric]
        jumps.append(SumKernel(along) * (1.0 / len(along)))
    return [kernel + constant for kernel in (*jumps, *bumps)]


def default_features(space: Space) -> FeatureMap:
    """Features with about the same products, for many trials; always the same for a space."""
    lengthscale = LENGTHSCALE * math.sqrt(len(space))
    return WithConstant(RandomFourier(space.dim, FEATURES, lengthscale, rng=_FEATURE_SEED))

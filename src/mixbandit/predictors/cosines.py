"""Ridge regression per arm on random cosines of the context: smooth functions of any shape.

| symbol | meaning | shape |
|---|---|---|
| x | a context | (d,) |
| v = Σ_j Var(x_j) | how widely the first contexts were spread | |
| W ~ N(0, 1/(ℓ²v)), b ~ U(0, 2π) | frequencies and phases | (m, d), (m,) |
| φ = (1, √(2/m)·cos(Wx + b)) | features: a Gaussian kernel, approximately (Rahimi & Recht 2007) | (m + 1,) |

Frequencies must fit the scale of the contexts, which becomes known with the first of them. So the first rewards are
kept, and learnt again whenever the scale changes. After that the cosines stay as they are, as functions of what a
context was before it was scaled: numbers that drift far from the first ones, such as dates, are poorly told apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from mixbandit._checks import Array, nonnegative, nonnegative_int, positive, positive_int
from mixbandit._schema import array, count, integer, list_of, real, record
from mixbandit.data import RIDGES, Residual, Ridges
from mixbandit.data.products import times
from mixbandit.errors import InvalidInput
from mixbandit.predictors.base import Prediction, Predictor, Scored, noise_variance
from mixbandit.predictors.ridge import in_context
from mixbandit.search import ArmsOffer

# Rewards that are learnt again when the scale changes.
_EARLY = 128
# A column's frequencies may be this many times as large as they were drawn.
_FINEST = 4.0
_MOST_COSINES = 10_000


class _Early(NamedTuple):
    """One of the first rewards."""

    context: Array  # (d,)
    arm: int
    reward: float


class CosinesPerArm(Predictor):
    """Ridge regression of rewards on random cosines of the context for every arm, from that arm's rewards alone.

    `lengthscale` is in units of the spread of all features together; `noise` is the noise level that is expected before
    any reward, and counts as one reward. Cosines are drawn with `seed`.
    """

    kind = "CosinesPerArm"
    schema = record({
        "cosines": integer(1, _MOST_COSINES), "lengthscale": real(positive), "ridge": real(positive),
        "noise": real(positive), "seed": count,
    })  # fmt: skip
    memory = record({
        "ridges": RIDGES, "errors": real(nonnegative), "count": count, "frequencies": array(None, None),
        "unit": real(positive), "contexts": array(None, None), "arms": list_of(count), "rewards": array(None),
    })  # fmt: skip

    def __init__(
        self, cosines: int = 100, lengthscale: float = 1.0, ridge: float = 1.0, noise: float = 0.5, seed: int = 0
    ) -> None:
        self.cosines = positive_int(cosines, "cosines", _MOST_COSINES)
        self.lengthscale, self.ridge = positive(lengthscale, "lengthscale"), positive(ridge, "ridge")
        self.noise, self.seed = positive(noise, "noise"), nonnegative_int(seed, "seed")
        self.phases = np.random.default_rng(self.seed).uniform(0.0, 2.0 * math.pi, self.cosines)
        self.ridges, self.errors, self.count = Ridges(self.ridge, self.cosines + 1, apart=True).extended(1), 0.0, 0
        # At first the intercept is all that contexts have.
        self.frequencies: Array = np.zeros((self.cosines, 1))
        self.unit = 1.0  # ℓ√v
        self.early: tuple[_Early, ...] = ()
        self._latest: tuple[Any, Any, Any] = (None, None, None)  # a context, frequencies, and the features they make

    def predict(self, offer: ArmsOffer) -> Prediction:
        context, arms = in_context(offer)
        mean, width2 = self.ridges.measured(self._row(context), None if len(arms) == len(self.ridges) else arms)
        return Prediction(mean, self._noise * np.sqrt(width2))

    def means(self, offer: ArmsOffer) -> Array:
        context, arms = in_context(offer)
        return self.ridges.means(self._row(context), None if len(arms) == len(self.ridges) else arms)

    def after(self, offer: ArmsOffer, arm: int, reward: float) -> Self:
        return self._learnt(offer, arm, reward)[0]

    def scored(self, offer: ArmsOffer, arm: int, reward: float) -> Scored:
        new, (error, width2) = self._learnt(offer, arm, reward)
        return Scored(new, reward - error, self._noise * math.sqrt(width2))

    def for_arms(self, count: int) -> Self:
        return self._with(ridges=self.ridges.extended(max(count - len(self.ridges), 0)))

    def rescaled(self, context: Array, rows: Array) -> Self:
        now, before = context.shape
        if before != self.frequencies.shape[1]:
            raise InvalidInput(
                f"a predictor that has learnt from contexts of {self.frequencies.shape[1]} features cannot go on with "
                f"those of {before}: pass a new one"
            )
        if self.count <= _EARLY:
            early = tuple(each._replace(context=context @ each.context) for each in self.early)
            return self._with(early=early)._refitted(now)
        return self._with(frequencies=self._moved(context))

    def _moved(self, change: Array) -> Array:
        """The frequencies once x is Ax, for A = `change`: what Wx was for contexts before it still is.

        Each row of A but the first, of the intercept, stretches and shifts one column. One that would become much finer
        than the others is drawn anew: its old unit was far too small, and cosines would turn to noise.
        """
        new = self._drawn(len(change)) / self.unit
        new[:, 0] = self.frequencies[:, 0]
        finest = _FINEST * math.sqrt(self.cosines) / self.unit
        for column in range(1, len(change)):
            stretch, shift = change[column, 1:], change[column, 0]
            before = 1 + int(np.abs(stretch).argmax()) if stretch.any() else 0
            if before:
                kept = self.frequencies[:, before] / change[column, before]
                if not np.linalg.norm(kept) <= finest:
                    continue
                new[:, column] = kept
            new[:, 0] -= new[:, column] * shift  # where nothing was before, the shift is all that contexts have
        return new

    @property
    def _noise(self) -> float:
        """The noise level."""
        return math.sqrt(noise_variance(self.noise, self.errors, self.count))

    def _row(self, context: Array) -> Array:
        """The features of a context, (m + 1,)."""
        latest = self._latest
        if latest[0] is context and latest[1] is self.frequencies:  # what is learnt at once was asked about before
            known: Array = latest[2]
            return known
        row = np.empty(self.cosines + 1)
        row[0] = 1.0
        inside = row[1:]
        np.cos(times(self.frequencies, context) + self.phases, out=inside)
        inside *= math.sqrt(2.0 / self.cosines)
        self._latest = context, self.frequencies, row
        return row

    def _drawn(self, columns: int) -> Array:
        """Standard normal numbers, (m, columns); more columns do not change the first ones."""
        each = [np.random.default_rng((self.seed, 1 + j)).standard_normal(self.cosines) for j in range(columns)]
        return np.column_stack(each)

    def _learnt(self, offer: ArmsOffer, arm: int, reward: float) -> tuple[Self, Residual]:
        context, arms = in_context(offer)
        number, seen = int(arms[arm]), self.count + 1
        ridges, residual = self.ridges.learnt(number, self._row(context), reward)
        new = self._with(ridges=ridges, errors=self.errors + residual.share, count=seen)
        if seen <= _EARLY:
            new.early = (*self.early, _Early(context, number, reward))
            if not seen & (seen - 1):
                new = new._refitted(len(context))
        elif self.early:
            new.early = ()
        return new, residual

    def _refitted(self, columns: int) -> Self:
        """With frequencies that fit the first contexts, whose rewards are learnt again."""
        spread2 = float(np.var([each.context for each in self.early], axis=0).sum()) if self.early else 0.0
        # A single context has no spread.
        unit = self.lengthscale * math.sqrt(spread2 if spread2 > 0.0 else float(max(columns - 1, 1)))
        new = self._with(
            ridges=Ridges(self.ridge, self.cosines + 1, apart=True).extended(len(self.ridges)),
            frequencies=self._drawn(columns) / unit,
            unit=unit,
            errors=0.0,
        )
        for context, arm, reward in self.early:
            new.ridges, residual = new.ridges.learnt(arm, new._row(context), reward)
            new.errors += residual.share
        return new

    def learnt(self) -> dict[str, Any]:
        columns = self.frequencies.shape[1]
        return {
            "ridges": self.ridges.state_dict(), "errors": self.errors, "count": self.count,
            "frequencies": self.frequencies, "unit": self.unit,
            "contexts": np.reshape([each.context for each in self.early], (-1, columns)),
            "arms": [each.arm for each in self.early], "rewards": np.array([each.reward for each in self.early]),
        }  # fmt: skip

    def recalled(self, memory: Mapping[str, Any]) -> Self:
        ridges = Ridges.from_state_dict(memory["ridges"], apart=True)
        contexts, arms, rewards = memory["contexts"], memory["arms"], memory["rewards"]
        fits = (
            ridges.alpha == self.ridge
            and ridges.dim == self.cosines + 1
            and len(memory["frequencies"]) == self.cosines
            and contexts.shape == (len(arms), memory["frequencies"].shape[1])
            and len(rewards) == len(arms)
            and all(arm < len(ridges) for arm in arms)
            and len(arms) == (memory["count"] if memory["count"] <= _EARLY else 0)
        )
        if not fits:
            raise InvalidInput("what random cosines have learnt does not fit their settings")
        early = tuple(_Early(x, arm, reward) for x, arm, reward in zip(contexts, arms, rewards.tolist(), strict=True))
        return self._with(
            ridges=ridges, errors=memory["errors"], count=memory["count"], early=early,
            frequencies=memory["frequencies"], unit=memory["unit"],
        )  # fmt: skip

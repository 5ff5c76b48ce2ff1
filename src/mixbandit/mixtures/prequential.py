"""User-defined forecasters: the cost is the sum of their one-step costs."""

from __future__ import annotations

import copy
import math
from collections import deque
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import (
    LARGEST_DATUM,
    Array,
    as_float_array,
    as_number,
    check_finite,
    finite,
    positive,
    positive_int,
    shown,
)
from mixbandit.errors import InvalidInput
from mixbandit.mixtures.base import Forecaster, RunningCost


class Prequential(RunningCost):
    """The cost of any forecaster, one prediction at a time: it is asked before it is told."""

    def __init__(self, forecaster: Forecaster, sigma: float) -> None:
        super().__init__(sigma)
        self.forecaster = forecaster

    def _fork(self) -> Self:
        # Once per batch: the user's object learns in place, and the previous state must survive.
        new = super()._fork()
        new.forecaster = copy.deepcopy(self.forecaster)
        return new

    def see(self, action: Array, phi: Array, reward: float, weight: float) -> None:
        action = action.copy()  # the forecaster may keep it, the caller may change it
        mean, variance = self._checked_prediction(action)
        spread = 1.0 + variance * (weight / self.sigma) ** 2
        error = weight * (reward - mean) / self.sigma
        # The forecaster may reject the reward: update it before anything of ours changes.
        self.forecaster.update(action, reward)
        self.add(error**2 / spread, spread)

    def _checked_prediction(self, x: Array) -> tuple[float, float]:
        prediction = self.forecaster.predict(x)
        try:
            mean, variance = (as_number(number, "a prediction") for number in prediction)
        except Exception:  # unpacking runs the code of users
            mean = variance = math.nan
        if not (abs(mean) <= LARGEST_DATUM and 0.0 <= variance <= LARGEST_DATUM):
            raise InvalidInput(
                f"the forecaster {type(self.forecaster).__name__} must predict a finite mean and a finite "
                f"variance ≥ 0, got {shown(prediction)} at {x}"
            )
        return mean, variance


class Regressor(Protocol):
    """What scikit-learn calls a regressor."""

    def fit(self, X: Any, y: Any) -> Any: ...

    def predict(self, X: Any) -> ArrayLike: ...


class FromRegressor:
    """A forecaster from any regressor with `fit(X, y)` and `predict(X)`, as in scikit-learn.

    It is refitted after every `refit_every` rewards. Its variance is the part of its past errors that exceeds
    the noise `sigma`: the mean of the last `window` squared errors minus σ², at least 0. Until the first fit
    it predicts `mean` and `variance`.
    """

    def __init__(
        self,
        regressor: Regressor,
        sigma: float,
        *,
        refit_every: int = 10,
        window: int = 50,
        mean: float = 0.0,
        variance: float = 1.0,
    ) -> None:
        if isinstance(regressor, type) or not all(callable(getattr(regressor, n, None)) for n in ("fit", "predict")):
            raise InvalidInput(f"regressor must be an object with fit(X, y) and predict(X), got {shown(regressor)}")
        self.regressor, self.sigma = regressor, positive(sigma, "sigma")
        self.refit_every, self.window = (
            positive_int(refit_every, "refit_every"),
            positive_int(window, "window"),
        )
        self._mean, self._variance = finite(mean, "mean"), positive(variance, "variance")
        self._actions: list[Array] = []
        self._rewards: list[float] = []
        self._errors2: deque[float] = deque(maxlen=self.window)
        self._fitted = False

    def predict(self, x: Array) -> tuple[float, float]:
        row = _one_row(x)
        if not self._fitted:
            return self._mean, self._variance
        predicted = as_float_array(self.regressor.predict(row[None]), "the regressor's prediction")
        if predicted.size != 1:
            raise InvalidInput(f"the regressor must predict one value per row, got shape {predicted.shape}")
        mean = float(predicted.ravel()[0])
        if not self._errors2:
            return mean, self._variance
        return mean, max(sum(self._errors2) / len(self._errors2) - self.sigma**2, 0.0)

    def update(self, x: Array, r: float) -> None:
        row, reward = _one_row(x), finite(r, "r")
        if self._actions and self._actions[0].shape != row.shape:
            raise InvalidInput(f"x must have shape {self._actions[0].shape}, as before, got {row.shape}")
        if self._fitted:
            self._errors2.append((reward - self.predict(row)[0]) ** 2)
        self._actions.append(row.copy())
        self._rewards.append(reward)
        if len(self._rewards) % self.refit_every == 0:
            self.regressor.fit(np.array(self._actions), np.array(self._rewards))
            self._fitted = True

    def __deepcopy__(self, memo: dict[int, Any]) -> FromRegressor:
        # A sequence copies its forecaster before each update; past rows do not change and are shared.
        new = copy.copy(self)
        new.regressor = copy.deepcopy(self.regressor, memo)
        new._actions, new._rewards = list(self._actions), list(self._rewards)
        new._errors2 = self._errors2.copy()
        return new


def _one_row(x: ArrayLike) -> Array:
    row = as_float_array(x, "x")
    if row.ndim != 1:
        raise InvalidInput(f"x must be one action row, got shape {row.shape}")
    check_finite(row, "x")
    return row

"""What the trials of an Optuna study say about themselves, besides their parameters and values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, is_integer, shown
from mixbandit.errors import InvalidInput
from mixbandit.tuning.columns import Mask
from mixbandit.tuning.selection import COMPLETE, FAILED, GIVEN_UP, LEFT_OUT, NOMINATION, PRUNED, SIGMA, WITHDRAWN


def is_given_up(trial: Any) -> bool:
    """Whether a trial was given up because of its own values, by any pruner, even if it returned the mean so far."""
    marks = getattr(trial, "user_attrs", {})
    # A completed trial with a value that contradicts what was stated is one that did not stop.
    marked = PRUNED in marks or (LEFT_OUT in marks and trial.state.name != COMPLETE)
    return marked or (trial.state.name == GIVEN_UP and bool(getattr(trial, "intermediate_values", {})))


def is_lost(trial: Any) -> bool:
    """Whether a trial ended without a value, and nothing says that its value had no part in it."""
    if trial.state.name == FAILED:
        return WITHDRAWN not in getattr(trial, "system_attrs", {})
    without = trial.state.name == COMPLETE and not getattr(trial, "values", None)
    return without or (trial.state.name == GIVEN_UP and not is_given_up(trial))


def lost_nominations(trials: Iterable[Any]) -> NDArray[np.int64]:
    """For each trial that was lost, the number of the finalist that it was to confirm, 0 for none."""
    return np.array([nomination_of(trial) for trial in trials if is_lost(trial)], dtype=np.int64)


def nomination_of(trial: Any) -> int:
    """The number of the finalist that a trial confirms; 0 if it confirms none."""
    given = getattr(trial, "user_attrs", {}).get(NOMINATION, 0)
    return given if is_integer(given) and given > 0 else 0


def spoiled_finalists(trials: Iterable[Any]) -> frozenset[int]:
    """The numbers of finalists of which a confirmation was pruned: only its lucky confirmations are left."""
    return frozenset(nomination_of(trial) for trial in trials if is_given_up(trial)) - {0}


def stopped_short(trials: Sequence[Any]) -> int:
    """How many completed trials of a search reported fewer steps than others."""
    steps = [len(getattr(t, "intermediate_values", {})) for t in trials if not nomination_of(t)]
    return sum(0 < count < max(steps) for count in steps)


def by_completion(trials: Iterable[Any]) -> list[Any]:
    """Trials in the order in which they were completed; by number where that is not known."""
    return sorted(trials, key=lambda t: (getattr(t, "datetime_complete", None) or datetime.min, t.number))


def intended(trial: Any) -> dict[str, Any]:
    """The parameters of a trial, including those it was enqueued with and has not asked for yet."""
    fixed = getattr(trial, "system_attrs", {}).get("fixed_params")
    return {**(fixed if isinstance(fixed, Mapping) else {}), **trial.params}


def own_nominations(complete: Sequence[Any], trials: Iterable[Any], names: Collection[str]) -> Mask:
    """Which completed trials are of the configuration that their nomination number belongs to.

    Workers that nominate at once may write the same number. It belongs for good to the configuration of the first trial
    that was marked with it, in any state: by the first completed one it would belong now to one, now to another.
    """
    owners: dict[int, dict[str, Any]] = {}
    for trial in sorted(trials, key=lambda each: each.number):
        number = nomination_of(trial)
        if number and number not in owners:
            owners[number] = {name: value for name, value in intended(trial).items() if name in names}
    tried = [{name: value for name, value in trial.params.items() if name in names} for trial in complete]
    return np.array([owners.get(nomination_of(t)) == own for t, own in zip(complete, tried, strict=True)], dtype=bool)


def levels_of(trials: Sequence[Any]) -> Array | None:
    """The noise levels that users attached to trials, NaN where there is none; None if there are none at all."""
    attached = [getattr(trial, "user_attrs", {}).get(SIGMA) for trial in trials]
    if all(level is None for level in attached):
        return None
    wrong = [level for level in attached if level is not None and not is_level(level)]
    if wrong:
        raise InvalidInput(f"the attribute {SIGMA} of a trial must be its noise level, got {shown(wrong[0])}")
    return np.array([np.nan if level is None else level for level in attached], dtype=float)


def is_level(given: Any) -> bool:
    """Whether something attached to a trial can be its noise level."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0.0 < given < math.inf


def feasible_trials(trials: Sequence[Any]) -> Mask | None:
    """Which trials are known to satisfy the constraints of a study: all values at most 0."""
    values = [list(getattr(trial, "constraints", {}).values()) for trial in trials]
    if not any(values):
        return None
    return np.array([bool(v) and all(x <= 0.0 for x in v) for v in values])


def may_be_recommended(trials: Sequence[Any]) -> bool:
    """Whether a certificate can recommend something: with constraints, a trial must be known to satisfy them."""
    feasible = feasible_trials(trials)
    return feasible is None or bool(feasible.any())

"""MABWiser's interface: arms and contexts in, arms out, with intervals that hold at any time.

One parameter vector per arm, as in MABWiser's LinUCB: the expected reward of arm k in context x is xᵀθ_k, ‖θ_k‖ ≤ B.
It is a policy on `Blocks`, with these names. Every arm learns from its own rewards alone, at a share of δ:

| arms | share |
|---|---|
| K arms at the time of `fit` | half, evenly: 1/(2K) each |
| the j-th arm added since, j = 1, 2, … | half, in order: 1/(2j(j+1)) |

The shares add up to at most 1 however many arms are added, so that all bounds hold at all times at once with
probability ≥ 1 − δ (union bound). Adding or removing an arm changes nothing for the others.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_label, as_rows, as_vector, check_finite, shown
from mixbandit._locks import Lock, locked
from mixbandit.actions import Arms
from mixbandit.bandits import CMMUCB, Policy
from mixbandit.bandits.many import as_offers
from mixbandit.bandits.named import Named
from mixbandit.errors import InvalidInput
from mixbandit.integrations.algorithm import Algorithm, taught
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.spending import Ledger

T = TypeVar("T")

_MOST_DECISIONS = 10_000_000  # in one call


class _Model(NamedTuple):
    """What was learnt since the last `fit`."""

    policy: Policy  # on `Blocks`
    numbers: dict[Hashable, int]  # of the arms there, those removed included
    contextual: bool
    width: int  # of a context


class _Known(NamedTuple):
    """What is known about n contexts and K arms, (n, K) each."""

    lower: Array
    upper: Array
    estimates: Array


class _State(NamedTuple):
    """Everything that changes."""

    arms: tuple[Hashable, ...]
    model: _Model | None

    @property
    def fitted(self) -> _Model:
        if self.model is None:
            raise InvalidInput("nothing has been learnt: call fit first")
        return self.model

    @property
    def offered(self) -> Arms:
        """The arms to choose from, by their numbers."""
        return Arms([self.fitted.numbers[arm] for arm in self.arms])


class MixBanditMAB:
    """MABWiser's `MAB` with our policies, and `predict_interval`.

    `norm_bound` bounds ‖θ_k‖ for every arm k, those added later included; without contexts that is |expected reward|.
    As with MABWiser's linear policies there is no intercept: put a 1 into the contexts. `learning_policy` is one of our
    policies that act on bounds (`CMMUCB`, `AMMUCB`, `OFUL`, `Greedy`); the other keywords are theirs.

    Bounds hold with probability ≥ 1 − δ, for all arms and at all times from one `fit` to the next, whoever made the
    decisions, if every expected reward is linear in the context and the other stated assumptions are true. `fit` starts
    over and makes a new statement with its own δ, unless the arms are the same and the data begin with the old data:
    that continues the old statement.
    """

    def __init__(
        self,
        arms: Sequence[Hashable],
        learning_policy: type[Named] = CMMUCB,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        mixture: Mixture | Forecaster | None = None,
        alpha: float | list[float] | None = None,
        exploration: float = 1.0,
        on_empty: str = "raise",
        seed: int = 123456,
    ) -> None:
        self._algorithm = Algorithm(
            learning_policy,
            sigma=sigma,
            norm_bound=norm_bound,
            delta=delta,
            seed=seed,
            reward_range=reward_range,
            misspecification=misspecification,
            mixture=mixture,
            alpha=alpha,
            exploration=exploration,
            on_empty=on_empty,
        )
        explores = self._algorithm.rule.settings().get("exploration")
        if explores is None:
            name = learning_policy.__name__
            raise InvalidInput(f"{name} does not act on bounds for single arms: use CMMUCB, AMMUCB, OFUL or Greedy")
        self._state = _State(_as_arms(arms), None)
        self.lock = Lock()  # held while the state changes

    def __repr__(self) -> str:
        model = self._state.model
        learnt = 0 if model is None else model.policy.moment.t
        return f"MixBanditMAB({shown(self.arms)}, {self.learning_policy.__name__}, rewards={learnt})"

    @property
    def arms(self) -> list[Hashable]:
        """The arms to choose from."""
        return list(self._state.arms)

    @property
    def learning_policy(self) -> type[Named]:
        """The class of the policy."""
        return self._algorithm.kind

    @property
    def is_contextual(self) -> bool:
        """Whether the last `fit` had contexts."""
        return self._state.fitted.contextual

    @property
    def policies(self) -> dict[Hashable, Policy]:
        """A policy for each arm alone, with its data, for its `audit()` and part of δ (`sequence.delta`).

        Actions are contexts. These are copies: what they learn, this object does not know.
        """
        model, arms = self._state.fitted, self._state.arms
        blocks: Any = model.policy.sequence
        labels = blocks.moment.arms.labels
        return {arm: self._algorithm.acting(blocks.of(labels[model.numbers[arm]]), model.policy.rule) for arm in arms}

    @property
    def ledger(self) -> Ledger:
        """How δ is divided between the arms, until the next `fit`."""
        blocks: Any = self._state.fitted.policy.sequence
        found: Ledger = blocks.ledger
        return found

    @locked
    def fit(self, decisions: Iterable[Hashable], rewards: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Forget everything and learn the rewards (n,) of decisions, in contexts (n, p) if there are any."""
        arms = self._state.arms
        chosen = _as_decisions(decisions, arms)
        rows = _as_contexts(contexts, len(chosen))
        labels, numbers = map(_label, arms, itertools.count()), {arm: i for i, arm in enumerate(arms)}
        policy = self._algorithm.start_per_arm(rows.shape[1], labels)
        model = _Model(policy, numbers, contexts is not None, rows.shape[1])
        self._state = _State(arms, _taught(model, chosen, rows, rewards))

    @locked
    def partial_fit(self, decisions: Iterable[Hashable], rewards: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Learn further rewards; the same as `fit` if there were none before. Rewards of removed arms are allowed."""
        model = self._state.model
        if model is None:
            self.fit(decisions, rewards, contexts)
            return
        if (contexts is not None) != model.contextual:
            raise InvalidInput(f"the last fit had {'' if model.contextual else 'no '}contexts: fit starts over")
        chosen = _as_decisions(decisions, model.numbers)
        rows = _as_contexts(contexts, len(chosen))
        if rows.shape[1] != model.width:
            raise InvalidInput(f"contexts must have shape ({len(chosen)}, {model.width}), got {rows.shape}")
        self._state = self._state._replace(model=_taught(model, chosen, rows, rewards))

    def predict(self, contexts: ArrayLike | None = None) -> Any:
        """The arm to play, or a list of arms for several contexts: the largest upper bound.

        With `exploration`, the largest estimate + exploration·(upper bound − estimate), not limited by `reward_range`.
        Ties are broken at random, the same way until there are new rewards.
        """
        state = self._state
        chosen = state.fitted.policy.choose_many(_asked(state.fitted, contexts), arms=state.offered).indices
        return _one_or_list([state.arms[index] for index in chosen.tolist()])

    def predict_expectations(self, contexts: ArrayLike | None = None) -> Any:
        """Estimates of the expected rewards: a dict from arm to number, or a list of them for several contexts.

        These are ridge estimates, moved to the nearest end of the interval if they lie outside. MABWiser's LinUCB
        returns upper bounds here; `predict_interval` has them.
        """
        state = self._state
        return _by_arm(state, _known(state, contexts).estimates.tolist())

    def predict_interval(self, contexts: ArrayLike | None = None) -> Any:
        """Bounds on the expected rewards: a dict from arm to (lower, upper), or a list of them for several contexts.

        With probability ≥ 1 − δ all of them hold at all times, if the stated assumptions are true.
        """
        state = self._state
        known = _known(state, contexts)
        ends = np.stack((known.lower, known.upper), axis=-1).tolist()
        return _by_arm(state, [[(low, high) for low, high in row] for row in ends])

    @locked
    def add_arm(self, arm: Hashable) -> None:
        """Offer another arm; nothing changes for the others. An arm that was removed before resumes with its data."""
        arms, model = _as_arms([*self._state.arms, arm]), self._state.model
        if model is not None and arms[-1] not in model.numbers:
            policy = copy.copy(model.policy)
            blocks: Any = policy.sequence
            number = blocks.add(_label(arms[-1], len(model.numbers)))
            model = model._replace(policy=policy, numbers={**model.numbers, arms[-1]: number})
        self._state = _State(arms, model)

    @locked
    def remove_arm(self, arm: Hashable) -> None:
        """Stop offering an arm. What was learnt about it is kept, in case it is added again."""
        arms = self._state.arms
        try:
            is_known = arm in arms
        except Exception:  # comparing runs the code of others
            is_known = False
        if not is_known:
            raise InvalidInput(f"{shown(arm)} is not one of the arms {shown(list(arms))}")
        if len(arms) == 1:
            raise InvalidInput(f"{shown(arm)} is the only arm and cannot be removed")
        self._state = self._state._replace(arms=tuple(other for other in arms if other != arm))


def _label(arm: Hashable, number: int) -> Hashable:
    """What messages call an arm: itself, or in words where it is neither text nor a number."""
    try:
        return as_label(arm)
    except InvalidInput:
        return f"{shown(arm)}, number {number}"


def _one_or_list(found: list[T]) -> T | list[T]:
    """MABWiser's convention: what belongs to a single context comes without a list."""
    return found[0] if len(found) == 1 else found


def _by_arm(state: _State, values: list[list[Any]]) -> Any:
    """Values of contexts × arms, by the names of the arms."""
    return _one_or_list([dict(zip(state.arms, row, strict=True)) for row in values])


def _known(state: _State, contexts: ArrayLike | None) -> _Known:
    """What is known about every arm in some contexts."""
    model = state.fitted
    policy, belief = model.policy, model.policy.moment
    offers = as_offers(belief.model.dim_in, state.offered, _asked(model, contexts), None)
    parts = []
    for first, last in offers.chunks(model.width):
        rows = offers.rows(first, last).reshape(-1, 1, offers.width)
        found = policy.choose_many(arms=rows)  # a decision for each context and arm, with nothing else to choose from
        estimates = belief.response.reward(belief.estimate.maximum(belief.directions(rows[:, 0])))
        values = (found.lower, found.upper, np.clip(estimates, found.lower, found.upper))
        parts.append([each.reshape(last - first, -1) for each in values])
    return _Known(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _asked(model: _Model, contexts: ArrayLike | None) -> Array:
    """Contexts of predictions, (n, p)."""
    if not model.contextual:
        # As in MABWiser, contexts of a bandit without contexts only say how many predictions are wanted.
        rows = np.ones((1 if contexts is None else len(np.atleast_1d(as_float_array(contexts, "contexts"))), 1))
    elif contexts is None:
        raise InvalidInput(f"the last fit had contexts of length {model.width}, so predictions need them as well")
    else:
        rows = as_rows(contexts, model.width, "contexts")
    if not len(rows):
        raise InvalidInput("contexts must have at least one row, got none")
    return rows


def _taught(model: _Model, decisions: list[Hashable], contexts: Array, rewards: ArrayLike) -> _Model:
    """The model once it has learnt these rewards as well."""
    values = as_vector(rewards, len(decisions), "rewards")
    rows = np.column_stack((contexts, [model.numbers[decision] for decision in decisions]))
    return model._replace(policy=taught(model.policy, rows, values))


def _as_arms(arms: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Arms that differ and can be compared with decisions."""
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray) or not len(arms):
        raise InvalidInput(f"arms must be a list with at least one arm, got {shown(arms)}")
    found = Arms(np.arange(len(arms)), labels=arms).labels
    assert found is not None
    for arm in found:
        if arm is None or (isinstance(arm, float) and not math.isfinite(arm)):
            raise InvalidInput(f"an arm cannot be None, NaN or infinite, got {shown(list(found))}")
    return found


def _as_decisions(decisions: Iterable[Hashable], arms: Iterable[Hashable]) -> list[Hashable]:
    known = {arm: arm for arm in arms}
    try:
        if isinstance(decisions, str):
            raise TypeError("text")
        given = list(itertools.islice(decisions, _MOST_DECISIONS + 1))  # some iterables never end
        if len(given) > _MOST_DECISIONS:
            raise ValueError(f"more than {_MOST_DECISIONS:,} of them")
        unknown = [decision for decision in given if decision not in known]
    except Exception as error:  # iterating and hashing run the code of others
        raise InvalidInput(f"decisions must be a list of arms, got {shown(decisions)} ({error})") from error
    if unknown:
        raise InvalidInput(f"the decision {shown(unknown[0])} is not one of the arms {shown(list(known))}")
    return [known[decision] for decision in given]


def _as_contexts(contexts: ArrayLike | None, count: int) -> Array:
    """Contexts (n, p) of n decisions; a vector is one context of one decision, or a single feature of several."""
    if contexts is None:
        return np.ones((count, 1))
    given = rows = as_float_array(contexts, "contexts")
    if rows.ndim == 1:
        rows = rows.reshape(1, -1) if count == 1 else rows.reshape(-1, 1)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise InvalidInput(f"contexts must have shape ({count}, p), a row for each decision, got {given.shape}")
    check_finite(rows, "contexts")
    return rows

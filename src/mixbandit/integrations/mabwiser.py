"""MABWiser's interface: arms and contexts in, arms out, with intervals that hold at any time.

One parameter vector per arm, as in MABWiser's LinUCB: the expected reward of arm k in context x is xᵀθ_k, ‖θ_k‖ ≤ B.
Every arm has a policy of its own, which learns from that arm's rewards alone, and a share of δ:

| arms | share |
|---|---|
| K arms at the time of `fit` | half, evenly: 1/(2K) each |
| the j-th arm added since, j = 1, 2, … | half, in order: 1/(2j(j+1)) |

The shares add up to at most 1 however many arms are added, so that all bounds hold at all times at once with
probability ≥ 1 − δ (union bound). Adding or removing an arm changes nothing for the others. The alternative, one set
for all parameters together (`Disjoint` features), needs no shares, but every bound then pays for the dimensions of all
arms and for a norm bound B√K: with 10 arms and 5 features, intervals are three times as wide (tests/integrations).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mixbandit._checks import Array, as_float_array, as_rows, as_vector, check_finite, shown
from mixbandit._locks import Lock, locked
from mixbandit.actions import Arms
from mixbandit.bandits import CMMUCB, Policy
from mixbandit.bandits.named import Named
from mixbandit.errors import InvalidInput
from mixbandit.integrations.algorithm import Algorithm
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.spending import IN_ORDER, Ledger, Parts, Spending, evenly

T = TypeVar("T")

_MOST_DECISIONS = 10_000_000  # in one call


class _Model(NamedTuple):
    """What was learnt since the last `fit`."""

    policies: dict[Hashable, Policy]  # by arm; those of removed arms stay
    contextual: bool
    width: int  # of a context
    added: int = 0  # arms since `fit`, which have shares of δ


class _State(NamedTuple):
    """Everything that changes."""

    arms: tuple[Hashable, ...]
    model: _Model | None


class _Known(NamedTuple):
    """What is known about n contexts and K arms, (n, K) each."""

    lower: Array
    upper: Array
    estimates: Array
    scores: Array  # what is played is the largest


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
        learnt = 0 if model is None else _rewards(model)
        return f"MixBanditMAB({shown(self.arms)}, {self.learning_policy.__name__}, rewards={learnt})"

    @property
    def arms(self) -> list[Hashable]:
        """The arms to choose from."""
        return list(self._state.arms)

    @property
    def learning_policy(self) -> type[Named]:
        """The class of the policies."""
        return self._algorithm.kind

    @property
    def is_contextual(self) -> bool:
        """Whether the last `fit` had contexts."""
        return self._fitted().contextual

    @property
    def policies(self) -> dict[Hashable, Policy]:
        """The policy of each arm, for its `audit()` and part of δ (`sequence.delta`); actions are contexts."""
        model = self._fitted()
        return {arm: model.policies[arm] for arm in self._state.arms}

    @property
    def ledger(self) -> Ledger:
        """How δ is divided between the arms, until the next `fit`."""
        model = self._fitted()
        count = len(model.policies) - model.added
        return Spending(self._algorithm.delta).ledger(
            "a bound for an arm is ever wrong",
            self._parts["fitted"].line("the arms at the last fit", evenly(count)),
            self._parts["added"].line(f"arms added since, so far {model.added}", IN_ORDER),
        )

    @property
    def _parts(self) -> Parts:
        return Spending(self._algorithm.delta).named(fitted=0.5, added=0.5)

    @locked
    def fit(self, decisions: Iterable[Hashable], rewards: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Forget everything and learn the rewards (n,) of decisions, in contexts (n, p) if there are any."""
        arms = self._state.arms
        chosen = _as_decisions(decisions, arms)
        rows = _as_contexts(contexts, len(chosen))
        width, part = rows.shape[1], self._parts["fitted"].each(len(arms))
        policies = {arm: self._algorithm.start(width, delta=part.delta) for arm in arms}
        model = _Model(_taught(policies, chosen, rows, rewards), contexts is not None, width)
        self._state = _State(arms, model)

    @locked
    def partial_fit(self, decisions: Iterable[Hashable], rewards: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Learn further rewards; the same as `fit` if there were none before. Rewards of removed arms are allowed."""
        model = self._state.model
        if model is None:
            self.fit(decisions, rewards, contexts)
            return
        if (contexts is not None) != model.contextual:
            raise InvalidInput(f"the last fit had {'' if model.contextual else 'no '}contexts: fit starts over")
        chosen = _as_decisions(decisions, model.policies)
        rows = _as_contexts(contexts, len(chosen))
        if rows.shape[1] != model.width:
            raise InvalidInput(f"contexts must have shape ({len(chosen)}, {model.width}), got {rows.shape}")
        policies = _taught(model.policies, chosen, rows, rewards)
        self._state = self._state._replace(model=model._replace(policies=policies))

    def predict(self, contexts: ArrayLike | None = None) -> Any:
        """The arm to play, or a list of arms for several contexts: the largest upper bound.

        With `exploration`, the largest estimate + exploration·(upper bound − estimate), not limited by `reward_range`.
        Ties are broken at random, the same way until there are new rewards.
        """
        scores, model = self._known(contexts).scores, self._fitted()
        draws = np.random.default_rng((self._algorithm.seed, _rewards(model))).random(scores.shape)
        chosen = np.where(scores == scores.max(axis=1, keepdims=True), draws, -1.0).argmax(axis=1)
        return _one_or_list([self._state.arms[index] for index in chosen.tolist()])

    def predict_expectations(self, contexts: ArrayLike | None = None) -> Any:
        """Estimates of the expected rewards: a dict from arm to number, or a list of them for several contexts.

        These are ridge estimates, moved to the nearest end of the interval if they lie outside. MABWiser's LinUCB
        returns upper bounds here; `predict_interval` has them.
        """
        return self._by_arm(self._known(contexts).estimates.tolist())

    def predict_interval(self, contexts: ArrayLike | None = None) -> Any:
        """Bounds on the expected rewards: a dict from arm to (lower, upper), or a list of them for several contexts.

        With probability ≥ 1 − δ all of them hold at all times, if the stated assumptions are true.
        """
        known = self._known(contexts)
        ends = np.stack((known.lower, known.upper), axis=-1).tolist()
        return self._by_arm([[(low, high) for low, high in row] for row in ends])

    @locked
    def add_arm(self, arm: Hashable) -> None:
        """Offer another arm; nothing changes for the others. An arm that was removed before resumes with its data."""
        arms, model = _as_arms([*self._state.arms, arm]), self._state.model
        if model is not None and arms[-1] not in model.policies:
            number = model.added + 1
            policy = self._algorithm.start(model.width, delta=self._parts["added"].nth(number).delta)
            model = model._replace(policies={**model.policies, arms[-1]: policy}, added=number)
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

    def _fitted(self) -> _Model:
        if self._state.model is None:
            raise InvalidInput("nothing has been learnt: call fit first")
        return self._state.model

    def _asked(self, contexts: ArrayLike | None) -> Array:
        """Contexts of predictions, (n, p)."""
        model = self._fitted()
        if model.contextual:
            if contexts is None:
                raise InvalidInput(
                    f"the last fit had contexts of length {model.width}, so predictions need them as well"
                )
            return as_rows(contexts, model.width, "contexts")
        # As in MABWiser, contexts of a bandit without contexts only say how many predictions are wanted.
        return np.ones((1 if contexts is None else len(np.atleast_1d(as_float_array(contexts, "contexts"))), 1))

    def _known(self, contexts: ArrayLike | None) -> _Known:
        rows, model = self._asked(contexts), self._fitted()
        if not len(rows):
            raise InvalidInput("contexts must have at least one row, got none")
        columns = []
        for arm in self._state.arms:
            policy = model.policies[arm]
            # A decision for each context, with nothing else to choose from.
            found = policy.choose_many(arms=rows[:, None, :])
            moment, directions = policy.moment, policy.moment.directions(rows)
            expected = np.clip(moment.estimate.maximum(directions), found.lower, found.upper)
            rule: Any = policy.rule  # optimism: others are refused at the start
            columns.append((found.lower, found.upper, expected, rule.score(moment).maximum(directions)))
        return _Known(*(np.stack(parts, axis=1) for parts in zip(*columns, strict=True)))

    def _by_arm(self, values: list[list[Any]]) -> Any:
        return _one_or_list([dict(zip(self._state.arms, row, strict=True)) for row in values])


def _one_or_list(found: list[T]) -> T | list[T]:
    """MABWiser's convention: what belongs to a single context comes without a list."""
    return found[0] if len(found) == 1 else found


def _rewards(model: _Model) -> int:
    return sum(policy.moment.t for policy in model.policies.values())


def _taught(
    policies: Mapping[Hashable, Policy], decisions: list[Hashable], contexts: Array, rewards: ArrayLike
) -> dict[Hashable, Policy]:
    """Copies of the policies that have learnt these rewards as well; those without any are not copied."""
    values = as_vector(rewards, len(decisions), "rewards")
    places: dict[Hashable, list[int]] = {}
    for place, decision in enumerate(decisions):
        places.setdefault(decision, []).append(place)
    new = dict(policies)
    for arm, own in places.items():
        policy = policies[arm]
        new[arm] = policy.at(policy.state).learn(contexts[own], values[own])
    return new


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

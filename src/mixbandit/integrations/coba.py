"""coba's learner protocol: our policies in coba's experiments.

coba asks nothing of a learner but `params`, `predict`, `learn` and perhaps `score`, so nothing of it is imported here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array, as_reward, finite, instance_of, shown
from mixbandit._locks import Lock, locked
from mixbandit.bandits import CMMUCB, Policy
from mixbandit.bandits.named import Named
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap, Interaction, WithConstant
from mixbandit.integrations.algorithm import Algorithm, taught
from mixbandit.mixtures import Forecaster, Mixture

_ADVICE = "encode it as numbers, for example one-hot, in the environment"
_DEEPEST, _MOST_PARTS = 64, 1_000_000


class _Model(NamedTuple):
    """What has been learnt, once it is known how long contexts and actions are."""

    policy: Policy
    context_width: int
    action_width: int
    levels: tuple[Any, ...]  # what actions can be, if some of them are text


class MixBanditLearner:
    """A learner for coba, beside its own: `Experiment(environments, [MixBanditLearner(sigma=0.1, norm_bound=2), …])`.

    `policy` is one of our named policies (`CMMUCB`, `AMMUCB`, `OFUL`, …), which define the assumptions and the other
    keywords. Contexts are None, numbers, coba's categories or dense sequences of these; actions are the same without
    None, or text. If some actions are text, numbers beside them are labels too, and the first `predict` must offer all
    actions. The numbers of features must not change. Features are (1, x) ⊗ (1, a), which are 1, the context, the action
    and their products, unless `features` is a map of rows (x, a).

    Bounds are valid for rewards as observed: evaluate with `learn="on"` or `"off"`, because estimates such as IPS are
    noisier than `sigma` states.
    """

    def __init__(
        self,
        policy: type[Named] = CMMUCB,
        *,
        sigma: float,
        norm_bound: float,
        delta: float = 0.01,
        features: FeatureMap | None = None,
        reward_range: tuple[float, float] | None = None,
        misspecification: float = 0.0,
        mixture: Mixture | Forecaster | None = None,
        alpha: float | list[float] | None = None,
        exploration: float = 1.0,
        on_empty: str = "raise",
        seed: int = 1,
    ) -> None:
        self._algorithm = Algorithm(
            policy,
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
        kind = "a feature map of rows (context, action)"
        self._features = None if features is None else instance_of(features, FeatureMap, "features", kind)
        self._randomised = self._algorithm.rule.randomised
        self._model: _Model | None = None
        self.lock = Lock()  # held while the model changes

    def __repr__(self) -> str:
        return f"MixBanditLearner({', '.join(f'{name}={value}' for name, value in self.params.items())})"

    @property
    def params(self) -> dict[str, Any]:
        """The columns of coba's table of learners."""
        algorithm = self._algorithm
        plain = {
            name: value if isinstance(value, int | float | str | list | tuple) else type(value).__name__
            for name, value in {**algorithm.chosen(), "features": self._features}.items()
            if value is not None
        }
        return {"family": algorithm.kind.__name__, **plain, "seed": algorithm.seed}

    @property
    def policy(self) -> Policy:
        """The policy as trained so far, for its `guarantee`, `audit()` and bounds."""
        if self._model is None:
            raise InvalidInput(
                "nothing has been predicted or learnt yet: there is no policy before the first context and actions"
            )
        return self._model.policy

    @locked
    def predict(self, context: Any, actions: Sequence[Any]) -> tuple[Any, float | None]:
        """The action to play and its probability: 1, or None if the policy draws at random.

        Asking again without new rewards gives the same answer.
        """
        index, self._model = self._chosen(context, actions)
        return actions[index], None if self._randomised else 1.0

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability of playing `action`: 1 for what `predict` returns, else 0.

        InvalidInput for policies that draw at random, whose probabilities are not known.
        """
        if self._randomised:  # coba looks for the word "score" to find out that there are none
            raise InvalidInput(f"no score: the probabilities of {self._algorithm.kind.__name__} are not known")
        index, model = self._chosen(context, actions)
        rows, asked = [_encoded_action(each, model.levels) for each in actions], _encoded_action(action, model.levels)
        if asked not in rows:
            raise InvalidInput(f"{shown(action)} is not one of the actions {shown(actions)}")
        return float(rows[index] == asked)

    @locked
    def learn(self, context: Any, action: Any, reward: float, probability: float | None = None, **kwargs: Any) -> None:
        """Learn a reward, whoever chose the action; its probability does not matter."""
        _refuse_batches(context, action)
        model, before, (row,) = self._encoded(context, [action], levels=())
        value = finite(as_reward(reward, "reward"), "reward")
        policy = taught(model.policy, np.concatenate((before, row))[None], np.array([value]))
        self._model = model._replace(policy=policy)

    def _chosen(self, context: Any, actions: Sequence[Any]) -> tuple[int, _Model]:
        _refuse_batches(context, actions)
        is_list = isinstance(actions, Sequence | np.ndarray) and getattr(actions, "ndim", 1) != 0
        if isinstance(actions, str) or not is_list or not len(actions):
            raise InvalidInput(f"actions must be a list with at least one action, got {shown(actions)}")
        model, before, rows = self._encoded(context, actions, _levels(actions))
        contexts = before[None] if model.context_width else None
        return int(model.policy.choose_many(contexts, arms=rows).indices[0]), model

    def _encoded(self, context: Any, actions: Iterable[Any], levels: tuple[Any, ...]) -> tuple[_Model, Array, Array]:
        """The model, the context (p,) and the actions (K, m) as numbers; a new model has these levels."""
        before = [] if context is None else _numbers(context, "context")
        known = levels if self._model is None else self._model.levels
        rows = [_encoded_action(action, known) for action in actions]
        model = self._model or self._started(len(before), len(rows[0]), levels)
        for row in rows:
            if (len(before), len(row)) != (model.context_width, model.action_width):
                raise InvalidInput(
                    f"contexts have had {model.context_width} features and actions {model.action_width}, "
                    f"got {len(before)} and {len(row)}"
                )
        return model, np.array(before, dtype=np.float64), np.array(rows, dtype=np.float64)

    def _started(self, context_width: int, action_width: int, levels: tuple[Any, ...]) -> _Model:
        features = self._features
        if features is None:
            action = WithConstant(action_width)
            features = Interaction(WithConstant(context_width), action) if context_width else action
        elif features.dim_in != context_width + action_width:
            raise InvalidInput(
                f"features take rows of length {features.dim_in}, but the context has {context_width} numbers and "
                f"the action {action_width}"
            )
        return _Model(self._algorithm.start(features), context_width, action_width, levels)


def _refuse_batches(*values: Any) -> None:
    """Make coba fall back to one call per row."""
    if any(hasattr(value, "is_batch") for value in values):
        raise InvalidInput("batches are not supported: call once for each of their rows")


def _is_text(action: Any) -> bool:
    return isinstance(action, str) and not hasattr(action, "as_onehot")


def _levels(actions: Iterable[Any]) -> tuple[Any, ...]:
    """The distinct actions, if some are text; then the others must be numbers, which are names beside text."""
    known = list(actions)
    if not any(map(_is_text, known)):
        return ()
    for action in known:
        if not (_is_text(action) or _is_number(action)):
            raise InvalidInput(f"beside text, actions must be text or numbers, got {shown(action)}: {_ADVICE}")
    return tuple(dict.fromkeys(known))


def _is_number(action: Any) -> bool:
    return isinstance(action, int | float | np.integer | np.floating)


def _encoded_action(action: Any, levels: tuple[Any, ...]) -> list[float]:
    """An action as numbers; one-hot if actions are text, whose levels must be known."""
    if not levels and not _is_text(action):
        return _numbers(action, "action")
    if not (_is_text(action) or _is_number(action)) or action not in levels:
        first = f"the first predict offered {shown(list(levels))}" if levels else "predict has not offered any yet"
        raise InvalidInput(f"unknown {'text ' * _is_text(action)}action {shown(action)}: {first}")
    return [float(action == level) for level in levels]


def _numbers(value: Any, name: str, depth: int = 0) -> list[float]:
    """A context or an action as numbers: as it is, one-hot for coba's categories, end to end for sequences."""
    if depth > _DEEPEST:
        raise InvalidInput(f"{name} contains itself, or sequences nested more than {_DEEPEST} deep: {_ADVICE}")
    levels = getattr(value, "as_onehot", None)
    if levels is not None:
        return [float(each) for each in levels]
    if isinstance(value, str | bytes):
        raise InvalidInput(f"{name} is the text {shown(value)}: {_ADVICE}")
    if isinstance(value, Mapping) or hasattr(type(value), "keys"):
        raise InvalidInput(f"{name} is sparse, {shown(value)}: {_ADVICE}")
    if isinstance(value, Iterable) and getattr(value, "ndim", None) != 0:
        parts = list(itertools.islice(value, _MOST_PARTS + 1))  # some iterables never end
        if len(parts) > _MOST_PARTS:
            raise InvalidInput(f"{name} must have at most {_MOST_PARTS:,} entries, got {shown(value)}")
        return [number for part in parts for number in _numbers(part, name, depth + 1)]
    return [finite(as_reward(value, name), name)]  # flags count as 0 and 1

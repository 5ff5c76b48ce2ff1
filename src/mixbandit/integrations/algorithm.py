"""What adapters to other bandit libraries share: which algorithm acts, what is stated, how it learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import Any

from mixbandit._checks import Array, nonnegative_int, shown
from mixbandit.bandits import ActingRule, Policy
from mixbandit.bandits.named import Named
from mixbandit.errors import InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import Blocks, ConfidenceSequence


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """A named algorithm with its settings, which starts a policy once the features are known."""

    kind: type[Named]
    sigma: float
    norm_bound: float
    delta: float
    seed: int
    reward_range: tuple[float, float] | None = None
    misspecification: float = 0.0
    mixture: Mixture | Forecaster | None = None
    alpha: float | list[float] | None = None
    exploration: float = 1.0
    on_empty: str = "raise"

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, type) and issubclass(self.kind, Named)):
            raise InvalidInput(f"the policy must be a class such as CMMUCB, AMMUCB or OFUL, got {shown(self.kind)}")
        nonnegative_int(self.seed, "seed")
        # Bad settings fail here and not in the first round; a mixture may need features of a certain dimension.
        _ = self.rule

    @property
    def rule(self) -> ActingRule:
        """How it acts."""
        return self._policy(1, {**self.settings(), "mixture": None}).rule

    def start(self, features: FeatureMap | int) -> Policy:
        """A policy without data."""
        return self._policy(features, self.settings())

    def start_per_arm(self, dim: int, arms: Iterable[Hashable]) -> Policy:
        """A policy without data that keeps a set for each arm; rows are contexts (dim,) and the number of an arm."""
        one = self.start(dim)
        return self.acting(Blocks(one.sequence, arms), one.rule)

    def acting(self, sequence: ConfidenceSequence, rule: ActingRule) -> Policy:
        """A policy that acts on a sequence."""
        return Policy(sequence, rule=rule, rng=self.seed, track_regret=False)

    def settings(self) -> dict[str, Any]:
        """What was stated and chosen, by keyword."""
        names = [field.name for field in dataclasses.fields(self) if field.name not in ("kind", "seed")]
        return {name: getattr(self, name) for name in names}

    def chosen(self) -> dict[str, Any]:
        """Those settings that have no default, or another value."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {name: value for name, value in self.settings().items() if shown(value) != shown(defaults[name])}

    def _policy(self, features: FeatureMap | int, settings: dict[str, Any]) -> Policy:
        return self.kind(features, **settings, rng=self.seed, track_regret=False)


def taught(policy: Policy, rows: Array, rewards: Any) -> Policy:
    """A copy of the policy that has also learnt the rewards of rows (context, action), whatever chose them.

    Every reward counts as a round, so that rules that draw at random draw anew after it.
    """
    new = policy.at(policy.state).learn(rows, rewards)
    return new.at(new.state._replace(rounds=new.moment.t, since=new.moment.t))

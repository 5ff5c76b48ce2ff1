"""Tuning under noise: ask for configurations, tell their values, and get a certified answer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack, overload

import numpy as np

from mixbandit._checks import (
    LARGEST_BATCH,
    Array,
    as_generator,
    as_path,
    as_reward,
    finite,
    flag,
    instance_of,
    is_integer,
    nonnegative,
    nonnegative_int,
    positive_int,
    shown,
)
from mixbandit._files import read_state, write_state
from mixbandit._schema import (
    Fields,
    check_type,
    checked,
    count,
    integer,
    list_of,
    mapping_of,
    optional,
    real,
    record,
    require,
    scalar,
)
from mixbandit.bandits import POLICY, ActingRule, Choice, Optimism, Policy, persistent, policy_from_state_dict
from mixbandit.bandits.choosing import nudged
from mixbandit.bandits.state import Anticipated
from mixbandit.errors import InvalidInput, reading
from mixbandit.features import FeatureMap
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import Moment, setting
from mixbandit.tuning.assumptions import ASSUMPTIONS, Assumptions, Stated
from mixbandit.tuning.reports import Reports, TunerState
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.space import SPACE, Space
from mixbandit.tuning.trials import Told, Trial

# Chosen by measurement (docs/tuning.md): acting on a twentieth of the half-width earns more than on all of it, once a
# few trials are spread over the space. Reported bounds are never scaled.
EXPLORATION, INITIAL = 0.05, 10


class Tuner(Reports):
    """Choose configurations of a space from noisy values, one at a time or in batches, and certify the answer.

    State what you know about values, as `Assumptions` or as its keywords: `reward_range` and `samples`, or `sigma` and
    a `norm_bound`. The noise of different trials must be independent: draw new validation rows for every trial.
    `samples` counts results of one fitted model: if training is random too, state a `sigma` that includes that.

    After `initial` trials spread over the space, the tuner maximises upper bounds: closed-form ones whose width is
    scaled by `exploration`, or `exact` ones, which take longer. Or it acts by your own rule, `acting`, such as
    `mixbandit.bandits.Thompson()`. How it acts never changes what it guarantees. Values may come late, in any order
    that does not depend on them; use `fail` for trials that fail.
    """

    objective: Assumptions = setting("assumptions", "The assumptions, by their name in version 0.1.0.")
    told: int = setting("moment.t", "The number of values learnt from.")

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        assumptions: Assumptions | None = None,
        *,
        features: FeatureMap | None = None,
        mixture: Mixture | Forecaster | None = None,
        acting: ActingRule | None = None,
        exploration: float | None = None,
        initial: int = INITIAL,
        exact: bool = False,
        rng: int | np.random.Generator | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        self.space = space if isinstance(space, Space) else Space(space)
        if assumptions is not None:
            instance_of(assumptions, Assumptions, "assumptions", "an Assumptions object, or stated as keywords")
        self.assumptions = Assumptions.of(assumptions, stated).towards("maximize")
        sequence = self.assumptions.sequence(self.space, features, mixture)
        self.initial, exactly = nonnegative_int(initial, "initial"), flag(exact, "exact")
        if acting is None:
            width = EXPLORATION if exploration is None else nonnegative(exploration, "exploration")
            acting = Optimism(None if exactly else sequence.alpha0, width)
        elif exploration is not None or exactly:
            raise InvalidInput("exploration and exact only apply to the default rule, not to `acting`")
        instance_of(acting, ActingRule, "acting", "an acting rule such as mixbandit.bandits.Thompson()")
        generator = as_generator(rng)
        self._spread_seed = int(generator.integers(2**32))
        options = {"rng": generator, "track_regret": False, "quick": True}
        self._policy = Policy(sequence, self.space.region, rule=acting, **options)  # type: ignore[arg-type]
        self._policy.sequence.silent = True  # the tuner reports refutations itself, in terms of values
        self.state = TunerState(self._policy.state)

    def __repr__(self) -> str:
        return f"Tuner({list(self.space)}, {self.assumptions}, told={self.told}, pending={len(self.pending)})"

    @property
    def policy(self) -> Policy:
        """A copy of the current policy, safe to experiment with."""
        return self._policy.at(self.state.bandit)

    @property
    def pending(self) -> tuple[Trial, ...]:
        """Trials asked for, but not yet told or failed."""
        return tuple(self._trial(choice) for choice in persistent.values(self.state.bandit.pending))

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial; with `n`, a list of n trials, all different if a parameter is continuous."""
        count = 1 if n is None else positive_int(n, "n", LARGEST_BATCH)
        self._say_if_refuted()
        policy, used = self.policy, self.state.spread_used
        waiting = self.told + len(policy.pending)
        spread = min(max(self.initial - waiting, 0), count)
        choices: list[Choice] = []
        if spread:
            # Skip past learnt runs as well: they may have started with the same configurations.
            first = max(used, waiting)
            used = first + spread
            choices += self._spread(policy, first, spread)
        if spread < count:
            choices += [self._as_configuration(policy, choice) for choice in policy.ask(n=count - spread)]
        trials = [self._trial(choice) for choice in choices]
        if policy.state.refuted:
            self._note_refuted()
        self.state = self.state._replace(bandit=policy.state, spread_used=used)
        return trials[0] if n is None else trials

    def _spread(self, policy: Policy, first: int, count: int) -> Iterable[Choice]:
        """Initial configurations as choices, none of which repeats a pending one."""
        region, rng = self.space.region, np.random.default_rng((policy.state.seed, policy.rounds))
        for row in self.space.encode_all(self.space.spread(first + count, rng=self._spread_seed)[first:]):
            pending = [choice.action for choice in policy.pending]
            yield policy.adopt(self.space.snapped(nudged(row, region, pending, rng)))

    def _as_configuration(self, policy: Policy, choice: Choice) -> Choice:
        """The choice moved to the nearest configuration, for parameters with too many values to list."""
        row = self.space.snapped(choice.action)
        if row is choice.action:
            return choice
        policy.cancel(choice)
        return policy.adopt(row)

    def adopt(self, parameters: Mapping[str, Any]) -> Trial:
        """Add a configuration chosen elsewhere, such as one already running, as a trial to be told like any other."""
        row = self.space.encode(parameters)
        self._say_if_refuted()
        policy = self.policy
        choice = policy.adopt(row)
        self.state = self.state._replace(bandit=policy.state)
        return dataclasses.replace(self._trial(choice), parameters=dict(parameters))

    def tell(self, trial: Trial | int, value: float) -> Self:
        """Tell the value of a trial, which is a Trial or its id."""
        number = as_reward(value, "value")
        reward = self.assumptions.reward(np.array([number]))
        choice = self._waiting(trial)
        known = self._trial(choice)
        told = Told(known.parameters, number, known.interval)
        bandit, history = self.state.bandit, self.state.history
        history = persistent.put(history, self.told, told)
        self.state = self.state._replace(bandit=bandit.told([choice], reward, [None]), history=history)
        return self

    def fail(self, trial: Trial | int) -> Self:
        """Drop a trial that has no value. The reason must have nothing to do with its noise."""
        bandit = self.state.bandit.without(self._waiting(trial), played=False)
        self.state = self.state._replace(bandit=bandit)
        return self

    def learn(self, history: Any, *, value: str | None = None) -> Self:
        """Learn from an existing run: anything that `certify` reads, with this space and direction.

        An Optuna study has a direction, which must be the tuner's; a table has none.
        """
        run = read_run(history, space=self.space, value=value)
        if run.says_direction and run.direction != self.assumptions.direction:
            raise InvalidInput(f"the study is to {run.direction}, but this tuner is to {self.assumptions.direction}")
        bandit, kept = self.state.bandit, self.state.history
        moment = bandit.moment.learnt(run.rows, self.assumptions.reward(run.values))
        for i, (parameters, number) in enumerate(zip(run.configurations, run.values.tolist(), strict=True)):
            kept = persistent.put(kept, self.told + i, Told(dict(parameters), number))
        self.state = self.state._replace(bandit=bandit.learnt(moment), history=kept)
        return self

    def copy(self) -> Self:
        """An independent tuner in the same state."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def knowing(
        self,
        moment: Moment,
        pending: Iterable[Array],
        *,
        begun: int,
        acting: Moment | None = None,
        refuted: bool = False,
        warm: Array | None = None,
    ) -> Self:
        """A tuner with these settings and the given moment and pending rows; `begun` trials have been asked for.

        It chooses as if the moment were `acting`, where given; what it says of any configuration is from `moment`.
        """
        new, policy = self.copy(), self.policy
        imagined = None if acting is None else Anticipated(acting, 0)
        refuted = refuted or moment.is_refuted
        policy.state = policy.state.learnt(moment)._replace(refuted=refuted, warm=warm, anticipated=imagined)
        for row in pending:
            policy.adopt(row)
        new.state = TunerState(policy.state, spread_used=begun, said_refuted=True)
        return new

    def reseed(self, rng: int | np.random.Generator | None) -> Self:
        """Continue with other random numbers, so that copies do not all make the same choices."""
        seed = int(as_generator(rng).integers(2**63))
        self.state = self.state._replace(bandit=self.state.bandit._replace(seed=seed))
        return self

    def _waiting(self, trial: Trial | int) -> Choice:
        """The pending choice of a trial or its id; InvalidInput if there is none."""
        number = trial.id if isinstance(trial, Trial) else trial
        if not is_integer(number):
            raise InvalidInput(f"trial must be a Trial or its id, got {shown(trial)}")
        known: Choice | None = persistent.get(self.state.bandit.pending, int(number))
        if known is None:
            pending = list(persistent.values(self.state.bandit.pending))
            waiting = ", ".join(str(choice.id) for choice in pending[:5]) or "none"
            problem = "has already been told or has failed" if 0 <= number < self.state.bandit.rounds else "is unknown"
            raise InvalidInput(f"trial {shown(int(number))} {problem}; waiting for values: {waiting}")
        if isinstance(trial, Trial) and not self.space.same(trial.parameters, self.space.decode(known.action)):
            raise InvalidInput(f"trial {number} belongs to another tuner: here it is {self._trial(known)}")
        return known

    def _trial(self, choice: Choice) -> Trial:
        return Trial(choice.id, self.space.decode(choice.action), choice, self.assumptions)

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "type": "Tuner",
            "space": self.space.state_dict(),
            "objective": self.assumptions.state_dict(),
            "policy": self.policy.state_dict(),
            "initial": self.initial,
            "spread_seed": self._spread_seed,
            "spread_used": self.state.spread_used,
            "history": [dataclasses.asdict(told) for told in self.history],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], features: FeatureMap | None = None) -> Self:
        """The tuner of a `state_dict`; pass `features` again if they are a user's function."""
        check_type(state, "Tuner", ["Tuner"])
        stored = checked(TUNER, state, "tuner")
        new = cls.__new__(cls)
        with reading("the tuner"):
            new.space = Space.from_state_dict(stored["space"])
            new.assumptions = Assumptions.from_state_dict(stored["objective"])
            new.initial, new._spread_seed = stored["initial"], stored["spread_seed"]
            new._policy = policy_from_state_dict(stored["policy"], features)
            require(new._policy.actions == new.space.region, "tuner.policy.actions", "must be those of the space")
            new._policy.sequence.silent = True
            history = persistent.EMPTY
            for i, part in enumerate(stored["history"]):
                history = persistent.put(history, i, Told(**part))
            new.state = TunerState(new._policy.state, history, stored["spread_used"])
        return new

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically, pending trials included."""
        write_state(as_path(path), self.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], features: FeatureMap | None = None) -> Self:
        """Continue from a file, bit for bit."""
        return cls.from_state_dict(read_state(as_path(path)), features)


def _interval(value: Any, where: str) -> tuple[float, float]:
    require(isinstance(value, list | tuple) and len(value) == 2, where, "must be a pair of numbers")
    return real(finite)(value[0], f"{where}[0]"), real(finite)(value[1], f"{where}[1]")


def _check_tuner(stored: Fields, where: str) -> None:
    told, asked = stored["policy"]["sequence"]["statistics"]["count"], stored["policy"]["ledger"]["next_id"]
    values = len(stored["history"])
    require(values <= told, f"{where}.history", f"must not be longer than the {told} values learnt, got {values}")
    plain = not any(part["context"] for part in stored["policy"]["ledger"]["open"])
    require(plain, f"{where}.policy.ledger.open", "must have no context")
    used = stored["spread_used"]
    require(used <= told + asked, f"{where}.spread_used", f"must be at most {told + asked}, got {used}")
    names = {part["name"] for part in stored["space"]["parameters"]}
    known = all(part["parameters"].keys() <= names for part in stored["history"])
    require(known, f"{where}.history", f"must be about the parameters {', '.join(sorted(names))}")


TUNER = record(
    {
        "space": SPACE,
        "objective": ASSUMPTIONS,
        "policy": POLICY,
        "initial": count,
        "spread_seed": integer(0, 2**64),
        "spread_used": count,
        "history": list_of(
            record({"parameters": mapping_of(scalar), "value": real(finite), "interval": optional(_interval)})
        ),
    },
    _check_tuner,
)
"""The state of a tuner."""

"""Tuning under noise: ask for configurations, tell their values, and get a certified answer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self, Unpack

import numpy as np

from mixbandit._checks import (
    Array,
    as_generator,
    as_path,
    as_reward,
    flag,
    instance_of,
    nonnegative,
    nonnegative_int,
    positive,
    shown,
)
from mixbandit._files import read_state, write_state
from mixbandit._lazy import setting
from mixbandit._locks import Lock, locked
from mixbandit._schema import require
from mixbandit.bandits import ActingRule, Choice, Optimism, Policy, persistent
from mixbandit.bandits.choice import number_of
from mixbandit.bandits.state import Anticipated, Known
from mixbandit.errors import InvalidInput, reading
from mixbandit.features import FeatureMap
from mixbandit.means import precisions
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import Moment, as_moment
from mixbandit.storage import FILES, Family, Storable, Stored
from mixbandit.tuning.asking import MOST_FAILED, Asks
from mixbandit.tuning.assumptions import Assumptions, ModelLike, Stated, acting_alpha, default_mixture, outgrowing
from mixbandit.tuning.confirming import Finalist
from mixbandit.tuning.default_model import is_default
from mixbandit.tuning.prefixes import learn_in_order
from mixbandit.tuning.proposing import Proposer
from mixbandit.tuning.reports import Failed, Note, TunerState, values_of
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.space import Space
from mixbandit.tuning.stored import TUNER, check_trials
from mixbandit.tuning.trials import Told, Trial

# Trials that are spread over the space: with fewer, searches settle too early (docs/results/searching.md).
INITIAL = 10
# For acting on bounds, chosen by measurement (docs/results/tuners-0.1.md): a twentieth of the half-width earns more.
# Reported bounds are never scaled.
EXPLORATION = 0.05


class Tuner(Asks, Storable):
    """Tune the parameters of a space from noisy values, one trial at a time or in batches, and certify the answer.

    State what you know about values, as `Assumptions` or as its keywords: `reward_range` and `samples`, or `sigma` and
    a `norm_bound`. The noise of different trials must be independent: draw new validation rows for every trial.
    `samples` counts results of one fitted model: if training is random as well, state a `sigma` that includes it.

    The tuner begins in the centre of the space and spreads more trials over it, `initial` in all. Then it acts on a
    Gaussian process that learns from the values which parameters matter and how noisy they are. With `exploration` it
    maximises upper bounds instead: closed-form bounds with their width scaled by that factor, or `exact` ones. `acting`
    replaces this by a rule of your own, such as `mixbandit.bandits.Thompson()`. With your own `features`, and beyond
    2,000 trials, it acts on bounds. How it acts never changes what it guarantees. Values may come late, in any order
    that does not depend on them; use `fail` for trials that fail.
    """

    family, kind, schema = Family("a tuner", "tuner", within=FILES), "Tuner", TUNER

    objective: Assumptions = setting("assumptions", "The assumptions, by their name in version 0.1.0.")
    told: int = setting("moment.t", "The number of values learnt from.")

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        assumptions: Assumptions | None = None,
        *,
        features: ModelLike | None = None,
        mixture: Mixture | Forecaster | None = None,
        acting: ActingRule | None = None,
        exploration: float | None = None,
        initial: int = INITIAL,
        exact: bool = False,
        rng: int | np.random.Generator | None = None,
        **stated: Unpack[Stated],
    ) -> None:
        self.lock = Lock()
        self.space = space if isinstance(space, Space) else Space(space)
        if assumptions is not None:
            instance_of(assumptions, Assumptions, "assumptions", "an Assumptions object, or stated as keywords")
        self.assumptions = Assumptions.of(assumptions, stated).towards("maximize")
        self.model = features, mixture
        sequence = self.assumptions.sequence(self.space, features, mixture)
        exactly = flag(exact, "exact")
        self._proposer = None
        if acting is None and exploration is None and not exactly and sequence.moment.data.observed is not None:
            self._proposer = Proposer(self.space)
        self.initial = nonnegative_int(initial, "initial")
        if acting is None:
            width = EXPLORATION if exploration is None else nonnegative(exploration, "exploration")
            alpha = sequence.alpha0 if mixture is not None else acting_alpha(self.assumptions)
            acting = Optimism(None if exactly else alpha, width)
        elif exploration is not None or exactly:
            raise InvalidInput("exploration and exact apply only to the default rule, not to `acting`")
        instance_of(acting, ActingRule, "acting", "an acting rule such as mixbandit.bandits.Thompson()")
        generator = as_generator(rng)
        self._spread_seed = int(generator.integers(2**32))
        options = {"rng": generator, "track_regret": False, "quick": True}
        self._policy = Policy(sequence, self.space.region, rule=acting, **options)  # type: ignore[arg-type]
        self._policy.sequence.silent = True  # the tuner reports refutations itself, in terms of values
        bandit = self._policy.state
        self.state = TunerState(
            bandit._replace(moment=outgrowing(self.assumptions, self.space, as_moment(bandit.moment)))
        )

    def __repr__(self) -> str:
        return f"Tuner({list(self.space)}, {self.assumptions}, told={self.told}, pending={len(self.pending)})"

    @locked
    def tell(
        self, trial: Trial | str | int, value: float, *, sem: float | None = None, sigma: float | None = None
    ) -> Self:
        """Tell the value of a trial, given as a Trial or its id.

        `sigma` is its noise level if it differs from the stated one; it must have been known before the value was, for
        example because a longer run is known to be less noisy. `sem` is its standard error, as estimated from the trial
        itself. Both affect what is tried next: precise values count for more. Certificates use `sigma`. They ignore
        `sem`, because an estimate bounds nothing, and they tell the reader.
        """
        number = as_reward(value, "value")
        error = None if sem is None else nonnegative(sem, "sem")
        level = None if sigma is None else self._level(sigma)
        reward = self.assumptions.reward(np.array([number]))
        choice = self._waiting(trial)
        known, note = self._trial(choice), persistent.get(self.state.notes, choice.number) or Note()
        told = Told(known.parameters, number, known.interval, note.nomination, error, level)
        history = persistent.put(self.state.history, self.told, told)
        self.state = self.state._replace(
            bandit=self.state.bandit.told([choice], reward, [level]),
            history=history,
            errors=persistent.put(self.state.errors, self.told, error) if error else self.state.errors,
            notes=persistent.drop(self.state.notes, choice.number),
        )
        return self

    def _level(self, sigma: float) -> float:
        """The noise level of one value."""
        if self.assumptions.sigma is None:
            raise InvalidInput("a sigma for a single value needs one stated for all others: Tuner(…, sigma=…)")
        level = positive(sigma, "sigma")
        precisions(self.assumptions.sigma, np.array([level]))
        return level

    @locked
    def fail(self, trial: Trial | str | int) -> Self:
        """Drop a trial that has no value. The reason must not depend on its noise."""
        choice = self._waiting(trial)
        bandit, notes = self.state.bandit, persistent.drop(self.state.notes, choice.number)
        bandit = bandit.giving_up(choice, played=False)
        failed = (*self._avoided, Failed(choice.action, self.told))[-MOST_FAILED:]
        self.state = self.state._replace(bandit=bandit, notes=notes, failed=failed)
        return self

    @locked
    def learn(self, history: Any, *, value: str | None = None, ordered: bool | None = None) -> Self:
        """Learn from an existing run: anything that `certify` reads, with this space and direction.

        The direction of an Optuna study must be the tuner's; a table has none. As in `certify`, a refutation by the
        first trials of the run stands, whatever later ones say. `ordered` says whether rows are in the order of play;
        if they are not, nothing can be confirmed any longer.
        """
        run = read_run(
            history, space=self.space, value=value, ordered=None if ordered is None else flag(ordered, "ordered")
        ).unselected()
        if run.says_direction and run.direction != self.assumptions.direction:
            raise InvalidInput(f"the study is to {run.direction}, but this tuner is to {self.assumptions.direction}")
        bandit, kept = self.state.bandit, self.state.history
        levels = run.noise_levels(self.assumptions.sigma)
        moment, refuted_after = learn_in_order(self.moment, run, self.assumptions.reward(run.values), levels)
        # Confirmations of another run had a part of δ of their own; here they are trials like others.
        for i, (parameters, number) in enumerate(zip(run.configurations, run.values.tolist(), strict=True)):
            level = None if run.levels is None or np.isnan(run.levels[i]) else float(run.levels[i])
            kept = persistent.put(kept, self.told + i, Told(dict(parameters), number, sigma=level))
        bandit = bandit.learnt(moment)
        bandit = bandit if refuted_after is None else bandit._replace(refuted=True)
        ordered = self.state.ordered and run.ordered
        self.state = self.state._replace(bandit=bandit, history=kept, ordered=ordered)
        return self

    def copy(self) -> Self:
        """An independent tuner in the same state."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.lock = Lock()
        return new

    __copy__ = copy

    def knowing(
        self,
        moment: Moment,
        pending: Iterable[Array],
        *,
        begun: int,
        acting: Moment | None = None,
        refuted: bool = False,
        warm: Array | None = None,
        errors: Mapping[int, float] = MappingProxyType({}),
    ) -> Self:
        """A tuner with these settings and the given moment and pending rows; `begun` trials have been asked for.

        It chooses as if the moment were `acting`, where given; what it says of any configuration is from `moment`.
        `errors` are standard errors of values, by their places in the moment.
        """
        new, policy = self.copy(), self.policy
        imagined = None if acting is None else Anticipated(Known(acting, None), 0)
        refuted = refuted or moment.is_refuted
        policy.state = policy.state.learnt(moment)._replace(refuted=refuted, warm=warm, anticipated=imagined)
        for row in pending:
            policy.adopt(row)
        known = persistent.EMPTY
        for i, error in errors.items():
            known = persistent.put(known, i, error)
        new.state = TunerState(policy.state, spread_used=begun, said_refuted=True, errors=known)
        return new

    @locked
    def reseed(self, rng: int | np.random.Generator | None) -> Self:
        """Continue with other random numbers, so that copies do not all make the same choices."""
        seed = int(as_generator(rng).integers(2**63))
        self.state = self.state._replace(bandit=self.state.bandit._replace(seed=seed))
        return self

    def _waiting(self, trial: Trial | str | int) -> Choice:
        """The pending choice of a trial or its id; InvalidInput if there is none."""
        name = trial.id if isinstance(trial, Trial) else trial
        number, state = number_of(name), self.state.bandit
        if number is None and not isinstance(name, str):
            raise InvalidInput(f"trial must be a Trial or its id, got {shown(trial)}")
        known: Choice | None = None if number is None else persistent.get(state.pending, number)
        if known is None or known.id != name:
            problem = "is unknown: asked for elsewhere, or lost, being asked for after the state that was loaded"
            if known is None and number is not None and 0 <= number < state.rounds:
                problem = f"has already been told or has failed, or {problem}"
            waiting = ", ".join(str(choice.id) for choice in list(persistent.values(state.pending))[:5]) or "none"
            raise InvalidInput(f"trial {shown(name)} {problem}; waiting for values: {waiting}")
        if isinstance(trial, Trial) and not self.space.same(trial.parameters, self.space.decode(known.action)):
            raise InvalidInput(f"trial {name} belongs to another tuner: here it is {self._trial(known)}")
        return known

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as plain values and arrays."""
        return {
            "type": "Tuner",
            "space": self.space.state_dict(),
            "objective": self.assumptions.state_dict(),
            "policy": self.policy.state_dict(),
            "initial": self.initial,
            "foresight": self._proposer is not None,
            "spread_seed": self._spread_seed,
            "spread_used": self.state.spread_used,
            "history": [dataclasses.asdict(told) for told in values_of(self.state)],
            "ordered": self.state.ordered,
            "nominated": [finalist.row.copy() for finalist in self.state.nominated],
            "errors": [{"place": i, "sem": error} for i, error in persistent.items(self.state.errors)],
            "notes": [{"id": number, **note._asdict()} for number, note in persistent.items(self.state.notes)],
            "failed": [{"row": row.copy(), "told": told} for row, told in self.state.failed],
        }

    @classmethod
    def restored(cls, stored: Stored, features: FeatureMap | int | None = None) -> Self:
        new = cls.__new__(cls)
        new.lock = Lock()
        with reading("the tuner"):
            new.space = Space.restored(stored["space"])
            new.assumptions = Assumptions.from_state_dict(stored["objective"])
            new.initial, new._spread_seed = stored["initial"], stored["spread_seed"]
            new._proposer = Proposer(new.space) if stored["foresight"] else None
            new._policy = stored["policy"].build(features)
            require(new._policy.actions == new.space.region, "tuner.policy.actions", "must be those of the space")
            new._policy.sequence.silent = True
            history = errors = persistent.EMPTY
            for i, part in enumerate(stored["history"]):
                history = persistent.put(history, i, Told(**part))
            for part in stored["errors"] or ():
                errors = persistent.put(errors, part["place"], part["sem"])
            bandit = new._policy.state
            bandit = bandit._replace(moment=outgrowing(new.assumptions, new.space, as_moment(bandit.moment)))
            finalists = tuple(Finalist(j, row) for j, row in enumerate(stored["nominated"] or (), 1))
            notes = persistent.EMPTY
            for part in stored["notes"] or ():
                notes = persistent.put(notes, part["id"], Note(part["parameters"], part["nomination"]))
            kept = {"errors": errors, "nominated": finalists, "notes": notes, "ordered": stored["ordered"]}
            kept["failed"] = tuple(Failed(part["row"], part["told"]) for part in stored["failed"] or ())
            new.state = TunerState(bandit, history, stored["spread_used"], **kept)
            check_trials(new.space, new.assumptions, new.state)
            new.model = _given_model(new)
        return new

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, pending trials included, to one file, atomically."""
        write_state(as_path(path), self.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], features: FeatureMap | None = None) -> Self:
        """Continue from a file, bit for bit."""
        return cls.from_state_dict(read_state(as_path(path)), features)


def _given_model(tuner: Tuner) -> tuple[Any, Any]:
    """The model and the mixture of a stored tuner, None where they are the defaults."""
    policy, known = tuner.policy, tuner.assumptions
    model, mixture = policy.state.moment.model, None
    if known.noise is None:
        stored = policy.sequence.mixture  # type: ignore[attr-defined]
        mixture = None if repr(stored) == repr(default_mixture(known)) else stored
    return None if is_default(model, tuner.space) else model, mixture

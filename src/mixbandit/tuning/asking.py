"""How a tuner chooses trials: from what it learnt from the values, or with an acting rule on its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

import numpy as np

from mixbandit._checks import LARGEST_BATCH, Array, positive_int
from mixbandit._locks import locked
from mixbandit.bandits import Choice, Policy, persistent
from mixbandit.sequences import Belief, as_moment
from mixbandit.tuning.finals import Confirms
from mixbandit.tuning.proposing import Experience, Leader, Proposer, as_weights
from mixbandit.tuning.reports import Failed, Note
from mixbandit.tuning.space import Space, centre, same_row
from mixbandit.tuning.trials import Trial

# Searches for the best bounds also start from this many tried configurations.
_HINTS = 5
# One trial in this many settles what looks best, where nobody knows how many there will be.
_SETTLING = 6
# A configuration that failed is avoided until this many values have been told; only the latest failures are remembered.
_FORGIVEN, MOST_FAILED = 5, 50


class Asks(Confirms):
    """A tuner that chooses trials."""

    initial: int  # trials that are spread over the space
    _policy: Policy  # its settings; the state is the tuner's
    _proposer: Proposer | None  # None: the policy's own rule chooses
    _spread_seed: int

    @property
    def policy(self) -> Policy:
        """A copy of the current policy, safe to experiment with."""
        return self._policy.at(self.state.bandit)

    @property
    def pending(self) -> tuple[Trial, ...]:
        """Trials that were asked for and have neither been told nor failed."""
        return tuple(self._trial(choice) for choice in persistent.values(self.state.bandit.pending))

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    @locked
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial; with `n`, a list of n trials, all different if a parameter is continuous.

        Without `n`, one trial in six repeats the configuration that may be the best, until its worth is known: a
        certificate is about one configuration and needs more than one value of it.
        """
        if n is not None:
            return self._asked(positive_int(n, "n", LARGEST_BATCH))
        known = self.moment.t + len(self.pending)
        # The number of trials so far: failures count, and those that were learnt, or that a sampler knows of.
        begun = max(known, self.state.bandit.rounds, self.state.spread_used)
        leader = self._leader() if known >= self.initial and begun % _SETTLING == 0 else None
        if leader is None or leader.is_settled or any(same_row(leader.row, c.action) for c in self.policy.pending):
            return self.search()
        return self._repeated(leader.row)

    def search(self) -> Trial:
        """The next trial, of a configuration worth trying for what it teaches."""
        return self._asked(1)[0]

    @locked
    def settle(self) -> Trial:
        """A trial of the possibly best configuration until its worth is known; after that, one that searches."""
        leader = self._leader()
        return self.search() if leader is None or leader.is_settled else self._repeated(leader.row)

    def _leader(self) -> Leader | None:
        state = self.state.bandit
        anticipated = state.anticipated
        known = self._experience(state.moment if anticipated is None else anticipated.known.belief)
        if self._proposer is None or known is None:
            return None
        leader = self._proposer.leader(known, _rows(self.policy.pending, self.space))
        return None if any(same_row(leader.row, failed.row) for failed in self._avoided) else leader

    @property
    def _avoided(self) -> tuple[Failed, ...]:
        """Failures that are so recent that the same would happen again."""
        return tuple(failed for failed in self.state.failed if self.moment.t < failed.told + _FORGIVEN)

    def _repeated(self, row: Array) -> Trial:
        return self._adopted(row, Note(self._as_given(row)))

    @locked
    def _asked(self, count: int) -> list[Trial]:
        self._say_if_refuted()
        policy, used = self.policy, self.state.spread_used
        waiting = self.moment.t + len(policy.pending)
        spread = min(max(self.initial - waiting, 0), count)
        if self._proposer is not None and not self.moment.t:  # nothing to learn from yet
            spread = count
        choices: list[Choice] = []
        if spread:
            # Skip past learnt runs as well: they may have started with the same configurations.
            first = max(used, waiting)
            used = first + spread
            choices += self._spread(policy, first, spread)
        if spread < count:
            choices += self._chosen(policy, count - spread)
        trials = [self._trial(choice) for choice in choices]
        if policy.state.refuted:
            self._note_refuted()
        self.state = self.state._replace(bandit=policy.state, spread_used=used)
        return trials

    def _chosen(self, policy: Policy, count: int) -> list[Choice]:
        """Choices by what was learnt from the values, if there are any, otherwise by the policy's own rule."""
        state = policy.state
        anticipated = state.anticipated
        known = self._experience(state.moment if anticipated is None else anticipated.known.belief)
        if self._proposer is None or known is None:
            return [self._as_configuration(policy, choice) for choice in policy.ask(n=count)]
        choices, avoided = [], [failed.row for failed in self._avoided]
        for _ in range(count):
            pending, rng = _rows(policy.pending, self.space), np.random.default_rng((state.seed, policy.rounds))
            row = self._proposer.propose(known, np.array([*avoided, *pending]).reshape(-1, self.space.dim), rng)
            moved = self.space.region.nudged(row, list(pending), rng)
            choices.append(policy.adopt(row if moved is row else self.space.snapped(moved)))
        return choices

    def _experience(self, belief: Belief[Any]) -> Experience | None:
        """The values for acting, precise ones counting for more; None if they are not kept."""
        moment = as_moment(belief)
        if moment.data.observed is None or not moment.t:
            return None
        rows, rewards, weights = moment.data.observed
        errors = np.full(len(rewards), np.nan)
        if (weights != 1.0).any():  # values with noise levels of their own: weights are σ/σ_k
            errors = (moment.rule.sigma or 1.0) / weights
        for i, told in persistent.items(self.state.errors):
            errors[i] = told
        return Experience(rows, rewards, as_weights(errors))

    @property
    def _hints(self) -> Array | None:
        known = self._experience(self.moment)
        if self._proposer is None or known is None:
            return self.state.bandit.warm
        return self._proposer.ranked(known)[:_HINTS]

    def _as_configuration(self, policy: Policy, choice: Choice) -> Choice:
        """The choice moved to the nearest configuration, for parameters with too many values to list."""
        row = self.space.snapped(choice.action)
        if row is choice.action:
            return choice
        policy.state = policy.state.without(choice, played=False)
        return policy.adopt(row)

    def adopt(self, parameters: Mapping[str, Any]) -> Trial:
        """Register a configuration chosen elsewhere, such as one already running, as a trial to be told."""
        return self._adopted(self.space.encode(parameters), Note(dict(parameters)))

    @locked
    def _adopted(self, row: Array, note: Note) -> Trial:
        self._say_if_refuted()
        policy = self.policy
        choice = policy.adopt(row)
        notes = persistent.put(self.state.notes, choice.number, note)
        self.state = self.state._replace(bandit=policy.state, notes=notes)
        return self._trial(choice)

    def _trial(self, choice: Choice) -> Trial:
        note = persistent.get(self.state.notes, choice.number) or Note()
        given = self.space.decode(choice.action) if note.parameters is None else dict(note.parameters)
        return Trial(choice.id, given, choice, self.assumptions)

    def _spread(self, policy: Policy, first: int, count: int) -> Iterator[Choice]:
        """Initial configurations as choices, none of which repeats a pending one."""
        region, rng = self.space.region, np.random.default_rng((policy.state.seed, policy.rounds))
        rows = self.space.encode_all(self.space.spread(first + count, rng=self._spread_seed)[first:])
        if self._proposer is not None and first == 0:
            rows[0] = centre(self.space)
        for row in rows:
            yield policy.adopt(self.space.snapped(region.nudged(row, list(_rows(policy.pending, self.space)), rng)))


def _rows(choices: Iterable[Choice], space: Space) -> Array:
    """The rows of choices, (n, dim)."""
    return np.array([choice.action for choice in choices]).reshape(-1, space.dim)

"""A tuner's budget: searching, confirming finalists, and how many confirmations a goal takes."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from mixbandit._checks import Array, as_function, finite, nonnegative_int, positive, positive_int
from mixbandit._locks import locked
from mixbandit.bandits import persistent
from mixbandit.errors import InvalidInput
from mixbandit.tuning.confirming import Confirmation, Finalist, Plan, check_ordered, nominated, planned
from mixbandit.tuning.reports import Note, Reports, values_of
from mixbandit.tuning.space import same_row
from mixbandit.tuning.trials import Trial

_logger = logging.getLogger(__name__)

# The number of trials that one call may ask for.
_MOST = 1_000_000
# The shares of a known budget that settle what looks best, and that confirm finalists.
SETTLED, _CONFIRMED = 0.25, 0.08


class Confirms(Reports):
    """A tuner that can confirm its finalists."""

    @abc.abstractmethod
    def _adopted(self, row: Array, note: Note) -> Trial:
        """A configuration chosen elsewhere, as a pending trial."""

    @abc.abstractmethod
    def search(self) -> Trial:
        """The next trial, of a configuration worth trying for what it teaches."""

    @abc.abstractmethod
    def settle(self) -> Trial:
        """A trial of a configuration that was tried before, as long as it is in doubt what that is worth."""

    @abc.abstractmethod
    def tell(self, trial: Trial, value: float) -> Self:
        """Tell its value."""

    @abc.abstractmethod
    def fail(self, trial: Trial) -> Self:
        """Drop it."""

    def trials(self, n_trials: int, *, confirmations: int | None = None) -> Iterator[Trial]:
        """A fixed budget of trials, each chosen when it is requested, to be told like any other.

        Two thirds of them search, a quarter repeats the best so far until its worth is known, and the last ones confirm
        finalists: `confirmations` says how many, by default 8 %. Any left over are spent on searching, as are all
        confirmations if the order of play is not known. Stopping early leaves the last trial pending.
        """
        count = positive_int(n_trials, "n_trials", _MOST)
        last = round(_CONFIRMED * count) if confirmations is None else nonnegative_int(confirmations, "confirmations")
        if last > count:
            raise InvalidInput(f"confirmations must be at most n_trials={count}, got {last}")
        return self._budgeted(count, last)

    def _budgeted(self, count: int, last: int) -> Iterator[Trial]:
        settling = min(round(SETTLED * count), count - last)
        for _ in range(count - settling - last):
            yield self.search()
        for _ in range(settling):
            yield self.settle()
        left = last
        # Confirmations need the order of play, and the trials themselves.
        if last and self.moment.t and self.state.ordered and len(self.history) == self.moment.t:
            confirmation = self.confirm(last)
            yield from confirmation
            left = confirmation.unused
        for _ in range(left):
            yield self.search()

    def optimize(
        self, objective: Callable[[dict[str, Any]], float], n_trials: int, *, confirmations: int | None = None
    ) -> Self:
        """Run the `trials` of a budget; `objective(parameters)` returns the value of a configuration.

        If the objective raises or is interrupted, its trial is dropped and everything told so far is kept: call it
        again with the remaining trials and confirmations.
        """
        function, trials = as_function(objective, "objective"), self.trials(n_trials, confirmations=confirmations)
        trial, before = None, self.state
        asked = before
        try:
            while True:
                with self.lock:  # until it is known which trial is ours and which state it came from
                    before = self.state
                    try:
                        trial = next(trials, None)
                        asked = self.state
                    except BaseException:
                        self.state = before
                        raise
                if trial is None:
                    break
                self.tell(trial, function(dict(trial.parameters)))
                _logger.info(f"Trial {trial.number}: {values_of(self.state)[-1].value:g} at {trial.parameters}")
        except BaseException:
            with self.lock:
                if self.state is asked:  # as if it had never been asked for
                    self.state = before
                elif trial is not None and self._is_pending(trial):
                    self.fail(trial)  # the objective, or another thread, used the tuner: what it told stays
            raise
        return self

    def _is_pending(self, trial: Trial) -> bool:
        return any(choice.id == trial.id for choice in persistent.values(self.state.bandit.pending))

    def confirm(self, n: int, finalists: int = 3) -> Confirmation[Trial]:
        """Up to n more trials of the configurations that look best, to be told like any other.

        An iterator: each trial is chosen when it is requested, from all values told by then. Confirmations have their
        own share of δ, so they raise the certified value far more than other trials do. It ends early when all
        finalists but one are known to be worse; its `unused` says how many trials were left.
        """
        count, most = positive_int(n, "n", _MOST), positive_int(finalists, "finalists", _MOST)
        self._check_told()
        model = self.judgement.moment
        if self.judgement.own is None:
            raise InvalidInput(
                "confirmations need the trials themselves, and this tuner kept only what it learnt from them"
            )
        check_ordered(self.judgement.own)
        return Confirmation(count, lambda: self._nominate(most), lambda: self._judge(model), self._begin)

    def plan(self, *, floor: float | None = None, gap: float | None = None) -> Plan:
        """About how many more confirmations of the leading configuration it takes to certify a value, or a gap.

        `floor`: the value to be certified (a ceiling if the tuner minimises). `gap`: the most by which any other
        configuration may be better. An estimate from the values so far, not a guarantee.
        """
        if (floor is None) == (gap is None):
            raise InvalidInput("state either a floor or a gap to plan for")
        self._check_told()
        judgement = self.judgement
        if judgement.own is None:
            raise InvalidInput("a plan needs the trials themselves, and this tuner kept only what it learnt from them")
        sign = self.assumptions.sign
        if floor is not None:
            worth = sign * finite(floor, "floor")
            goal = f"A certified value of {sign * worth:g}"
        else:
            most = positive(gap, "gap")  # type: ignore[arg-type]
            worth = self.certificate().optimum_upper - most
            goal = f"A gap of {most:g}"
        finalist = nominated(judgement, 1, self.state.nominated)[0]
        certified = max(self.certificate().lower, judgement.ends(finalist.row[None])[0].lower)
        return planned(judgement, finalist, worth, goal, certified)

    @locked
    def _nominate(self, count: int) -> tuple[Finalist, ...]:
        """Nominate the configurations that look best; those nominated before stay so."""
        before = self.state.nominated
        found = nominated(self.judgement, count, before)
        numbers = {finalist.number for finalist in before}
        new = tuple(finalist for finalist in found if finalist.number not in numbers)
        self.state = self.state._replace(nominated=before + new)
        return found

    def _begin(self, finalist: Finalist) -> Trial:
        """A trial that confirms a finalist."""
        return self._adopted(finalist.row, Note(self._as_given(finalist.row), finalist.number))

    def _as_given(self, row: Array) -> Mapping[str, Any] | None:
        """A configuration that was tried, as it was given; None if it was not."""
        tried = (told.parameters for told in values_of(self.state))
        return next((given for given in tried if same_row(self.space.encode(given), row)), None)

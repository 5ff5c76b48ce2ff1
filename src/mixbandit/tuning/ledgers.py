"""What a certificate of a run spends δ on: one ledger for each claim.

The bounds hold together. What a pool says about new rows is a claim of its own: a step from the pool to new rows takes
the place of the model. So is a false alarm, which is not a wrong bound: every test has a δ of its own.
"""

from __future__ import annotations

from mixbandit.spending import IN_ORDER, Ledger, Line, Spending, evenly, together
from mixbandit.tuning.default_model import MOST_ROWS, is_default
from mixbandit.tuning.evidence import OwnTrials, divided
from mixbandit.tuning.judgement import Judgement

# Once trials are pruned, only confirmations count. Looks before that may have spent the other parts.
_BEFORE = "the model before the first trial was pruned"


def ledgers(judgement: Judgement) -> tuple[Ledger, ...]:
    """The ledgers of all claims about a run."""
    known = judgement.assumptions
    found = [bounds_of(judgement)]
    if known.pool is not None:
        found.append(_of_new_rows(known.delta, judgement.own))
    return (*found, _of_alarms(judgement))


def bounds_of(judgement: Judgement) -> Ledger:
    """The ledger of all bounds of a judgement together."""
    return of_bounds(judgement.assumptions.delta, judgement.moment.rule.delta, judgement.own)


def of_bounds(delta: float, now: float | None = None, own: OwnTrials | None = None) -> Ledger:
    """The ledger of all bounds together; `now` is what the model has of its part at this number of trials."""
    parts = divided(delta)
    if own is not None and own.trials.confirmations:
        before = parts["model"].line(_BEFORE), parts["own"].line("each configuration's own trials before that")
        return Spending(delta).ledger("a bound is ever wrong", *before, _confirmed(delta, own))
    stage = ""
    if now is not None and now < parts["model"].delta:
        stage = f"{now:g} at this number of trials, the rest at others"
    model = parts["model"].line("the model", stage)
    return Spending(delta).ledger("a bound is ever wrong", model, *_without_model(delta, own))


def _of_new_rows(delta: float, own: OwnTrials | None) -> Ledger:
    step = divided(delta)["model"].line("the step from the pool to new rows")
    return Spending(delta).ledger("a bound on new rows is wrong", step, *_without_model(delta, own))


def _without_model(delta: float, own: OwnTrials | None) -> tuple[Line, Line]:
    planned = None if own is None else own.planned
    how = "" if own is None else IN_ORDER if planned is None else evenly(planned)
    return divided(delta)["own"].line("each configuration's own trials", how), _confirmed(delta, own)


def _confirmed(delta: float, own: OwnTrials | None) -> Line:
    return divided(delta)["nominated"].line("confirmed finalists", "" if own is None else IN_ORDER)


def _of_alarms(judgement: Judgement) -> Ledger:
    """All tests of the assumptions. Those made while a run grows have a sequence of their own, at all of δ."""
    known, tests = judgement.assumptions, judgement.moment.rule.tests
    whole = Spending(known.delta)
    lines = [whole.line("no function is left, or the model contradicts own trials", "then a bound is wrong")]
    if len(tests):
        how = " and ".join(f"{part.delta:g} for {part.name}" for part in tests)
        lines.append(divided(known.delta)["model"].line("tests of the model", f"{how} at this number of trials"))
    # The default model turns to features when a run has too many trials for its kernel.
    turns = is_default(judgement.moment.model, judgement.space)
    for span in (f" up to {MOST_ROWS:,} trials", f" beyond {MOST_ROWS:,} trials") if turns else ("",):
        lines.append(whole.line(f"no function is left as the run grows{span}"))
        if known.noise is None:
            lines.append(whole.line(f"tests of noise as the run grows{span}"))
    if known.counts_results:
        lines.append(whole.line("repeats scatter too much"))
    return together("some test raises a false alarm", "each test has a delta of its own", *lines)

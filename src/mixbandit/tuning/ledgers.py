"""What a certificate of a run spends δ on: one ledger for each claim.

The bounds hold together. What a pool says about new rows is a claim of its own: a step from the pool to new rows takes
the place of the model. So is a false alarm, which is not a wrong bound: every test has a δ of its own.
"""

from __future__ import annotations

from mixbandit._words import at_most
from mixbandit.certificates import Certificate
from mixbandit.models import Model
from mixbandit.spending import IN_ORDER, Ledger, Line, Parts, Spending, evenly, together
from mixbandit.tuning.assumptions import Assumptions
from mixbandit.tuning.default_model import MOST_ROWS, is_default
from mixbandit.tuning.evidence import OwnTrials, divided
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.space import Space

# Once trials are pruned, only confirmations count. Looks before that may have spent the other parts.
_BEFORE = "the model before the first trial was pruned"


def ledgers(judgement: Judgement) -> tuple[Ledger, ...]:
    """The ledgers of all claims about a run."""
    known = judgement.assumptions
    found = [bounds_of(judgement)]
    if known.pool is not None:
        found.append(_of_new_rows(known.delta, judgement.own))
    rule = judgement.moment.rule
    return (*found, of_alarms(known, judgement.space, judgement.moment.model, rule.tests))


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


def of_alarms(known: Assumptions, space: Space, model: Model, tests: Parts | None = None) -> Ledger:
    """All tests of the assumptions. Those made while a run grows have a sequence of their own, at all of δ.

    `tests` are those of the certified model; None if it is not known yet which there will be.
    """
    whole = Spending(known.delta)
    lines = [whole.line("no function is left, or the model contradicts own trials", "then a bound is wrong")]
    if tests is None:
        lines.append(divided(known.delta)["model"].line("tests of the model"))
    elif len(tests):
        how = " and ".join(f"{part.delta:g} for {part.name}" for part in tests)
        lines.append(divided(known.delta)["model"].line("tests of the model", f"{how} at this number of trials"))
    # The default model turns to features when a run has too many trials for its kernel.
    turns = is_default(model, space)
    for span in (f" up to {MOST_ROWS:,} trials", f" beyond {MOST_ROWS:,} trials") if turns else ("",):
        lines.append(whole.line(f"no function is left as the run grows{span}"))
        if known.noise is None:
            lines.append(whole.line(f"tests of noise as the run grows{span}"))
    if known.counts_results:
        lines.append(whole.line("repeats scatter too much"))
    return together("some test raises a false alarm", "each test has a delta of its own", *lines)


def alarms_in_words(ledger: Ledger) -> str:
    """How often any of the tests in a ledger of false alarms raises one."""
    most = at_most(min(ledger.total, 1.0))
    return f"all tests of a certificate together raise a false alarm with probability at most {most}"


def refuted_in_words(found: Certificate, assumptions: str) -> str:
    """What a warning says of a certificate whose assumptions are refuted."""
    return f"at level {found.delta:g} the data refute {assumptions}; {alarms_in_words(found.ledgers[-1])}"

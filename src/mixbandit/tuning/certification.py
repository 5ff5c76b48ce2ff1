"""A certificate for any tuner's run: what to use, its guaranteed worth, and how much better others may be.

Bounds hold at all times at once, whatever tuner chose the trials. A configuration's own trials need no model;
statements about untried ones do. State what the data cannot show: how noisy a value is, and how rough the function can
be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from mixbandit._checks import Array, as_generator, flag
from mixbandit.errors import STATEMENTS, AssumptionsRefutedWarning, InvalidInput, SamplesMissingWarning, warn_user
from mixbandit.mixtures import Forecaster, Mixture
from mixbandit.sequences import Moment
from mixbandit.tuning.assumptions import Assumptions, ModelLike, Stated, check_values
from mixbandit.tuning.evidence import Trials
from mixbandit.tuning.fixed_rows import on_fixed_rows, stated_about
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.ledgers import refuted_in_words
from mixbandit.tuning.modelling import certifying
from mixbandit.tuning.prefixes import learn_in_order
from mixbandit.tuning.recommending import certificate_fields
from mixbandit.tuning.runs import Run, read_run
from mixbandit.tuning.space import Space
from mixbandit.tuning.study_certificate import StudyCertificate


def certify(
    history: Any,
    assumptions: Assumptions | None = None,
    *,
    space: Space | None = None,
    value: str | None = None,
    parameters: Sequence[str] | None = None,
    ordered: bool | None = None,
    features: ModelLike | None = None,
    mixture: Mixture | Forecaster | None = None,
    rng: int | np.random.Generator | None = 0,
    fixed_list: bool | None = None,
    **stated: Unpack[Stated],
) -> StudyCertificate:
    """Certify a run: an Optuna study, a scikit-learn search, a DataFrame, a CSV file or a list of (parameters, value).

    State what you know about values, as `Assumptions` or as keywords: `reward_range=(0, 1)` and the number of
    independent `samples` that a value averages; or `sigma`, the noise level, together with a `norm_bound`. If neither
    is stated, nothing can be guaranteed, and AssumptionsMissing says what to state. `direction` defaults to the run's.

    In a table, `value` names the column of values ("value" by default) and `parameters` the columns of parameters: by
    default the `params_…` columns if there are any, else all others. `unused` lists the columns that are not used,
    `left_out` the rows that do not count. In a study with constraints, only feasible configurations that were tried are
    recommended.

    The order of play matters. It is known for a study and for a table with a column `number`; `ordered=True` says that
    rows are in that order. If it is not known, bounds are wider. If it is, the first trials are tested on their own,
    too: if they refute the assumptions, that stands, whatever later ones say; `refuted_after` says how many it took.
    Values count in the order in which trials were completed (in a table, by `datetime_complete` if it has that), so how
    long a trial takes must not depend on its value.

    A configuration's own trials need no model. Statements about all others do: by default, a Gaussian kernel of
    length-scale 0.2√(number of parameters) on the unit box, plus a constant; beyond 2,000 trials, 100 random features
    of it. Or pass as `features` a feature map (of `space.dim` inputs), a kernel, or a list of kernels, one of which
    must be right.

    All of this needs new rows for each value, `rows="fresh"`, or rows drawn with replacement from one pool of N rows,
    `pool=N`; then it is about the pool, and `on_new_rows` about new rows. State `rows="fixed"` if all values were
    measured on the same rows, as in a scikit-learn search, where this is the default; `fixed_list=True` if the
    configurations were fixed before any value was seen. The result is then a `ListCertificate`, without a model
    (`fixed_rows`). `rows` and `pool` may be stated beside an `Assumptions` object that says nothing about rows.
    """
    known = stated_about(history, assumptions, stated)
    listed = on_fixed_rows(history, known, fixed_list=fixed_list, space=space, value=value, parameters=parameters,
                           rng=rng, features=features, mixture=mixture, ordered=ordered)  # fmt: skip
    if listed is not None:
        return listed
    found = certified(history, known, space=space, value=value, parameters=parameters, ordered=ordered,
                      features=features, mixture=mixture, rng=rng)  # fmt: skip
    if not found.trusted:
        warn_user(
            refuted_in_words(found, f"{found.assumptions} (after {found.refuted_after} trials)"),
            AssumptionsRefutedWarning,
        )
    return found


def certified(
    history: Any,
    known: Assumptions,
    *,
    space: Space | None = None,
    value: str | None = None,
    parameters: Sequence[str] | None = None,
    ordered: bool | None = None,
    features: ModelLike | None = None,
    mixture: Mixture | Forecaster | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: Callable[[str], None] = lambda doing: None,
) -> StudyCertificate:
    """`certify` for callers that report refuted assumptions themselves; `progress` is called with each step."""
    run = read_run(
        history,
        space=space,
        direction=known.direction,
        value=value,
        parameters=parameters,
        ordered=None if ordered is None else flag(ordered, "ordered"),
        progress=lambda rows: progress(f"read {rows:,} rows"),
    ).unselected()
    known = known.towards(run.direction)
    rewards = known.reward(run.values)
    check_values(known, run.values)
    warn_if_samples_seem_missing(known, run.values)

    def report(learnt: int) -> None:
        progress(f"learnt {learnt:,} of {len(rewards):,} trials")

    # Prefixes are tested under Hoeffding's σ where none is stated, which takes less time; a refutation stands.
    watching = known.sequence(run.space, features, mixture, rows=len(rewards)).moment
    _, refuted_after = learn_in_order(watching, run, rewards, run.noise_levels(known.sigma), report)
    progress("learning from the trials")
    judgement = judged(run, known, features, mixture, refuted=refuted_after is not None)
    progress("searching for the best configuration")
    feasible = None if run.feasible is None else np.flatnonzero(run.feasible)
    if feasible is not None and not len(feasible):
        raise InvalidInput(
            f"none of the {len(rewards)} completed trials is known to satisfy the study's constraints: there is "
            "nothing to recommend"
        )
    fields = certificate_fields(
        judgement,
        as_generator(rng),
        warm=run.encoded(np.argsort(-rewards)[:5]),
        among=None if feasible is None else run.encoded(feasible),
    )
    found = StudyCertificate(**fields)
    return dataclasses.replace(
        found,
        left_out=run.left_out,
        unused=run.unused,
        inferred_space=run.inferred,
        infeasible=None if feasible is None else len(rewards) - len(feasible),
        ordered=run.ordered,
        stopped_short=run.stopped_short,
        lost=len(run.lost),
        absent=run.absent,
        overlapping=run.overlapping,
        refuted_after=len(rewards) if refuted_after is None and not found.trusted else refuted_after,
    )


def judged(
    run: Run,
    assumptions: Assumptions,
    features: ModelLike | None = None,
    mixture: Mixture | Forecaster | None = None,
    *,
    refuted: bool = False,
    model: Moment | None = None,
) -> Judgement:
    """All that a run says about configurations; an earlier `model` still holds and need not be rebuilt."""
    rewards, none = assumptions.reward(run.values), np.zeros(len(run.values), dtype=np.int64)
    nominations = none if run.nominations is None or not run.ordered else run.nominations
    nominations = nominations if run.owned is None else np.where(run.owned, nominations, 0)
    levels = run.noise_levels(assumptions.sigma)
    trials = Trials(run.configurations, run.rows, run.values, nominations, run.ordered, levels, run.feasible,
                    run.numbers if run.ordered else None, run.confirmations and run.ordered)  # fmt: skip
    if model is None:
        known: dict[str, Any] = {"ordered": run.ordered, "levels": levels}
        model = certifying(assumptions, run.space, features, mixture, trials.rows, rewards, **known)
    return Judgement(run.space, assumptions, model, trials, refuted)


def warn_if_samples_seem_missing(assumptions: Assumptions, values: Array) -> None:
    """Values that are single results lie at the ends of the range; others look like means of several."""
    if not assumptions.counts_results or assumptions.samples is not None or assumptions.reward_range is None:
        return
    between = ~np.isin(values, assumptions.reward_range)
    if between.any():
        warn_user(
            f"samples is not stated, so a value such as {values[between][0]:g} counts as one single result. If it is "
            f"the mean of m results, as an accuracy on m rows is, samples=m gives far tighter bounds; {STATEMENTS}",
            SamplesMissingWarning,
        )

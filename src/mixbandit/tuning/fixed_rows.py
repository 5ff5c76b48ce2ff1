"""Certificates for values that were all measured on the same rows, without a model.

| symbol | meaning |
|---|---|
| N, K | configurations on the list, folds (1 without cross-validation) |
| m | rows of one fold: a value r is the mean of m independent results in [0, 1], their expectation is p |
| δ | the probability that anything said is wrong |

A fixed set of rows is one draw: its luck is in every value, and a search that goes by values goes by that luck. Three
cases remain (MATH section 13):

- *A list fixed before any value was seen.* Given its training rows, a model's m results are independent, so that
  P(m·kl(r, p) ≥ a and r on a given side of p) ≤ e^{−a} (Chernoff). With a = ln(2NK/δ) all 2NK ends hold together,
  however dependent values are through shared rows. The mean of a configuration's K intervals covers the mean of its K
  fitted models. m is fixed in advance, so that a bound for all times would only be wider.
- *The same with stratified folds.* Their classes have the shares q of all n rows, and not those π of new rows: a model
  can learn q from its training rows and match it. Given the labels, results are independent, so that Chernoff's bound
  holds for Σ_c q_c·(accuracy in class c), with half of δ, up to the rounding of a fold, C/2m. With the other half, by
  Hoeffding's bound and a union over the 2^C − 2 sets of classes, the total variation between q and π is at most
  √(ln((2^C − 2)/(δ/2))/2n): intervals are wider by that and the rounding. With many classes they say nothing.
- *A search that went by its values*: only what was measured on these rows can be stated.
- *k finalists on fresh rows*, which nothing before depended on: a list of k, fixed before their values were seen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_generator, as_number, flag, positive_int, shown
from mixbandit.errors import STATEMENTS, AssumptionsMissing, AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.spending import Ledger, Parts, Spending, evenly, level_of_each
from mixbandit.tuning.assumptions import FIXED, FRESH, POOL, Assumptions, Stated
from mixbandit.tuning.chernoff import binomial_ends, chernoff_ends
from mixbandit.tuning.list_certificate import (
    FIXED_LIST,
    FRESH_ROWS,
    NEW_ROWS,
    SAME_ROWS,
    THESE_ROWS,
    ListCertificate,
)
from mixbandit.tuning.runs import read_run
from mixbandit.tuning.searches import UNKNOWN_FOLDS, Measured, Strata, is_search, of_run, optuna_study_of, read_search
from mixbandit.tuning.space import Space

SAME_FOLDS = 'a search that measures all configurations on the same rows: state rows="fixed", or nothing'


def stated_about(history: Any, given: Assumptions | None, stated: Stated) -> Assumptions:
    """The assumptions about a run, as one object or as keywords; those about rows may stand beside an object.

    A search of scikit-learn, or Optuna's, is always on fixed rows.
    """
    if is_search(history) or optuna_study_of(history) is not None:
        if stated.get("rows", FIXED) != FIXED or stated.get("pool") is not None:
            what = f"rows={shown(stated['rows'])}" if "rows" in stated else f"pool={shown(stated['pool'])}"
            raise InvalidInput(f"{what} contradicts the history, {SAME_FOLDS}")
        stated = {**stated, "rows": FIXED}
        if isinstance(given, Assumptions) and given.rows in (FRESH, POOL):
            raise InvalidInput(f"rows={given.rows!r} contradicts the history, {SAME_FOLDS}")
    if given is None:
        return Assumptions.of(None, stated)
    others: Stated = {name: value for name, value in stated.items() if name not in ("rows", "pool")}  # type: ignore[assignment]
    return Assumptions.of(given, others).with_rows(stated.get("rows"), stated.get("pool"))


def on_fixed_rows(
    history: Any,
    known: Assumptions,
    *,
    fixed_list: bool | None,
    space: Space | None,
    value: str | None,
    parameters: Sequence[str] | None,
    rng: Any,
    **model: Any,
) -> ListCertificate | None:
    """The certificate of a run on fixed rows; None if each value has rows of its own, and a model is needed.

    `fixed_list` says whether the configurations were fixed before any value was seen; if unknown, they count as not
    fixed. `model`: what `certify` takes for its model, which has no use here.
    """
    fixed_list = None if fixed_list is None else flag(fixed_list, "fixed_list")
    study, searched = optuna_study_of(history), is_search(history)
    if known.rows != FIXED:
        if fixed_list is not None:
            raise InvalidInput('fixed_list is about values on the same rows: state rows="fixed" as well')
        return None
    as_generator(rng)  # has no use either, but a default that is not None
    useless = {**model, **({"space": space, "parameters": parameters} if searched else {})}
    for name, given in useless.items():
        if given is not None:
            raise InvalidInput(f"{name} does not apply to fixed rows, where no model is fitted; got {shown(given)}")
    if searched:
        found = read_search(history, value)
    else:
        run = read_run(
            history if study is None else study,
            space=space,
            direction=known.direction,
            value=value,
            parameters=parameters,
        )
        found = of_run(run, None if study is None and not run.pruned else False)
    is_maximised = hasattr(history, "cv_results_") or (found.scorer or "").startswith("neg_")
    if known.direction == "minimize" and is_maximised:
        raise InvalidInput("scikit-learn's scores are maximised, and its losses are negative: got direction='minimize'")
    if found.fixed_list is False and fixed_list:
        raise InvalidInput(
            f"fixed_list=True contradicts the {type(history).__name__}: it chooses configurations by their scores"
        )
    if fixed_list is not None:
        found = dataclasses.replace(found, fixed_list=fixed_list)
    return on_a_fixed_list(found, known) if found.fixed_list else on_these_rows(found, known)


def certify_finalists(
    finalists: Sequence[tuple[Mapping[str, Any], float] | tuple[Mapping[str, Any], float, int]],
    assumptions: Assumptions | None = None,
    **stated: Unpack[Stated],
) -> ListCertificate:
    """Certify k finalists of any search on fresh rows, which nothing has used before.

    `finalists` is a list of (parameters, value), each value the mean of `samples` independent results in
    `reward_range`, or of (parameters, value, samples). Instead of samples, `sigma` may state the noise level of a
    value. All finalists may be measured on the same fresh rows. Each gets an interval at δ/k; no model is assumed.

    Choose the finalists first and measure them once: a finalist added after a look at these values does not count.
    """
    if assumptions is None:
        stated.setdefault("rows", FRESH)
    known = Assumptions.of(assumptions, stated)
    if known.rows in (POOL, FIXED):
        raise InvalidInput(f"finalists need fresh rows, which nothing has used before; got rows={known.rows!r}")
    return finalists_on_fresh_rows(_triples(finalists), known)


def finalists_on_fresh_rows(
    finalists: Sequence[tuple[Mapping[str, Any], float, int | None]], known: Assumptions, *, yes_or_no: bool = False
) -> ListCertificate:
    """`certify_finalists` for (parameters, value, samples), where samples may be None if `known` states it."""
    values = np.array([[value] for _, value, _ in finalists])
    measured = Measured([parameters for parameters, _, _ in finalists], values, len(finalists), True)
    samples = None
    if known.sigma is None:
        own = [known.samples if of_it is None else of_it for _, _, of_it in finalists]
        samples = np.array([[_stated_samples(n, known.noise)] for n in own], dtype=np.float64)
    elif any(of_it is not None for _, _, of_it in finalists):
        raise InvalidInput("state sigma or the samples of each finalist, not both")
    given = "fresh rows, on which neither training nor the choice of finalists depended"
    return _certified(measured, known, samples, FRESH_ROWS, given, yes_or_no=yes_or_no)


def on_a_fixed_list(found: Measured, known: Assumptions) -> ListCertificate:
    """The certificate of a list of configurations that was fixed before any value was seen."""
    if known.sigma is None and not found.is_a_mean:
        raise InvalidInput(
            f"the scorer {shown(found.scorer)} is not a mean over rows, so no number of samples is right for it: "
            f"state sigma, the noise level of a fold's score, instead; {STATEMENTS}"
        )
    samples = np.array(float(_stated_samples(known.samples, known.noise))) if known.sigma is None else None
    if found.strata is not None and samples is not None and found.strata.classes is None:
        return on_these_rows(found, known)
    given = "a list whose configurations and length were fixed before any value on these rows was seen"
    if found.folds_given is not None:
        given += f", {found.folds_given}"
    return _certified(found, known.towards(found.direction), samples, FIXED_LIST, given)


def on_these_rows(found: Measured, known: Assumptions) -> ListCertificate:
    """What a search that went by its values on fixed rows allows to say: nothing about new rows."""
    known = known.towards(found.direction)
    values = known.sign * _checked(found.values, known).mean(axis=1)
    candidates = _candidates(found)
    best = int(candidates[np.argmax(values[candidates])])
    ends = known.reward_range or (-math.inf, math.inf)
    low, high = ends if known.sign > 0 else (-ends[1], -ends[0])
    return ListCertificate(
        action=found.configurations[best],
        lower=low,
        upper=high,
        optimum_upper=high,
        gap=high - low,
        proof="search",
        guarantee="none",
        about=THESE_ROWS,
        evidence=SAME_ROWS,
        adaptive=None if found.fixed_list is None else True,
        assumptions="nothing" if known.reward_range is None else _range_in_words(known),
        intervals=np.tile(np.array(ends), (len(values), 1)),
        **_described(found, known, best),
    )


def _certified(
    found: Measured, known: Assumptions, samples: Array | None, evidence: str, given: str, *, yes_or_no: bool = False
) -> ListCertificate:
    """Intervals for every configuration, and the one with the best worst case.

    `yes_or_no`: every result is 0 or 1, so that the exact binomial interval is as valid, and narrower.
    """
    values = _checked(found.values, known)
    strata = found.strata if samples is not None else None
    parts = _parts(known.delta, strata)
    log_odds = parts["intervals"].each(2 * found.listed * values.shape[1]).level
    if samples is None:
        lower, upper, refuted = _by_level(values, known, log_odds)
        words = f"a noise level of {known.sigma:g} in each value, independent of the choice of configurations"
        if found.strata is not None:
            words += f", which covers that shares of classes do not vary in {_strata_in_words(found.strata)}"
    else:
        if known.reward_range is None:
            raise AssumptionsMissing(
                "state reward_range=(low, high), which contains every single result: (0, 1) for accuracies, (-1, 0) "
                "for neg_brier_score. An unbounded loss, such as log-loss, has no range: state sigma instead; "
                f"{STATEMENTS}"
            )
        bounds = binomial_ends(values, samples, log_odds) if yes_or_no else _by_range(values, known, samples, log_odds)
        lower, upper, refuted = *bounds, False
        if strata is not None:
            low, high = known.reward_range
            wider = (high - low) * stratified_shift(strata, int(samples.min()), parts["classes"].delta)
            lower, upper = np.maximum(lower - wider, low), np.minimum(upper + wider, high)
            given += f", with {_strata_in_words(strata)}, for which intervals are wider by {wider:.4g}"
        counts = sorted({int(n) for n in samples.flat})
        count = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        words = f"that each value is the mean of {count} independent results in {_ends_in_words(known)}"
    intervals = np.stack((lower.mean(axis=1), upper.mean(axis=1)), axis=1)
    worst, most = (intervals[:, 0], intervals[:, 1]) if known.sign > 0 else (-intervals[:, 1], -intervals[:, 0])
    candidates = _candidates(found)
    best = int(candidates[np.argmax(worst[candidates])])
    others, end = np.delete(most, best), None
    if known.reward_range is not None:
        end = known.reward_range[1] if known.sign > 0 else -known.reward_range[0]
    by_range = end is not None and bool((others >= end).any() and worst[best] < end)
    certificate = ListCertificate(
        action=found.configurations[best],
        lower=float(worst[best]),
        upper=float(most[best]),
        optimum_upper=float(most.max()),
        optimum_found=float(most.max()),
        gap=max(float(others.max() - worst[best]), 0.0) if len(others) else 0.0,
        proof="range" if by_range else "enumerated",
        guarantee="once",
        delta=known.delta,
        trusted=not refuted,
        about=NEW_ROWS,
        evidence=evidence,
        assumptions=f"{given}, and {words}",
        intervals=intervals,
        ledgers=(_ledger(found, known.delta, parts),),
        **_described(found, known, best),
    )
    if refuted:
        warn_user(f"at level {known.delta:g} the data refute {certificate.assumptions}", AssumptionsRefutedWarning)
    return certificate


def _parts(delta: float, strata: Strata | None) -> Parts:
    """What intervals have of δ, and what the shares of classes have if folds are stratified."""
    whole = Spending(delta)
    return whole.named(intervals=1.0) if strata is None else whole.named(intervals=0.5, classes=0.5)


def _ledger(found: Measured, delta: float, parts: Parts) -> Ledger:
    count, folds = found.listed, found.values.shape[1]
    how = f"{evenly(2 * count * folds)} ends, of {count:,} on the list" + (f" in {folds} folds" if folds > 1 else "")
    lines = [parts["intervals"].line(how=how)]
    if "classes" in parts:
        lines.append(parts["classes"].line("shares of classes in stratified folds"))
    return Spending(delta).ledger("a statement is wrong", *lines)


def stratified_shift(strata: Strata, samples: int, delta: float) -> float:
    """How far the shares of classes in stratified folds may be from those of new rows, in total variation."""
    if strata.classes is None or strata.classes < 2:
        return 0.0 if strata.classes == 1 else 1.0
    sets = strata.classes * math.log(2.0) + math.log1p(-(2.0 ** (1 - strata.classes)))  # ln(2^C − 2)
    rows = strata.folds * samples
    return min(math.sqrt(level_of_each(-math.log(delta), sets) / (2.0 * rows)) + strata.classes / (2.0 * samples), 1.0)


def _strata_in_words(strata: Strata) -> str:
    classes = "" if strata.classes is None else f" of {strata.classes} classes"
    return f"stratified folds{classes} ({strata.splitter})"


def _described(found: Measured, known: Assumptions, best: int) -> dict[str, Any]:
    return {
        "model": "no model of the function",
        "direction": known.direction or "maximize",
        "t": found.values.size,
        "tried": len(found.values),
        "folds": found.values.shape[1],
        "on_these_rows": float(found.values[best].mean()),
        "configurations": found.configurations,
        "left_out": found.left_out,
        "listed": found.listed if found.fixed_list else None,
        "unknown_folds": found.folds_given == UNKNOWN_FOLDS,
        "stratified": None if found.strata is None or not found.fixed_list else _strata_in_words(found.strata),
        "unused": found.unused,
        "infeasible": None if found.feasible is None else int((~found.feasible).sum()),
    }


def _by_range(values: Array, known: Assumptions, samples: Array, log_odds: float) -> tuple[Array, Array]:
    """Bounds (N, K) on the expectations of means of results in the range."""
    assert known.reward_range is not None
    low, high = known.reward_range
    lower, upper = chernoff_ends((values - low) / (high - low), samples, log_odds)
    return low + (high - low) * lower, low + (high - low) * upper


def _by_level(values: Array, known: Assumptions, log_odds: float) -> tuple[Array, Array, bool]:
    """Bounds (N, K) on the expectations of σ-sub-Gaussian values; whether they contradict the stated range."""
    assert known.sigma is not None
    half = known.sigma * math.sqrt(2.0 * log_odds)
    low, high = known.reward_range or (-math.inf, math.inf)
    refuted = bool(((values - half > high) | (values + half < low)).any())
    return np.clip(values - half, low, high), np.clip(values + half, low, high), refuted


def _checked(values: Array, known: Assumptions) -> Array:
    """The values, if they agree with what was stated."""
    known.reward(values.ravel())
    return values


def _candidates(found: Measured) -> NDArray[np.intp]:
    """Which configurations may be recommended."""
    if found.feasible is None:
        return np.arange(len(found.values))
    if not found.feasible.any():
        raise InvalidInput(f"none of {len(found.values)} configurations is known to satisfy the constraints")
    return np.flatnonzero(found.feasible)


def _stated_samples(samples: int | None, noise: str | None) -> int:
    if samples is None and noise is not None:
        raise InvalidInput(
            f"noise={noise!r} learns the noise level from repeated trials, and a list has one value for each "
            "configuration: state samples, if a value is a mean over rows, or sigma, a noise level known beforehand; "
            f"{STATEMENTS}"
        )
    if samples is None:
        raise AssumptionsMissing(
            "state samples, the number of rows that a value averages (with cross-validation, the rows of one fold), "
            "or sigma, the noise level of a value: without either, nothing can be guaranteed about new rows; "
            f"{STATEMENTS}"
        )
    return samples


def _triples(finalists: Any) -> list[tuple[Mapping[str, Any], float, int | None]]:
    form = "finalists must be a list of (parameters, value) or (parameters, value, samples)"
    if not isinstance(finalists, list | tuple) or not finalists:
        raise InvalidInput(f"{form}, got {shown(finalists)}")
    found: list[tuple[Mapping[str, Any], float, int | None]] = []
    for item in finalists:
        if not isinstance(item, list | tuple) or len(item) not in (2, 3) or not isinstance(item[0], Mapping):
            raise InvalidInput(f"{form}, got {shown(item)}")
        samples = positive_int(item[2], "samples") if len(item) == 3 else None
        found.append((dict(item[0]), as_number(item[1], "value"), samples))
    return found


def _ends_in_words(known: Assumptions) -> str:
    assert known.reward_range is not None
    return f"[{known.reward_range[0]:g}, {known.reward_range[1]:g}]"


def _range_in_words(known: Assumptions) -> str:
    return f"expected values in {_ends_in_words(known)}"

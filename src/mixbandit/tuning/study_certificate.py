"""A certificate for a run, as a value and in words: two lines first, details on request."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbandit._checks import as_text
from mixbandit._words import confidence
from mixbandit.certificates import Certificate
from mixbandit.errors import InvalidInput
from mixbandit.sequences import Audit
from mixbandit.tuning.assumptions import UNSTATED
from mixbandit.tuning.comparing import Comparison, compare
from mixbandit.tuning.judgement import OWN_TRIALS, Judgement, Worth
from mixbandit.tuning.ledgers import alarms_in_words
from mixbandit.tuning.pools import NewRows, from_pool, in_words
from mixbandit.tuning.possible import Possible
from mixbandit.tuning.repeats import Scatter
from mixbandit.tuning.runs import SELECTED
from mixbandit.tuning.selection import PRUNED


@dataclass(frozen=True)
class StudyCertificate(Certificate):
    """A certificate whose `action` is a configuration: what to use, its worth, and how much better others could be.

    It prints as two lines; `details()` says what they are based on. `lower`, `upper` and `optimum_upper` are rewards:
    the study's values, or minus the values if it minimises. `interval` and `best_possible` are values.
    """

    direction: str = "maximize"
    evidence: str = "model"  # what says that it is worth at least so much: the "model", or its "own trials"
    tried: int = 0  # how often the recommended configuration was tried
    judgement: Judgement | None = dataclasses.field(default=None, repr=False, compare=False)
    search_possible: Callable[[], tuple[Possible, ...]] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )
    audit: Audit | None = None
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)  # trials that do not count, by reason
    unused: Mapping[str, str] = dataclasses.field(default_factory=dict)  # columns that are not used, with the reason
    inferred_space: bool = False
    infeasible: int | None = None  # trials not known to satisfy the study's constraints; None without constraints
    refuted_after: int | None = None  # the number of trials after which the assumptions were seen to be refuted
    ordered: bool = True  # whether the order of play is known
    overlapping: bool = False  # whether trials are known to have run at the same time
    stopped_short: int = 0  # how many completed trials reported fewer steps than others
    lost: int = 0  # trials that ended without a value, by reasons that are not known
    absent: int = 0  # trials that are missing from a table, by the numbers of the others
    unmeasured: int = 0  # trials without a value besides `left_out`, from which a search may have learnt, too

    @property
    def parameters(self) -> dict[str, Any]:
        """The recommended configuration, as it was given if it was tried."""
        return dict(self.action)

    @functools.cached_property
    def possible(self) -> tuple[Possible, ...]:
        """Where the best can still be, parameter by parameter, according to a search that runs on first access."""
        return () if self.search_possible is None else self.search_possible()

    @property
    def interval(self) -> tuple[float, float]:
        """An interval for the expected value of the recommended configuration."""
        return (self.lower, self.upper) if self._upwards else (-self.upper, -self.lower)

    @property
    def on_new_rows(self) -> tuple[float, float]:
        """An interval for the expected value on new rows: wider than `interval` if trials were drawn from one pool."""
        found = self._new_rows
        return self.interval if found is None else (found.lower, found.upper)

    @property
    def _new_rows(self) -> NewRows | None:
        """What follows for new rows if trials were drawn from one pool; None if they were not."""
        if self.judgement is None or self.judgement.assumptions.pool is None:
            return None
        others, pruned = sum(self.left_out.values()) + self.unmeasured, bool({PRUNED, SELECTED} & set(self.left_out))
        return from_pool(self.judgement, self.parameters, others, inferred=self.inferred_space, pruned=pruned)

    @property
    def best_possible(self) -> float:
        """No configuration has a better expected value."""
        return self.optimum_upper if self._upwards else -self.optimum_upper

    @property
    def _upwards(self) -> bool:
        return self.direction == "maximize"

    def of(self, parameters: Mapping[str, Any]) -> Worth:
        """What is known about any configuration, tried or not, together with the certificate: no further δ is spent."""
        found = self._judged().of(parameters)
        return found if self.trusted else dataclasses.replace(found, trusted=False)

    def improvement(self, over: Mapping[str, Any]) -> Comparison:
        """How much better the recommended configuration is than another, such as your current one or the default.

        Larger is better here even if the study minimises.
        """
        found = self.compare(self.parameters, over)
        if self._upwards:
            return found
        return dataclasses.replace(found, lower=-found.upper, upper=-found.lower)

    def compare(
        self, one: Mapping[str, Any], other: Mapping[str, Any], pairs: Sequence[tuple[float, float]] | None = None
    ) -> Comparison:
        """How much larger the expected value of one configuration is than that of another.

        `pairs` are paired values of both, such as results on the same rows; the interval then rests on them alone, at
        its own δ.
        """
        found = compare(self._judged(), one, other, pairs)
        return found if self.trusted else dataclasses.replace(found, trusted=False)

    def _judged(self) -> Judgement:
        if self.judgement is None:
            raise InvalidInput("this certificate was made by hand and knows no other configuration")
        return self.judgement

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self, named: str | None = None) -> list[str]:
        """The verdict in two sentences, after a warning if it is not trusted; `named` is what to call `action`."""
        configuration = readable(self.action) if named is None else as_text(named, "named")
        low, high = (end + 0.0 for end in self.interval)  # without −0
        worth = f"at least {low:.4g}" if self._upwards else f"at most {high:.4g}"
        sure = f"with probability {confidence(self.delta)}"
        lines = [f"Use {configuration}: its expected value is {worth}, {sure} ({self._why}).", self._alternatives]
        if self.judgement is not None and (new := self._new_rows) is not None:
            lines.append(in_words(new, self.judgement.assumptions))
        if not self.trusted:
            alarms = f" ({alarms_in_words(self.ledgers[-1])})" if self.ledgers else ""
            lines.insert(0, f"WARNING: {self._refutation}{alarms}; none of this is guaranteed:")
        elif (scatter := _scatter(self.judgement)) is not None and scatter.caution:
            lines.insert(0, f"CAUTION: {scatter.caution}")
        if self.trusted:
            lines = [*self._suspicions, *lines]
        return lines

    @property
    def _suspicions(self) -> list[str]:
        """Signs that the values were selected, which only the user can tell."""
        found = []
        if self.stopped_short:
            which = "it was" if self.stopped_short == 1 else "they were"
            found.append(
                f"CAUTION: {self.stopped_short} of {self.t} trials reported fewer steps than others. If {which} "
                "stopped because of poor values, the others are biased by luck, and nothing is guaranteed: confirm."
            )
        if self.lost:
            found.append(_biased(f"{self.lost} trial{'' if self.lost == 1 else 's'} ended without a value"))
        if self.absent:
            found.append(_biased(f"{self.absent} trial number{' is' if self.absent == 1 else 's are'} missing"))
        return found

    @property
    def _why(self) -> str:
        times = "one trial" if self.tried == 1 else f"{self.tried} trials"
        rows = _rows_in_words(self.judgement)  # what users most often get wrong
        if self.evidence == OWN_TRIALS:
            return f"based on {'its' if self.tried == 1 else 'its own'} {times}{rows}"
        over = " over a space inferred from them" if self.inferred_space else ""
        return f"based on a model of all trials{over}{rows}; {f'{times} of its own' if self.tried else 'NEVER TRIED'}"

    @property
    def _alternatives(self) -> str:
        """How much better any other configuration can be, and how that is known."""
        beaten = f" by more than {self.gap:.4g}" if self.gap > 0.0 else ""
        if self.trusted and not self.proven:
            return f"No other configuration was found to beat it{beaten} (NOT PROVEN: only what a search found)."
        if not beaten:
            return "No other configuration in the space beats it."
        if self.proof == "range":
            end = f"{self.best_possible + 0.0:.4g}, the end of the stated range"
            return f"Nothing rules out a better configuration: expected values may reach {end}."
        beyond = f"{'above' if self._upwards else 'below'} {self.best_possible + 0.0:.4g}"
        return f"No other configuration beats it{beaten}: none has an expected value {beyond}."

    def details(self) -> str:
        """What the two lines are based on, what was left out, where the best can still be, and the audit."""
        low, high = (end + 0.0 for end in self.interval)
        lines = [str(self), f"Its expected value lies in [{low:.4g}, {high:.4g}], based on {self.t} trials in all."]
        if self.trusted:
            what = "This holds" if self.proven else "Of these, only the interval holds,"
            lines.append(f"{what} with probability at least {confidence(self.delta)}, whatever tuner was used, given")
            lines.append(f"{self.assumptions}, and {self.model}.")
        lines += self.reservations()
        # Of what is not trusted, only the probability of a false alarm is of interest.
        lines += map(str, self.ledgers if self.trusted else self.ledgers[-1:])
        if self.possible:
            lines.append("Where the best can still be, according to a search:")
            lines += [f"  {part}" for part in self.possible]
        lines += ["Audit:", *(f"  {sentence}" for sentence in self.findings())]
        return "\n".join(lines)

    def findings(self) -> list[str]:
        """What the data say about the assumptions."""
        found = [] if self.audit is None else list(self.audit.sentences)
        scatter = _scatter(self.judgement)
        return found if scatter is None else [*found, str(scatter)]

    @property
    def _refutation(self) -> str:
        known = None if self.judgement is None else self.judgement.refutation
        if self.refuted_after is None or self.refuted_after == self.t:
            return known or "the values refute the stated assumptions"
        return f"the first {self.refuted_after} of {self.t} trials refute the stated assumptions, which stands"

    def reservations(self) -> list[str]:
        """What was left out, and what was assumed about the run."""
        lines = ["No trial of the run was removed because of its value."]
        if not self.ordered:
            lines.append(
                "The order of play is not known, so every configuration gets the same share of delta, and the "
                "number of trials is assumed to have been fixed in advance."
            )
        if self.overlapping:
            lines.append("Trials ran at the same time: how long one takes must not have depended on its value.")
        if self.infeasible is not None:
            lines.append(
                f"Constraints: {self.infeasible} of {self.t} trials are not known to be feasible. They count as "
                "data, but only a feasible configuration that was tried can be recommended. The bounds on other "
                "configurations hold for feasible and infeasible ones alike; an untried one may be either."
            )
        if self.inferred_space:
            lines.append(
                "The space was inferred from the trials. What the model says holds if this space was fixed before "
                "them. If it was not, if it is larger, or if you certify the run again as it grows, each space spends "
                "the model's part of delta again: pass `space`. Bounds from own trials do not depend on it."
            )
        if self.left_out:
            lines.append("Not counted: " + ", ".join(f"{n} {why}" for why, n in self.left_out.items()) + ".")
            if {"PRUNED", "FAIL"} & set(self.left_out):
                lines.append("Pruning and failures must not have depended on the noise of the values.")
        if self.unused:
            reasons = dict.fromkeys(self.unused.values())
            named = {why: ", ".join(repr(name) for name in self.unused if self.unused[name] == why) for why in reasons}
            lines.append("Not used: " + "; ".join(f"{names} ({why})" for why, names in named.items()) + ".")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values; `possible` is left out, because it takes a search."""
        return {
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "direction": self.direction,
            "interval": [_plain(end) for end in self.interval],
            "on_new_rows": [_plain(end) for end in self.on_new_rows],
            "best_possible": _plain(self.best_possible),
            "gap": _plain(self.gap),
            "proven": self.proven,
            "proof": self.proof,
            "trusted": self.trusted,
            "evidence": self.evidence,
            "tried": self.tried,
            "trials": self.t,
            "delta": self.delta,
            "assumptions": self.assumptions,
            "model": self.model,
            "left_out": dict(self.left_out),
            "unused": dict(self.unused),
            "refuted_after": self.refuted_after,
            "audit": self.findings(),
            "summary": str(self),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_html(self) -> str:
        """The same as a piece of HTML, for a report or a notebook: the two lines, then the details folded away."""
        first, *rest = str(self).split("\n")
        lines = [f"<p><strong>{html.escape(first)}</strong></p>", *(f"<p>{html.escape(line)}</p>" for line in rest)]
        details = html.escape(self.details())
        return (
            '<div class="mixbandit-certificate">'
            f"{''.join(lines)}<details><summary>What this rests on</summary><pre>{details}</pre></details></div>"
        )

    _repr_html_ = to_html


def _biased(what: str) -> str:
    return f"CAUTION: {what}. If that depended on values, the others are biased by luck, and nothing is guaranteed."


def _scatter(judgement: Judgement | None) -> Scatter | None:
    return None if judgement is None else judgement.scatter


def _rows_in_words(judgement: Judgement | None) -> str:
    if judgement is None or (judgement.assumptions.samples or 0) <= 1:
        return ""
    known = judgement.assumptions
    if known.pool is not None:
        return f", on the pool of {known.pool:,} rows that trials were drawn from"
    return ", new rows assumed, not stated" if known.rows == UNSTATED else ", on new rows as stated"


def readable(parameters: Any) -> str:
    """Parameters as text for a sentence: plain numbers, of four significant digits. `parameters` has all of them."""
    if not isinstance(parameters, Mapping):
        return str(parameters)
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    return str({name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in plain.items()})


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    return value.item() if hasattr(value, "item") else str(value)

"""The sections of a page, each as a piece of HTML; empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixbandit._words import confidence
from mixbandit.reporting import drawing
from mixbandit.reporting.drawing import Row, extent
from mixbandit.reporting.gathering import Course, best_of
from mixbandit.reporting.markup import listed, paragraph, section, table
from mixbandit.reporting.wording import cut, escaped, interval, named, number, plain, rounded
from mixbandit.tuning import ListCertificate, StudyCertificate
from mixbandit.tuning.comparing import Comparison
from mixbandit.tuning.judgement import Worth, by_whom
from mixbandit.tuning.list_certificate import THESE_ROWS

_MOST_LISTED = 20
_HALF = 400.0


def verdict(certificate: StudyCertificate) -> str:
    """The two sentences, after a warning if they are not trusted, or after cautions."""
    sentences = certificate.sentences(named(certificate.parameters))
    warning = [sentence for sentence in sentences if sentence.startswith(("WARNING: ", "CAUTION: "))]
    body = "".join(paragraph(sentence) for sentence in sentences[len(warning) :])
    if not warning:
        return f'<div class="verdict">{body}</div>'
    if certificate.trusted:  # something to check, which proves nothing
        cautions = escaped(" ".join(sentence.removeprefix("CAUTION: ") for sentence in warning))
        return f'<div class="warning" role="alert">{cautions}</div><div class="verdict">{body}</div>'
    text = warning[0].removesuffix("; none of this is guaranteed:")
    return (
        f'<div class="warning" role="alert">{escaped(text)}. Nothing on this page is guaranteed.</div>'
        f'<div class="void"><p>If the assumptions were right, this would read:</p>{body}</div>'
    )


def tiles(certificate: StudyCertificate, course: Course | None) -> str:
    """The figures of the verdict, beside the value that one would have believed without it."""
    upwards, held = certificate.direction == "maximize", _says_something(certificate)
    low, high = certificate.interval
    if isinstance(certificate, ListCertificate):
        low = high = certificate.guaranteed
    worth = f"at least {number(low)}" if upwards else f"at most {number(high)}"
    sure = f"with probability {confidence(certificate.delta)}"
    what = certificate.measure if isinstance(certificate, ListCertificate) else "expected value"
    found = [(f"Guaranteed {what}", *((worth, sure) if held else ("nothing", "")))]
    if course is not None:
        best = best_of(course, upwards)
        found.append(("Best single value seen", number(float(course.values[best])), "includes luck"))
    elif isinstance(certificate, ListCertificate):
        found.append(("Measured", number(certificate.on_these_rows), "on the rows at hand; includes luck"))
    if held and not _stands_alone(certificate):
        proof = "" if certificate.proven else "not proven: a search found no more"
        found.append(("Left to gain, at most", number(certificate.gap), proof))
    if isinstance(certificate, ListCertificate):
        found.append(("Configurations", f"{certificate.tried:,}", ""))
    else:
        found.append(("Trials", f"{certificate.t:,}", f"{certificate.tried:,} of the recommended configuration"))
    return f'<dl class="tiles">{"".join(_tile(*each) for each in found)}</dl>'


def _tile(name: str, value: str, more: str) -> str:
    small = f"<small>{escaped(more)}</small>" if more else ""
    return f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}{small}</dd></div>"


def _stands_alone(certificate: StudyCertificate) -> bool:
    """Whether nothing else was measured, and there is nothing to compare with."""
    return isinstance(certificate, ListCertificate) and certificate.tried == 1


def _says_something(certificate: StudyCertificate) -> bool:
    """Whether anything is guaranteed about new rows."""
    only_here = isinstance(certificate, ListCertificate) and certificate.about == THESE_ROWS
    return certificate.trusted and not only_here


# --- the recommended configuration, and the default


class Against(NamedTuple):
    """The configuration in use, and how the recommended one compares with it."""

    parameters: Mapping[str, Any]
    called: str  # "the default"
    worth: Worth
    comparison: Comparison
    same: bool


def recommended(certificate: StudyCertificate, default: Against | None) -> str:
    """The parameters in full, beside those of the default if it is known."""
    mine = certificate.parameters
    if default is None:
        rows = [("", [escaped(cut(name)), escaped(plain(value))]) for name, value in mine.items()]
        note = (
            "The configuration now in use was not stated, so the recommended one is not compared with it. State it as "
            "default=…, or --default on the command line."
        )
        told = [] if _stands_alone(certificate) else [paragraph(note, "note")]
        return section("The recommended configuration", table(["parameter", "use"], rows), *told)
    rows = []
    for name in dict.fromkeys([*mine, *default.parameters]):
        cells = [plain(each[name]) if name in each else "–" for each in (mine, default.parameters)]
        rows.append(("changed" if cells[0] != cells[1] else "", [escaped(cell) for cell in (cut(name), *cells)]))
    other = default.called.removeprefix("the ")
    return section(
        f"The recommended configuration against {default.called}",
        paragraph(_better(default)),
        _side_by_side(certificate, default, other) if _says_something(certificate) and not default.same else "",
        table(["parameter", "recommended", other], rows),
    )


def _side_by_side(certificate: StudyCertificate, default: Against, other: str) -> str:
    mine, its = certificate.interval, default.worth.interval
    pair = [Row("recommended", *mine, "best"), Row(other, *its)]
    told = f"Expected values: recommended {interval(*mine)}, {other} {interval(*its)}"
    picture = drawing.rows(pair, extent(np.array(mine), its), told, width=_HALF)
    return f'<figure class="half">{picture}<figcaption>{escaped(told)}.</figcaption></figure>'


def _better(default: Against) -> str:
    """Whether the recommended configuration is better, in a sentence."""
    found = default.comparison
    if default.same:
        return f"The recommended configuration is {default.called}."
    if not found.trusted:
        return f"Nothing is guaranteed about the difference from {default.called}."
    sides = f"the difference lies between {number(found.lower)} and {number(found.upper)} ({by_whom(found.evidence)})"
    if found.lower > 0.0:
        return f"It is better than {default.called}, by at least {number(found.lower)}: {sides} (larger is better)."
    if found.upper < 0.0:
        return f"It is worse than {default.called}: {sides} (larger is better)."
    return f"Whether it is better than {default.called} is not certain: {sides} (larger is better)."


# --- a list without a model


def on_the_list(certificate: ListCertificate) -> str:
    """The intervals of the best configurations of a list, if any says more than others."""
    if not certificate.trusted or not np.ptp(np.nan_to_num(certificate.intervals), axis=0).any():
        return ""
    sign = 1.0 if certificate.direction == "maximize" else -1.0
    guaranteed = certificate.intervals[:, 0] if sign > 0.0 else -certificate.intervals[:, 1]
    order = np.argsort(-guaranteed, kind="stable")[:_MOST_LISTED].tolist()
    rows, cells = [], []
    for place, i in enumerate(order, 1):
        (low, high), parameters = certificate.intervals[i].tolist(), certificate.configurations[i]
        text = ", ".join(f"{name} = {rounded(value)}" for name, value in parameters.items())
        rows.append(Row(f"{place}. {text}", low, high, "best" if parameters is certificate.action else ""))
        full = ", ".join(f"{name} = {plain(value)}" for name, value in parameters.items())
        cells.append(("", [f"{place}. {escaped(full)}", escaped(interval(low, high))]))
    what = "Means over the folds of these rows" if certificate.about == THESE_ROWS else "Expected values on new rows"
    told = f"{what}; all intervals hold together."
    count = len(certificate.configurations)
    if len(rows) < count:
        told += f" These are the {len(rows)} of {count:,} configurations with the best guaranteed values."
    picture = drawing.rows(rows, extent(certificate.intervals[order].ravel(), []), told, width=_HALF)
    return section(
        "The configurations measured",
        f'<figure class="half">{picture}<figcaption>{escaped(told)}</figcaption></figure>',
        table(["configuration", "interval"], cells),
    )


# --- what was assumed


def assumed(certificate: StudyCertificate) -> str:
    """What everything rests on, and whether the data agree."""
    findings, notes = certificate.findings(), certificate.reservations()
    if isinstance(certificate, ListCertificate):  # there is no model, and its sentences say what they rest on
        return section("What this rests on", listed(notes))
    parts = [f"About values: {certificate.assumptions}."]
    if certificate.judgement is not None:
        parts.append(f"About the function: {certificate.model}.")
        parts.append(f"delta = {certificate.delta:g} is divided: {certificate.ledgers[0].in_words()}.")
    if certificate.trusted:
        parts.append(
            "If this is right, everything called guaranteed above holds together with probability at least "
            f"{confidence(certificate.delta)}, whatever tuner chose the trials."
        )
    verdict = (
        paragraph("The data do not contradict it.") if certificate.trusted else paragraph("The data refute it.", "bad")
    )
    return section(
        "What was assumed, and whether the data agree",
        listed(parts),
        f"<h3>Whether the data agree</h3>{verdict}{listed(findings)}" if findings else "",
        f"<h3>To keep in mind</h3>{listed(notes)}" if notes else "",
    )

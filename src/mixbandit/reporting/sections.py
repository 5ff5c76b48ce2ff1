"""The sections of a page, each as a piece of HTML; empty where there is nothing to say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.reporting import drawing
from mixbandit.reporting.drawing import Picture, Row, Tick
from mixbandit.reporting.gathering import MOST_SLICES, Course, Slice, position, thinned
from mixbandit.reporting.wording import cut, escaped, interval, named, number, plain, rounded, times
from mixbandit.tuning import ListCertificate, StudyCertificate
from mixbandit.tuning.comparing import Comparison
from mixbandit.tuning.evidence import shares_in_words
from mixbandit.tuning.judgement import Judgement, Worth, by_whom
from mixbandit.tuning.list_certificate import THESE_ROWS
from mixbandit.tuning.parameters import Float, Int
from mixbandit.tuning.possible import Possible

_MOST_LISTED = 20
_WIDE, _NARROW = 720.0, 340.0


def section(heading: str, *parts: str) -> str:
    """A section, unless all of its parts are empty."""
    body = "".join(parts)
    return f"<section><h2>{escaped(heading)}</h2>{body}</section>" if body else ""


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escaped(text)}</p>' if kind else f"<p>{escaped(text)}</p>"


def listed(sentences: Iterable[str]) -> str:
    """Sentences as a list; those that say that something is refuted stand out."""
    items = [
        f'<li class="bad">{escaped(each)}</li>' if each.startswith("REFUTED") else f"<li>{escaped(each)}</li>"
        for each in sentences
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def table(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of cells that are HTML already; every row has a class, which may be empty."""
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in heads)
    body = "".join(
        f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for kind, cells in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def legend(entries: Mapping[str, str]) -> str:
    items = "".join(f'<li><i class="of-{kind}"></i>{escaped(text)}</li>' for kind, text in entries.items())
    return f'<ul class="legend">{items}</ul>'


def verdict(certificate: StudyCertificate) -> str:
    """The two sentences, after a warning if they are not trusted."""
    *warning, first, second = certificate.sentences(named(certificate.parameters))
    found = f'<div class="warning" role="alert">{escaped(warning[0])}</div>' if warning else ""
    return f'{found}<div class="verdict">{paragraph(first)}{paragraph(second)}</div>'


def tiles(certificate: StudyCertificate, course: Course | None) -> str:
    """The figures of the verdict, beside the value that one would have believed without it."""
    upwards = certificate.direction == "maximize"
    low, high = certificate.interval
    held = certificate.trusted and not (isinstance(certificate, ListCertificate) and certificate.about == THESE_ROWS)
    found = []
    if held:
        worth = f"at least {number(low)}" if upwards else f"at most {number(high)}"
        found.append(("Guaranteed on average", worth, f"with probability {1.0 - certificate.delta:.6g}"))
    else:
        found.append(("Guaranteed on average", "nothing", ""))
    if course is not None:
        best = best_of(course, upwards)
        found.append(("Best single value seen", number(float(course.values[best])), f"trial {best + 1:,}; includes luck"))
    elif isinstance(certificate, ListCertificate):
        found.append(("Measured", number(certificate.on_these_rows), "on the rows at hand; includes luck"))
    if held:
        proof = "" if certificate.proven else "not proven: a search found no more"
        found.append(("Left to gain, at most", number(certificate.gap), proof))
    if isinstance(certificate, ListCertificate):
        found.append(("Configurations", f"{certificate.tried:,}", ""))
    else:
        found.append(("Trials", f"{certificate.t:,}", _repeated(certificate)))
    cells = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}{f'<small>{escaped(more)}</small>' if more else ''}</dd></div>"
        for name, value, more in found
    )
    return f'<dl class="tiles">{cells}</dl>'


def _repeated(certificate: StudyCertificate) -> str:
    return f"{certificate.tried:,} of the recommended configuration"


def best_of(course: Course, upwards: bool) -> int:
    """The trial with the best value."""
    return int(np.argmax(course.values if upwards else -course.values))


# --- values and guarantees over time


def over_time(certificate: StudyCertificate, course: Course | None) -> str:
    """What was seen beside what was certain."""
    if course is None:
        return ""
    upwards = certificate.direction == "maximize"
    best = best_of(course, upwards)
    known = len(course.moments) > 0
    seen = number(float(course.values[best]))
    ends = _range(course.values, [*course.guaranteed[-3:], *certificate.interval] if known else [])
    lead = "What was seen, and what is certain" if known else "What was seen"
    entries = {"dots": "value of a trial"}
    if course.confirming.any():
        entries["confirming"] = "confirmation of a finalist"
    if certificate.ordered:
        entries["seen"] = "best value so far"
    if known:
        whose = "the recommended configuration" if course.of_the_last else "what was best by then"
        entries["floor"] = f"guaranteed for {whose}: at {'least' if upwards else 'most'} this"
    described = f"{len(course.values):,} values; the best is {seen}"
    if known:
        described += f", and {number(float(course.guaranteed[-1]))} is guaranteed"
    pictures = "".join(
        f'<div class="{kind}">{_course(certificate, course, ends, width, height, described)}</div>'
        for kind, width, height in (("wide", _WIDE, 280.0), ("narrow", _NARROW, 230.0))
    )
    notes = _beyond(course.values, ends)
    return section(
        lead, paragraph(_luck(certificate, course, best)), legend(entries),
        f"<figure>{pictures}<figcaption>{escaped(' '.join(['Trials from left to right.', *notes]))}</figcaption></figure>",
        paragraph(_why_no_floor(certificate), "note") if not known else "",
    )  # fmt: skip


def _luck(certificate: StudyCertificate, course: Course, best: int) -> str:
    """How much of the best value is no more than luck."""
    value, upwards = float(course.values[best]), certificate.direction == "maximize"
    text = f"The best single value is {number(value)}, in trial {best + 1:,}."
    if not certificate.trusted or certificate.judgement is None or certificate.judgement.own is None:
        return text
    judgement, own = certificate.judgement, certificate.judgement.own
    row = own.trials.rows[best]
    worth = judgement.of_row(row)
    low, high = certificate.interval
    certain = low if upwards else high
    away = abs(value - certain)
    text += f" What is certain is {number(certain)}: the best of {len(course.values):,} noisy values is partly luck."
    if len(course.values) == 1 or away == 0.0:
        return f"The only value is {number(value)}; what is certain is {number(certain)}." if away else text
    if judgement.space.same(judgement.given(row), certificate.parameters):
        return f"{text} That trial was of the recommended configuration, tried {times(worth.trials)}."
    return f"{text} The expected value of that trial's configuration lies in {interval(worth.lower, worth.upper)}."


def _why_no_floor(certificate: StudyCertificate) -> str:
    if not certificate.trusted:
        return "What was guaranteed over time is left out: the data refute the assumptions, so nothing is."
    return (
        "What was guaranteed over time is left out, because the order of play is not known: trials are in the order of "
        "the file."
    )


def _course(
    certificate: StudyCertificate, course: Course, ends: tuple[float, float], width: float, height: float, told: str
) -> str:
    t, upwards = len(course.values), certificate.direction == "maximize"
    ticks = drawing.ticks(*ends)
    picture = Picture(width, height, (0.0, float(t)) if t > 1 else (0.0, 2.0), ends, drawing.left_of(ticks))
    whole = [tick for tick in drawing.ticks(0.0, max(t, 2.0), 6 if width > 500 else 4) if tick.at == round(tick.at)]
    picture.frame([Tick(tick.at, f"{int(tick.at):,}") for tick in whole], ticks)
    some, numbers = thinned(t), np.arange(1.0, t + 1.0)
    plain_ones, confirming = some[~course.confirming[some]], some[course.confirming[some]]
    picture.dots(numbers[plain_ones], course.values[plain_ones])
    picture.dots(numbers[confirming], course.values[confirming], "confirming")
    if certificate.ordered and t > 1:
        best = np.maximum.accumulate(course.values) if upwards else np.minimum.accumulate(course.values)
        kept = np.union1d(np.flatnonzero(np.diff(best, prepend=np.inf)), [t - 1])
        picture.line(numbers[kept], best[kept], "seen", steps=True)
    if len(course.moments) > 1:
        picture.line(course.moments.astype(float), course.guaranteed, "floor", steps=True)
    elif len(course.moments):
        picture.dots(course.moments.astype(float), course.guaranteed, "confirming", 4.0)
    return picture.svg(told)


def _range(values: Array, others: Iterable[float]) -> tuple[float, float]:
    """The part of the axis to show: nearly all values, and all others that are finite."""
    low, high = (float(end) for end in np.quantile(values, (0.02, 0.98))) if len(values) > 50 else _ends(values)
    finite = [low, high, *(float(each) for each in others if math.isfinite(each))]
    low, high = min(finite), max(finite)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _ends(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _beyond(values: Array, ends: tuple[float, float]) -> list[str]:
    """What is not drawn where it is."""
    notes, outside = [], int(((values < ends[0]) | (values > ends[1])).sum())
    if outside:
        notes.append(f"{outside:,} values lie beyond the picture, and are drawn on its edge.")
    drawn = len(thinned(len(values)))
    if drawn < len(values):
        notes.append(f"{drawn:,} of {len(values):,} values are drawn, evenly spaced.")
    return notes


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
        rows = [("", (escaped(name), escaped(plain(value)))) for name, value in mine.items()]
        note = "The configuration now in use was not stated, so the recommended one is not compared with it."
        how = "State it as default=…, or --default on the command line."
        return section("The recommended configuration", table(["parameter", "use"], rows), paragraph(f"{note} {how}", "note"))
    names = dict.fromkeys([*mine, *default.parameters])
    rows = []
    for name in names:
        cells = [plain(each[name]) if name in each else "–" for each in (mine, default.parameters)]
        rows.append(("changed" if cells[0] != cells[1] else "", [escaped(cell) for cell in (name, *cells)]))
    low, high = certificate.interval
    ends = _range(np.array([low, high]), [default.worth.lower, default.worth.upper])
    pair = [Row("recommended", low, high, "best"), Row(default.called.removeprefix("the "), *default.worth.interval)]
    said = f"recommended: {interval(low, high)}; {default.called}: {interval(*default.worth.interval)}"
    figure = (
        f'<figure class="half">{drawing.rows(pair, ends, said, width=480.0)}<figcaption>Expected values: '
        f"{escaped(said)}.</figcaption></figure>"
    )
    return section(
        f"The recommended configuration against {default.called}", paragraph(_better(default)), figure,
        table(["parameter", "recommended", default.called.removeprefix("the ")], rows),
    )  # fmt: skip


def _better(default: Against) -> str:
    """Whether the recommended configuration is better, in a sentence."""
    found = default.comparison
    if default.same:
        return f"The recommended configuration is {default.called}."
    if not found.trusted:
        return "Nothing is guaranteed about the difference."
    sides = f"the difference lies between {number(found.lower)} and {number(found.upper)} ({by_whom(found.evidence)})"
    if found.lower > 0.0:
        return f"It is better than {default.called}, by at least {number(found.lower)}: {sides}, larger being better."
    if found.upper < 0.0:
        return f"It is worse than {default.called}: {sides}, larger being better."
    return f"Whether it is better than {default.called} is not certain: {sides}, larger being better."


# --- slices of the bounds


def sliced(
    certificate: StudyCertificate, judgement: Judgement, found: Sequence[Slice], possible: Mapping[str, Possible]
) -> str:
    """Bounds as one parameter changes and the others stay as recommended."""
    if not found:
        return ""
    drawn = list(found)
    if len(found) > MOST_SLICES:
        drawn = sorted(found, key=lambda each: -each.matters)[:MOST_SLICES]
    values = np.empty(0) if judgement.own is None else judgement.own.trials.values
    bounds = [end for each in drawn for end in (*each.low, *each.high)]
    inside = np.array([end for end in bounds if math.isfinite(end)])
    ends = _range(inside if len(inside) else values, certificate.interval)
    low, high = certificate.interval
    floor = low if certificate.direction == "maximize" else high
    figures = [_slice(each, ends, floor, certificate.interval, possible.get(each.name)) for each in drawn]
    notes = []
    if len(drawn) < len(found):
        others = ", ".join(cut(each.name, 40) for each in found if each not in drawn)
        notes.append(
            f"Drawn are the {len(drawn)} of {len(found)} parameters along which estimates change most. Not drawn: {others}."
        )
    idle = [name for name in judgement.space if name not in {each.name for each in found}]
    if idle:
        names = ", ".join(cut(name, 40) for name in idle)
        notes.append(f"Without a slice, because the recommended configuration does not use them: {names}.")
    omitted = [f"{each.omitted} choices of {cut(each.name, 40)}" for each in drawn if each.omitted]
    if omitted:
        notes.append(f"Not drawn: {', '.join(omitted)}.")
    if any(parent in {each.name for each in drawn} for parent, _ in judgement.space.conditions.values()):
        notes.append("Parameters that only matter with another choice are in the middle of their range there.")
    notes += _beyond(values, ends)
    entries = {"band": "between these bounds, by the model", "best": "recommended: its interval", "level": "guaranteed"}
    if possible:
        entries["possible"] = "the best can still be here"
    if len(values):
        entries["dots"] = "value of a trial"
    lead = (
        "Each picture changes one parameter and keeps the others as recommended. The expected value lies within the "
        "band; where the band is wide, little is known. Trials are dots, wherever their other parameters were."
    )
    return section(
        "Around the recommended configuration", paragraph(lead), legend(entries),
        f'<div class="slices">{"".join(figures)}</div>', *(paragraph(note, "note") for note in notes),
    )  # fmt: skip


def _slice(
    each: Slice, ends: tuple[float, float], floor: float, mine: tuple[float, float], possible: Possible | None
) -> str:
    where = f"from {interval(float(each.low[0]), float(each.high[0]))} to {interval(float(each.low[-1]), float(each.high[-1]))}"
    told = f"Bounds along {cut(each.name, 60)}: {where}"
    if each.is_choice:
        drawn = _choices(each, ends, mine, possible, told)
    else:
        drawn = _numbers(each, ends, floor, mine, possible, told)
    return f"<figure><h3>{escaped(cut(each.name, 80))}</h3>{drawn}</figure>"


def _choices(
    each: Slice, ends: tuple[float, float], mine: tuple[float, float], possible: Possible | None, told: str
) -> str:
    rows = []
    for place, value in enumerate(each.values):
        out = possible is not None and not any(value is other or value == other for other in possible.values)
        best = place == int(each.at)
        low, high = mine if best else (float(each.low[place]), float(each.high[place]))
        dots = each.dots[1][each.dots[0] == place]
        label = rounded(value) + (" (recommended)" if best else " (ruled out)" if out else "")
        rows.append(Row(label, low, high, "best" if best else "ruled-out" if out else "", np.unique(dots)))
    return drawing.rows(rows, ends, told)


def _numbers(
    each: Slice, ends: tuple[float, float], floor: float, mine: tuple[float, float], possible: Possible | None, told: str
) -> str:
    ticks = drawing.ticks(*ends)
    margin = 0.06 if each.is_listed else 0.0
    picture = Picture(_NARROW, 200.0, (-margin, 1.0 + margin), ends, drawing.left_of(ticks))
    for part in () if possible is None else possible.values:
        low, high = (position(each.parameter, end) for end in part)
        half = 0.3 / len(each.positions) if each.is_listed else 0.0
        picture.shade(low - half, high + half, "possible")
    picture.frame(_scale(each), ticks)
    picture.dots(*each.dots, size=1.8)
    if each.is_listed:
        for at, low, high in zip(each.positions.tolist(), each.low.tolist(), each.high.tolist(), strict=True):
            picture.bar(at, low, high, "floor")
    else:
        picture.band(each.positions, each.low, each.high)
        picture.line(each.positions, each.low, "edge")
        picture.line(each.positions, each.high, "edge")
    picture.level(floor, "level")
    picture.bar(each.at, *mine, "best")
    return picture.svg(told)


def _scale(each: Slice) -> list[Tick]:
    """Round values of a number, at their positions."""
    parameter = each.parameter
    assert isinstance(parameter, Float | Int)
    if each.is_listed:
        return [Tick(at, rounded(value)) for at, value in zip(each.positions.tolist(), each.values, strict=True)]
    low, last = float(parameter.low), float(parameter.last)
    if not math.isfinite(last - low):  # wider than floats can subtract
        return [Tick(0.0, number(low)), Tick(1.0, number(last))]
    found = drawing.log_ticks(low, last) if parameter.log else drawing.ticks(low, last)
    if isinstance(parameter, Int):
        found = [tick for tick in found if tick.at == round(tick.at)]
    return [Tick(position(parameter, tick.at), tick.label) for tick in found]


# --- where the best can still be


def region(possible: Sequence[Possible]) -> str:
    """The values of every parameter with which a configuration can still be the best."""
    rows = []
    for part in possible:
        shown = ", ".join(
            f"{rounded(value[0])} to {rounded(value[1])}" if isinstance(value, tuple) and value[0] != value[1]
            else rounded(value[0] if isinstance(value, tuple) else value)
            for value in part.values
        )  # fmt: skip
        bar = f'<span class="share"><b style="width:{100.0 * min(part.share, 1.0):.0f}%"></b></span>{part.share:.0%}'
        rows.append(("", (escaped(part.name), escaped(shown or "nothing"), bar)))
    lead = (
        "A configuration with a value outside of these is known to be worse than the recommended one. The region was "
        "found by a search, which may have missed a spot."
    )
    body = table(["parameter", "still possible", "share of its range"], rows) if rows else ""
    return section("Where the best can still be", paragraph(lead), body) if rows else ""


# --- a list without a model


def on_the_list(certificate: ListCertificate) -> str:
    """The intervals of the best configurations of a list."""
    if certificate.about == THESE_ROWS:
        return ""
    sign = 1.0 if certificate.direction == "maximize" else -1.0
    guaranteed = certificate.intervals[:, 0] if sign > 0.0 else -certificate.intervals[:, 1]
    order = np.argsort(-guaranteed, kind="stable")[:_MOST_LISTED].tolist()
    rows = []
    for place, i in enumerate(order, 1):
        low, high = certificate.intervals[i].tolist()
        text = ", ".join(f"{name} = {rounded(value)}" for name, value in certificate.configurations[i].items())
        rows.append(Row(f"{place}. {text}", low, high, "best" if certificate.configurations[i] is certificate.action else ""))
    ends = _range(certificate.intervals[order].ravel(), [])
    told = f"Intervals of {len(rows)} configurations"
    count = len(certificate.configurations)
    note = f"The {len(rows)} of {count:,} configurations with the best guaranteed values." if len(rows) < count else ""
    caption = f"<figcaption>Expected values on new rows; all intervals hold together. {escaped(note)}</figcaption>"
    full = table(
        ["", "configuration", "expected value"],
        [("", (f"{place}.", escaped(plain(dict(certificate.configurations[i]))), escaped(interval(*certificate.intervals[i]))))
         for place, i in enumerate(order, 1)],
    )  # fmt: skip
    return section("The configurations measured", f"<figure>{drawing.rows(rows, ends, told, width=480.0)}{caption}</figure>", full)


# --- what was assumed


def assumed(certificate: StudyCertificate) -> str:
    """What everything rests on, and whether the data agree."""
    sure = f"{1.0 - certificate.delta:.6g}"
    parts = [f"About values: {certificate.assumptions}."]
    if certificate.judgement is not None:
        parts.append(f"About the function: {certificate.model}.")
        parts.append(f"delta = {certificate.delta:g} is divided: {shares_in_words(certificate.delta)}.")
    if certificate.trusted and not (isinstance(certificate, ListCertificate) and certificate.about == THESE_ROWS):
        parts.append(f"If this is right, everything above holds together with probability at least {sure}, whichever "
                     "tuner chose the trials, and however often one looks.")  # fmt: skip
    agree = "The data refute it" if not certificate.trusted else "The data do not contradict it"
    findings = certificate.findings()
    tested = f"<h3>Whether the data agree</h3>{paragraph(f'{agree}.', '' if certificate.trusted else 'bad')}{listed(findings)}"
    return section(
        "What was assumed, and whether the data agree", listed(parts), tested if findings else "",
        f"<h3>To keep in mind</h3>{listed(notes)}" if (notes := certificate.reservations()) else "",
    )  # fmt: skip

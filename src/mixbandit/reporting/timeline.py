"""What was seen over time, beside what was certain."""

from __future__ import annotations

import numpy as np

from mixbandit._checks import Array
from mixbandit.reporting import drawing
from mixbandit.reporting.drawing import Picture, Tick, extent
from mixbandit.reporting.gathering import Course, best_of, thinned
from mixbandit.reporting.markup import legend, paragraph, section
from mixbandit.reporting.wording import escaped, interval, number, times
from mixbandit.tuning import StudyCertificate

# The same picture at two widths, of which the page shows the one that fits.
_SIZES = (("wide", 720.0, 280.0), ("narrow", 340.0, 230.0))


def over_time(certificate: StudyCertificate, course: Course | None) -> str:
    """What was seen beside what was certain."""
    if course is None:
        return ""
    upwards = certificate.direction == "maximize"
    best = best_of(course, upwards)
    known = len(course.moments) > 0
    seen = number(float(course.values[best]))
    ends = extent(course.values, [*course.guaranteed[-3:], *certificate.interval] if known else [])
    entries = {"dots": "value of a trial"}
    if course.confirming.any():
        entries["confirming"] = "confirmation of a finalist"
    if course.ordered:
        entries["seen"] = "best value so far"
    if known:
        entries["floor"] = f"guaranteed for the best configuration by then: at {'least' if upwards else 'most'} this"
    described = f"{len(course.values):,} values; the best is {seen}"
    if known:
        described += f", and {number(float(course.guaranteed[-1]))} is guaranteed"
    pictures = "".join(
        f'<div class="{kind}">{_course(certificate, course, ends, width, height, described)}</div>'
        for kind, width, height in _SIZES
    )
    order = "in the order of play" if course.ordered else "in the order of the file"
    caption = " ".join([f"Trials {order}, from left to right.", *beyond(course.values, ends)])
    return section(
        "What was seen, and what is certain" if known else "What was seen",
        paragraph(_luck(certificate, course, best)),
        legend(entries),
        f"<figure>{pictures}<figcaption>{escaped(caption)}</figcaption></figure>",
        "" if known else paragraph(_why_no_floor(certificate), "note"),
    )


def _luck(certificate: StudyCertificate, course: Course, best: int) -> str:
    """How much of the best value is no more than luck."""
    value, upwards = float(course.values[best]), certificate.direction == "maximize"
    text = f"The best single value is {number(value)}, the value of trial {best + 1:,} of {len(course.values):,}."
    if not certificate.trusted or certificate.judgement is None or certificate.judgement.own is None:
        return text
    judgement, own = certificate.judgement, certificate.judgement.own
    row = own.trials.rows[best]
    worth = judgement.of_row(row)
    low, high = certificate.interval
    certain = low if upwards else high
    if len(course.values) == 1:
        return f"The only value is {number(value)}; what is certain is {number(certain)}."
    text += f" What is certain is {number(certain)}: the best of many noisy values is partly luck."
    if judgement.space.same(judgement.given(row), certificate.parameters):
        return f"{text} That trial was of the recommended configuration, tried {times(worth.trials)}."
    return f"{text} The expected value of that trial's configuration lies in {interval(worth.lower, worth.upper)}."


def _why_no_floor(certificate: StudyCertificate) -> str:
    if not certificate.trusted:
        return "What was guaranteed over time is left out: the data refute the assumptions, so nothing is."
    return "What was guaranteed over time is left out, because the order of play is not known."


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
    if course.ordered and t > 1:
        best = np.maximum.accumulate(course.values) if upwards else np.minimum.accumulate(course.values)
        kept = np.union1d(np.flatnonzero(np.diff(best, prepend=np.inf)), [t - 1])
        picture.line(numbers[kept], best[kept], "seen", steps=True)
    if len(course.moments) > 1:
        picture.line(course.moments.astype(float), course.guaranteed, "floor", steps=True)
    elif len(course.moments):
        picture.dots(course.moments.astype(float), course.guaranteed, "confirming", 4.0)
    return picture.svg(told)


def beyond(values: Array, ends: tuple[float, float]) -> list[str]:
    """What is not drawn where it is."""
    notes, outside = [], int(((values < ends[0]) | (values > ends[1])).sum())
    if outside:
        what = "value lies outside the picture and is" if outside == 1 else "values lie outside the picture and are"
        notes.append(f"{outside:,} {what} drawn on its edge.")
    drawn = len(thinned(len(values)))
    if drawn < len(values):
        notes.append(f"{drawn:,} of {len(values):,} values are drawn, evenly spaced.")
    return notes

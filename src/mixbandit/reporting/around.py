"""What the bounds say around the recommended configuration, and where the best can still be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixbandit.reporting import drawing
from mixbandit.reporting.drawing import Picture, Row, Tick, extent
from mixbandit.reporting.gathering import MOST_SLICES, Slice, position
from mixbandit.reporting.markup import legend, paragraph, section, table
from mixbandit.reporting.timeline import beyond
from mixbandit.reporting.wording import cut, escaped, interval, number, rounded
from mixbandit.tuning import StudyCertificate
from mixbandit.tuning.judgement import Judgement
from mixbandit.tuning.parameters import Float, Int
from mixbandit.tuning.possible import Possible


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
    ends = extent(inside if len(inside) else values, certificate.interval)
    low, high = certificate.interval
    floor = low if certificate.direction == "maximize" else high
    figures = [_slice(each, ends, floor, certificate.interval, possible.get(each.name)) for each in drawn]
    notes = []
    if len(drawn) < len(found):
        others = ", ".join(cut(each.name, 40) for each in found if each not in drawn)
        notes.append(
            f"The {len(drawn)} of {len(found)} parameters along which estimates change most are drawn. Not drawn: "
            f"{others}."
        )
    idle = [name for name in judgement.space if name not in {each.name for each in found}]
    if idle:
        names = ", ".join(cut(name, 40) for name in idle)
        notes.append(f"Not drawn, because the recommended configuration does not use them: {names}.")
    omitted = [f"{each.omitted} choices of {cut(each.name, 40)}" for each in drawn if each.omitted]
    if omitted:
        notes.append(f"Not drawn: {', '.join(omitted)}.")
    if any(parent in {each.name for each in drawn} for parent, _ in judgement.space.conditions.values()):
        notes.append("Parameters that matter only for another choice are set to the middle of their range there.")
    notes += beyond(values, ends)
    entries = {"band": "bounds from the model", "best": "recommended, with its interval", "level": "guaranteed"}
    if any(part.share < 1.0 for part in possible.values()):
        entries["ruled-out"] = "the best cannot be here"
    if len(values):
        entries["dots"] = "value of a trial"
    lead = (
        "Each picture changes one parameter and keeps the others as recommended. The expected value lies within the "
        "band; where the band is wide, little is known. Dots are trials, whatever their other parameters were."
    )
    return section(
        "Around the recommended configuration", paragraph(lead), legend(entries),
        f'<div class="slices">{"".join(figures)}</div>', *(paragraph(note, "note") for note in notes),
    )  # fmt: skip


def _slice(
    each: Slice, ends: tuple[float, float], floor: float, mine: tuple[float, float], possible: Possible | None
) -> str:
    first, last = (interval(float(each.low[i]), float(each.high[i])) for i in (0, -1))
    told = f"Bounds along {cut(each.name, 60)}: from {first} to {last}"
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
        out = possible is not None and not any(value is other for other in possible.values)
        best = place == int(each.at)
        low, high = mine if best else (float(each.low[place]), float(each.high[place]))
        dots = each.dots[1][each.dots[0] == place]
        label = rounded(value) + (" (recommended)" if best else " (ruled out)" if out else "")
        rows.append(Row(label, low, high, "best" if best else "ruled-out" if out else "", np.unique(dots)))
    return drawing.rows(rows, ends, told)


def _numbers(
    each: Slice,
    ends: tuple[float, float],
    floor: float,
    mine: tuple[float, float],
    possible: Possible | None,
    told: str,
) -> str:
    ticks = drawing.ticks(*ends)
    margin = 0.06 if each.is_listed else 0.0
    picture = Picture(300.0, 190.0, (-margin, 1.0 + margin), ends, drawing.left_of(ticks))
    for low, high in _ruled_out(each, possible):
        picture.shade(low, high, "ruled-out")
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


def _ruled_out(each: Slice, possible: Possible | None) -> list[tuple[float, float]]:
    """The parts of a number's range where the best cannot be any more."""
    if possible is None:
        return []
    if each.is_listed:
        half = 0.3 / len(each.positions)
        out = [at for at, v in zip(each.positions, each.values, strict=True) if not _is_in(v, possible.values)]
        return [(float(at) - half, float(at) + half) for at in out]
    parts = sorted((position(each.parameter, low), position(each.parameter, high)) for low, high in possible.values)
    edges = [0.0, *(end for part in parts for end in part), 1.0]
    return [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if high - low > 1e-6]


def _is_in(value: Any, parts: Sequence[Any]) -> bool:
    return any(low - 1e-9 <= value <= high + 1e-9 for low, high in parts)


def _scale(each: Slice) -> list[Tick]:
    """Round values of a number, at their positions."""
    parameter = each.parameter
    assert isinstance(parameter, Float | Int)
    if each.is_listed:
        return [Tick(at, rounded(value)) for at, value in zip(each.positions.tolist(), each.values, strict=True)]
    low, last = float(parameter.low), float(parameter.last)
    if not math.isfinite(last - low):  # wider than floats can subtract
        return [Tick(0.0, number(low)), Tick(1.0, number(last))]
    found = drawing.log_ticks(low, last) if parameter.log else drawing.ticks(low, last, 6)
    if isinstance(parameter, Int):
        found = [tick for tick in found if tick.at == round(tick.at)]
    return [Tick(position(parameter, tick.at), tick.label) for tick in found]


# --- where the best can still be


def region(possible: Sequence[Possible]) -> str:
    """The values of every parameter with which a configuration can still be the best."""
    rows = []
    for part in possible:
        shown = ", ".join(rounded(value) if part.of_choices else _from_to(*value) for value in part.values)
        bar = f'<span class="share"><b style="width:{100.0 * min(part.share, 1.0):.0f}%"></b></span>{part.share:.0%}'
        rows.append(("", (escaped(cut(part.name)), escaped(shown or "nothing"), bar)))
    lead = (
        "Outside these values, a search found nothing that can still be as good as the recommended configuration. "
        "It may have missed a spot."
    )
    if not rows:
        return ""
    if all(part.share >= 1.0 for part in possible):
        lead = "No value of any single parameter is ruled out yet: something better may still be anywhere."
    return section(
        "Where the best can still be", paragraph(lead), table(["parameter", "still possible", "share"], rows)
    )


def _from_to(low: float, high: float) -> str:
    return rounded(low) if low == high else f"{rounded(low)} to {rounded(high)}"

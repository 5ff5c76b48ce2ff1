"""Pictures of a study's certificate, with Plotly, as Optuna's own pictures are."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from optuna.trial import FrozenTrial

from mixbandit._checks import as_text, positive_int, shown
from mixbandit._extras import import_extra
from mixbandit._words import confidence
from mixbandit.errors import AssumptionsRefutedWarning, InvalidInput, warn_user
from mixbandit.integrations.optuna.certifying import certify_study
from mixbandit.integrations.optuna.drawn import Drawn, best_so_far, listed, one, plain
from mixbandit.integrations.optuna.sampler import MixBanditSampler
from mixbandit.integrations.optuna.stopping import as_space
from mixbandit.integrations.optuna.storage import identity
from mixbandit.plots import COLOURS
from mixbandit.tuning import Assumptions, Parameter, Space, StudyCertificate
from mixbandit.tuning.assumptions import Stated
from mixbandit.tuning.ledgers import refuted_in_words
from mixbandit.tuning.moments import Floor, floors_over_time
from mixbandit.tuning.selection import NOMINATION
from mixbandit.tuning.space import row_key

if TYPE_CHECKING:
    from optuna.study import Study
    from plotly.graph_objects import Figure

_logger = logging.getLogger(__name__)

_BLUE, _ORANGE, _GREEN, _GREY, _RED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[8], "#B00020"
# What lies farther from the values than this many times their spread would squeeze them into a line: it is not drawn.
_FURTHEST = 1.5
# A line of the strip below the picture, for trials without a usable value, and the gap above, as shares of its height.
_LINE, _GAP = 0.06, 0.06
# Longer lists of parameters are cut: in the dashboard a picture is 600 pixels wide.
_LONGEST = 60
_REFUTED = "The values refute the stated assumptions: nothing here is guaranteed"
# A line in the legend that stands for an interval.
_UPRIGHT: dict[str, Any] = {"symbol": "line-ns", "size": 12}


def plot_certificate(
    study: Study,
    *,
    assumptions: Assumptions | None = None,
    space: Space | dict[str, Parameter] | None = None,
    certificate: StudyCertificate | None = None,
    target_name: str = "Objective Value",
    **stated: Unpack[Stated],
) -> Figure:
    """Values in order of trials, with the guarantee at each time and the current one, as a Plotly figure.

    State what you know about values as for `mixbandit.certify`, as `assumptions` or as keywords; the default is what
    was stated to the study's `MixBanditSampler`. Or pass a `certificate` of this study. The guaranteed values over time
    come from certificates of the first trials; they all hold together, with probability 1 − δ.
    """
    found = certificate_for(study, assumptions, space, certificate, stated)
    return draw_history(study, found, as_text(target_name, "target_name"))


def plot_worths(
    study: Study,
    *,
    assumptions: Assumptions | None = None,
    space: Space | dict[str, Parameter] | None = None,
    certificate: StudyCertificate | None = None,
    n: int = 10,
    target_name: str = "Objective Value",
    **stated: Unpack[Stated],
) -> Figure:
    """The n tried configurations with the best guaranteed values: their intervals and their own values.

    The intervals hold together with probability 1 − δ, so configurations whose intervals do not overlap really differ.
    Assumptions are stated as for `plot_certificate`.
    """
    count, label = positive_int(n, "n"), as_text(target_name, "target_name")
    found = certificate_for(study, assumptions, space, certificate, stated)
    return draw_worths(study, found, count, label)


def certificate_for(
    study: Study,
    assumptions: Assumptions | None,
    space: Space | dict[str, Parameter] | None,
    certificate: StudyCertificate | None,
    stated: Stated,
    *,
    warn: bool = True,
) -> StudyCertificate:
    """The certificate that was given, or the study's under what was stated, or under what its sampler was told."""
    identity(study)  # InvalidInput if it is no study
    known, whole = Assumptions.of(assumptions, stated), as_space(space)
    given = assumptions is not None or bool(stated)
    if certificate is not None:
        if not isinstance(certificate, StudyCertificate):
            raise InvalidInput(f"certificate must be a StudyCertificate, got {shown(certificate)}")
        if given or whole is not None:
            raise InvalidInput(
                "a certificate already contains assumptions and a space: pass it or state them, not both"
            )
        return certificate
    if len(study.directions) != 1:
        raise InvalidInput(f"a certificate needs a single objective, but the study has {len(study.directions)}")
    if not given and isinstance(study.sampler, MixBanditSampler):
        if whole is not None:
            raise InvalidInput(
                "the sampler already has the space: pass a space together with assumptions, or to the sampler"
            )
        return study.sampler.certificate(study, warn=warn)
    known.check_complete()
    found = certify_study(study, known.towards(study.direction.name.lower()), whole)
    if warn and not found.trusted:
        warn_user(refuted_in_words(found, found.assumptions), AssumptionsRefutedWarning)
    return found


def draw_history(study: Study, certificate: StudyCertificate, target_name: str, most: int | None = None) -> Figure:
    """`plot_certificate` of a certificate; with more than `most` trials only some of the ordinary ones are drawn."""
    go = import_extra("plotly.graph_objects", extra="dashboard")
    drawn = Drawn.of(study, certificate)
    upwards = certificate.direction == "maximize"

    def looked(trials: int) -> None:
        _logger.info(f"looked at the first {trials:,} of {certificate.t:,} trials")

    floors = floors_over_time(certificate, progress=looked)
    figure = go.Figure()
    for trace in (
        *_values(go, drawn, most),
        _best(go, drawn, upwards),
        *_floors(go, floors, drawn, certificate),
        _recommended(go, certificate, drawn),
    ):
        figure.add_trace(trace)
    low, high = _visible(certificate, drawn)
    _mark_best_possible(figure, certificate, low, high)
    figure.update_layout(
        title={"text": _title(certificate), "font": {"size": 15, **({} if certificate.trusted else {"color": _RED})}},
        xaxis={"title": {"text": "Trial"}, "zeroline": False},
        yaxis={"title": {"text": plain(target_name)}, "range": [low, high], "zeroline": False},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "font": {"size": 11}},
        hoverlabel={"align": "left"},
        margin={"t": 90},
    )
    if drawn.others:
        _add_strip(go, figure, drawn)
    return figure


def _title(certificate: StudyCertificate) -> str:
    """The verdict in a line, and what it is about in a smaller one."""
    low, high = (end + 0.0 for end in certificate.interval)
    upwards = certificate.direction == "maximize"
    worth = f"at least {low:.4g}" if upwards else f"at most {high:.4g}"
    if not certificate.trusted:
        verdict, sure = _REFUTED, ""
    else:
        better = "better" if upwards else "lower"
        rest = f"nothing is {better} by more than {certificate.gap:.4g}"
        verdict = f"Expected value {worth}; {rest if certificate.proven else 'the gap is not proven'}"
        sure = f"With probability {confidence(certificate.delta)}, "
    times = f"{certificate.tried} time{'' if certificate.tried == 1 else 's'}" if certificate.tried else "never"
    use = ", ".join(f"{name}={one(value)}" for name, value in certificate.parameters.items())
    about = f"{sure}after {certificate.t} values. Use {_short(use)} (tried {times})"
    return f"{verdict}<br><span style='font-size:12px'>{plain(about[0].upper() + about[1:])}</span>"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _dots(go: Any, trials: Sequence[FrozenTrial], name: str, marker: dict[str, Any]) -> Any:
    return go.Scatter(
        x=[trial.number for trial in trials],
        y=[trial.value for trial in trials],
        mode="markers",
        name=name,
        marker=marker,
        hovertext=[_told(trial) for trial in trials],
        hoverinfo="text",
    )


def _told(trial: FrozenTrial, *further: str) -> str:
    """What a pointer over a trial shows."""
    value = [] if trial.value is None or further else [f"value = {trial.value:.6g}"]
    nominated = trial.user_attrs.get(NOMINATION)
    confirming = [plain(f"confirms finalist {one(nominated)}")] if nominated else []
    lines = [f"<b>Trial {trial.number}</b>", *map(plain, further), *value, *confirming, *listed(trial.params)]
    return "<br>".join(lines)


def _values(go: Any, drawn: Drawn, most: int | None) -> Iterable[Any]:
    """The dots: ordinary trials, infeasible ones, those that have come since, and confirmations on top."""
    plain_ones, infeasible, confirmations = [], [], []
    for i, trial in enumerate(drawn.counted):
        if drawn.feasible is not None and not drawn.feasible[i]:
            infeasible.append(trial)
        elif drawn.known.nominations[i]:
            confirmations.append(trial)
        else:
            plain_ones.append(trial)
    step = 1 if most is None else max(1, math.ceil(len(plain_ones) / most))
    shown_of = "" if step == 1 else f" (1 in {step})"
    groups = (
        (plain_ones[::step], f"Values{shown_of}", {"color": _BLUE, "size": 6, "opacity": 0.7}),
        (infeasible[::step], "Not known to be feasible", {"color": _GREY, "size": 6, "symbol": "circle-open"}),
        (
            list(drawn.lucky)[::step],
            "Not counted: unlucky ones were pruned",
            {"color": _GREY, "size": 6, "opacity": 0.7},
        ),
        (list(drawn.later)[::step], "Since the certificate", {"color": _BLUE, "size": 6, "symbol": "circle-open"}),
        (confirmations, "Confirmations", {"color": _ORANGE, "size": 8, "symbol": "diamond"}),
    )
    return [_dots(go, trials, name, marker) for trials, name, marker in groups if trials]


def _best(go: Any, drawn: Drawn, upwards: bool) -> Any:
    usable = [True] * len(drawn.counted) if drawn.feasible is None else drawn.feasible.tolist()
    best = best_so_far(drawn.known.values.tolist(), usable, upwards)
    # Only where it changes, and at the end: thousands of equal values need not be stored.
    corners = [i for i in range(len(best)) if i in (0, len(best) - 1) or best[i] != best[i - 1]]
    return go.Scatter(
        x=[drawn.reached[i] for i in corners],
        y=[best[i] for i in corners],
        mode="lines",
        name="Best value so far (partly luck)",
        line={"color": _GREY, "width": 1.5, "shape": "hv", "dash": "dot"},
        hoverinfo="skip",
    )


def _floors(go: Any, floors: Sequence[Floor], drawn: Drawn, certificate: StudyCertificate) -> list[Any]:
    """The guaranteed value over time; from a refutation on, what would have been."""

    def sound(floor: Floor) -> bool:
        if drawn.first_left_out is None:
            return floor.trusted
        # The first value that was left out refutes the assumptions, unless others did before.
        before, after = drawn.reached[floor.trials - 1] < drawn.first_left_out, certificate.refuted_after
        return before and (after is None or floor.trials < after)

    first_bad = next((i for i, floor in enumerate(floors) if not sound(floor)), len(floors))
    word = "at least" if certificate.direction == "maximize" else "at most"
    parts = [
        (
            floors[:first_bad],
            "guaranteed",
            f"Guaranteed at the time: {word}",
            {"color": _GREEN, "width": 2.5, "shape": "hv"},
        ),
        (
            floors[first_bad:],
            "would have been",
            "Not guaranteed: refuted",
            {"color": _RED, "width": 1.5, "shape": "hv", "dash": "dash"},
        ),
    ]
    return [
        go.Scatter(
            x=[drawn.reached[floor.trials - 1] for floor in part],
            y=[floor.guaranteed if math.isfinite(floor.guaranteed) else None for floor in part],
            mode="lines+markers",
            name=name,
            line=line,
            marker={"size": 5},
            hovertext=[_guaranteed(floor, f"{said}: {word}") for floor in part],
            hoverinfo="text",
        )
        for part, said, name, line in parts
        if part
    ]


def _guaranteed(floor: Floor, said: str) -> str:
    tried = f"tried {floor.tried}×" if floor.tried else "not tried"
    lines = [f"<b>After {floor.trials} trials</b>", f"{said} {floor.guaranteed:.4g} ({tried})"]
    return "<br>".join([*lines, *listed(floor.parameters)])


def _recommended(go: Any, certificate: StudyCertificate, drawn: Drawn) -> Any:
    """The interval of the recommended configuration, to the right of all trials."""
    low, high = certificate.interval
    middle, last = (low + high) / 2.0, max(trial.number for trial in (*drawn.counted, *drawn.later))
    colour = _GREEN if certificate.trusted else _RED
    finite = math.isfinite(low) and math.isfinite(high)
    return go.Scatter(
        x=[last + max(1.0, 0.03 * last)],
        y=[middle if finite else None],
        error_y={"type": "data", "array": [high - middle if finite else 0.0], "color": colour, "width": 8},
        mode="markers",
        marker={**_UPRIGHT, "line": {"color": colour, "width": 2}},
        name="Expected value of the recommended one" + ("" if certificate.trusted else " (not guaranteed)"),
        hovertext=["<br>".join([f"<b>Expected value in [{low:.4g}, {high:.4g}]</b>", *listed(certificate.parameters)])],
        hoverinfo="text",
    )


def _visible(certificate: StudyCertificate, drawn: Drawn) -> tuple[float, float]:
    """The range of the axis: all values, and of the bounds those that are not so far off that they would hide them."""
    values = [float(trial.value) for trial in (*drawn.counted, *drawn.later) if trial.value is not None]
    low, high = min(values), max(values)
    spread = (high - low) or abs(high) or 1.0
    within = (low - _FURTHEST * spread, high + _FURTHEST * spread)
    bounds = [*certificate.interval, certificate.best_possible]
    near = [*values, *(bound for bound in bounds if within[0] <= bound <= within[1])]
    margin = 0.06 * ((max(near) - min(near)) or spread)
    return min(near) - margin, max(near) + margin


def _mark_best_possible(figure: Figure, certificate: StudyCertificate, low: float, high: float) -> None:
    best = certificate.best_possible
    if not certificate.trusted or not low <= best <= high:
        return
    proven = "" if certificate.proven else " (not proven)"
    upwards = certificate.direction == "maximize"
    label = f"best possible: at {'most' if upwards else 'least'} {best + 0.0:.4g}{proven}"
    figure.add_hline(
        y=best,
        line={"color": "black", "width": 1, "dash": "dash"},
        annotation={"text": label, "showarrow": False, "font": {"size": 11}},
        annotation_position="bottom left" if upwards else "top left",
    )


def _add_strip(go: Any, figure: Figure, drawn: Drawn) -> None:
    """Trials without a usable value, in a strip of their own: they have no place on the axis of values."""
    kinds = sorted({kind for _, kind, _ in drawn.others})
    symbols = {"pruned": ("line-ns-open", _GREY), "failed": ("x-thin-open", "black"), "left out": ("x", _RED)}
    for kind in kinds:
        of_kind = [(trial, why) for trial, each, why in drawn.others if each == kind]
        symbol, colour = symbols[kind]
        figure.add_trace(
            go.Scatter(
                x=[trial.number for trial, _ in of_kind],
                y=[kind] * len(of_kind),
                yaxis="y2",
                mode="markers",
                showlegend=False,
                name=kind,
                marker={"symbol": symbol, "color": colour, "size": 8},
                hovertext=[_told(trial, why) for trial, why in of_kind],
                hoverinfo="text",
            )
        )
    figure.update_layout(
        yaxis={"domain": [_LINE * len(kinds) + _GAP, 1.0]},
        yaxis2={
            "domain": [0.0, _LINE * len(kinds)],
            "type": "category",
            "dtick": 1,
            "tickfont": {"size": 10},
            "fixedrange": True,
            "showgrid": False,
        },
        xaxis={"anchor": "y2"},
    )


def draw_worths(study: Study, certificate: StudyCertificate, n: int, target_name: str) -> Figure:
    """`plot_worths` of a certificate."""
    go = import_extra("plotly.graph_objects", extra="dashboard")
    drawn, upwards = Drawn.of(study, certificate), certificate.direction == "maximize"
    judgement = certificate.judgement
    assert judgement is not None
    assert judgement.own is not None
    rows = judgement.own.promising()
    if drawn.feasible is not None:
        known = {row_key(row) for row in judgement.own.trials.rows[drawn.feasible]}
        rows = rows[[row_key(row) in known for row in rows]]
    ends = judgement.ends(rows)
    best = sorted(range(len(rows)), key=lambda i: -ends[i].lower)[:n]
    names, texts, lows, highs, own = [], [], [], [], []
    for place in best:
        worth, given = judgement.of_row(rows[place]), judgement.given(rows[place])
        values = judgement.own.values(rows[place]).tolist()
        names.append(plain(_short(", ".join(f"{name}={one(value)}" for name, value in given.items()))))
        lows.append(worth.lower)
        highs.append(worth.upper)
        own.append(values)
        texts.append("<br>".join([f"<b>{plain(str(worth))}</b>", *listed(given)]))
    numbers = list(range(len(best)))
    colour = _GREEN if certificate.trusted else _RED
    middles = [(low + high) / 2.0 for low, high in zip(lows, highs, strict=True)]
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[middle if math.isfinite(middle) else None for middle in middles],
            y=numbers,
            error_x={
                "type": "data",
                "array": [
                    (high - low) / 2.0 if math.isfinite(high - low) else 0.0
                    for low, high in zip(lows, highs, strict=True)
                ],
                "color": colour,
                "width": 5,
            },
            mode="markers",
            marker={**_UPRIGHT, "symbol": "line-ew", "line": {"color": colour, "width": 2}},
            name="Interval for the expected value" + ("" if certificate.trusted else " (not guaranteed)"),
            hovertext=texts,
            hoverinfo="text",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[value for values in own for value in values],
            y=[number for number, values in zip(numbers, own, strict=True) for _ in values],
            mode="markers",
            marker={"color": _BLUE, "size": 6, "opacity": 0.5},
            name="Its own values",
            hoverinfo="x",
        )
    )
    which = "highest" if upwards else "lowest"
    end = "lower" if upwards else "upper"
    title = f"What the best configurations are worth: the {which} {end} ends first"
    if not certificate.trusted:
        title = _REFUTED
    figure.update_layout(
        title={"text": title, "font": {"size": 15, **({} if certificate.trusted else {"color": _RED})}},
        xaxis={"title": {"text": plain(target_name)}, "zeroline": False},
        yaxis={"tickvals": numbers, "ticktext": names, "autorange": "reversed", "automargin": True},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "font": {"size": 11}},
        hoverlabel={"align": "left"},
    )
    return figure

"""One self-contained page about a certificate, to be read by somebody who was not there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mixbandit._checks import as_path, as_text, instance_of, shown
from mixbandit._files import write_atomically
from mixbandit.errors import InvalidInput
from mixbandit.reporting import around, sections
from mixbandit.reporting.gathering import Progress, course, slices
from mixbandit.reporting.markup import paragraph, section
from mixbandit.reporting.sections import Against
from mixbandit.reporting.style import STYLE
from mixbandit.reporting.timeline import over_time
from mixbandit.reporting.wording import cut, escaped, plain
from mixbandit.tuning import ListCertificate, StudyCertificate
from mixbandit.tuning.comparing import Comparison

FIRST = "first"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_TITLE = "Tuning report"


def report(
    certificate: StudyCertificate,
    path: str | os.PathLike[str] | None = None,
    *,
    default: Mapping[str, Any] | str | None = None,
    title: str | None = None,
) -> str:
    """A report on a certificate as one self-contained HTML page; written to `path` if given.

    It shows the verdict in two sentences, values and guarantees over time, the bounds around the recommended
    configuration, where the best can still be, and what was assumed. `default` is the configuration now in use, to
    compare the recommended one with: its parameters, or "first" for those of the first trial.

    The same certificate gives the same page, byte for byte.
    """
    return reported(certificate, path, default=default, title=title)


def reported(
    certificate: StudyCertificate,
    path: str | os.PathLike[str] | None = None,
    *,
    default: Mapping[str, Any] | str | None = None,
    title: str | None = None,
    progress: Progress = lambda doing: None,
) -> str:
    """`report`, telling `progress` what is being done."""
    instance_of(certificate, StudyCertificate, "certificate", "what certify or tuner.certificate() returns")
    where = None if path is None else as_path(path)
    heading = _TITLE if title is None else as_text(title, "title")
    against = None if default is None else _against(certificate, default)
    page = _page(certificate, cut(heading), against, progress)
    if where is not None:
        write_atomically(where, page)
    return page


def _page(certificate: StudyCertificate, title: str, against: Against | None, progress: Progress) -> str:
    is_list = isinstance(certificate, ListCertificate)
    run = None if is_list else course(certificate, progress)
    parts = [
        f"<h1>{escaped(title)}</h1>",
        sections.verdict(certificate),
        sections.tiles(certificate, run),
        over_time(certificate, run),
        sections.recommended(certificate, against),
    ]
    if isinstance(certificate, ListCertificate):
        parts.append(sections.on_the_list(certificate))
    else:
        parts += _of_a_model(certificate, progress)
    parts += [sections.assumed(certificate), _footer(certificate)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _of_a_model(certificate: StudyCertificate, progress: Progress) -> list[str]:
    """What a model says about all configurations; nothing if the data refute it."""
    judgement = certificate.judgement
    if judgement is None or not certificate.trusted:
        why = "the data refute the assumptions" if judgement is not None else "this certificate was made by hand"
        text = f"Bounds on other configurations, and where the best can still be, are left out: {why}."
        return [section("Other configurations", paragraph(text))]
    progress("the bounds around the recommended configuration")
    found = slices(certificate, judgement)
    progress("looking for where the best can still be")
    possible = certificate.possible
    drawn = around.sliced(certificate, judgement, found, {part.name: part for part in possible})
    return [drawn, around.region(possible)]


def _against(certificate: StudyCertificate, default: Mapping[str, Any] | str) -> Against:
    """The default, checked, and how the recommended configuration compares with it."""
    called, given = "the default", default
    if isinstance(default, str):
        if default != FIRST:
            raise InvalidInput(f'default must be a dict of parameters, or "{FIRST}", got {shown(default)}')
        called, given = "the first trial", _first(certificate)
    if not isinstance(given, Mapping):
        raise InvalidInput(f'default must be a dict of parameters, or "{FIRST}", got {shown(default)}')
    # Columns that never vary are no parameters of the certificate, but users know them as such.
    spare = {*certificate.unused, *(name.removeprefix("params_") for name in certificate.unused)}
    parameters = {name: value for name, value in given.items() if name not in spare}
    worth = certificate.of(parameters)
    if isinstance(certificate, ListCertificate):
        comparison = _apart(certificate, worth.interval)
        same = _texts(parameters) == _texts(certificate.parameters)
        return Against(parameters, called, worth, comparison, same)
    assert certificate.judgement is not None  # or `of` would have failed
    same = certificate.judgement.space.same(parameters, certificate.parameters)
    return Against(parameters, called, worth, certificate.improvement(over=parameters), same)


def _texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Values on a list may be anything, also what does not compare."""
    return {name: plain(value) for name, value in parameters.items()}


def _first(certificate: StudyCertificate) -> Mapping[str, Any]:
    own = None if certificate.judgement is None else certificate.judgement.own
    if own is None or not own.trials.ordered:
        raise InvalidInput("there is no first trial: the trials, or their order, are not known; state default={…}")
    return dict(own.trials.configurations[0])


def _apart(certificate: ListCertificate, other: tuple[float, float]) -> Comparison:
    """How much better the recommended one is, from two intervals that hold together."""
    low, high = certificate.interval
    lower, upper = low - other[1], high - other[0]
    if certificate.direction == "minimize":
        lower, upper = -upper, -lower
    return Comparison(lower, upper, certificate.evidence, 1.0, certificate.proven)


def _footer(certificate: StudyCertificate) -> str:
    from importlib.metadata import version  # slow to import, and only needed here

    is_list = isinstance(certificate, ListCertificate)
    count, noun = (certificate.tried, "configuration") if is_list else (certificate.t, "trial")
    counted = f"{count:,} {noun}{'' if count == 1 else 's'}"
    made = version("mixbandit")
    return f"<footer>{escaped(f'Made by mixbandit {made} from {counted}.')}</footer>"

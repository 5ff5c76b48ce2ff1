"""Pieces of HTML that sections are made of. Text is escaped here; cells of tables are HTML already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mixbandit.reporting.wording import escaped


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
    body = "".join(f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for kind, cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def legend(entries: Mapping[str, str]) -> str:
    items = "".join(f'<li><i class="of-{kind}"></i>{escaped(text)}</li>' for kind, text in entries.items())
    return f'<ul class="legend">{items}</ul>'

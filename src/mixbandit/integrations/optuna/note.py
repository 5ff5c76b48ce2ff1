"""A certificate as a part of a study's note in Optuna's dashboard, which is Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mixbandit.tuning import StudyCertificate

# Definitions of links that nobody refers to: every Markdown reader hides them.
BEGIN, END = "[mixbandit-begin]: # (replaced by mixbandit)", "[mixbandit-end]: # (from here on the note is yours)"
# Only a beginning with the next end, none of them twice: whatever else is in a note belongs to its user.
_SECTION = re.compile(f"{re.escape(BEGIN)}(?:(?!{re.escape(BEGIN)}).)*?{re.escape(END)}", re.DOTALL)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&#$])")


def certificate_note(certificate: StudyCertificate, last: int) -> str:
    """The two lines of a certificate, and a table of what they rest on; `last` is the number of the last trial."""
    first, *rest = str(certificate).split("\n")
    head = [f"**{escaped(first)}**", *map(escaped, rest)]
    rows = [f"| {name} | {escaped(cell)} |" for name, cell in _table(certificate)]
    when = f"Based on {certificate.t} values; the last is that of trial {last}."
    lines = ["### Certificate", *head, "\n".join(["| | |", "|---|---|", *rows]), when]
    return "\n\n".join(lines)


def _table(certificate: StudyCertificate) -> Iterable[tuple[str, str]]:
    upwards = certificate.direction == "maximize"
    low, high = (end + 0.0 for end in certificate.interval)
    yield "Expected value", f"in [{low:.4g}, {high:.4g}]"
    yield "Best possible", f"at {'most' if upwards else 'least'} {certificate.best_possible + 0.0:.4g}"
    yield "Gap", f"{certificate.gap:.4g} ({f'proven: {certificate.proof}' if certificate.proven else 'not proven'})"
    yield "δ", f"{certificate.delta:g}"
    yield "Trusted", "yes" if certificate.trusted else "NO: the values refute the assumptions"
    yield "Assumptions", certificate.assumptions
    yield "Model", certificate.model
    if certificate.left_out:
        yield "Not counted", ", ".join(f"{count} {why}" for why, count in certificate.left_out.items())
    yield "Audit", " ".join(certificate.to_dict()["audit"])


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return _SPECIAL.sub(r"\\\1", line.encode("utf-8", "replace").decode())


def with_section(note: str, section: str) -> str:
    """A note whose section between our marks is this one; the rest of it stays as it is."""
    marked = f"{BEGIN}\n\n{section}\n\n{END}"
    if _SECTION.search(note) is None:
        return f"{note}\n\n{marked}" if note.strip() else marked
    kept = iter([marked])
    return _SECTION.sub(lambda _: next(kept, ""), note)

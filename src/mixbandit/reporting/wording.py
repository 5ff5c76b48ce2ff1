"""Text on a page: everything that comes from users is escaped here, and cut where it would not end."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbandit._checks import shown

_LONGEST = 300
# Joins the parts of one emoji, and is harmless; other invisible characters are spelled out.
_JOINER = "\u200d"
# A sentence names at most this many parameters, in at most this many characters.
_MOST_NAMED, _LONGEST_NAME = 4, 120


def escaped(text: str) -> str:
    """Text for HTML, in elements and in quoted attributes; what does not print is spelled out."""
    return html.escape("".join(c if c.isprintable() or c == _JOINER else repr(c)[1:-1] for c in text))


def cut(text: str, longest: int = _LONGEST) -> str:
    """The text, or its beginning and how long it is."""
    if len(text) <= longest:
        return text
    length = f" ({len(text):,} characters)" if longest >= _LONGEST else ""
    return f"{text[:longest]}…{length}"


def plain(value: Any) -> str:
    """The value of a parameter in full: what one would type."""
    if isinstance(value, str):
        return cut(value)
    return shown(value.item() if isinstance(value, np.generic) else value)


def rounded(value: Any) -> str:
    """The value of a parameter as a reader wants it: four digits of a float."""
    if isinstance(value, float):
        return number(value)
    return plain(value)


def number(value: float) -> str:
    """A number with four digits, a proper minus, and no −0."""
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{float(value) + 0.0:.4g}".replace("-", "−")


def interval(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


def named(parameters: Mapping[str, Any]) -> str:
    """A configuration within a sentence."""
    parts = [f"{name} = {rounded(value)}" for name, value in parameters.items()]
    text = ", ".join(parts)
    short = 0 < len(parts) <= _MOST_NAMED and len(text) <= _LONGEST_NAME
    return text if short else "the configuration below"


def times(count: int) -> str:
    return f"{count:,} time{'' if count == 1 else 's'}"

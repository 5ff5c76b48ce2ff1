"""Formulas become MathML while the site is built, so that pages need no script, no font and no connection for them."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex makes of $…$ and $$…$$.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **_: Any) -> str:
    """The page with every formula as MathML, the source kept as its label."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    tex = html.unescape(found["tex"]).strip()
    block = found["open"] == "["
    made = convert(tex, display="block" if block else "inline")
    label = html.escape(tex, quote=True).replace("\n", " ")
    return made.replace("<math ", f'<math class="formula" aria-label="{label}" ', 1)

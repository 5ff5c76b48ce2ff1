"""Very long names in tables, as those of tests, break after a dot, a slash or an underscore and not within a word."""

from __future__ import annotations

import re
from typing import Any

CELL = re.compile(r"<td\b[^>]*>.*?</td>", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]{24,}(?=</code>)")
JOINT = re.compile(r"(?:::|[./_(,=])(?=\w)")


def on_page_content(content: str, **_: Any) -> str:
    """The page with places to break in the code of its tables."""
    return CELL.sub(lambda cell: CODE.sub(lambda code: JOINT.sub(r"\g<0><wbr>", code[0]), cell[0]), content)

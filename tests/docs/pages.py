"""The pages, and the blocks of code, commands and output on them."""

import functools
import itertools
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), DOCS / "llms.txt"]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<rest>.*)$")
# "Put this into `train.py`:" before a block: the reader is to make a file of it.
_FILE = re.compile(r"`(?P<name>[\w-]+\.(?:py|toml|csv|json|sh|ya?ml|txt|cfg|ini))`:\s*\Z")


class Block(NamedTuple):
    """A fenced block: what is in it, where, and what stands between it and the one before."""

    language: str
    text: str
    line: int  # of its first line, from 1
    before: str

    @property
    def file(self):
        """The name of the file that it is to be saved as, or None."""
        found = _FILE.search(self.before)
        return found["name"] if found else None

    @property
    def last_line(self):
        return self.line + self.text.count("\n") - 1

    def follows_at_once(self):
        """Whether nothing but one short sentence stands between this block and the one before."""
        between = self.before.strip()
        return "\n\n" not in between and len(between) <= 120 and not between.startswith("#")


def blocks(path):
    """The fenced blocks of a page, in order; those inside lists and tabs without their indentation."""
    found, between, opened = [], [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, inside = (number, fence), []
        elif opened is not None and fence and not fence["rest"].strip():
            start, first = opened
            indent = len(first["indent"])
            language = first["rest"].split()[0] if first["rest"].strip() else ""
            text = "".join(f"{kept[indent:] if kept[:indent].isspace() else kept}\n" for kept in inside)
            found.append(Block(language, text, start + 1, "\n".join(between)))
            opened, between = None, []
        elif opened is not None:
            inside.append(line)
        else:
            between.append(line)
    if opened is not None:
        raise ValueError(f"{path}: the block of line {opened[0]} does not end")
    return found


def prose(path):
    """A page without its fenced blocks, every line in its place."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for block in blocks(path):
        for number in range(block.line - 2, block.last_line + 1):
            lines[number] = ""
    return "\n".join(lines)


def outputs(path):
    """Pairs of a block and the block of text right after it that shows what it prints."""
    found = blocks(path)
    return [
        (block, text)
        for block, text in itertools.pairwise(found)
        if text.language == "text" and text.follows_at_once() and block.language in {"python", "sh"}
    ]


def name(path):
    """The path of a page from the root of the project."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


@functools.cache
def flat(path):
    """The text of a file with single spaces, so that line breaks do not matter."""
    return re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))

"""The README as PyPI shows it, where relative links and images lead nowhere.

With a `Source` address under [project.urls] they become absolute; without one, links become text and images are left
out. Hatchling calls this for every wheel and source archive.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"(?!https?:|mailto:)[^)\s\"]+"
_WORDS = r"((?:!\[[^\]]*\]\([^)]*\)|\[[^\[\]]*\](?!\()|[^\[\]])*)"  # with images and brackets in them
_IMAGE = re.compile(rf"!\[{_WORDS}\]\(({_RELATIVE})\)")
_LINK = re.compile(rf"(?<!!)\[{_WORDS}\]\(({_RELATIVE})\)")
_TAG = re.compile(rf"<img\b[^>]*\bsrc=\"({_RELATIVE})\"[^>]*>")
_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def for_pypi(text: str, source: str | None = None, version: str = "") -> str:
    """The README with absolute links, or with none to files of the project if there is no `source`."""
    # PyPI gives headings no anchors, so that links to them lead to the repository as well.
    page = f"{source}/blob/{_ref(version)}/"
    raw = f"{source}/raw/{_ref(version)}/"

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        target = f"README.md{target}" if target.startswith("#") else target
        return f"[{words}]({page}{target})" if source else words

    def image(found: re.Match[str]) -> str:
        return f"![{found[1]}]({raw}{found[2]})" if source else ""

    def tag(found: re.Match[str]) -> str:
        return found[0].replace(found[1], raw + found[1]) if source else ""

    pieces = _BLOCK.split(text)  # blocks of code are at the odd places, and stay as they are
    return "".join(
        piece if k % 2 else _LINK.sub(link, _TAG.sub(tag, _IMAGE.sub(image, piece))) for k, piece in enumerate(pieces)
    )


def _ref(version: str) -> str:
    return "main" if not version or "dev" in version else f"v{version}"


class Readme(MetadataHookInterface):
    """Puts the changed README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        changed = for_pypi(text, source and source.rstrip("/"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": changed}

"""The page "Extend" shows the modules that these tests run, word for word."""

from pathlib import Path

from tests.docs.pages import DOCS, blocks

MODULES = Path(__file__).parent / "outside"


def test_the_page_shows_these_modules():
    shown = {block.file: block.text for block in blocks(DOCS / "how-to" / "extend.md") if block.file}
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in MODULES.glob("[!_]*.py")}

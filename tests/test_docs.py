"""Every Python block of the README and the documentation runs, in the order of its page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), scope)


def test_there_is_code_to_run():
    assert sum(len(BLOCK.findall(page.read_text())) for page in PAGES) >= 6


@pytest.mark.parametrize(
    ("page", "folder", "tables"), [("paper", "paper", 5), ("tuning", "tuning", 6), ("coverage", ".", 2)]
)
def test_the_tables_of_a_page_are_those_of_its_results(page, folder, tables):
    from mixbandit.paper.page import filled

    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert filled(text, ROOT / "docs" / "results" / folder) == text
    assert text.count("<!-- table") >= tables

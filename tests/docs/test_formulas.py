"""Formulas on the pages: LaTeX that Markdown leaves alone, on GitHub as on the site.

Whether each becomes MathML is checked by `make docs`: the build fails for a command that the converter does not know.
"""

import re

import pytest

from tests.docs.pages import PAGES, ROOT

# Code, and tables that are filled in from files.
OTHER = re.compile(r"^ *```.*?^ *```|<!-- table.*?<!-- end -->|`[^`\n]*`", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
WRITTEN = [page for page in PAGES if page.suffix == ".md" and page.name != "errors.md"]


def prose(page):
    return OTHER.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_formulas_survive_markdown(page):
    """GitHub drops a backslash before a sign, and takes stars for emphasis and bars for the cells of a table."""
    text = prose(page)
    formulas = [block or inline for block, inline in FORMULA.findall(text)]
    assert [formula for formula in formulas if re.search(r"\\[^A-Za-z]|[*|`]", formula)] == []
    assert [formula for formula in formulas if formula.count("{") != formula.count("}")] == []
    # A block stands on lines of its own, between blank ones.
    assert text.count("$$") == len(re.findall(r"(?<=\n)\$\$(?=\n)", text))
    assert not re.search(r"[^\n]\n\$\$\n(?:[^$\n]+\n)+\$\$\n", text)
    assert not re.search(r"\n\$\$\n(?:[^$\n]+\n)+\$\$\n[^\n]", text)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_formula_is_left_to_chance(page):
    """Stars of θ* and f* pair up to emphasis, and an underscore is shown as one."""
    without = FORMULA.sub("", prose(page))
    assert re.findall(r"[θφ]\*|(?<![\w*])f\*(?!\*)|‖|[Α-Ωα-ω]_\w", without) == []


def test_there_are_formulas():
    found = {page.stem: len(FORMULA.findall(prose(page))) for page in WRITTEN if page.parent.name == "mathematics"}
    assert found["index"] > 200
    assert found["theorems"] > 80

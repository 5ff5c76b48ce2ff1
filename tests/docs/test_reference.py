"""The reference as it is built: how each class is made, and descriptions in place of code."""

import html
import importlib
import inspect
import re

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.docs.test_site import build

pytestmark = pytest.mark.heavy
SHOWN = re.findall(r"^::: ([\w.]+)$", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
# Made by the package, not by users.
NOT_MADE = {"mixbandit.sets.ConfidenceSet", "mixbandit.bandits.State", "mixbandit.simulate.Player"}
_SIGNATURE = re.compile(r'<div class="language-python doc-signature.*?</div>', re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The HTML of the page."""
    folder = tmp_path_factory.mktemp("site")
    build(ROOT, folder)
    return (folder / "reference" / "api" / "index.html").read_text(encoding="utf-8")


def part(page, name):
    """From the heading of an object to the next heading."""
    start = page.index(f'id="{name}" class="doc doc-heading"')
    end = page.find('class="doc doc-heading"', start + 100 + len(name))
    return page[start:end]


def text(markup):
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def found(name):
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        return importlib.import_module(name)


CLASSES = [name for name in SHOWN if inspect.isclass(found(name)) and name not in NOT_MADE]


def test_there_are_classes():
    assert len(CLASSES) > 60


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_shows_how_it_is_made(name, page):
    cls = found(name)
    if issubclass(cls, Exception):
        return
    parameters = [p for p in inspect.signature(cls).parameters.values() if p.name not in ("args", "kwargs")]
    if not parameters:
        return
    shown = _SIGNATURE.search(part(page, name))
    assert shown, f"{name} has no signature"
    signature = re.sub(r"\s+", "", text(shown[0]))
    assert [p.name for p in parameters if not re.search(rf"[(,*]{p.name}[=,)]", signature)] == []


def test_there_is_no_code_in_place_of_a_description(page):
    seen = text(page)
    assert re.findall(r"setting\(.{0,40}|.{0,40}\blambda\b.{0,20}|property\(.{0,20}|attrgetter", seen) == []


def test_settings_have_their_descriptions(page):
    assert "How many rewards have been seen." in text(part(page, "mixbandit.sequences.MartingaleMixture.t"))
    assert "Whether the data so far refute" in text(part(page, "mixbandit.sequences.MartingaleMixture.is_refuted"))

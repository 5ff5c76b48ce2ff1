"""What the pages promise is no more than what holds."""

import re

import pytest

from tests.docs.pages import PAGES, ROOT, flat

TOLD = [*PAGES, *ROOT.glob("optunahub/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]
PROMISE = re.compile(r"at (all times|every moment) at once")
# Each was on a page once, and says more than holds.
FALSE = (
    r"error bars that hold at all times at once",
    r"some ten rewards more than features",
    r"four runs of 180",
    r"intervals cover(ed)? in (180 of 180|every run)",
    r"new validation data for every trial",
    r"a new split, or 100 rows",
    r"a bad one (leaves them valid:|widens them but never invalidates them)",
    r"contradict (them|your assumptions), the set becomes empty",
    r"has ‖θ‖ of about s√d",
)


@pytest.mark.parametrize("sentence", FALSE)
def test_a_sentence_that_was_found_false_does_not_come_back(sentence):
    assert [path.name for path in TOLD if re.search(sentence, flat(path).replace("*", ""))] == []


def test_a_page_names_the_model_where_it_first_promises():
    promising = [path for path in TOLD if path.suffix == ".md" and PROMISE.search(flat(path))]
    assert len(promising) >= 5
    for path in promising:
        text = flat(path)
        before = text[: PROMISE.search(text).end() + 300]
        assert "linear in" in before or "function space" in before, path.name


def test_pages_that_ask_for_a_statement_say_where_to_find_the_one_that_fits():
    asking = [path for path in PAGES if path.parent.name in ("how-to", "tutorials") or path.name == "README.md"]
    asking = [path for path in asking if re.search(r"samples=|sigma=|Assumptions\(", path.read_text(encoding="utf-8"))]
    assert len(asking) >= 15
    lost = [path.name for path in asking if not re.search(r"\]\([\w./-]*statements\.md", flat(path))]
    assert lost in ([], ["statements.md"])

"""The Python on the pages runs, prints what they show, and gives the values that its comments tell."""

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, name, outputs
from tests.docs.playing import disagreement, play, run
from tests.helpers.outputs import differences

# Pages whose code takes more than about four seconds.
HEAVY = {
    "docs/how-to/fixed-rows.md",
    "docs/how-to/optuna.md",
    "docs/how-to/sklearn.md",
    "docs/tutorials/articles.md",
    "docs/tutorials/study.md",
    "docs/tutorials/two-configurations.md",
}
# Blocks that need more than one machine has. They begin so, and a test runs the same in small.
NOT_RUN = {
    "from ray import tune": "tests/integrations/test_ray_tune.py",
    "import joblib\nfrom distributed import Client": "tests/integrations/test_sklearn_backends.py",
}
# Blocks of text that show no output of the block before, and why nothing is compared; tests/docs/test_commands.py has
# those that show the output of a command.
NOT_COMPARED = {}
LANGUAGES = {"python", "py", "text", "sh", "toml", "yaml", "bibtex", "ini", "json", "csv"}
CODE = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


def heavy_if(page):
    return pytest.param(page, id=name(page), marks=[pytest.mark.heavy] if name(page) in HEAVY else [])


@pytest.mark.parametrize("page", [heavy_if(page) for page in CODE])
def test_code_runs_and_prints_what_the_page_shows(page, tmp_path):
    shown = {block.line: text for block, text in outputs(page)}
    for line, printed, wrong in play(page, tmp_path):
        assert wrong == []
        if line in shown:
            told = shown[line]
            assert differences(told.text, printed) == "", f"{name(page)}:{told.line}; python -m tests.docs.refresh"


def test_there_is_code_to_run():
    assert sum(block.language == "python" for page in PAGES for block in blocks(page)) >= 40
    assert set(map(name, CODE)) >= HEAVY


def test_code_that_is_not_run_compiles_and_has_a_test_of_its_own():
    code = [block for page in PAGES for block in blocks(page) if block.language == "py"]
    for block in code:
        compile(block.text, "page", "exec")
    begins = {start: [block for block in code if block.text.startswith(start)] for start in NOT_RUN}
    assert all(len(found) == 1 for found in begins.values())
    assert len(code) == len(NOT_RUN)
    assert all((ROOT / test).exists() for test in NOT_RUN.values())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page):
    assert [f"{name(page)}:{block.line}" for block in blocks(page) if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_has_a_name(page):
    """Before a block that the reader is to save: "Save this as `space.toml`:"."""
    saved = [block for block in blocks(page) if block.language in {"toml", "csv", "ini"}]
    assert [f"{name(page)}:{block.line}" for block in saved if not block.file] == []


def test_every_text_is_compared_with_what_is_printed():
    from tests.docs.test_commands import PRINTED

    listed, forgotten = NOT_COMPARED.keys() | PRINTED.keys(), []
    for page in PAGES:
        compared = {text.line for block, text in outputs(page) if block.language == "python"}
        forgotten += [
            (name(page), block.text.splitlines()[0])
            for block in blocks(page)
            if block.language == "text" and block.line not in compared
        ]
    assert set(forgotten) == listed


class TestThisCheck:
    """A page that is wrong is noticed."""

    def test_words_are_compared_exactly_and_numbers_nearly(self):
        told = "Use {'C': 6.24}: at least 0.9313 (20 trials).\n"
        assert differences(told, "Use {'C': 6.2400000001}: at least 0.9313 (20 trials).  \n\n") == ""
        assert differences(told, told.replace("0.9313", "0.9314"))
        assert differences(told, told.replace("at least", "at most"))
        assert differences(told, told.replace("20", "-20"))
        assert differences(told, told + "One line more.")
        assert differences(told, told.replace("0.9313", "0.2"), relative=None) == ""
        assert differences(told, told.replace("least", "most"), relative=None)

    @pytest.mark.parametrize(
        ("comment", "value"),
        [("0.919, 0.979", (0.9192, 0.97949)), ("-0.55 and 0.96: at 0.4", ([-0.551], [0.96])), ("60", 60),
         ("5.8e-12", 5.83e-12), ("1,000 of them", 1000), ("20 seeds", None), ("(0.1, 0.2)", [0.1, 0.2])],
    )  # fmt: skip
    def test_comments_that_hold(self, comment, value):
        assert disagreement(comment, value) is None

    @pytest.mark.parametrize(
        ("comment", "value"),
        [("0.919, 0.979", (0.9197, 0.979)), ("0.919", (0.919, 0.979)), ("60", 61), ("5.8e-12", 5.9e-12), ("0.2", -0.2)],
    )
    def test_comments_that_do_not(self, comment, value):
        assert disagreement(comment, value)

    def test_comments_are_found(self):
        printed, wrong = run("x = 2\nprint(x)  # 2\n(\n    x + 1\n)  # 4\nx  # 1 is too little\n", {}, "page", 10)
        assert printed == "2\n"
        assert [problem.partition(": ")[0] for problem in wrong] == ["page:14", "page:15"]

    def test_a_page(self, tmp_path):
        page, folder = tmp_path / "page.md", tmp_path / "folder"
        folder.mkdir()
        page.write_text(
            "Put this into `made.py`:\n\n```python\ndef f():\n    return 5\n```\n\nThen:\n\n"
            "```python\nimport made\n\nprint(made.f())\n```\n\nIt says:\n\n```text\n6\n```\n"
        )
        (block, text), *others = outputs(page)
        (_, _, _), (line, printed, _) = play(page, folder)
        assert others == []
        assert line == block.line == 11
        assert differences(text.text, printed) == "- 6\n+ 5\n"

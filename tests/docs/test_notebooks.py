"""Every notebook runs from the top in a fresh kernel, and prints what is saved in it."""

import importlib.util

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.helpers.outputs import differences

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
LARGEST = 300 * 1024  # bytes


def texts(notebook):
    """What each cell printed or showed as text, without stderr."""
    found = []
    for cell in notebook.cells:
        outputs = [output for output in cell.get("outputs", ()) if output.get("name") != "stderr"]
        found.append("".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs))
    return found


def test_notebooks_are_small_and_in_the_navigation():
    assert len(NOTEBOOKS) >= 2
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert path.stat().st_size < LARGEST
        assert f"notebooks/{path.stem}.md" in nav


@pytest.mark.heavy
@pytest.mark.filterwarnings("default")  # those of Jupyter's own packages are not ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_saved_in_it(path, tmp_path):
    import nbformat  # of the extra `notebooks`, which the quick tests do without

    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "hooks" / "notebooks.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    saved = nbformat.read(path, as_version=4)
    counts = [cell.execution_count for cell in saved.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    for told, printed in zip(texts(saved), texts(hook.run(path, tmp_path)), strict=True):
        assert differences(told, printed) == ""

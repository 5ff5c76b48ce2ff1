"""Notebooks of examples/notebooks as pages, with their outputs and a link to the file.

As a hook of MkDocs it makes the pages from the outputs that are in the notebooks; run as a script (`make gallery`), it
runs the notebooks and saves them with their outputs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

NOTEBOOKS = Path(__file__).parent.parent.parent / "examples" / "notebooks"
TEXT = """{% extends "markdown/index.md.j2" %}
{% block stream %}
```text
{{ output.text | trim }}
```
{% endblock %}"""
LINK = "[Download this notebook]({name}.ipynb){{ download }}"


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add a page for each notebook, its pictures, and the notebook itself."""
    from mkdocs.structure.files import File
    from nbconvert import MarkdownExporter

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        body, found = MarkdownExporter(raw_template=TEXT).from_filename(str(path), {"unique_key": path.stem})
        heading, rest = body.replace("](../../docs/", "](../").strip().split("\n", 1)
        rest = rest.replace("![png](", f"![{heading.lstrip('# ')}: the picture](")
        page = f"{heading}\n\n{LINK.format(name=path.stem)}\n{rest}"
        made = {f"{path.stem}.md": page, path.name: path.read_bytes(), **found["outputs"]}
        for name, content in made.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook, run from the top in a fresh kernel that works in a folder."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    options = {"timeout": 900, "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **options).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # without the version of whoever ran it
    for cell in notebook.cells:
        if cell.cell_type == "code":  # on stderr tqdm asks for widgets, with a path of this machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for each in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not sys.argv[1:] or each.stem in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as somewhere:
                nbformat.write(run(each, Path(somewhere)), each)
            print(f"{each.name}: {each.stat().st_size / 1024:.0f} KB")

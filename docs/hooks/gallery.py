"""The gallery: a page for each of examples/*.py, with its picture, what it prints and its code.

As a hook of MkDocs it makes the pages from what is in docs/gallery; run as a script (`make gallery`), it runs the
examples and writes that. The plugin mkdocs-gallery would run every example whenever the site is built, which takes
minutes and needs all extras, and shows no text that a test could compare.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "gallery"
CARDS = "<!-- cards -->"
PAGE = """# {title}

{text}

![{title}]({name}.png)

```sh
python examples/{name}.py
```

It prints:

```text
{printed}
```

and saves the picture as `out/examples/{name}.png`. The code:

```python
{code}
```
"""


class Example(NamedTuple):
    """An example, as its docstring tells it."""

    name: str
    title: str  # the first line
    text: str
    code: str  # everything below the docstring
    printed: str

    @property
    def page(self) -> str:
        """Its page, in Markdown."""
        return PAGE.format(**self._asdict())

    @property
    def card(self) -> str:
        """Its picture and title, as a link to the page."""
        page, picture = f"({self.name}.md)", f"({self.name}.png){{ loading=lazy }}"
        return f"-   [![{self.title}]{picture}]{page}\n\n    **[{self.title}]{page}**\n"


def examples() -> list[Example]:
    """All examples, in the order of their names."""
    return [_read(path) for path in sorted((ROOT / "examples").glob("*.py"))]


def _read(path: Path) -> Example:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or path.stem).partition("\n")
    text = re.sub(r"\bdocs/([\w/-]+\.md)", r"[\g<0>](../\1)", text)
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    printed = (FOLDER / f"{path.stem}.txt").read_text(encoding="utf-8").rstrip()
    return Example(path.stem, title.rstrip("."), text.strip(), code, printed)


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    """Pages of examples follow the gallery's own in the navigation."""
    for section in config.nav or []:
        if "Gallery" in section:
            section["Gallery"][1:1] = [{each.title: f"gallery/{each.name}.md"} for each in examples()]
    return config


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add a page for each example."""
    from mkdocs.structure.files import File

    for each in examples():
        files.append(File.generated(config, f"gallery/{each.name}.md", content=each.page))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in the cards of the gallery's first page."""
    if page.file.src_uri != "gallery/index.md":
        return markdown
    cards = "\n".join(each.card for each in examples())
    return markdown.replace(CARDS, f'<div class="grid cards gallery" markdown>\n\n{cards}\n</div>')


def main(names: list[str]) -> None:
    """Run the examples and keep what they print and draw, pictures in 128 colours."""
    from PIL import Image  # comes with matplotlib

    for path in sorted((ROOT / "examples").glob("*.py")):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, path], cwd=folder, check=True, stdout=subprocess.PIPE)
            (FOLDER / f"{path.stem}.txt").write_bytes(run.stdout)
            with Image.open(Path(folder) / "out" / "examples" / f"{path.stem}.png") as picture:
                picture.convert("RGB").quantize(128).save(FOLDER / f"{path.stem}.png", optimize=True)
        print(f"{path.stem}: {(FOLDER / path.stem).with_suffix('.png').stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Each page's Markdown stands beside it on the site: llms.txt links to it, for readers that are programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def on_post_build(config: Any, **_: Any) -> None:
    """Copy docs/a/b.md to site/a/b.md."""
    source, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for page in source.rglob("*.md"):
        target = site / page.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)

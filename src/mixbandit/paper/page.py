"""Keep the tables of a page in step with its results.

    python -m mixbandit.paper.page docs/results/paper.md docs/results/paper

Between <!-- table NAME --> and <!-- end --> the page gets the table of NAME.csv; with `| COLUMN, COLUMN` after NAME,
these columns only.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from mixbandit._files import write_atomically
from mixbandit.errors import InvalidInput

_MARKED = re.compile(r"(<!-- table (?P<name>[\w-]+)(?: \| (?P<columns>[^>]*))? -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, folder: Path) -> str:
    """The page with its tables regenerated."""

    def table(found: re.Match[str]) -> str:
        columns = found["columns"].split(", ") if found["columns"] else None
        return f"{found[1]}\n{_markdown(folder / (found['name'] + '.csv'), columns)}\n{found[4]}"

    new = _MARKED.sub(table, page)
    if len(_MARKED.findall(page)) != page.count("<!-- table"):
        raise InvalidInput("the page has a <!-- table … --> mark that cannot be parsed, or has no <!-- end -->")
    return new


def _markdown(path: Path, columns: list[str] | None) -> str:
    _, header, *rows = csv.reader(path.read_text().splitlines())
    unknown = set(columns or ()) - set(header)
    if unknown:
        raise InvalidInput(f"{path} has no column {', '.join(sorted(unknown))}; it has {', '.join(header)}")
    kept = [header.index(name) for name in columns] if columns else range(len(header))
    lines = [[row[i].replace("|", "\\|") for i in kept] for row in (header, *rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    page, folder = map(Path, sys.argv[1:])
    write_atomically(page, filled(page.read_text(), folder))

"""Write into pages what their code prints now: python -m tests.docs.refresh docs/how-to/certify.md …

Only blocks of text right after Python change, and only where words or numbers differ. Read the diff before you commit.
"""

import sys
import tempfile
import warnings
from pathlib import Path

from tests.docs.pages import name, outputs
from tests.docs.playing import play
from tests.helpers.outputs import differences


def refresh(path):
    """The page with new outputs, and what is wrong that only its author can mend."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        played = {block.line: block for block in play(path, folder)}
    lines = path.read_text(encoding="utf-8").split("\n")
    for code, text in reversed(outputs(path)):
        if code.line in played and differences(text.text, played[code.line].printed):
            indent = lines[text.line - 2].partition("`")[0]
            printed = played[code.line].printed.strip("\n").split("\n")
            lines[text.line - 1 : text.last_line] = [f"{indent}{line}".rstrip() for line in printed]
    return "\n".join(lines), [problem for block in played.values() for problem in block.wrong]


def main():
    for page in map(Path, sys.argv[1:]):
        new, wrong = refresh(page.resolve())
        if new != page.read_text(encoding="utf-8"):
            page.write_text(new, encoding="utf-8")
            print(name(page.resolve()), "has new outputs")
        print("".join(f"{problem}\n" for problem in wrong), end="")


if __name__ == "__main__":
    main()

"""The commands on the pages, and what each of them is."""

import re
import shlex
import tomllib
from typing import NamedTuple

from tests.docs.pages import PAGES, ROOT, blocks, name, prose

TOLD = [*PAGES, *(path for path in sorted(ROOT.glob("*.md")) if path.name not in {"README.md", "CHANGELOG.md"})]
TOLD += sorted(ROOT.glob("benchmarks/*/README.md")) + sorted(ROOT.glob("optunahub/**/*.md"))
# Inline code that begins with one of these and goes on is a command.
PROGRAMS = {"mixbandit", "python", "python3", "make", "pytest", "pip", "optuna", "optuna-dashboard", "bash", "sbatch",
            "git", "ruff", "mypy", "mkdocs", "createdb", "jupyter", "twine", "uv", "apt-get", "docker"}  # fmt: skip
PLACEHOLDER = re.compile(r"…|\||\b[A-Z]{3,}\b")

_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COMMENT = re.compile(r"(^|\s)#\s.*$")


class Command(NamedTuple):
    """A command as written, without its comment, and where."""

    text: str
    page: str
    line: int
    inline: bool

    @property
    def words(self):
        return shlex.split(self.text)

    @property
    def mention(self):
        """Whether a sentence only names it, as `mixbandit report` or `mixbandit certify … --details`."""
        return self.inline and (len(self.words) == 2 or bool(PLACEHOLDER.search(self.text)))


def commands(path):
    """All commands of a page: lines of blocks of sh that are not files, and code in sentences."""
    found = []
    for block in blocks(path):
        if block.language in {"sh", "bash", "console"} and not block.file:
            joined = re.sub(r"\\\n\s*", " ", block.text)
            lines = [_COMMENT.sub("", line).strip() for line in joined.splitlines()]
            found += [Command(line, name(path), block.line, inline=False) for line in lines if line]
    text = prose(path)
    for span in _SPAN.finditer(text):
        written = re.sub(r"\s+", " ", span[1]).replace("\\|", "|").strip()
        if written.partition(" ")[0] in PROGRAMS and " " in written:
            found.append(Command(written, name(path), text.count("\n", 0, span.start()) + 1, inline=True))
    return found


def make_problem(words):
    """Why a `make TARGET…` cannot run, or nothing."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    unknown = [word for word in words if "=" not in word and word not in targets]
    return f"no target {', '.join(unknown)}" if unknown else ""


def pip_problem(words, packages):
    """Why a `pip install WHAT…` cannot run, or nothing: it may name the clone, the project and `packages`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if words[0] != "install":
        return "only pip install is known"
    for word in words[1:]:
        what = re.fullmatch(r"(?P<name>\.|[\w-]+)(?:\[(?P<extras>[\w,-]+)\])?(?:[=<>~]=?[\d.,<>=]+)?", word)
        if word in {"-e", "--editable", "-U", "--upgrade", "--quiet"}:
            continue
        if what is None or what["name"] not in {".", project["name"], *packages}:
            return f"unknown package {word}"
        missing = set((what["extras"] or "").split(",")) - {"", *project["optional-dependencies"]}
        if missing and what["name"] not in packages:
            return f"no extra {', '.join(sorted(missing))}"
    return ""


def pytest_problem(words):
    """Why `pytest …` cannot run, or nothing: what it names has to exist."""
    for word in words:
        path, _, node = word.partition("::")
        if path.startswith("tests"):
            if not (ROOT / path).exists():
                return f"no {path}"
            if any(f" {part.partition('[')[0]}(" not in (ROOT / path).read_text() for part in node.split("::") if part):
                return f"no {node} in {path}"
    return ""

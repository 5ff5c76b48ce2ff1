#!/usr/bin/env python3
"""Install the built archives on clean environments of the oldest and the newest Python, and use them.

    make dist && python3 .ci/clean_installs.py out/dist

The Pythons are those that pyproject.toml names: `requires-python` and the last of the classifiers. Each is looked for
on PATH and in pyenv; the newest, if it is missing, is taken from Debian's testing suite through the mirror that apt
uses, into a folder that is removed at the end. Where that cannot be done, the newest Python found takes its place, and
a line that begins with NOT TRIED says so.

On each Python: the wheel and what it needs, then the source archive and some extras. On the oldest also the
wheel with the oldest of these that pyproject.toml allows, and some of the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = "sklearn,optuna,cli,plots"
EXAMPLES = ("sklearn_search.py", "worker.py", "error_bars.py")  # of these extras
TESTS = (
    "tests/sets/test_information.py", "tests/sets/test_krylov.py", "tests/sequences/test_merge.py",
    "tests/test_data.py", "tests/bandits/test_state.py",
)  # fmt: skip
# What the library has to do without extras.
CORE = """
import numpy as np
import mixbandit as mb

known = mb.Assumptions(reward_range=(0, 1), samples=100, rows="fresh")
tuner = mb.Tuner({"x": mb.Float(0, 1), "kind": mb.Categorical(["a", "b"])}, known, rng=0)
rng = np.random.default_rng(0)
tuner.optimize(lambda p: rng.binomial(100, 0.9 - 0.1 * (p["kind"] == "b") - 0.2 * (p["x"] - 0.5) ** 2) / 100, 40)
certificate = tuner.certificate()
assert 0.5 < certificate.lower < 0.9, certificate
tuner.save("tuner.mixbandit")
assert str(mb.load("tuner.mixbandit").certificate()) == str(certificate)
cs = mb.MartingaleMixture(mb.RandomFourier(dim_in=1, dim=20, rng=1), sigma=0.1, norm_bound=10.0, delta=0.01)
cs.update([[0.2], [0.5], [0.9]], [0.3, 0.1, -0.4])
assert cs.lower([[0.4]]) < cs.upper([[0.4]])
print(certificate)
"""


@dataclass(frozen=True)
class Python:
    """An interpreter, and the folder that it takes for the root of the file system."""

    minor: int
    path: str
    root: Path = Path("/")

    @property
    def name(self) -> str:
        return f"Python {self.said('-c', 'import platform; print(platform.python_version())').strip()}"

    def said(self, *arguments: str) -> str:
        return self.run([self.path, *arguments], capture_output=True).stdout

    def run(self, command: list[str], *, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        inside = self.root != Path("/")
        unwanted = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV") + (("PIP_FIND_LINKS",) if inside else ())
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        chroot = ["chroot", str(self.root)] if inside else []
        return subprocess.run([*chroot, *command], check=check, env=kept, text=True, **options)


class Environment:
    """A new virtual environment of a Python, in a folder of its own in which programs run."""

    def __init__(self, python: Python, folder: Path) -> None:
        self.python, self.folder = python, folder
        folder.mkdir(parents=True)
        self._inside = "/" + str(folder.relative_to(python.root)) if python.root != Path("/") else str(folder)
        python.run([python.path, "-m", "venv", f"{self._inside}/venv"])

    def give(self, *paths: Path) -> list[str]:
        """Copy files and folders into the folder; their names."""
        for path in paths:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, self.folder / path.name)
        return [path.name for path in paths]

    def install(self, *requirements: str) -> None:
        # Without bytecode for all of scipy, which takes as long as unpacking it.
        self.run("python", "-m", "pip", "install", "-qq", "--no-compile", "--disable-pip-version-check", *requirements)

    def run(self, program: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        started = f'cd {self._inside} && exec venv/bin/{program} "$@"'
        return self.python.run(["/bin/sh", "-c", started, program, *arguments], **options)


def oldest_and_newest() -> tuple[int, int]:
    """The minor versions of Python that pyproject.toml names."""
    found = re.match(r">=3\.(\d+)$", PROJECT["requires-python"])
    assert found, PROJECT["requires-python"]
    named = [re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", text) for text in PROJECT["classifiers"]]
    return int(found[1]), max(int(match[1]) for match in named if match)


def local_pythons() -> dict[int, Python]:
    """The interpreters of this machine that can make virtual environments, by minor version."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    oldest, newest = oldest_and_newest()
    paths = [sys.executable, "/usr/bin/python3"]
    paths += filter(None, (shutil.which(f"python3.{minor}") for minor in range(oldest, newest + 1)))
    paths += [str(path) for path in sorted(versions.glob("3.*/bin/python"))]
    found: dict[int, Python] = {}
    for path in paths:
        # pyenv has shims for Pythons that are not active, which fail.
        told = subprocess.run(
            [path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if told.returncode == 0 and told.stdout.startswith("3 "):
            minor = int(told.stdout.split()[1])
            if oldest <= minor <= newest:
                found.setdefault(minor, Python(minor, path))
    return found


def from_debian(minor: int, folder: Path) -> Python | str:
    """A Python of Debian's testing suite under `folder`; or why there is none."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "only root can take it from Debian, with apt"
    if shutil.which("mmdebstrap") is None:
        subprocess.run("apt-get update -qq && apt-get install -y -qq mmdebstrap >/dev/null", shell=True, check=False)
    sites = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"],
        capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    if shutil.which("mmdebstrap") is None or not sites:
        return "apt has no mirror, or no mmdebstrap"
    # Packages are only unpacked, which is enough for Python, and takes seconds. A mirror may be some days behind:
    # signatures are checked all the same.
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--aptopt=Acquire::Check-Valid-Until \"false\"",
         f"--include=base-files,dash,libstdc++6,python3.{minor}-venv,tzdata", "testing", str(folder), sites[0]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        return (
            f"Debian testing does not have it, or the mirror does not answer: {made.stderr.strip().splitlines()[-1:]}"
        )
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", os.environ.get("PIP_CERT", "")):
        if name and Path(name).exists():
            (folder / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, folder / name[1:])
    python = Python(minor, f"/usr/bin/python3.{minor}", folder)
    try:
        Environment(python, folder / "tmp/probe").install("threadpoolctl")
    except subprocess.CalledProcessError:
        return "the Python from Debian reaches no index of packages"
    return python


def check(python: Python, wheel: Path, archive: Path, folder: Path) -> None:
    """Install the wheel alone, then the archive with extras, and use both."""
    place = Environment(python, folder)
    place.install(*place.give(wheel))
    program = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
    installed = set(place.run("python", "-c", program, capture_output=True).stdout.split()) - {"pip", "setuptools"}
    assert installed == {"mixbandit", "numpy", "scipy", "threadpoolctl"}, installed
    place.run("python", "-W", "error", "-c", "import mixbandit")
    place.run("python", "-W", "error", "-c", CORE)
    example, picture, _ = (ROOT / "examples/error_bars.py").read_text().partition("\n# The picture")
    assert picture, "examples/error_bars.py: where does it begin to draw?"
    place.run("python", "-W", "error", "-c", example)
    for command in ("--version", "demo"):
        told = place.run("mixbandit", command, capture_output=True, check=False)
        assert told.returncode == 1, told
        assert "pip install 'mixbandit[cli]'" in told.stderr, told

    place.run("python", "-m", "pip", "uninstall", "-qq", "--yes", "mixbandit")
    (name, _) = place.give(archive, ROOT / "examples")
    place.install(f"./{name}[{EXTRAS}]")
    version = re.search(r"mixbandit-(.+)\.tar\.gz", name)
    assert version, name
    assert place.run("mixbandit", "--version", capture_output=True).stdout == f"mixbandit {version[1]}\n"
    for example in EXAMPLES:
        place.run("python", f"examples/{example}", stdout=subprocess.DEVNULL)
        print(f"    examples/{example}: runs", flush=True)


def check_lower_bounds(python: Python, wheel: Path, folder: Path) -> str:
    """The wheel with the oldest dependencies that it allows, and some tests; the versions."""
    oldest = [re.sub(r">=([\d.]+)$", r"==\1.*", text) for text in PROJECT["dependencies"]]
    assert all("==" in text for text in oldest), oldest
    place = Environment(python, folder / "oldest")
    (name, *_) = place.give(wheel, ROOT / "tests", ROOT / "pyproject.toml")
    place.install(f"./{name}", *oldest, "pytest", "hypothesis", "mpmath")
    place.run("python", "-c", CORE, stdout=subprocess.DEVNULL)
    place.run("python", "-m", "pytest", "-q", "-m", "not heavy", "-p", "no:cacheprovider", *TESTS)
    return ", ".join(oldest)


def main() -> None:
    parser = argparse.ArgumentParser(description="Install wheel and source archive on clean environments.")
    parser.add_argument("dist", type=Path, help="folder with one wheel and one source archive")
    parser.add_argument("--local", action="store_true", help="take no Python from Debian")
    options = parser.parse_args()
    (wheel,), (archive,) = options.dist.resolve().glob("*.whl"), options.dist.resolve().glob("*.tar.gz")
    started = time.monotonic()

    def told(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="clean-installs-") as name:
        folder = Path(name)
        low, high = oldest_and_newest()
        found = local_pythons()
        told(f"Pythons of this machine: {', '.join(f'3.{minor}' for minor in sorted(found))}")
        if low not in found:
            sys.exit(f"Python 3.{low}, the oldest that is supported, is not here")
        newest = found.get(high) or ("--local" if options.local else from_debian(high, folder / "debian"))
        if isinstance(newest, str):
            told(f"NOT TRIED: Python 3.{high}, the newest that is supported ({newest})")
            newest = found[max(found)]
        pythons = [found[low], newest] if newest.minor > low else [newest]
        for python in pythons:
            told(f"{python.name}{' from Debian' if python.root != Path('/') else ''}: no extras, then [{EXTRAS}]")
            place = python.root / "tmp/checked" if python.root != Path("/") else folder / f"3.{python.minor}"
            check(python, wheel, archive, place)
        told(f"{found[low].name}: the oldest dependencies")
        told(f"passed with {check_lower_bounds(found[low], wheel, folder)}")
        told(f"installed and used on {', '.join(python.name for python in pythons)}")


if __name__ == "__main__":
    main()

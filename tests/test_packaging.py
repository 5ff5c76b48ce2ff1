"""What the README names is in the archives, and an installed wheel works on its own."""

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOLD = ("README.md", "CONTRIBUTING.md", "mkdocs.yml", "Makefile", ".ci/run")
# Folders whose files are named by path on the pages.
FOLDERS = r"(?:\.ci|benchmarks|docs|examples|optunahub|src|tests)"
DATASETS = ("banknotes", "maternal", "raisin")


def named():
    """The files and folders of the project that its pages, its Makefile and its build settings name."""
    text = "\n".join((ROOT / name).read_text() for name in TOLD)
    found = set(re.findall(rf"(?<![\w/.-])({FOLDERS}/[\w/.-]*\w)", text))
    found |= set(re.findall(r"\]\(([\w./-]+)\)", text))  # links
    found |= set(TOLD) | {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    found.add(PROJECT["tool"]["hatch"]["version"]["path"])
    return {path for path in found if (ROOT / path).exists()}


def contains(names, path):
    return path in names or any(name.startswith(f"{path}/") for name in names)


def build(folder, target, tree=ROOT):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder], cwd=tree, check=True)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def code(tree):
    """The files of the package, by their names in a wheel."""
    files = (path for path in (tree / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(tree / "src").as_posix() for path in files}


def test_everything_that_is_named_belongs_to_the_source_archive():
    listed = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert len(named()) > 20
    assert all((ROOT / entry.lstrip("/")).exists() for entry in listed)
    assert {path for path in named() if f"/{path.split('/')[0]}" not in listed} == set()


@pytest.mark.heavy
def test_archives_contain_what_is_named_and_the_wheel_works_alone(tmp_path):
    with tarfile.open(build(tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("mixbandit-*")
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {path for path in {*named(), "pyproject.toml"} if not contains(files, path)} == set()
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")} <= files

    wheel = build(tmp_path / "wheel", "wheel", unpacked)  # from the archive, as an installer does it
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == code(ROOT)
    assert {"mixbandit/py.typed", *(f"mixbandit/paper/datasets/{name}.csv" for name in DATASETS)} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())

    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python, (site,) = home / "bin" / "python", home.glob("lib/*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True)
    # Dependencies as they are here, so that no index is needed; our own editable install is not found by this.
    (site / "dependencies.pth").write_text("\n".join({sysconfig.get_path(name) for name in ("purelib", "platlib")}))

    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def said(*command):
        run = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/mixbandit/__init__.py").read_text())[1]
    assert said(python, "-c", "import mixbandit; print(mixbandit.__file__)").startswith(str(site))
    assert said(home / "bin" / "mixbandit", "--version") == f"mixbandit {version}"
    load = f"from mixbandit.paper.datasets import load_dataset; print(*(len(load_dataset(n).y) for n in {DATASETS}))"
    assert said(python, "-c", load) == "1372 1014 900"


def package(name, *flaws, version="1.0"):
    return {"name": name, "version": version, "vulns": [{"id": i, "fix_versions": fixes} for i, fixes in flaws]}


def test_the_audit_of_dependencies_fails_for_what_users_install_and_never_calls_silence_an_audit():
    audit = runpy.run_path(str(ROOT / ".ci" / "audit.py"))
    verdict, unknown = audit["verdict"], {"name": "scipy", "skip_reason": "Dependency not found on PyPI"}
    assert verdict([], {"numpy"}) == verdict([unknown], {"numpy"}) == (0, [audit["NOT_AUDITED"]])
    code, lines = verdict([package("numpy"), unknown], {"numpy"})
    assert (code, lines[1]) == (0, "NOT AUDITED: scipy")
    assert verdict([package("numpy", ("CVE-1", ["1.1"]))], {"numpy"})[0] == 1
    assert verdict([package("numpy", ("CVE-1", []))], {"numpy"})[0] == 0
    code, lines = verdict([package("numpy"), package("pytest", ("CVE-2", ["2.0"]))], {"numpy"})
    assert (code, "pytest 1.0, CVE-2" in lines[1]) == (0, True)
    assert {"numpy", "scipy", "typer", "optuna"} <= audit["installed_with"]("mixbandit", "all")
    assert "pytest" not in audit["installed_with"]("mixbandit", "all")

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
TOLD = ("README.md", "CONTRIBUTING.md", "RELEASING.md", "mkdocs.yml", "Makefile", ".ci/run")
# Folders whose files are named by path on the pages.
FOLDERS = r"(?:\.ci|benchmarks|docs|examples|optunahub|src|tests)"
DATASETS = ("banknotes", "maternal", "raisin")


def named():
    """The files and folders of the project that its pages, its Makefile and its build settings name."""
    text = "\n".join((ROOT / name).read_text() for name in TOLD)
    found = set(re.findall(rf"(?<![\w/.-])({FOLDERS}/[\w/.-]*\w)", text))
    found |= set(re.findall(r"\]\(([\w./-]+)\)", text))  # links
    found |= set(TOLD) | {"hatch_build.py", *PROJECT["project"]["license-files"]}
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


def test_the_metadata_say_what_a_reader_of_pypi_looks_for():
    project = PROJECT["project"]
    assert 40 < len(project["description"]) < 200
    assert project["license"] == "MIT"
    assert not any(text.startswith("License ::") for text in project["classifiers"])  # `license` says it
    oldest = int(project["requires-python"].removeprefix(">=3."))
    named = [int(minor) for text in project["classifiers"] for minor in re.findall(r":: Python :: 3\.(\d+)$", text)]
    assert named == list(range(oldest, named[-1] + 1))
    assert oldest <= sys.version_info.minor <= named[-1]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py3{oldest}"
    assert {"Operating System :: POSIX :: Linux", "Typing :: Typed"} <= set(project["classifiers"])
    assert {"scikit-learn", "optuna", "A/B testing", "bandits"} <= set(project["keywords"])
    assert all(re.match(r"https://(?!.*example)\S+$", url) for url in project.get("urls", {}).values())


def test_the_page_of_versions_names_what_the_metadata_allow():
    page = (ROOT / "docs/reference/versions.md").read_text()
    oldest, newest = (re.findall(r"3\.\d+", text)[-1] for text in (
        PROJECT["project"]["requires-python"], " ".join(PROJECT["project"]["classifiers"])
    ))  # fmt: skip
    assert f"| Python | {oldest} | {newest} |" in page
    for requirement in PROJECT["project"]["dependencies"]:
        name, bound = requirement.split(">=")
        assert f"| {name} | {bound} | " in page


def test_extras_named_on_pages_and_in_messages_exist():
    pages = [path for folder in ("docs", "optunahub") for path in (ROOT / folder).rglob("*.md")]
    code = [path for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.py")]
    text = "\n".join(path.read_text() for path in [*ROOT.glob("*.md"), *pages, *code])
    lists = re.findall(r"(?:\bmixbandit|(?<=['\" ])\.)\[([a-z][a-z,]*)\]", text)
    named = {extra for listed in lists for extra in listed.split(",")} | set(re.findall(r'extra="(\w+)"', text))
    assert len(named) > 8
    assert named - PROJECT["project"]["optional-dependencies"].keys() == set()


def test_the_version_is_in_one_place_and_the_citation_agrees():
    import mixbandit

    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/mixbandit/__init__.py"
    changes = (ROOT / "CHANGELOG.md").read_text()
    number, said = re.search(r"^## (\d+\.\d+\.\d+)(?:, (.+))?$", changes, re.MULTILINE).groups()
    assert mixbandit.__version__ == (f"{number}.dev0" if said == "unreleased" else number)
    citation = dict(re.findall(r"^(version|date-released): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    if said == "unreleased":  # then the citation is of an older version, or of none
        assert citation.get("version") != number
    else:
        assert citation == {"version": number, "date-released": said}


SOURCE = "https://host/owner/mixbandit"


@pytest.mark.parametrize(
    ("written", "absolute", "plain"),
    [
        ("[a](docs/a.md#b), [c]", f"[a]({SOURCE}/blob/v1.0/docs/a.md#b), [c]", "a, [c]"),
        ("([a](#b))", f"([a]({SOURCE}/blob/v1.0/README.md#b))", "(a)"),
        ("![An [x] axis](docs/a.png)", f"![An [x] axis]({SOURCE}/raw/v1.0/docs/a.png)", ""),
        ("![a](docs/a.png)", f"![a]({SOURCE}/raw/v1.0/docs/a.png)", ""),
        ("[`mb.run`](docs/a.md)", f"[`mb.run`]({SOURCE}/blob/v1.0/docs/a.md)", "`mb.run`"),
        ("[![a](a.png)](a.md)", f"[![a]({SOURCE}/raw/v1.0/a.png)]({SOURCE}/blob/v1.0/a.md)", ""),
        ('<img src="a.png" width="9">', f'<img src="{SOURCE}/raw/v1.0/a.png" width="9">', ""),
        ("[a](https://semver.org) ![b](https://b.c/d.png)",) * 3,
        ("x\n```python\nf[0](y)\n```\ny",) * 3,
        ("`pip install 'mixbandit[all]'` (or so)",) * 3,
    ],
)  # fmt: skip
def test_links_on_pypi_are_absolute_or_text(written, absolute, plain):
    for_pypi = runpy.run_path(str(ROOT / "hatch_build.py"))["for_pypi"]
    assert for_pypi(written, SOURCE, "1.0") == absolute
    assert for_pypi(written) == plain


def test_the_readme_for_pypi_has_no_relative_links():
    for_pypi = runpy.run_path(str(ROOT / "hatch_build.py"))["for_pypi"]
    text = (ROOT / "README.md").read_text()
    for made in (for_pypi(text), for_pypi(text, SOURCE, "0.2.0.dev0")):
        outside = re.sub(r"^```.*?^```$", "", made, flags=re.MULTILINE | re.DOTALL)
        assert re.findall(r"\]\((?!https?:)[^)]*\)|(?:src|href)=\"(?!https?:)", outside) == []
    assert f"]({SOURCE}/blob/main/docs/index.md)" in made
    assert re.findall(r"```.*?```", made, re.DOTALL) == re.findall(r"```.*?```", text, re.DOTALL)


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
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    readme = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "Description-Content-Type: text/markdown" in readme
    assert "](docs/" not in readme

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

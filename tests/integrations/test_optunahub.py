"""The packages for OptunaHub: each loads, and its example runs as it is."""

import runpy
from pathlib import Path

import optunahub
import pytest

from mixbandit.integrations import optuna as ours

PACKAGES = Path(__file__).parents[2] / "optunahub" / "package"
# What each package has, and what its example prints.
KNOWN = {
    "samplers/mixbandit": (("MixBanditSampler", "StopOnGap"), "its expected value is at least"),
    "pruners/mixbandit": (("CertifiedPruner",), "of 30 trials were pruned"),
    "callbacks/mixbandit": (("ConfirmFinalists", "StopOnGap"), "its expected value is at least"),
    "visualization/mixbandit": (("Publish", "plot_certificate", "plot_worths", "publish"), "its expected value is at"),
}


@pytest.mark.parametrize("package", KNOWN)
def test_a_package_loads_and_its_example_runs(package, monkeypatch, capsys, tmp_path):
    names, said = KNOWN[package]
    monkeypatch.chdir(tmp_path)
    module = optunahub.load_local_module(package, registry_root=str(PACKAGES))
    assert all(getattr(module, name) is getattr(ours, name) for name in names)
    assert set(module.__all__) == set(names)
    monkeypatch.setattr(optunahub, "load_module", lambda package: module)
    runpy.run_path(str(PACKAGES / package / "example.py"), run_name="__main__")
    assert said in capsys.readouterr().out


def test_there_is_no_other_package():
    assert {str(path.parent.relative_to(PACKAGES)) for path in PACKAGES.glob("*/*/__init__.py")} == set(KNOWN)


@pytest.mark.parametrize("package", KNOWN)
def test_a_package_has_the_files_of_the_registry(package):
    folder = PACKAGES / package
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "__init__.py", "README.md", "LICENSE", "example.py", "requirements.txt",
    }  # fmt: skip
    head = (folder / "README.md").read_text().split("---")[1]
    for field in ("author:", "title:", "description:", "tags:", "optuna_versions:", "license:"):
        assert f"\n{field} " in head

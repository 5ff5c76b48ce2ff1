"""Every example is in the gallery, and prints and draws what the gallery shows."""

import importlib.util
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.helpers.outputs import differences

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = DOCS / "gallery"
LARGEST = 60 * 1024  # bytes of a picture on the site


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "hooks" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_in_the_gallery_and_nothing_else(hook):
    names = [path.stem for path in EXAMPLES]
    assert [each.name for each in hook.examples()] == names
    for kind in ("png", "txt"):
        assert sorted(path.stem for path in GALLERY.glob(f"*.{kind}")) == names
    assert hook.CARDS in (GALLERY / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_tells_what_it_is_about(path, hook):
    (each,) = (each for each in hook.examples() if each.name == path.stem)
    assert 10 < len(each.title) < 70
    assert len(each.text) > 80
    assert each.printed
    assert f"out/examples/{each.name}.png" in each.page
    assert (GALLERY / f"{each.name}.png").stat().st_size < LARGEST


@pytest.mark.heavy
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_and_draws_what_the_gallery_shows(path, tmp_path):
    run = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert differences((GALLERY / f"{path.stem}.txt").read_text(encoding="utf-8"), run.stdout) == ""
    picture = (tmp_path / "out" / "examples" / f"{path.stem}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert {each.name for each in tmp_path.iterdir()} == {"out"}

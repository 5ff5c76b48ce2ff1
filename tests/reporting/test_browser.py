"""Reports in a real browser: nothing runs, nothing is fetched, nothing sticks out, on a phone or on paper."""

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from matplotlib.image import imread

import mixbandit as mb
from tests.helpers.pages import CHOICES, EVIL, hostile, noisy, svm

pytestmark = pytest.mark.heavy
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]
# The page in a frame of a given width, measured from outside, where scripts may run. What it finds is its title.
HARNESS = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0;width:{width}px;height:6000px" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {{
  const inside = frame.contentDocument, root = inside.documentElement;
  const shown = [...inside.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0);
  const texts = shown.flatMap(svg => [...svg.querySelectorAll("text")].map(text => [svg, text]));
  const right = node => node.getBoundingClientRect().right;
  const scrolled = node => node.closest(".scroll") && right(node.closest(".scroll")) <= {width} + 1;
  const out = document.createElement("pre");
  out.textContent = JSON.stringify({{
    title: inside.title,
    scroll: root.scrollWidth,
    wider: [...inside.querySelectorAll("body *")].filter(
      node => right(node) > {width} + 1 && !scrolled(node)).map(node => node.outerHTML.slice(0, 90)),
    pictures: shown.length,
    hidden: inside.querySelectorAll("svg").length - shown.length,
    smallest: Math.min(...texts.map(([svg, text]) =>
      parseFloat(inside.defaultView.getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width
      / svg.viewBox.baseVal.width)),
    beyond: texts.filter(([svg, text]) => {{
      const a = text.getBoundingClientRect(), b = svg.getBoundingClientRect();
      return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
    }}).map(([svg, text]) => text.textContent),
    cut: [...inside.querySelectorAll("dd, h1, h2, h3")].filter(node => node.scrollWidth > node.clientWidth + 1).length,
  }});
  document.body.append(out);
}});
</script>"""


@pytest.fixture
def browser(tmp_path):
    """A run of Chromium with these options on a page; what it wrote to stdout and stderr."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("Chromium is not installed: apt-get install chromium")

    def run(address, *options):
        return subprocess.run(
            [program, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *options, address],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip

    return run


@functools.cache
def pages():
    with pytest.warns(mb.AssumptionsRefutedWarning):
        refuted = mb.certify(noisy(), reward_range=(0, 1), samples=100_000, rows="fresh")
    space = mb.Space({f"parameter_{i}": mb.Float(0, 1) for i in range(15)})
    many = mb.certify(
        [(c, 0.5) for c in space.sample(10, rng=0)], reward_range=(0, 1), samples=100, rows="fresh", space=space
    )
    finalists = [({"a": CHOICES[0], "b": CHOICES[1]}, 0.9), ({"a": 1, "b": 2}, 0.8)]
    first = hostile().judgement.own.trials.configurations[0]
    return {
        "plain": mb.report(svm(), default={"C": 1.0, "kernel": "poly", "degree": 3}, title="Our model"),
        "hostile": mb.report(hostile(), default=first, title=EVIL),
        "refuted": mb.report(refuted, default="first"),
        "many": mb.report(many),
        "list": mb.report(mb.certify_finalists(finalists, samples=1000, reward_range=(0, 1))),
    }


PAGES = ("plain", "hostile", "refuted", "many", "list")


@pytest.mark.parametrize("width", [1280, 800, 360])
@pytest.mark.parametrize("name", PAGES)
def test_everything_fits_and_can_be_read(name, width, browser, tmp_path):
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(width=width, page=html.escape(pages()[name])))
    found = browser(
        harness.as_uri(), "--dump-dom", f"--window-size={max(width, 500)},900", "--virtual-time-budget=5000"
    )
    measured = json.loads(html.unescape(re.search(r"<pre>(.*?)</pre>", found.stdout, re.DOTALL)[1]))
    assert "pwned" not in measured["title"] or measured["title"] == EVIL  # a script would leave only the word
    assert measured["scroll"] <= width
    assert measured["wider"] == []
    assert measured["pictures"] >= 1
    assert measured["hidden"] == (0 if name == "list" else 1)  # one of the two sizes
    assert measured["beyond"] == []
    assert measured["smallest"] >= 8.5
    assert measured["cut"] == 0
    assert "Refused" not in found.stderr
    assert "Uncaught" not in found.stderr


class Counting(http.server.BaseHTTPRequestHandler):
    """Serves one page, and writes down whatever is asked for."""

    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.page.encode() if self.path == "/report" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_and_nothing_else_is_fetched(name, browser):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        server.asked, server.page = [], pages()[name]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            found = browser(f"http://127.0.0.1:{server.server_port}/report", "--dump-dom", "--virtual-time-budget=3000")
        finally:
            server.shutdown()
            thread.join()
    assert "/report" in server.asked
    assert set(server.asked) <= {"/report", "/favicon.ico"}
    assert "<title>pwned</title>" not in found.stdout
    assert "<script" not in found.stdout
    assert "<img" not in found.stdout
    assert "Refused" not in found.stderr


def test_the_checks_see_what_they_should(browser, tmp_path):
    page = pages()["plain"].replace(
        "<main>", '<main><script>document.title="pwned"</script><p style="width:2000px">wide</p>'
    )
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(width=360, page=html.escape(page)))
    found = browser(harness.as_uri(), "--dump-dom", "--virtual-time-budget=5000")
    measured = json.loads(html.unescape(re.search(r"<pre>(.*?)</pre>", found.stdout, re.DOTALL)[1]))
    assert measured["scroll"] > 360
    assert measured["wider"]
    assert "Content Security Policy" in found.stderr
    assert measured["title"] == "Our model"  # the policy of the page stops even a script that got in


@pytest.mark.parametrize("width", [1280, 500])
def test_pictures_are_drawn(width, browser, tmp_path):
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(pages()["plain"])
    browser(page.as_uri(), f"--screenshot={picture}", f"--window-size={width},2600")
    seen = (imread(picture)[:, :, :3] * 255).round().astype(int).reshape(-1, 3)
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):  # what is guaranteed, and what was seen
        assert (np.abs(seen - colour).max(axis=1) <= 3).sum() > 200
    assert (seen.min(axis=1) > 250).mean() > 0.5


def test_paper(browser, tmp_path):
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(pages()["plain"])
    browser(page.as_uri(), f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 3

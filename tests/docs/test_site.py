"""The site in a real browser, wide and narrow: nothing is fetched from elsewhere, nothing sticks out, and search finds.

With MIXBANDIT_SCREENSHOTS=FOLDER there is a picture of every page in the folder afterwards.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, prose

pytestmark = pytest.mark.heavy
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"]  # fmt: skip
WIDTHS = (1280, 360)
# What readers look for, and on which pages the first result may be; nothing if any result will do.
SEARCHES = {
    "GridSearchCV": {"how-to/sklearn/", "gallery/grid_search/", "tutorials/pipeline/"},
    "contextual": {
        "how-to/contexts/",
        "how-to/bandits/",
        "gallery/contextual/",
        "tutorials/articles/",
        "explanation/glossary/",
    },
    "A/B test": {"how-to/means/", "gallery/ab_test/", "tutorials/two-configurations/", "explanation/glossary/"},
    "AUC": {"how-to/statements/", "gallery/grid_search/", "explanation/glossary/"},
    "RandomizedSearchCV": set(),
    "early stopping": set(),
    "peeking": set(),
    "hyperparameter": set(),
}
# Markdown and LaTeX that was not understood shows as such.
RAW = re.compile(
    r"\\(?:frac|lVert|rVert|sqrt|sum|theta|alpha|mathcal|operatorname|left|right|top)\b|\$[^$\s][^$]*\$|_\{|\^\{|\\[\[\]()]"
    r"|\*\*|\]\(|<!--|-->|```|^:::|^!!!|^===|\{\s*[.#:][\w-]+[^}]*\}",
    re.MULTILINE,
)
SEEN = """() => {
  const article = document.querySelector("article");
  const copy = article.cloneNode(true);
  copy.querySelectorAll("pre, code, script, style, .headerlink").forEach(node => node.remove());
  const code = document.createElement("div"); code.append(copy);
  const beside = node => [node.previousSibling, node.nextSibling].map(
    other => other && other.nodeType == Node.TEXT_NODE ? other.textContent : "");
  return {
    text: code.textContent,
    formulas: article.querySelectorAll("math").length,
    unmade: article.querySelectorAll(".arithmatex").length,
    odd: [...article.querySelectorAll("math")].filter(
      math => math.getBoundingClientRect().width == 0 || /[\\\\_$]/.test(math.textContent)
    ).map(math => math.textContent),
    emphasised: [...article.querySelectorAll("em, strong")].filter(node => {
      const [before, after] = beside(node);
      return /[\\p{L}\\p{N})\\]‖*_^]$/u.test(before) || /^[\\p{L}\\p{N}(‖*_^]/u.test(after)
        || /[‖≤≥√Σ]|^\\s|\\s$/.test(node.textContent);
    }).map(node => `${beside(node)[0].slice(-9)}<em>${node.textContent}</em>${beside(node)[1].slice(0, 9)}`),
    unloaded: [...document.images].filter(image => !(image.complete && image.naturalWidth)).map(image => image.src),
    sideways: document.scrollingElement.scrollWidth - innerWidth,
    wide: [...article.querySelectorAll("*")].filter(
      node => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(
        "pre, code, .md-typeset__scrollwrap, .md-typeset__table, .formula-box, math")).map(
      node => node.outerHTML.slice(0, 90)),
  };
}"""
LOADED = """() => Promise.all([...document.images].map(image => {
  image.loading = "eager";
  return image.decode().catch(() => null);
}))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    build(ROOT, folder)
    return folder


def build(project, folder):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=project, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"the site cannot be built:\n{done.stdout}{done.stderr}")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address(site):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, address):
    """Opens pages at a width; `wrong` collects requests to elsewhere and errors."""
    contexts = []

    def open_at(width):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page, wrong = context.new_page(), []
        page.on("request", lambda asked: elsewhere(asked.url) and wrong.append(f"asks for {asked.url}"))
        page.on("response", lambda got: got.status >= 400 and wrong.append(f"{got.status} for {got.url}"))
        page.on("console", lambda said: said.type == "error" and wrong.append(f"console: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        return page, wrong

    def elsewhere(url):
        return not url.startswith((address, "data:", "blob:"))

    yield open_at
    for context in contexts:
        context.close()


def pages_of(site):
    """The addresses of all pages, and their sources, where these are files."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")
    sources = {_address(path): path for path in DOCS.rglob("*.md")}
    return {page: sources.get(page.removesuffix("index.html")) for page in found}


def _address(source):
    parts = source.relative_to(DOCS).with_suffix("").parts
    return "".join(f"{part}/" for part in (parts[:-1] if parts[-1] in {"index", "README"} else parts))


def has_formulas(source):
    return bool(source and re.search(r"(?<![\\$`\w])\$[^$\s`][^$`]*\$", re.sub(r"`[^`]*`", "", prose(source))))


def problems(page, source):
    """What is wrong with the page that is open."""
    page.evaluate(LOADED)
    seen = page.evaluate(SEEN)
    found = [f"raw text: {raw[0]!r} in {_around(seen['text'], raw)}" for raw in RAW.finditer(seen["text"])]
    found += [f"{kind}: {what}" for kind in ("odd", "emphasised", "unloaded", "wide") for what in seen[kind]]
    found += [f"{seen['sideways']} pixels too wide"] if seen["sideways"] > 1 else []
    found += ["formulas that were not made"] if seen["unmade"] else []
    found += ["no formula"] if has_formulas(source) and not seen["formulas"] else []
    return found


def _around(text, found):
    return re.sub(r"\s+", " ", text[max(found.start() - 40, 0) : found.end() + 40])


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page(width, site, address, visit):
    page, wrong = visit(width)
    found, pictures = [], os.environ.get("MIXBANDIT_SCREENSHOTS")
    pages = pages_of(site)
    for place, source in pages.items():
        page.goto(address + place.removesuffix("index.html"), wait_until="load")
        found += [f"{place}: {what}" for what in wrong + problems(page, source)]
        wrong.clear()
        if pictures:
            shown = place.removesuffix("index.html").strip("/").replace("/", "-") or "index"
            page.screenshot(path=Path(pictures) / f"{shown}-{width}.png", full_page=True, animations="disabled")
    assert not found, "\n".join(found)
    assert len(pages) >= 25
    assert sum(map(has_formulas, pages.values())) >= 1


def results(page, address, words):
    """The addresses that the search of the site finds, the best first."""
    page.goto(address, wait_until="load")
    asked = page.locator("[data-md-component=search-query]").first
    asked.fill(words)
    asked.press("End")  # all at once: results of half a word are none
    page.wait_for_function("() => /match/.test(document.querySelector('.md-search-result__meta').textContent)")
    links = page.locator("a.md-search-result__link").evaluate_all("links => links.map(link => link.href)")
    return [link.removeprefix(address).partition("?")[0].partition("#")[0] for link in links]


@pytest.mark.parametrize("words", SEARCHES)
def test_search_finds(words, address, visit):
    page, wrong = visit(1280)
    found = results(page, address, words)
    assert found
    assert not SEARCHES[words] or found[0] in SEARCHES[words], found[:5]
    assert wrong == []


def test_search_finds_nothing_where_there_is_nothing(address, visit):
    page, _ = visit(1280)
    assert results(page, address, "zzyzxqq") == []


BROKEN = {
    "A formula **lost": "raw text",
    "The bound on θ<em> and f</em> is B.": "emphasised",
    "It is $\\frac{1}{2}$ &#36;\\frac{1}{2}&#36;.": "raw text",
    "![Gone](https://example.org/gone.png)": "asks for https://example.org",
    "<div style='width: 3000px'>wide</div>": "pixels too wide",
    "<script>throw new Error('planted')</script>": "planted",
    "<script>console.error('planted')</script>": "planted",
    "<img src='../nowhere.png' alt='gone'>": "unloaded",
    "<span class='arithmatex'>x_1</span>": "formulas that were not made",
    "<p>Seen: [here](there.md</p>": "raw text",
}


@pytest.mark.parametrize("line", BROKEN)
def test_this_check_notices(line, site, address, visit, tmp_path):
    """A page of the site into which something broken was put."""
    import markdown

    made = markdown.markdown(line) if line.startswith(("![", "It is")) else line
    page = (site / "how-to" / "means" / "index.html").read_text(encoding="utf-8")
    broken = site / "broken-on-purpose.html"
    broken.write_text(page.replace("</article>", f"{made}</article>").replace('="../../', '="'), encoding="utf-8")
    try:
        opened, wrong = visit(1280)
        opened.goto(f"{address}broken-on-purpose.html", wait_until="load")
        found = wrong + problems(opened, DOCS / "how-to" / "means.md")
    finally:
        broken.unlink()
    assert any(BROKEN[line] in one for one in found), found

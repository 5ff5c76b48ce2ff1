"""Links and pictures of the pages lead somewhere."""

import functools
import html
import re
import unicodedata
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, name, prose

LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("optunahub/**/*.md"))]
LINKED += [path for path in sorted(ROOT.glob("*.md")) if path not in LINKED]
# Pages that are made while the site is built, and from what: docs/hooks.
MADE = {"gallery/{}.md": "examples/{}.py", "notebooks/{}.md": "examples/notebooks/{}.ipynb"}

_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NESTED = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")  # also of a picture inside a link
_HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$", re.MULTILINE)
_USED = re.compile(r"\[[^\]]+\]\[([^\]]+)\]")
_AUTOMATIC = re.compile(r"<(https?://[^>\s]+)>")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$", re.MULTILINE)


def text_of(path):
    """A page without code and comments, in which nothing is a link."""
    return _CODE.sub("code", _COMMENT.sub("", prose(path)))


@functools.cache
def links(path):
    """All addresses on a page."""
    text = text_of(path)
    kinds = (_NESTED, _HTML, _REFERENCE, _AUTOMATIC)
    return [html.unescape(found[1]) for kind in kinds for found in kind.finditer(text)]


def words(heading):
    """A heading as it is read: without marks, links and attributes."""
    heading = re.sub(r"\s*\{[^}]*\}\s*$", "", heading)
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r"`([^`]*)`", r"\1", heading)
    return re.sub(r"(\*\*|__|\*)(.+?)\1", r"\2", heading)


def slug_of_site(heading):
    """As Python-Markdown's toc makes it."""
    plain = unicodedata.normalize("NFKD", words(heading)).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def slug_of_github(heading):
    return re.sub(r"[^\w\- ]", "", words(heading).strip().lower()).replace(" ", "-")


@functools.cache
def anchors(path, site):
    """What may stand behind # in a link to a page."""
    found, again = set(), "_" if site else "-"
    text = prose(path)
    for _, heading in _HEADING.findall(text):
        own = re.search(r"\{[^}]*#([\w-]+)[^}]*\}\s*$", heading)
        plain = own[1] if own else (slug_of_site if site else slug_of_github)(heading)
        number = next(n for n in range(100) if (f"{plain}{again}{n}" if n else plain) not in found)
        found.add(f"{plain}{again}{number}" if number else plain)
    found |= set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text))
    return found | set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))


def is_made(target):
    return any(
        target == DOCS / page.format(target.stem) and (ROOT / source.format(target.stem)).exists()
        for page, source in MADE.items()
    )


def problem(page, link):
    """Why a link leads nowhere, or nothing."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        right = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc)
        return "" if right or re.fullmatch(r"mailto:[^@\s]+@[\w.-]+", link) else "is no address"
    site = page.is_relative_to(DOCS)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if site and is_made(target):
        return ""
    wrong = {
        "is absolute": link.startswith("/"),
        "does not exist": not target.exists(),
        "is outside of the site": site and not target.is_relative_to(DOCS),
        "is a folder": site and target.is_dir(),
        "has no such heading": parts.fragment and not has_anchor(target, unquote(parts.fragment), site),
    }
    return next((reason for reason, holds in wrong.items() if holds), "")


def has_anchor(target, anchor, site):
    """Whether a page has a heading, or a name of the reference or of one of its members."""
    if target.suffix != ".md" or not target.exists():
        return True
    return any(anchor == one or ("." in one and anchor.startswith(f"{one}.")) for one in anchors(target, site))


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_resolve(page):
    assert [f"{link} {found}" for link in links(page) if (found := problem(page, link))] == []


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_by_name_have_an_address(page):
    text = text_of(page)
    defined = {found.lower() for found in re.findall(r"^ {0,3}\[([^\]]+)\]:", text, re.MULTILINE)}
    assert {found.lower() for found in _USED.findall(text)} <= defined


@pytest.mark.parametrize("page", [path for path in LINKED if path.is_relative_to(DOCS)], ids=name)
def test_pictures_say_what_they_show(page):
    """For those who do not see them."""
    assert re.findall(r"!\[\s*\]\([^)]*\)", text_of(page)) == []


def test_every_page_is_in_the_navigation():
    """MkDocs only mentions a page that cannot be reached."""
    listed = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]
    told = re.findall(r"(?:^|[ :])([\w./-]+\.md)\b", listed, re.MULTILINE)
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - set(told) == set()


def test_there_are_links():
    found = [link for page in LINKED for link in links(page)]
    assert len(found) >= 150
    assert any(link.startswith("https://") for link in found)


def test_this_check_notices(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# A/B tests, and `more`\n\n## Twice\n\n## Twice\n\n## Own {#mine}\n")
    assert anchors(other, site=True) == {"ab-tests-and-more", "twice", "twice_1", "mine"}
    assert anchors(other, site=False) == {"ab-tests-and-more", "twice", "twice-1", "mine"}
    page.write_text(
        '[a](other.md#twice) [b](other.md#thrice) ![c](picture.png) <a href="gone.md">d</a> `[e](code.md)`\n'
        "[![f](shown.png)](gone.html) [g](https://nowhere) [h](http://a.org) [i](https://a.org)\n\n[k]: lost.md\n"
    )
    wrong = {link for link in links(page) if problem(page, link)}
    assert wrong == {"other.md#thrice", "picture.png", "gone.md", "shown.png", "gone.html", "https://nowhere",
                     "http://a.org", "lost.md"}  # fmt: skip

"""Formulas become MathML while the site is built, so that pages need no script and no connection for them."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert

# The markup that pymdownx.arithmatex makes from $…$ and $$…$$.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"
# Signs that latex2mathml takes for letters, or for their ASCII relatives.
SIGNS = {":": ":", "±": "±", "~": "∼", "*": "∗", "⊥": "⊥", "⟺": "⟺", "′": "′"}
LETTERS = {"∞", "⊤", "…"}  # and letters that it takes for signs
BARS = {"¯": "‾", "―": "‾"}
TIGHT = set("‖|{}[]⌊⌋⌈⌉/")
THIN = "0.167em"
LIMITS = {"min", "max", "inf", "sup"}


def on_page_content(content: str, **_: Any) -> str:
    """The page with every formula as MathML, the source kept as its alternative text."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    made = mathml(html.unescape(found["tex"]).strip(), block=found["open"] == "[")
    return made if found["open"] == "(" else f'<div class="formula-box">{made}</div>'


def mathml(tex: str, block: bool) -> str:
    """One formula. A command that latex2mathml does not know raises: the build fails, not the page."""
    root = ElementTree.fromstring(convert(tex, display="block" if block else "inline"))  # noqa: S314 (our own pages)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for element in list(root.iter()):
        _correct(element, block)
    for element in root.iter():
        for before, after in zip(element, list(element)[1:], strict=False):
            opens = after.text == "(" or (len(after) and after[0].text == "(")
            if before.get("lspace") == THIN and (opens or after.get("lspace") == THIN):
                before.set("rspace", "0em")
    text = "".join(root.itertext())
    if "\\" in text or "&" in text:
        raise ValueError(f"latex2mathml left a command in {tex!r}: {text}")
    root.attrib = {"xmlns": NAMESPACE, "display": root.get("display", ""), "alttext": tex}
    return ElementTree.tostring(root, encoding="unicode").replace("\n", " ")


def _correct(element: ElementTree.Element, block: bool) -> None:
    text = (element.text or "").strip()
    children = list(element)
    if element.tag == "mo" and text in LETTERS:
        element.tag = "mi"
    elif element.tag == "mo" and text in BARS:
        element.text, element.attrib = BARS[text], {"stretchy": "true"}
    elif element.tag in ("mi", "mo") and text in SIGNS:
        element.tag, element.text = "mo", SIGNS[text]
    elif element.tag in ("mi", "mo") and text in TIGHT:
        element.tag = "mo"
        if "stretchy" not in element.attrib:
            element.attrib = {"stretchy": "false", "lspace": "0em", "rspace": "0em"}
    elif element.tag in ("mi", "mo") and len(text) > 1 and text.isalpha():  # ln, det, min: a function's name
        element.tag, element.attrib = "mo", {"lspace": THIN, "rspace": THIN, "movablelimits": "false"}
    elif element.tag == "mi" and "Α" <= text <= "Ω":  # Greek capitals are upright, as TeX sets them
        element.set("mathvariant", "normal")
    elif block and element.tag in ("msub", "msubsup") and children[0].text in LIMITS:
        element.tag = {"msub": "munder", "msubsup": "munderover"}[element.tag]
    elif element.tag == "mrow" and len(children) > 1 and all(_upright(child) for child in children):  # \mathrm{UCB}
        word = "".join(child.text or "" for child in children)
        element.tag, element.text, element.attrib = "mtext", word, {}
        for child in children:
            element.remove(child)


def _upright(element: ElementTree.Element) -> bool:
    return element.tag == "mi" and element.get("mathvariant") == "normal" and (element.text or "").isascii()

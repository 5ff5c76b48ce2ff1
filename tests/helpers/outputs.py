"""Printed text beside the text that a page or an example promises: words exactly, numbers nearly."""

import itertools
import math
import re

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def differences(told, printed, relative=1e-6):
    """The lines that differ, as text; nothing if the words are the same and the numbers close.

    With `relative=None` numbers may be any, as where a page says that a run is random.
    """
    lines = itertools.zip_longest(_lines(told), _lines(printed))
    return "".join(
        f"- {'' if one is None else one}\n+ {'' if other is None else other}\n"
        for one, other in lines
        if one is None or other is None or not _same(one, other, relative)
    )


def _lines(text):
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _same(one, other, relative):
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return False
    pairs = zip(map(float, _NUMBER.findall(one)), map(float, _NUMBER.findall(other)), strict=True)
    return relative is None or all(math.isclose(a, b, rel_tol=relative) for a, b in pairs)

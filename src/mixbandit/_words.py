"""Numbers and nouns inside sentences."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from fractions import Fraction


def confidence(delta: float) -> str:
    """1 − δ as text, never more than it is: "0.95", or "1 − 1e-200" where six digits would round it up."""
    text, exact = f"{1.0 - delta:.6g}", repr(float(delta))
    if Fraction(text) + Fraction(exact) <= 1:
        return text
    return f"1 − {float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(exact)):g}"


def at_most(probability: float) -> str:
    """A probability in four digits, rounded up unless that is by less than the last digit of a float."""
    slightly_less = repr(float(probability) * (1.0 - 1e-12))
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(slightly_less)):g}"


def with_article(noun: str) -> str:
    """The noun after "a" or "an"."""
    return f"{'an' if noun[0] in 'aeiouAF' else 'a'} {noun}"

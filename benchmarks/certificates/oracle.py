"""The floor of an oracle who knows the winner and gives it all confirmations (MATH: one mean, no model).

n results that are 0 or 1, with sum S and mean p; 𝔅 is the Beta function. The likelihood of the results averaged over
p ~ Beta(½, ½) is 𝔅(½+S, ½+n−S) / 𝔅(½, ½). Divided by the likelihood at the true p it exceeds 1/δ with probability at
most δ, at any time; the floor is the least p at which it does not.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy


def floor(successes: int, n: int, delta: float) -> float:
    """A lower bound on the mean of results that are 0 or 1, with probability ≥ 1−δ for all n at once."""
    if not successes:
        return 0.0
    mixed = betaln(0.5 + successes, 0.5 + n - successes) - betaln(0.5, 0.5)

    def excess(p: float) -> float:
        return float(mixed - xlogy(successes, p) - xlog1py(n - successes, -p)) - math.log(1.0 / delta)

    # Convex in p, least at the mean, infinite at 0.
    return float(brentq(excess, 1e-300, successes / n, xtol=1e-12))

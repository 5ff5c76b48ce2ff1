"""Lower bounds on what a score would be on all rows, from one look at a fixed number of fresh ones.

| symbol | meaning |
|---|---|
| L | ln(1/δ): each bound exceeds the truth with probability at most δ = e^{−L} |
| n, h | rows, and how many of them are hits |
| x_i, μ | independent results in [0, 1], and their expectation |
| C, n_j, p_j | classes, the rows of each, and the probability of a hit in it |

An upper bound is one minus the lower bound of the opposite: of misses, or of 1 − x. None depends on the order of rows.

- *A share of hits*: Clopper and Pearson's exact bound. It also holds for precision, recall and specificity: given how
  many rows are predicted (or are) positive, the hits among them are binomial. And for F1 = 2J/(1 + J), where J is the
  probability of a true positive given that a row is not a true negative: F1 ≥ c if and only if the mean per row of
  2TP − c(2TP + FP + FN) is ≥ 0, to which true negatives add nothing.
- *A mean of results*: E(m) = Σ_j w_j Π_i (1 + λ_j(x_i − m)) with constant bets 0 ≤ λ_j ≤ 1/m has expectation ≤ 1 if
  μ ≤ m, so that P(E(μ) ≥ 1/δ) ≤ δ (Markov). E falls in m, so the m that it rejects lie below one root. The bets suit
  standard deviations from ½ down to 2^−7.
- *A mean over classes of the shares of hits*, given the number of rows of each class. Either each class has a bound at
  δ/C, or Chernoff's bound for the mean T of shares, P(T ≥ t) ≤ inf_λ sup_p exp(−λt + Σ_j n_j ln(1 + p_j a_j)) with
  a_j = e^{λ/(C n_j)} − 1 and p over all vectors with mean c. The supremum is at most
  min_μ Σ_j max_p [n_j ln(1 + p a_j) − μp] + μCc (weak duality), so that any λ and μ give a valid bound. Which of the
  two is taken depends on the n_j alone.
- *The area under the ROC curve*, the probability that a positive row ranks above a negative one (ties count one half).
  It is the average, over all pairings of the smaller class with rows of the larger, of means of m = min(n+, n−)
  independent results in [0, 1], so by convexity P(U ≥ u) ≤ e^{−m·kl(u, p)} (Hoeffding 1963, section 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mixbandit._checks import Array
from mixbandit.spending import level_of_each
from mixbandit.tuning.chernoff import chernoff_ends

_HALVINGS = 50
# Bets are made for a level of 5 %, whatever the level, so that bounds at two levels are nested.
_LEVEL = math.log(20.0)
_SCALES = 7
_TILTS = 64


def lowest_share(hits: int, rows: int, level: float) -> float:
    """Clopper and Pearson's lower bound on the probability of a hit; 0 if there are no hits, or no rows."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, rows - hits + 1, math.exp(-level))) if hits else 0.0


def lowest_mean(results: Array, level: float) -> float:
    """A lower bound on the expectation of independent results in [0, 1], by bets."""
    bets: Array = math.sqrt(2.0 * _LEVEL / len(results)) * 2.0 ** np.arange(1.0, _SCALES + 1.0)
    return _largest_rejected(lambda m: _log_wealth(results, m, bets) >= level, float(results.mean()))


def _log_wealth(results: Array, m: float, bets: Array) -> float:
    """Ln E(m)."""
    away = results - m
    with np.errstate(divide="ignore"):  # the largest bet loses everything on a 0
        logs = [float(np.log1p(np.maximum(min(bet, 1.0 / m) * away, -1.0)).sum()) for bet in bets]
    return float(np.logaddexp.reduce(logs)) - math.log(len(bets))


def lowest_mean_of_shares(hits: Array, rows: Array, level: float) -> float:
    """A lower bound on the mean over classes of the probability of a hit; classes without rows count as 0."""
    if (rows == 0).any() or _is_split(rows):
        own = level_of_each(level, math.log(len(rows)))
        return float(np.mean([lowest_share(int(h), int(n), own) for h, n in zip(hits, rows, strict=True)]))
    found = float((hits / rows).mean())
    return _largest_rejected(lambda c: _log_pvalue(found, c, rows) <= -level, found)


def _is_split(rows: Array) -> bool:
    """Whether δ/C for each class promises a narrower bound than Chernoff's for all, by the normal approximation."""
    from scipy.special import ndtri

    split = -float(ndtri(math.exp(-_LEVEL) / len(rows))) * float((1.0 / np.sqrt(rows)).sum())
    return split < math.sqrt(2.0 * _LEVEL * float((1.0 / rows).sum()))


def _log_pvalue(found: float, c: float, rows: Array) -> float:
    """The logarithm of Chernoff's bound on P(T ≥ found) if the mean of the p_j is c."""
    classes = len(rows)
    least = math.sqrt(_LEVEL / float((1.0 / rows).sum())) * classes
    tilts = np.geomspace(least, 40.0 * classes * float(rows.max()), _TILTS)[:, None]
    a = np.expm1(np.minimum(tilts / (classes * rows), 500.0))
    tilts = np.where((tilts / (classes * rows)).max(axis=1, keepdims=True) > 500.0, np.nan, tilts)
    # μ by halving, for all λ at once: the larger it is, the smaller the p_j that maximise.
    low, high = np.zeros((_TILTS, 1)), (rows * a).max(axis=1, keepdims=True)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        many = _maximiser(a, rows, middle).mean(axis=1, keepdims=True) > c
        low, high = np.where(many, middle, low), np.where(many, high, middle)
    p = _maximiser(a, rows, high)
    dual = (rows * np.log1p(p * a) - high * p).sum(axis=1) + high[:, 0] * classes * c
    return float(np.nanmin(dual - tilts[:, 0] * found))


def _maximiser(a: Array, rows: Array, price: Array) -> Array:
    """The p in [0, 1] that maximise n ln(1 + pa) − μp."""
    return np.clip(rows / np.maximum(price, 1e-300) - 1.0 / a, 0.0, 1.0)


def lowest_ranking(area: float, pairs: int, level: float) -> float:
    """A lower bound on the area under the ROC curve, given the size of the smaller class."""
    return float(chernoff_ends(np.array(area), np.array(float(pairs)), level)[0])


def _largest_rejected(is_rejected: Callable[[float], bool], found: float) -> float:
    """The largest value in [0, found] that is rejected, to the safe side; all below it are rejected as well."""
    low, high = 0.0, found
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle <= 0.0:
            break
        low, high = (middle, high) if is_rejected(middle) else (low, middle)
    return low

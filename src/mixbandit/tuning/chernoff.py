"""Intervals for the expectation of a mean of independent results, at one fixed time."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._checks import Array

# Halving an interval in [0, 1] this often leaves less than rounding.
_HALVINGS = 60


def chernoff_ends(r: Array, samples: Array, log_odds: float) -> tuple[Array, Array]:
    """All p with samples·kl(r, p) ≤ log_odds: the smallest and the largest.

    kl(r, p) = r ln(r/p) + (1−r) ln((1−r)/(1−p)), for means r of `samples` independent results in [0, 1].
    """
    r = np.clip(np.asarray(r, dtype=np.float64), 0.0, 1.0)
    most = np.broadcast_to(log_odds / samples, r.shape)
    return _smallest(r, most), 1.0 - _smallest(1.0 - r, most)


def binomial_ends(r: Array, samples: Array, log_odds: float) -> tuple[Array, Array]:
    """Clopper and Pearson's ends for shares r of `samples` yes-or-no results, each wrong at most at e^−log_odds."""
    from scipy.special import betaincinv

    hits, tail = np.rint(r * samples), math.exp(-log_odds)
    # No hits at all, or nothing but hits: the end of [0, 1] is the bound, and Beta(0, ·) does not exist.
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), samples - hits + 1, tail), 0.0)
    upper = np.where(hits < samples, betaincinv(hits + 1, np.maximum(samples - hits, 1), 1.0 - tail), 1.0)
    return lower, upper


def _smallest(r: Array, most: Array) -> Array:
    """The smallest p in [0, r] with kl(r, p) ≤ most, by halving."""
    outside, inside = np.zeros_like(r), r.copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (outside + inside)
        far = _divergence(r, middle) > most
        outside, inside = np.where(far, middle, outside), np.where(far, inside, middle)
    return outside


def _divergence(r: Array, p: Array) -> Array:
    """kl(r, p) for p ≤ r, by log1p of the difference: r ln(r/p) alone loses all digits of a small one."""
    d = r - p
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(r > 0.0, -r * np.log1p(-d / r), 0.0)  # p = 0 < r: infinite
        second = np.where(r < 1.0, -(1.0 - r) * np.log1p(d / (1.0 - r)), 0.0)
    return np.asarray(first + second)

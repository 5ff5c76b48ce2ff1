"""The e-processes with 30 digits, and intervals by a grid: straight from the definitions."""

from collections import Counter

import mpmath as mp
import numpy as np


def log_portfolio(p, singles, means=()):
    """ln E(p) by mpmath's quadrature: single values in [0, 1], and (value, samples) of means."""
    with mp.workdps(20):
        p = mp.mpf(p)
        pairs = [(mp.mpf(x), 1 - mp.mpf(x), count) for x, count in Counter(map(float, singles)).items()]
        powers = [(m * mp.mpf(r), m * (1 - mp.mpf(r))) for r, m in means]

        def term(angle):
            a, b = mp.sin(angle) ** 2 / p, mp.cos(angle) ** 2 / (1 - p)
            wealth = mp.fprod((x * a + y * b) ** count for x, y, count in pairs)
            return wealth * mp.fprod(a**x * b**y for x, y in powers) * 2 / mp.pi

        return float(mp.log(mp.quad(term, mp.linspace(0, mp.pi / 2, 5))))


def log_student(mean, values, g=1):
    """ln E(μ) of the t mixture, as printed in its paper: both marginal likelihoods by quadrature over the level."""
    with mp.workdps(30):
        t, squares = len(values), mp.fsum((mp.mpf(x) - mp.mpf(mean)) ** 2 for x in values)
        total = mp.fsum(mp.mpf(x) - mp.mpf(mean) for x in values)

        def likelihood(log_level, explained):
            level = mp.exp(log_level)
            return mp.exp(-t * log_level - (squares - explained) / (2 * level**2))

        centre = mp.log(mp.sqrt(squares / t))
        spans = mp.linspace(centre - 12, centre + 12, 49)
        null = mp.quad(lambda u: likelihood(u, 0), spans)
        mixed = mp.quad(lambda u: likelihood(u, g * total**2 / (1 + t * g)), spans) / mp.sqrt(1 + t * g)
        return float(mp.log(mixed / null))


def set_by_grid(log_evalue, level, low, high, points=4001):
    """The first and last point of a grid that is not refuted, and the spacing: no shape is assumed."""
    grid = np.linspace(low, high, points)
    inside = grid[[log_evalue(p) < level for p in grid]]
    return inside[0], inside[-1], grid[1] - grid[0]

"""The solver of `eigen`, compiled by numba, a row at a time; notation and formulas are explained in `krylov`."""

from __future__ import annotations

import math

from mixbandit._jit import SUMS, jit
from mixbandit.sets._compiled_newton import newton


def _sums(mu, p, n, q, h):
    """What H and H' need for row n of p."""
    w = at = shrunk = uu = tu = tt = uuu = ttu = ttt = 0.0
    for i in range(len(mu)):
        v = 1.0 / (1.0 + h * mu[i])
        x, y, mv = p[n, i] * v, q[i] * v, mu[i] * v
        w += p[n, i] * x
        at += q[i] * x
        shrunk += q[i] * q[i] * mv
        uu += x * x * mu[i]
        tu += x * y * mu[i]
        tt += y * y * mu[i]
        uuu += x * x * mu[i] * mv
        ttu += x * y * mu[i] * mv
        ttt += y * y * mu[i] * mv
    return w, at, shrunk, uu, tu, tt, uuu, ttu, ttt


def _multiplier(mu, p, n, q, a, rho_0, bound2, start, floor, most, tolerance, steps):
    """The multiplier of the norm bound, within its limits, as `projected._Search` does."""
    lower, upper, alpha, looked = floor, most * a, start, False
    for _ in range(steps):
        sums = _sums(mu, p, n, q, alpha - a)
        new, lower, upper, looked = newton(sums, 1.0, alpha, a, rho_0, bound2, lower, upper, floor, looked)
        if math.isnan(new):
            break
        moved, alpha = abs(new - alpha), new
        if moved <= tolerance * alpha:
            break
    return alpha


def _solve_rows(
    p, mu, q, a, rho_0, bound, start, floor, least, most, tolerance, steps, cancelled, value, alpha, points
):
    """Fill value and alpha of the rows of p, and points unless it is empty; NaN where another way must be found."""
    bound2 = bound * bound
    for n in range(len(p)):
        value[n] = math.nan
        found = _multiplier(mu, p, n, q, a, rho_0, bound2, start, floor, most, tolerance, steps)
        alpha[n] = found
        # The smallest multiplier stands for 0 only if it is 0.
        if not least <= found <= 0.5 * most * a or (found == floor and floor > 0.0):
            continue
        h = found - a
        w, at, shrunk, _, _, _, _, _, _ = _sums(mu, p, n, q, h)
        rho = rho_0 + found * bound2 - h * shrunk
        if not rho > cancelled * (abs(rho_0) + found * bound2 + abs(h) * shrunk):
            continue
        value[n] = min(at + math.sqrt(rho * w), bound)
        if found > 0.0:
            start = found  # the multipliers of one set are alike: the next row starts at this one's
        if len(points):
            kappa = math.sqrt(rho / w)
            for i in range(len(mu)):
                points[n, i] = (q[i] + kappa * p[n, i]) / (1.0 + h * mu[i])


_sums = jit(_sums, fastmath=SUMS)
_multiplier = jit(_multiplier, forceinline=True)
solve_rows = jit(_solve_rows)

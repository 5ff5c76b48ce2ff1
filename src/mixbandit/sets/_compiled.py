"""The solver of `dual`, compiled by numba, a row at a time; notation and formulas are explained there.

Tolerances, which `dual` may change, are arguments: compiled code is cached until this file changes.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, jit
from mixbandit.sets.base import BALL, ELLIPSOID, INTERIOR

_TINY = float(np.finfo(np.float64).tiny)


def _sums(s, centre, z, p, null, alpha):
    """Every sum over the spectrum that H and H' need."""
    shrunk = w = uu = uuu = uku = uuku = tu = ttu = tt = ttt = 0.0
    for i in range(len(s)):
        v = 1.0 / (s[i] + alpha)
        c, u = centre[i] * v, p[i] * v
        shrunk += z[i] * z[i] * v
        w += p[i] * u
        uu += u * u
        uuu += u * u * v
        uku += s[i] * u * u
        uuku += s[i] * u * u * v
        tu += c * u
        ttu += c * u * v
        tt += c * c
        ttt += c * c * v
    n = null / alpha
    return alpha * shrunk, w + null * n, uu + n * n, uuu + n * n / alpha, uku, uuku, tu, ttu, tt, ttt


def _slope(s, centre, z, excess, p, null, alpha, round_up):
    """H and H', as `_InteriorRoot._slope`."""
    shrunk, w, uu, uuu, uku, uuku, tu, ttu, tt, ttt = _sums(s, centre, z, p, null, alpha)
    e = excess - shrunk + round_up * (excess + shrunk)
    rho = max(e + (1.0 + round_up) * alpha, _TINY)
    kappa = math.sqrt(rho / w)
    kappa_slope = 0.5 * kappa * ((1.0 - tt) / rho + uu / w)
    inner = (uku - e * uu) / w
    h = inner - tt - 2.0 * kappa * tu
    h_slope = (tt * uu - 2.0 * uuku + 2.0 * e * uuu + inner * uu) / w
    return h, h_slope + 2.0 * ttt - 2.0 * kappa_slope * tu + 4.0 * kappa * ttu


def _root(s, centre, z, excess, p, null, alpha, lower, upper, tolerance, round_up, max_steps):
    """The multiplier, as `_InteriorRoot.solve`; in α and factors of it, which spares logarithms."""
    alpha = min(max(alpha, lower), upper)
    for _ in range(max_steps):
        h, h_slope = _slope(s, centre, z, excess, p, null, alpha, round_up)
        if h < 0.0:
            lower = alpha
        else:
            upper = alpha
        slope = 2.0 * h + alpha * h_slope if alpha > 1.0 else alpha * h_slope / (1.0 - h)
        new = math.sqrt(lower) * math.sqrt(upper)
        if slope != 0.0 and math.isfinite(slope):
            proposal = alpha * (1.0 - h / slope)
            if lower <= proposal <= upper:
                new = proposal
        moved, alpha = abs(new - alpha), new
        if moved <= tolerance * alpha:
            break
    return alpha


def _ball_gap(root_s, z, p):
    gap = length = 0.0
    for i in range(len(p)):
        gap += (root_s[i] * p[i] - z[i]) ** 2
        length += p[i] * p[i]
    return gap, length


def _end_sums(inverse_s, least_squares, p):
    """Width and value of a direction in the limit α → 0."""
    w = at = 0.0
    for i in range(len(p)):
        w += p[i] * p[i] * inverse_s[i]
        at += p[i] * least_squares[i]
    return w, at


def _end_norm2(inverse_s, least_squares, p, kappa):
    """Squared norm of the maximiser in the limit α → 0."""
    norm2 = 0.0
    for i in range(len(p)):
        norm2 += (least_squares[i] + kappa * p[i] * inverse_s[i]) ** 2
    return norm2


def _bound_sums(s, centre, z, p, alpha):
    """The sums in g(α)."""
    shrunk = w = at = 0.0
    for i in range(len(s)):
        v = 1.0 / (s[i] + alpha)
        shrunk += z[i] * z[i] * v
        w += p[i] * p[i] * v
        at += p[i] * centre[i] * v
    return alpha * shrunk, w, at


def _ridge_of_unit_norm(s, z, eps, max_steps):
    """The α > 0 with ‖θ̂_α‖ = 1, as in `residual_ball`."""
    largest = 0.0
    for i in range(len(s)):
        largest = max(largest, abs(z[i]))
    least_s, norm2 = math.inf, 0.0
    for i in range(len(s)):
        share = z[i] / largest
        if s[i] * share * share > 0.0:
            least_s = min(least_s, s[i])
            norm2 += share * share / s[i]
    alpha = least_s * max(largest * math.sqrt(norm2) - 1.0, 0.0)
    for _ in range(max_steps):
        least, squares, cubes = least_s + alpha, 0.0, 0.0
        for i in range(len(s)):
            share = z[i] / largest
            weight, v = s[i] * share * share, least / (s[i] + alpha)
            squares += weight * v * v
            cubes += weight * v * v * v
        step = least * (squares / cubes) * (largest * math.sqrt(squares) / least - 1.0)
        alpha += max(step, 0.0)
        if step <= eps * alpha:
            break
    return alpha


def _solve_row(
    s, root_s, z, centre, inverse_s, least_squares, excess, row, null, start, lower, upper, tolerance, round_up,
    max_steps, inside, n,
):  # fmt: skip
    """Value, multiplier, case and the multiple of the null part; the maximiser goes to row n of `inside`, if any."""
    wanted = len(inside) > 0
    gap, length = _ball_gap(root_s, z, row)
    if gap <= excess or (length == 0.0 and null == 0.0):
        if wanted:
            for i in range(len(row)):
                inside[n, i] = row[i]
        return 1.0, math.inf, BALL, 1.0
    if null == 0.0:
        w, at = _end_sums(inverse_s, least_squares, row)
        kappa = math.sqrt(excess / w)
        if _end_norm2(inverse_s, least_squares, row, kappa) <= 1.0:
            if wanted:
                for i in range(len(row)):
                    inside[n, i] = least_squares[i] + kappa * (row[i] * inverse_s[i])
            return at + math.sqrt(excess * w), 0.0, ELLIPSOID, 0.0
    a = _root(s, centre, z, excess, row, null, start, lower, upper, tolerance, round_up, max_steps)
    shrunk, w, at = _bound_sums(s, centre, z, row, a)
    w += null * null / a
    rho = max(excess - shrunk + a + round_up * (excess + shrunk + a), _TINY)
    kappa = math.sqrt(rho / w)
    if wanted:
        for i in range(len(row)):
            inside[n, i] = (centre[i] + kappa * row[i]) / (s[i] + a)
    return at + math.sqrt(rho * w), a, INTERIOR, kappa / a


def _solve_rows(
    s, root_s, z, excess, p, null, start, lower, upper, tolerance, round_up, max_steps,
    value, alpha, case, inside, along_null,
):  # fmt: skip
    """Fill value, alpha, case, along_null and, unless it is empty, inside: as `_solve_vectorised`."""
    centre, inverse_s, least_squares = root_s * z, 1.0 / s, z / root_s
    for n in range(len(p)):
        value[n], alpha[n], case[n], along_null[n] = solve_row(
            s, root_s, z, centre, inverse_s, least_squares, excess, p[n], null[n], start, lower, upper, tolerance,
            round_up, max_steps, inside, n,
        )  # fmt: skip
        if case[n] == INTERIOR:
            start = alpha[n]  # the multipliers of one set are alike: the next row starts at this one's


_sums = jit(_sums, fastmath=SUMS)
_ball_gap = jit(_ball_gap, fastmath=SUMS)
_end_sums = jit(_end_sums, fastmath=SUMS)
_end_norm2 = jit(_end_norm2, fastmath=SUMS)
_bound_sums = jit(_bound_sums, fastmath=SUMS)
_slope = jit(_slope)
_root = jit(_root)
ridge_of_unit_norm = jit(_ridge_of_unit_norm)
solve_row = jit(_solve_row, forceinline=True)
solve_rows = jit(_solve_rows)

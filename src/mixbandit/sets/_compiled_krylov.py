"""The solver of `krylov`, compiled by numba; notation and formulas are explained there."""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, jit


def _dot(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


def _subtract(share, x, y):
    """Y ← y − share·x."""
    for i in range(len(x)):
        y[i] -= share * x[i]


def _multiply(root, basis, first, last, between, product):
    """`product` ← M times one or two rows of the basis; two at once, and several columns, read W less often."""
    d = root.shape[0]
    x, y = basis[first], basis[last - 1]  # the same if there is only one
    b, c, k = between[0], between[1], 0
    b[:] = 0.0
    c[:] = 0.0
    while k + 4 <= d:
        r0, r1, r2, r3 = root[:, k], root[:, k + 1], root[:, k + 2], root[:, k + 3]
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        for i in range(d):
            b[i] += x0 * r0[i] + x1 * r1[i] + x2 * r2[i] + x3 * r3[i]
            c[i] += y0 * r0[i] + y1 * r1[i] + y2 * r2[i] + y3 * r3[i]
        k += 4
    while k < d:
        r0, x0, y0 = root[:, k], x[k], y[k]
        for i in range(d):
            b[i] += x0 * r0[i]
            c[i] += y0 * r0[i]
        k += 1
    for k in range(d):
        r0, one, two = root[:, k], 0.0, 0.0
        for i in range(d):
            one += r0[i] * b[i]
            two += r0[i] * c[i]
        product[0, k], product[1, k] = one, two


def _factorise(T, m, h, band):
    """LDLᵀ of I + hT, which has two diagonals on either side: rows of D and the two below it."""
    for i in range(m):
        pivot = 1.0 + h * T[i, i]
        one = h * T[i, i - 1] if i > 0 else 0.0
        two = h * T[i, i - 2] if i > 1 else 0.0
        if i > 1:
            two /= band[0, i - 2]
            one -= two * band[0, i - 2] * band[1, i - 1]
            pivot -= two * two * band[0, i - 2]
        if i > 0:
            one /= band[0, i - 1]
            pivot -= one * one * band[0, i - 1]
        band[0, i], band[1, i], band[2, i] = pivot, one, two


def _solve(band, m, right, x):
    """X ← (I + hT)⁻¹ right."""
    for i in range(m):
        x[i] = right[i]
        if i > 0:
            x[i] -= band[1, i] * x[i - 1]
        if i > 1:
            x[i] -= band[2, i] * x[i - 2]
    for i in range(m):
        x[i] /= band[0, i]
    for i in range(m - 1, -1, -1):
        if i + 1 < m:
            x[i] -= band[1, i + 1] * x[i + 1]
        if i + 2 < m:
            x[i] -= band[2, i + 2] * x[i + 2]


def _times(T, m, x, y):
    """Y ← Tx."""
    for i in range(m):
        total = T[i, i] * x[i]
        for j in range(max(i - 2, 0), i):
            total += T[i, j] * x[j]
        for j in range(i + 1, min(i + 3, m)):
            total += T[i, j] * x[j]
        y[i] = total


def _sums(T, m, ends, h, band, work):
    """What H and H' need; `ends` are p and q in the basis. `work` then holds (I + hT)⁻¹ of them, T times that, …"""
    _factorise(T, m, h, band)
    for k in range(2):
        _solve(band, m, ends[k], work[k])
        _times(T, m, work[k], work[2 + k])
        _solve(band, m, work[2 + k], work[4 + k])
    p, q, x, y, Tx, Ty, z, zz = ends[0], ends[1], work[0], work[1], work[2], work[3], work[4], work[5]
    w = at = shrunk = uu = tu = tt = uuu = ttu = ttt = 0.0
    for i in range(m):
        w += p[i] * x[i]
        at += q[i] * x[i]
        shrunk += q[i] * Ty[i]
        uu += x[i] * Tx[i]
        tu += x[i] * Ty[i]
        tt += y[i] * Ty[i]
        uuu += Tx[i] * z[i]
        ttu += Ty[i] * z[i]
        ttt += Ty[i] * zz[i]
    return w, at, shrunk, uu, tu, tt, uuu, ttu, ttt


def _root_of(T, m, ends, sign, a, rho_0, bound, start, floor, most, tolerance, steps, band, work):
    """The multiplier of the norm bound, within its limits: H < 0 on its left, H > 0 on its right."""
    lower, upper, alpha, bound2, looked = floor, most * a, start, bound * bound, False
    for _ in range(steps):
        h = alpha - a
        w, _, shrunk, uu, tu, tt, uuu, ttu, ttt = _sums(T, m, ends, h, band, work)
        rho = rho_0 + alpha * bound2 - h * shrunk
        if not rho > 0.0:
            break
        kappa = math.sqrt(rho / w)
        tu, ttu = sign * tu, sign * ttu
        norm2 = tt + 2.0 * kappa * tu + kappa * kappa * uu
        gap = bound2 - norm2
        kappa_slope = 0.5 * kappa * ((bound2 - tt) / rho + uu / w)
        slope = 2.0 * (ttt + 2.0 * kappa * ttu + kappa * kappa * uuu) - 2.0 * kappa_slope * (tu + kappa * uu)
        if gap < 0.0:
            lower = alpha
        else:
            upper = alpha
        if upper == floor:
            break
        new = alpha - gap * norm2 / (bound2 * slope)  # Newton's step for 1/‖θ*‖², which is nearly linear
        if not lower < new < upper:
            # If there is no good step to the left, the norm bound may not bind at all: look at the smallest one.
            new = math.sqrt(max(lower, 1e-6 * upper)) * math.sqrt(upper) if looked or gap < 0.0 else floor
            looked = looked or new == floor
        moved, alpha = abs(new - alpha), new
        if moved <= tolerance * alpha:
            break
    return alpha


def _bound(T, m, ends, sign, a, rho_0, bound, smallest, gram, dropped, alpha, floor, left_out, cancelled, band, work):
    """g(α) with what is left out added, or NaN if that is too much."""
    h = alpha - a
    w, at, shrunk, uu, tu, tt, _, _, _ = _sums(T, m, ends, h, band, work)
    rho = rho_0 + alpha * bound * bound - h * shrunk
    if not rho > cancelled * (abs(rho_0) + alpha * bound * bound + abs(h) * shrunk):
        return math.nan
    # Images under M of the newest vectors are not quite in the span, and some of the others were cut short.
    new, e_p, e_q = len(gram), 0.0, 0.0
    cut_p = cut_q = 0.0
    for i in range(m - new):
        cut_p += dropped[i] * abs(work[0, i])
        cut_q += dropped[i] * abs(work[1, i])
    for i in range(new):
        for j in range(new):
            e_p += gram[i, j] * work[0, m - new + i] * work[0, m - new + j]
            e_q += gram[i, j] * work[1, m - new + i] * work[1, m - new + j]
    share = min(1.0, (smallest + alpha) / (smallest + a))
    e_p = h * h * (math.sqrt(max(e_p, 0.0)) + cut_p) ** 2 / share
    e_q = h * h * (math.sqrt(max(e_q, 0.0)) + cut_q) ** 2 / share
    plain, kappa = math.sqrt(rho * w), math.sqrt(rho / w)
    missed = 0.0
    if alpha == floor:  # how much lower the bound at 0 may be: α times the slope there
        missed = 0.5 * alpha * max(bound * bound - tt - 2.0 * sign * kappa * tu - kappa * kappa * uu, 0.0) / kappa
    padded = math.sqrt((rho + e_q) * (w + e_p)) + math.sqrt(e_p * e_q)
    if not padded - plain + missed <= left_out * (abs(at) + plain):
        return math.nan
    return sign * at + padded


def _both(
    T, m, ends, a, rho_0, bound, smallest, start, floor, give_up, most, gram, dropped, left_out, tolerance, steps,
    cancelled, band, work,
):  # fmt: skip
    """The minimum and maximum, or NaN twice if too much is left out; and whether a multiplier is out of reach."""
    low = high = math.nan
    for sign in (1.0, -1.0):
        alpha = _root_of(T, m, ends, sign, a, rho_0, bound, start, floor, most, tolerance, steps, band, work)
        if not give_up * a <= alpha <= 0.5 * most * a:
            return (math.nan, math.nan), True
        value = _bound(
            T, m, ends, sign, a, rho_0, bound, smallest, gram, dropped, alpha, floor, left_out, cancelled, band, work
        )  # fmt: skip
        if math.isnan(value):
            return (math.nan, math.nan), False
        if sign > 0.0:
            high = min(value, bound)
        else:
            low = max(-value, -bound)
    return (low, high), False


def _interval(
    root, p, q, a, rho_0, bound, smallest, start, looks, give_up, least, most, left_out, tolerance, steps, cancelled,
    nothing,
):  # fmt: skip
    """The minimum and maximum, or NaN twice: as `krylov._interval`, with a step of Lanczos at a time."""
    d = len(p)
    room = min(2 * looks[-1], d) + 2
    basis, T = np.empty((room, d)), np.zeros((room, room))
    between, rest, ends = np.empty((2, d)), np.empty((2, d)), np.zeros((2, room))
    band, work, dropped = np.empty((3, room)), np.empty((6, room)), np.zeros(room)
    length_p, length_q = math.sqrt(_dot(p, p)), math.sqrt(_dot(q, q))
    if not length_p > 0.0:
        return math.nan, math.nan
    basis[0] = p / length_p
    along = _dot(basis[0], q)
    basis[1] = q - along * basis[0]
    _subtract(_dot(basis[0], basis[1]), basis[0], basis[1])
    across = math.sqrt(_dot(basis[1], basis[1]))
    size = 1
    if across > nothing * length_q:
        basis[1] /= across
        size = 2
    else:
        across = 0.0
    ends[0, 0], ends[1, 0], ends[1, 1] = length_p, along, across
    floor = 0.0 if smallest > least * a else least * a
    first, look = 0, 0
    for step in range(1, looks[-1] + 1):
        last = size
        _multiply(root, basis, first, last, between, rest)
        new = last - first
        for j in range(new):
            # In exact arithmetic only the latest vectors matter. A second time, against all, makes the new ones
            # orthogonal to the last digit (Parlett 1980).
            for start_at in (max(first - 2, 0), 0):
                for i in range(start_at, last):
                    share = _dot(basis[i], rest[j])
                    _subtract(share, basis[i], rest[j])
                    if i >= first - 2:
                        T[i, first + j] += share
                        if i < first:
                            T[first + j, i] += share
        gram = np.empty((new, new))
        for i in range(new):
            for j in range(new):
                gram[i, j] = _dot(rest[i], rest[j])
        grown = 0
        for j in range(new):
            if last + grown == d:
                break
            candidate = basis[last + grown]
            candidate[:] = rest[j]
            for _ in range(2):
                for i in range(grown):
                    _subtract(_dot(basis[last + i], candidate), basis[last + i], candidate)
            length = math.sqrt(_dot(candidate, candidate))
            if length > nothing * abs(T[first + j, first + j]):
                candidate /= length
                grown += 1
            else:
                dropped[first + j] = length
        if step == looks[look] or not grown:
            look += 1
            found, out_of_reach = _both(
                T, last, ends, a, rho_0, bound, smallest, start, floor, give_up, most, gram, dropped, left_out,
                tolerance, steps, cancelled, band, work,
            )  # fmt: skip
            if out_of_reach or not math.isnan(found[0]):
                return found
            if not grown:
                break
        first, size = last, last + grown
    return math.nan, math.nan


def _best(
    directions, half, theta, radius, tie, safe, root, q, a, rho_0, bound, smallest, start, looks, give_up, least, most,
    left_out, tolerance, steps, cancelled, nothing,
):  # fmt: skip
    """The index of the largest maximum, with minimum and maximum there; −1 where that takes another look.

    `half` are the coordinates of the directions, and `radius` is that of the closed form, which excludes most of them.
    """
    n = len(directions)
    ceilings, sizes = np.empty(n), np.empty(n)
    for i in range(n):
        sizes[i] = math.sqrt(_dot(directions[i], directions[i]))
        w = _dot(half[i], half[i])
        if not (safe < sizes[i] < 1.0 / safe and safe < w < 1.0 / safe):
            return -1, 0.0, 0.0
        ceilings[i] = _dot(directions[i], theta) + radius * math.sqrt(w)
    winner, low, high, ties = -1, 0.0, -math.inf, 0
    while True:
        i = np.argmax(ceilings)
        if ceilings[i] == -math.inf or (winner >= 0 and ceilings[i] < high - tie * abs(high)):
            break
        ceilings[i] = -math.inf
        one, two = interval(
            root, half[i] / sizes[i], q, a, rho_0, bound, smallest, start, looks, give_up, least, most, left_out,
            tolerance, steps, cancelled, nothing,
        )  # fmt: skip
        if math.isnan(one):
            return -1, 0.0, 0.0
        two *= sizes[i]
        ties += winner >= 0 and abs(two - high) <= tie * max(abs(two), abs(high))
        if two > high:
            winner, low, high = i, sizes[i] * one, two
    return (-1, 0.0, 0.0) if ties else (winner, low, high)


_dot = jit(_dot, fastmath=SUMS)
_subtract = jit(_subtract)
_multiply = jit(_multiply, fastmath=SUMS)
_factorise = jit(_factorise)
_solve = jit(_solve)
_times = jit(_times)
_sums = jit(_sums)
_root_of = jit(_root_of)
_bound = jit(_bound)
_both = jit(_both)
interval = jit(_interval)
best = jit(_best)

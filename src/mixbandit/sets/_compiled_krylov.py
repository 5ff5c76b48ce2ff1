"""The solver of `krylov`, compiled by numba; notation and formulas are explained there.

Rows of arrays go by index, not as views: making one takes as long as a sum over twenty entries.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit._jit import SUMS, jit
from mixbandit.sets._compiled_newton import newton


def _dot(x, i, y, j):
    """Row i of x times row j of y."""
    total = 0.0
    for k in range(x.shape[1]):
        total += x[i, k] * y[j, k]
    return total


def _subtract(share, x, i, y, j):
    """Row j of y ← itself minus share times row i of x."""
    for k in range(x.shape[1]):
        y[j, k] -= share * x[i, k]


def _multiply(root, basis, first, last, between, product):
    """`product` ← M times one or two rows of the basis; two at once, and several columns, read W less often."""
    d, one, two = root.shape[0], first, last - 1  # the same if there is only one
    for i in range(d):
        between[0, i] = 0.0
        between[1, i] = 0.0
    k = 0
    while k + 4 <= d:
        x0, x1, x2, x3 = basis[one, k], basis[one, k + 1], basis[one, k + 2], basis[one, k + 3]
        y0, y1, y2, y3 = basis[two, k], basis[two, k + 1], basis[two, k + 2], basis[two, k + 3]
        for i in range(d):
            r0, r1, r2, r3 = root[i, k], root[i, k + 1], root[i, k + 2], root[i, k + 3]
            between[0, i] += x0 * r0 + x1 * r1 + x2 * r2 + x3 * r3
            between[1, i] += y0 * r0 + y1 * r1 + y2 * r2 + y3 * r3
        k += 4
    while k < d:
        for i in range(d):
            between[0, i] += basis[one, k] * root[i, k]
            between[1, i] += basis[two, k] * root[i, k]
        k += 1
    k = 0
    while k + 2 <= d:
        a = b = c = e = 0.0
        for i in range(d):
            a += root[i, k] * between[0, i]
            b += root[i, k] * between[1, i]
            c += root[i, k + 1] * between[0, i]
            e += root[i, k + 1] * between[1, i]
        product[0, k], product[1, k], product[0, k + 1], product[1, k + 1] = a, b, c, e
        k += 2
    while k < d:
        a = b = 0.0
        for i in range(d):
            a += root[i, k] * between[0, i]
            b += root[i, k] * between[1, i]
        product[0, k], product[1, k] = a, b
        k += 1


def _grow(root, basis, first, last, between, rest, T, dropped, gram, nothing):
    """A step of Lanczos: multiply the newest rows of the basis, from `first` to `last`, and add what is new.

    T gets their part of M: its diagonal, and the two below that. `gram` are the products of the parts of their
    images outside the span. Returns how many rows were added.
    """
    d, new = basis.shape[1], last - first
    _multiply(root, basis, first, last, between, rest)
    for j in range(new):
        column = first + j
        # In exact arithmetic only the latest vectors matter. A second time, against all, makes the new ones
        # orthogonal to the last digit (Parlett 1980).
        for start in (max(first - 2, 0), 0):
            for i in range(start, last):
                share = _dot(basis, i, rest, j)
                _subtract(share, basis, i, rest, j)
                if i >= column and i < column + 3:
                    T[i - column, i] += share
                elif first > i >= column - 2:
                    T[column - i, column] += share
    for i in range(new):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = _dot(rest, i, rest, j)
    grown = 0
    for j in range(new):
        row = last + grown
        if row == d:
            break
        for k in range(d):
            basis[row, k] = rest[j, k]
        for _ in range(2 if grown else 0):
            _subtract(_dot(basis, last, basis, row), basis, last, basis, row)
        length = math.sqrt(_dot(basis, row, basis, row))
        if length > nothing * abs(T[0, first + j]):
            for k in range(d):
                basis[row, k] /= length
            grown += 1
        else:
            dropped[first + j] = length
    return grown


def _sums(T, m, ends, h, band, work):
    """What H and H' need; `ends` are p and q in the basis. `work` then holds (I + hT)⁻¹ of them, T times that, …

    I + hT has two diagonals on either side; `band` gets its LDLᵀ: rows of D⁻¹ and the two below the diagonal of L.
    """
    for i in range(m):
        pivot, one, two = 1.0 + h * T[0, i], 0.0, 0.0
        if i > 1:
            share = h * T[2, i]
            two = share * band[0, i - 2]
            pivot -= two * share
            one -= share * band[1, i - 1]
        if i > 0:
            share = h * T[1, i] + one
            one = share * band[0, i - 1]
            pivot -= one * share
        band[0, i], band[1, i], band[2, i] = 1.0 / pivot, one, two
    _solve(band, m, ends, 0, work, 0)
    # Both products with T at once, too: what waits for a result can go on with the other.
    for i in range(m):
        x, y = T[0, i] * work[0, i], T[0, i] * work[1, i]
        for k in range(1, min(i, 2) + 1):
            x += T[k, i] * work[0, i - k]
            y += T[k, i] * work[1, i - k]
        for k in range(1, min(m - 1 - i, 2) + 1):
            x += T[k, i + k] * work[0, i + k]
            y += T[k, i + k] * work[1, i + k]
        work[2, i], work[3, i] = x, y
    _solve(band, m, work, 2, work, 4)
    w = at = shrunk = uu = tu = tt = uuu = ttu = ttt = 0.0
    for i in range(m):
        x, y, Tx, Ty, z = work[0, i], work[1, i], work[2, i], work[3, i], work[4, i]
        w += ends[0, i] * x
        at += ends[1, i] * x
        shrunk += ends[1, i] * Ty
        uu += x * Tx
        tu += x * Ty
        tt += y * Ty
        uuu += Tx * z
        ttu += Ty * z
        ttt += Ty * work[5, i]
    return w, at, shrunk, uu, tu, tt, uuu, ttu, ttt


def _solve(band, m, right, first, x, to):
    """Rows `to` and the next of x ← (I + hT)⁻¹ times rows `first` and the next of `right`."""
    one = two = one_before = two_before = 0.0
    for i in range(m):
        near, far = band[1, i], band[2, i]
        new_one = right[first, i] - near * one - far * one_before
        new_two = right[first + 1, i] - near * two - far * two_before
        one_before, two_before, one, two = one, two, new_one, new_two
        x[to, i], x[to + 1, i] = one, two
    one = two = one_before = two_before = near = far = 0.0  # those of the two rows below, from now on
    for i in range(m - 1, -1, -1):
        new_one = x[to, i] * band[0, i] - near * one
        new_two = x[to + 1, i] * band[0, i] - near * two
        if i + 2 < m:
            new_one -= band[2, i + 2] * one_before
            new_two -= band[2, i + 2] * two_before
        one_before, two_before, one, two = one, two, new_one, new_two
        x[to, i], x[to + 1, i], near = one, two, band[1, i]


def _root_of(T, m, ends, sign, a, rho_0, bound, start, sums, floor, most, tolerance, steps, band, work):
    """The multiplier of the norm bound, within its limits: H < 0 on its left, H > 0 on its right; and the sums there.

    `sums` are those at `start`.
    """
    lower, upper, alpha, looked = floor, most * a, start, False
    for _ in range(steps):
        new, lower, upper, looked = newton(sums, sign, alpha, a, rho_0, bound * bound, lower, upper, floor, looked)
        if math.isnan(new):
            break
        moved, alpha = abs(new - alpha), new
        sums = _sums(T, m, ends, alpha - a, band, work)
        if moved <= tolerance * alpha:
            break
    return alpha, sums


def _bound(m, sign, a, rho_0, bound, smallest, gram, new, dropped, alpha, sums, floor, cancelled, work):
    """g(α) with what is left out added, and how much that is, relative to the size of the bound.

    `sums` and `work` are those at α. NaN where too many digits cancel.
    """
    h = alpha - a
    w, at, shrunk, uu, tu, tt, _, _, _ = sums
    rho = rho_0 + alpha * bound * bound - h * shrunk
    if not rho > cancelled * (abs(rho_0) + alpha * bound * bound + abs(h) * shrunk):
        return math.nan, math.nan
    # Images under M of the newest vectors are not quite in the span, and some of the others were cut short.
    e_p = e_q = cut_p = cut_q = 0.0
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
    return sign * at + padded, (padded - plain + missed) / (abs(at) + plain)


def _interval(
    root, p, q, a, rho_0, bound, smallest, start, looks, give_up, least, most, left_out, tolerance, steps, cancelled,
    nothing, enough,
):  # fmt: skip
    """The minimum and maximum, as `krylov.interval_by_numpy`, and the multiplier of the latter.

    The first is NaN where this takes a decomposition. It is infinite, and the others are unknown, as soon as the
    maximum is less than `enough`.
    """
    d = len(p)
    room = min(2 * looks[-1], d) + 2
    basis, T, ends = np.empty((room, d)), np.zeros((3, room)), np.zeros((2, room))
    between, rest, gram = np.empty((2, d)), np.empty((2, d)), np.empty((2, 2))
    band, work, dropped = np.empty((3, room)), np.empty((6, room)), np.zeros(room)
    for k in range(d):
        basis[0, k], basis[1, k] = p[k], q[k]
    length_p, length_q = math.sqrt(_dot(basis, 0, basis, 0)), math.sqrt(_dot(basis, 1, basis, 1))
    if not length_p > 0.0:
        return math.nan, math.nan, start
    for k in range(d):
        basis[0, k] /= length_p
    along = _dot(basis, 0, basis, 1)
    _subtract(along, basis, 0, basis, 1)
    _subtract(_dot(basis, 0, basis, 1), basis, 0, basis, 1)
    across, size = math.sqrt(_dot(basis, 1, basis, 1)), 1
    if across > nothing * length_q:
        for k in range(d):
            basis[1, k] /= across
        size = 2
    else:
        across = 0.0
    ends[0, 0], ends[1, 0], ends[1, 1] = length_p, along, across
    floor = 0.0 if smallest > least * a else least * a
    first, look, alpha, low_alpha = 0, 0, start, math.nan
    for step in range(1, looks[-1] + 1):
        last = size
        grown = _grow(root, basis, first, last, between, rest, T, dropped, gram, nothing)
        new, looking = last - first, step == looks[look] or not grown
        if looking or enough > -math.inf:
            sums = _sums(T, last, ends, alpha - a, band, work)
        if enough > -math.inf:  # any multiplier gives a bound
            value, _ = _bound(
                last, 1.0, a, rho_0, bound, smallest, gram, new, dropped, alpha, sums, floor, cancelled, work
            )  # fmt: skip
            if value < enough:
                return -math.inf, math.nan, alpha
        if looking:
            look += 1
            # From the multiplier of the last look, and for the minimum from that of the maximum: they are alike.
            alpha, sums = _root_of(
                T, last, ends, 1.0, a, rho_0, bound, alpha, sums, floor, most, tolerance, steps, band, work
            )
            if not give_up * a <= alpha <= 0.5 * most * a:
                break
            high, left = _bound(
                last, 1.0, a, rho_0, bound, smallest, gram, new, dropped, alpha, sums, floor, cancelled, work
            )  # fmt: skip
            if left <= left_out:
                if math.isnan(low_alpha):
                    low_alpha = alpha
                else:
                    sums = _sums(T, last, ends, low_alpha - a, band, work)
                low_alpha, sums = _root_of(
                    T, last, ends, -1.0, a, rho_0, bound, low_alpha, sums, floor, most, tolerance, steps, band, work
                )
                if not give_up * a <= low_alpha <= 0.5 * most * a:
                    break
                low, left = _bound(
                    last, -1.0, a, rho_0, bound, smallest, gram, new, dropped, low_alpha, sums, floor, cancelled, work
                )  # fmt: skip
                if left <= left_out:
                    return max(-low, -bound), min(high, bound), alpha
            if not grown:
                break
        first, size = last, last + grown
    return math.nan, math.nan, start


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
        sizes[i] = math.sqrt(_dot(directions, i, directions, i))
        w, at = _dot(half, i, half, i), 0.0
        if not (safe < sizes[i] < 1.0 / safe and safe < w < 1.0 / safe):
            return -1, 0.0, 0.0
        for k in range(len(theta)):
            at += directions[i, k] * theta[k]
        ceilings[i] = at + radius * math.sqrt(w)
    winner, low, high, ties = -1, 0.0, -math.inf, 0
    while True:
        i = np.argmax(ceilings)
        least_high = high - tie * abs(high) if winner >= 0 else -math.inf
        if ceilings[i] == -math.inf or ceilings[i] < least_high:
            break
        ceilings[i] = -math.inf
        one, two, alpha = interval(
            root, half[i] / sizes[i], q, a, rho_0, bound, smallest, start, looks, give_up, least, most, left_out,
            tolerance, steps, cancelled, nothing, least_high / sizes[i],
        )  # fmt: skip
        if math.isnan(one):
            return -1, 0.0, 0.0
        if one == -math.inf:
            continue
        two *= sizes[i]
        ties += winner >= 0 and abs(two - high) <= tie * max(abs(two), abs(high))
        if two > high:
            winner, low, high, start = i, sizes[i] * one, two, alpha
    return (-1, 0.0, 0.0) if ties else (winner, low, high)


_dot = jit(_dot, fastmath=SUMS)
_subtract = jit(_subtract)
_multiply = jit(_multiply, fastmath=SUMS)
_grow = jit(_grow)
_solve = jit(_solve)
_sums = jit(_sums)
_root_of = jit(_root_of)
_bound = jit(_bound)
interval = jit(_interval)
best = jit(_best)

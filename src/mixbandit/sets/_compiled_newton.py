"""A step of Newton's method for the multiplier of the norm bound, compiled by numba; `krylov` explains the notation."""

from __future__ import annotations

import math

from mixbandit._jit import jit


def _newton(sums, sign, alpha, a, rho_0, bound2, lower, upper, floor, looked):
    """The next multiplier, what it lies between, and whether the smallest one has been looked at.

    The first is NaN where α is to stay as it is: at the smallest multiplier, or where ρ is not positive.
    """
    w, _, shrunk, uu, tu, tt, uuu, ttu, ttt = sums
    rho = rho_0 + alpha * bound2 - (alpha - a) * shrunk
    if not rho > 0.0:
        return math.nan, lower, upper, looked
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
        return math.nan, lower, upper, looked
    new = alpha - gap * norm2 / (bound2 * slope)  # Newton's step for 1/‖θ*‖², which is nearly linear
    if not lower < new < upper:
        # If there is no good step to the left, the norm bound may not bind at all: look at the smallest one.
        new = math.sqrt(max(lower, 1e-6 * upper)) * math.sqrt(upper) if looked or gap < 0.0 else floor
        looked = looked or new == floor
    return new, lower, upper, looked


newton = jit(_newton, forceinline=True)

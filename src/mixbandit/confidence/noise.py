"""Is the noise larger than stated? A test at any time, at level δ, whatever chose the actions.

A fixed linear mixture never makes the residual ball smaller than the least-squares residual, so that rewards which
scatter more than σ allows do not empty it by themselves. A mixture that expects more scatter does: for the mixtures
N(0, cΦΦᵀ + κσ²I), which are as valid as any,

    2 ln E_κ(θ) = (‖Φθ − r‖² − q_κ)/σ² − t ln(1+κ) − Σ_i ln(1 + s_i/a),   a = σ²(1+κ)/c,
    q_κ = min_θ (‖Φθ − r‖² + a‖θ‖²)/(1+κ),

and the mean of E_κ over a list of κ is an e-value against θ* = θ. Refuted is every θ at once when its least value, at
least squares, exceeds 1/δ.
"""

from __future__ import annotations

import math

import numpy as np

from mixbandit.statistics import Spectrum

# 1 + κ: how many times the stated variance the noise is suspected to have.
_INFLATIONS = 2.0 ** np.arange(0.5, 21.0, 0.5)


def may_be_refuted(residual: float, t: int, sigma: float, delta: float) -> bool:
    """A cheap necessary condition, from the least-squares residual alone: no κ can do better than this."""
    ratio = residual / (t * sigma**2) if t else 0.0
    return ratio > 1.0 and 0.5 * t * (ratio - 1.0 - math.log(ratio)) > -math.log(delta)


def log_evalue(spectrum: Spectrum, residual: float, t: int, sigma: float, scale: float, deviation: float) -> float:
    """Ln of the least mean of E_κ(θ) over θ, for c = `scale`.

    `residual` is the least ‖Φθ − r‖²; expected rewards may be up to `deviation` away from linear ones, as a vector.
    """
    nearest = max(math.sqrt(residual) - deviation, 0.0) ** 2
    s = spectrum.singular**2
    a = sigma**2 * _INFLATIONS / scale
    shrunk = np.array([float(np.sum(each / (s + each) * spectrum.z**2)) for each in a])
    volume = t * np.log(_INFLATIONS) + np.array([float(np.sum(np.log1p(s / each))) for each in a])
    twice = (nearest - (residual + shrunk) / _INFLATIONS) / sigma**2 - volume
    return float(np.logaddexp.reduce(0.5 * twice) - math.log(len(_INFLATIONS)))

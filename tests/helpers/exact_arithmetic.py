"""The closed-form and exact bounds in 60-digit arithmetic, straight from the printed formulas."""

from __future__ import annotations

import mpmath as mp
import numpy as np

DIGITS = 60


class ExactSet:
    """Θ for N(Φθ₀, ΦΣ₀Φᵀ) with every quantity formed naively; 60 digits make that harmless."""

    def __init__(self, Phi, r, sigma, norm_bound, delta, theta0=None, Sigma0=None):
        mp.mp.dps = DIGITS
        d = Phi.shape[1]
        rows, rewards = mp.matrix(Phi.tolist()), mp.matrix(r.tolist())
        self.B, sigma2 = mp.mpf(norm_bound), mp.mpf(sigma) ** 2
        self.K, self.b = rows.T * rows, rows.T * rewards
        self.rr = (rewards.T * rewards)[0]
        theta0 = mp.matrix((np.zeros(d) if theta0 is None else theta0).tolist())
        precision = mp.inverse(mp.matrix((np.eye(d) if Sigma0 is None else Sigma0).tolist()))
        V = self.K + sigma2 * precision
        moment = self.b + sigma2 * (precision * theta0)
        mean = mp.lu_solve(V, moment)
        least = self.rr + sigma2 * (theta0.T * precision * theta0)[0] - (moment.T * mean)[0]
        log_det = mp.log(mp.det(V)) - mp.log(mp.det(sigma2 * precision))
        self.radius2 = least + sigma2 * log_det + 2 * sigma2 * mp.log(1 / mp.mpf(delta))
        values, vectors = mp.eigsy(self.K)
        # t < d leaves eigenvalues that are 0 up to 60 digits.
        self.s = [v if v > mp.mpf(10) ** (-45) * max(values) else mp.mpf(0) for v in values]
        self.U = vectors
        self.c = [x if s > 0 else mp.mpf(0) for x, s in zip(vectors.T * self.b, self.s, strict=True)]

    def rho(self, alpha):
        """R² + αB² − rᵀr + bᵀV⁻¹b, as printed in the paper."""
        alpha = mp.mpf(alpha)
        return self._rho(alpha, [1 / (s + alpha) for s in self.s])

    def _rho(self, alpha, shrunk):
        explained = mp.fdot((c * c, f) for c, f in zip(self.c, shrunk, strict=True))
        return self.radius2 + alpha * self.B**2 - self.rr + explained

    def closed_form(self, phi, alpha):
        return self._closed_form(self._rotated(phi), mp.mpf(alpha))

    def _rotated(self, phi):
        return list(self.U.T * mp.matrix(phi.tolist()))

    def _closed_form(self, p, alpha):
        shrunk = [1 / (s + alpha) for s in self.s]
        w = mp.fdot((x * x, f) for x, f in zip(p, shrunk, strict=True))
        centre = mp.fdot((x * c, f) for x, c, f in zip(p, self.c, shrunk, strict=True))
        return centre + mp.sqrt(self._rho(alpha, shrunk) * w)

    def support(self, phi):
        """min over α of the closed form, by golden-section search in ln α on this quasi-convex function."""
        p = self._rotated(phi)
        low, high = mp.log(max(self.s) or 1) - 90, mp.log(max(self.s) or 1) + 60
        ratio = (mp.sqrt(5) - 1) / 2
        x1, x2 = high - ratio * (high - low), low + ratio * (high - low)
        f1, f2 = self._closed_form(p, mp.exp(x1)), self._closed_form(p, mp.exp(x2))
        while high - low > mp.mpf(10) ** (-9):  # a minimum: the value is then right to 1e-18
            if f1 < f2:
                high, x2, f2 = x2, x1, f1
                x1 = high - ratio * (high - low)
                f1 = self._closed_form(p, mp.exp(x1))
            else:
                low, x1, f1 = x1, x2, f2
                x2 = low + ratio * (high - low)
                f2 = self._closed_form(p, mp.exp(x2))
        return min(f1, f2)

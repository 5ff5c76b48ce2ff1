"""Random problems for the confidence sets, degenerate ones included, and references computed from scratch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import mixbandit as mb

FAMILIES = (
    "generic",
    "no data",
    "fewer rows than dimensions",
    "rank one",
    "repeated actions",
    "zero direction",
    "direction in the range of few rows",
    "direction in the null space",
    "direction near the null space",
    "direction near the range",
    "tight norm bound",
    "slack norm bound",
    "tiny features",
    "huge features",
    "graded features",
    "one dimension",
    "linear mixture",
    "scaled mixture",
    "norm bound too small",
    "noise understated",
)


@dataclass(frozen=True)
class Instance:
    family: str
    Phi: np.ndarray
    r: np.ndarray
    sigma: float
    norm_bound: float
    delta: float
    mixture: mb.Mixture
    phi: np.ndarray

    def sequence(self) -> mb.MartingaleMixture:
        d = self.Phi.shape[1]
        cs = mb.MartingaleMixture(
            d, sigma=self.sigma, norm_bound=self.norm_bound, delta=self.delta, mixture=self.mixture
        )
        return cs.update(self.Phi, self.r)

    @property
    def scale(self) -> float:
        """B‖φ‖, the unit of errors."""
        return self.norm_bound * max(float(np.linalg.norm(self.phi)), 1e-300)


def draw(seed: int) -> Instance:
    """The instance of this seed; families take turns."""
    rng = np.random.default_rng([7, seed])
    family = FAMILIES[seed % len(FAMILIES)]
    d = 1 if family == "one dimension" else int(rng.integers(2, 9))
    t = int(rng.integers(1, 40))
    if family == "no data":
        t = 0
    elif "few" in family or "null space" in family or family == "direction near the range":
        t = int(rng.integers(1, d))
    sigma = float(10.0 ** rng.uniform(-2, 0))
    Phi = rng.normal(size=(t, d)) / np.sqrt(d)
    phi = rng.normal(size=d) / np.sqrt(d)
    if family == "rank one":
        Phi = np.outer(rng.normal(size=t), rng.normal(size=d))
    elif family == "repeated actions":
        Phi = Phi[rng.integers(0, min(t, 3), size=t)]
    elif family == "zero direction":
        phi = np.zeros(d)
    elif family == "direction in the range of few rows":
        phi = rng.normal(size=t) @ Phi
    elif "null space" in family or family == "direction near the range":
        inside = np.linalg.pinv(Phi) @ Phi @ phi
        small = 10.0 ** rng.uniform(-14, -3)
        phi = {
            "direction in the null space": phi - inside,
            "direction near the null space": phi - (1.0 - small) * inside,
            "direction near the range": inside + small * (phi - inside),
        }[family]
    elif family == "tiny features":
        factor = 10.0 ** rng.uniform(-8, -4)
        Phi, phi = Phi * factor, phi * factor
    elif family == "huge features":
        factor = 10.0 ** rng.uniform(4, 8)
        Phi, phi = Phi * factor, phi * factor
    elif family == "graded features":
        Phi = Phi * 10.0 ** rng.uniform(-3, 3, size=d)

    theta = rng.normal(size=d)
    norm_bound = float(np.linalg.norm(theta)) * 10.0 ** rng.uniform(0.0, 0.5)
    if family == "tight norm bound":
        norm_bound = float(np.linalg.norm(theta))
    elif family == "slack norm bound":
        norm_bound *= 100.0
    elif family == "norm bound too small":
        norm_bound *= 10.0 ** rng.uniform(-2, -0.3)
    r = Phi @ theta + sigma * rng.normal(size=t)
    if family == "noise understated":
        sigma *= 10.0 ** rng.uniform(-2, -0.5)
    mixture: mb.Mixture = mb.Standard()
    if family == "scaled mixture":
        mixture = mb.Scaled(10.0 ** rng.uniform(-3, 3))
    elif family == "linear mixture":
        root = rng.normal(size=(d, d))
        mixture = mb.Linear(rng.normal(size=d), root @ root.T + 0.1 * np.eye(d))
    return Instance(family, Phi, r, sigma, norm_bound, float(10.0 ** rng.uniform(-4, -0.5)), mixture, phi)


def prior(mixture: mb.Mixture, d: int) -> tuple[np.ndarray, np.ndarray]:
    """θ₀ and Σ₀ of a fixed linear mixture."""
    if isinstance(mixture, mb.Linear):
        return mixture.theta0, mixture.Sigma0
    return np.zeros(d), mixture.c * np.eye(d)


def radius2_by_definition(instance: Instance) -> float:
    """R² from the t×t matrices of the paper, label eq:confidence-set."""
    theta0, Sigma0 = prior(instance.mixture, instance.Phi.shape[1])
    error = instance.Phi @ theta0 - instance.r
    noise = np.eye(len(error)) + instance.Phi @ Sigma0 @ instance.Phi.T / instance.sigma**2
    quadratic = error @ np.linalg.solve(noise, error)
    return float(
        quadratic
        + instance.sigma**2 * np.linalg.slogdet(noise)[1]
        + 2.0 * instance.sigma**2 * np.log(1.0 / instance.delta)
    )

"""Kernels of rows of length 5 with a slow definition of each, pair by pair; columns 2 to 4 are a one-hot block."""

import math

import numpy as np

import mixbandit as mb

SCALES = [0.5, 1.0, 2.0, 1.5, 0.7]


def distance(a, b, scales):
    return math.sqrt(sum(((x - y) / s) ** 2 for x, y, s in zip(a, b, scales, strict=True)))


def rbf(a, b, scales=SCALES, variance=1.0):
    return variance * math.exp(-(distance(a, b, scales) ** 2) / 2)


def matern(nu, a, b, scales=SCALES, variance=1.0):
    s = math.sqrt(2 * nu) * distance(a, b, scales)
    return variance * {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3}[nu] * math.exp(-s)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def conditional(a, b):
    ga, gb = a[2] + a[4], b[2] + b[4]
    return ga * gb * matern(2.5, a[:1], b[:1], [0.8]) + (1 - ga) * (1 - gb)


KERNELS = {
    "rbf": (mb.RBF(0.6, 2.0), lambda a, b: rbf(a, b, [0.6] * 5, 2.0)),
    "rbf, a scale per column": (mb.RBF(SCALES), rbf),
    "matern 1/2": (mb.Matern(0.5, 0.7, 3.0), lambda a, b: matern(0.5, a, b, [0.7] * 5, 3.0)),
    "matern 3/2": (mb.Matern(1.5, SCALES), lambda a, b: matern(1.5, a, b)),
    "matern 5/2": (mb.Matern(2.5, SCALES, 0.2), lambda a, b: matern(2.5, a, b, SCALES, 0.2)),
    "constant": (mb.ConstantKernel(0.4), lambda a, b: 0.4),
    "linear": (mb.LinearKernel(0.3), lambda a, b: 0.3 * dot(a, b)),
    "quadratic": (mb.PolynomialKernel(2, 0.0, 2.0), lambda a, b: 2.0 * dot(a, b) ** 2),
    "polynomial": (mb.PolynomialKernel(5, 0.7), lambda a, b: (dot(a, b) + 0.7) ** 5),
    "sum": (mb.RBF(SCALES) + mb.LinearKernel(0.5) + 0.1, lambda a, b: rbf(a, b) + 0.5 * dot(a, b) + 0.1),
    "product": (mb.RBF(SCALES) * mb.Matern(2.5) * 3.0, lambda a, b: 3 * rbf(a, b) * matern(2.5, a, b, [1.0] * 5)),
    "product with a polynomial": (
        mb.PolynomialKernel(2) * mb.RBF(0.5) * mb.LinearKernel(),
        lambda a, b: (dot(a, b) + 1) ** 2 * rbf(a, b, [0.5] * 5) * dot(a, b),
    ),
    "sum of products": (
        2.0 * mb.RBF([0.3, 0.4]).on([1, 0]) + mb.LinearKernel().on([3]) * mb.Matern(1.5).on([1]),
        lambda a, b: 2 * rbf([a[1], a[0]], [b[1], b[0]], [0.3, 0.4]) + a[3] * b[3] * matern(1.5, a[1:2], b[1:2], [1.0]),
    ),
    "on columns": (mb.Matern(2.5, [0.2, 3.0]).on([3, 1]), lambda a, b: matern(2.5, a[[3, 1]], b[[3, 1]], [0.2, 3.0])),
    "overlap": (
        mb.OverlapKernel([2, 3, 4], 0.3, 2.0),
        lambda a, b: 2 * (0.3 + 0.7 * dot(a[2:], b[2:])),
    ),
    "overlap without similarity": (mb.OverlapKernel([2, 4], 0.0), lambda a, b: a[2] * b[2] + a[4] * b[4]),
    "overlap and numbers": (
        mb.OverlapKernel([2, 3, 4], 0.6) * mb.RBF([0.5, 0.9]).on([0, 1]),
        lambda a, b: (0.6 + 0.4 * dot(a[2:], b[2:])) * rbf(a[:2], b[:2], [0.5, 0.9]),
    ),
    "conditional": (mb.ConditionalKernel(mb.Matern(2.5, 0.8).on([0]), [2, 4]), conditional),
    "nested": (
        mb.OverlapKernel([2, 3, 4]) * (mb.ConditionalKernel(mb.Matern(2.5, 0.8).on([0]), [4, 2]) + 0.5),
        lambda a, b: (0.5 + 0.5 * dot(a[2:], b[2:])) * (conditional(a, b) + 0.5),
    ),
}
SMOOTH = {name: case for name, case in KERNELS.items() if name != "matern 1/2"}


def rows(n, seed, *, spread=1.0):
    """Rows with repeats, one-hot blocks and blocks between 0 and 1."""
    rng = np.random.default_rng(seed)
    made = spread * rng.normal(size=(n, 5))
    made[:, 2:] = rng.uniform(size=(n, 3))
    made[::2, 2:] = np.eye(3)[rng.integers(3, size=len(made[::2]))]
    made[n // 2] = made[0]
    return made


A, B = rows(9, 0), rows(7, 1)
B[3] = A[2]


def slow(k, A, B):
    return np.array([[k(a, b) for b in B] for a in A])

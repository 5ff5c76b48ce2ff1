import numpy as np

import mixbandit as mb
from mixbandit.storage import positive, real, record


class Wave(mb.Kernel):
    """cos(frequency·(a − b)), for actions that are one number."""

    kind = "Wave"
    schema = record({"frequency": real(positive)})
    dim_in = 1
    constant_diagonal = True

    def __init__(self, frequency):
        self.frequency = positive(frequency, "frequency")

    def matrix(self, A, B):
        return np.cos(self.frequency * (A - B.T))

    def diagonal(self, A):
        return np.ones(len(A))

    def pullback(self, A, B, weights):
        slope = -self.frequency * np.sin(self.frequency * (A - B.T))
        return (weights * slope).sum(axis=1, keepdims=True)

    def diagonal_pullback(self, A):
        return np.zeros(A.shape)

"""Tensors of torch, or of a stand-in that behaves like them where torch is not installed."""

import importlib.util
import types

import numpy as np


class _Tensor:
    """What mixbandit sees of a tensor: numbers that numpy can read, unless they carry a gradient."""

    def __init__(self, values, dtype=np.float32, requires_grad=False):
        self._values, self.requires_grad = np.asarray(values, dtype=dtype), requires_grad
        self.shape, self.ndim, self.dtype = self._values.shape, self._values.ndim, dtype

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._values if dtype is None else self._values.astype(dtype)

    def __float__(self):
        return float(self._values)

    def item(self):
        return self._values.item()

    def __len__(self):
        return len(self._values)


def torch():
    """The module, or what stands in for it."""
    if importlib.util.find_spec("torch") is None:
        return types.SimpleNamespace(tensor=_Tensor, float64=np.float64)
    import torch as module

    return module

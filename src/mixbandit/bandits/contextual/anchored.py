"""Features of contexts in coordinates that stay, whatever happens to the scale.

| symbol | meaning | shape |
|---|---|---|
| x_t | the features of a context as they are made at time t | (d_t,) |
| A | a change of scale: what was x_s is x_t = Ax_s | (d_t, d_s) |
| T_t | from x_t to the coordinates that stay, T_t = T_sA⁻¹ | (d_t, d_t) |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixbandit._checks import Array
from mixbandit.features import Context, ContextFeatures


class Anchored(NamedTuple):
    """The features at a time, and the way back to the scale in which they were anchored.

    A column that was always 0 until then keeps the scale that it has when it first differs.
    """

    features: ContextFeatures
    back: Array | None = None  # T_t; None: the identity

    def after(self, context: Context) -> Anchored:
        """Once one more context was seen."""
        features = self.features.after(context)
        change = None if features.version == self.features.version else features.change(self.features)
        if change is None:
            return Anchored(features, self.back)
        now, before = change.shape
        whole, back = np.eye(now), np.eye(now)
        whole[:, :before] = change
        back[:before, :before] = np.eye(before) if self.back is None else self.back
        empty = np.flatnonzero(~change.any(axis=0))  # their numbers have not varied, so that they were 0
        whole[empty, empty] = 1.0
        found: Array = np.linalg.solve(whole.T, back.T).T.astype(np.float64, copy=False)
        return Anchored(features, found)

    def row(self, context: Context, width: int) -> Array:
        """T_tx_t, with zeros for columns that are still to come, (width,)."""
        found, row = np.zeros(width), self.features.row(context)
        found[: len(row)] = row if self.back is None else self.back @ row
        return found

"""How to act while rewards are still out."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np

from mixbandit._validation import Array
from mixbandit.actions import Box, MixedBox
from mixbandit.confidence import ConfidenceSequence
from mixbandit.errors import AssumptionsRefutedWarning

# A choice on a box that repeats a pending one is moved by about this share of the width.
_NUDGE = 1e-3
_SAME_ACTION = 1e-9


def anticipating(rows: list[Array], base: ConfidenceSequence) -> ConfidenceSequence:
    """The sequence as if pending rows had brought the rewards that are expected of them; `base` stays as it is."""
    if not rows:
        return base
    actions = np.array(rows)
    phi = base._features(actions)
    with quiet(True):
        acting = base.copy()
        acting.on_empty = "inflate"  # what is only imagined refutes nothing
        high, low = (acting._maximum(sign * phi, acting.alpha0, with_theta=False).value for sign in (1.0, -1.0))
        return acting.update(actions, 0.5 * (high - low))


def nudged(row: Array, box: Box, taken: list[Array], rng: np.random.Generator) -> Array:
    """The row, moved a little if it repeats one that is taken: on a box there is always something new to learn."""
    y = box.unit(row)
    if not taken or not box.continuous.any():
        return row
    if not (np.abs(box.unit(np.array(taken)) - y) <= _SAME_ACTION).all(axis=1).any():
        return row
    step = _NUDGE * rng.uniform(0.5, 1.0, size=box.dim) * rng.choice((-1.0, 1.0), size=box.dim)
    step[~box.continuous] = 0.0
    # At a border the step goes inwards.
    moved = box.at(y + np.where((y + step < 0.0) | (y + step > 1.0), -step, step))
    return box.pinned(moved[None])[0] if isinstance(box, MixedBox) else moved


@contextlib.contextmanager
def quiet(wanted: bool) -> Iterator[None]:
    """Without warnings of refuted assumptions: the user has been told, or what is refuted is only imagined."""
    if not wanted:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionsRefutedWarning)
        yield

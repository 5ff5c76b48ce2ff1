"""`Blocks.advantage`: how much more other arms can earn than one arm."""

import numpy as np
import pytest

import mixbandit as mb


def test_arms_that_share_nothing_differ_by_their_ends():
    rng = np.random.default_rng(0)
    blocks = mb.Blocks(mb.MartingaleMixture(2, sigma=0.3, norm_bound=2.0, delta=0.05), ["a", "b", "c"])
    blocks.update(np.column_stack((rng.uniform(size=(30, 2)), np.arange(30) % 3)), rng.normal(scale=0.3, size=30))
    found = blocks.interval([0.3, 0.4])
    most = found.upper - found.lower[1]
    assert blocks.advantage([0.3, 0.4], "b") == pytest.approx([most[0], 0.0, most[2]])
    assert blocks.advantage([0.3, 0.4], "b", over=["c"]) == pytest.approx([most[2]])

import numpy as np
import pytest

from mixbandit.paper import fig1


@pytest.mark.parametrize("seed", range(5))
def test_the_claim_of_figure_1(seed):
    """CMM narrower than AMM, AMM narrower than OFUL, everywhere; all contain the truth."""
    result = fig1.run(fig1.Fig1Settings(seed=seed))
    widths = [upper - lower for lower, upper in (result.bands[m] for m in fig1.METHODS)]
    assert (widths[0] <= widths[1] + 1e-12).all()
    assert (widths[1] < widths[2]).all()
    for lower, upper in result.bands.values():
        assert (lower <= result.truth).all()
        assert (result.truth <= upper).all()
    assert list(result.mean_widths.values()) == pytest.approx([np.mean(w) for w in widths])

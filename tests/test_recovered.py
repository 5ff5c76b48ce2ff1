"""Data that are recovered from ridge regression, against the rows that led to it."""

import numpy as np
import pytest

from mixbandit.data import Factor, Recovered, Ridges

ALPHA = 0.3


def recovered(rows, rewards):
    """The data of one arm, as its ridge regression gives them back."""
    ridges = Ridges(ALPHA, rows.shape[1]).extended(1)
    for row, reward in zip(rows, rewards, strict=True):
        ridges = ridges.learnt(0, row, reward)[0]
    known = ridges.about(0)
    return Recovered(ridges.of(0), known.rewards, known.size2, known.slack).data


CASES = {
    "many rows": lambda rng: rng.normal(size=(60, 4)),
    "as many rows as features": lambda rng: rng.normal(size=(4, 4)),
    "fewer rows": lambda rng: rng.normal(size=(2, 4)),
    "one row again and again": lambda rng: np.tile(rng.normal(size=(1, 4)), (9, 1)),
    "rows in a plane": lambda rng: rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4)),
    "zero rows": lambda rng: np.zeros((5, 4)),
    "rows of different sizes": lambda rng: rng.normal(size=(40, 4)) * [10.0, 1.0, 0.1, 0.01],
    "one feature": lambda rng: rng.normal(size=(7, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_factor_is_that_of_the_rows(case):
    rng = np.random.default_rng(0)
    rows = CASES[case](rng)
    rewards = rows.sum(axis=1) + rng.normal(size=len(rows))
    data, both = recovered(rows, rewards), np.column_stack((rows, rewards))
    scale = 1.0 + np.abs(both).max() ** 2 * len(both)
    np.testing.assert_allclose(np.tril(data.factor, -1), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.factor.T @ data.factor, both.T @ both, atol=1e-9 * scale)
    # What no parameter explains, the squared lengths, and the number of rewards.
    unexplained = np.linalg.lstsq(rows, rewards, rcond=None)[0]
    spectrum = data.spectrum
    left = spectrum.outside + float(spectrum.lost_z @ spectrum.lost_z)
    assert left == pytest.approx(np.sum((rows @ unexplained - rewards) ** 2), abs=1e-9 * scale)
    assert spectrum.rank == np.linalg.matrix_rank(rows)
    inside2, rewards2 = data.sizes2
    assert np.sum(rows**2) <= inside2 <= np.sum(rows**2) + ALPHA * (1 + 1e-9)
    assert rewards2 == pytest.approx(rewards @ rewards)
    assert data.count == len(rows)


@pytest.mark.parametrize("case", CASES)
def test_recovered_data_go_on_as_others(case):
    rng = np.random.default_rng(1)
    rows = CASES[case](rng)
    rewards, more = rng.normal(size=len(rows)), rng.normal(size=(40, rows.shape[1]))
    values = rng.normal(size=40)
    one, other = recovered(rows, rewards), Factor(rows.shape[1]).learn(rows, rewards)
    for part in (slice(0, 1), slice(1, 40)):
        one, other = one.learn(more[part], values[part]), other.learn(more[part], values[part])
        for alpha in (ALPHA, 0.01, 5.0):
            np.testing.assert_allclose(one.ridge(alpha).theta, other.ridge(alpha).theta, atol=1e-8)
            assert one.loss(alpha) == pytest.approx(other.loss(alpha), rel=1e-8)
            assert one.ridge(alpha).log_det == pytest.approx(other.ridge(alpha).log_det, rel=1e-8)
    assert one.count == other.count


@pytest.mark.parametrize("case", CASES)
def test_a_known_eigenvalue_is_at_most_the_smallest(case):
    rng = np.random.default_rng(2)
    rows = CASES[case](rng)
    smallest = np.linalg.eigvalsh(rows.T @ rows)[0]
    data = recovered(rows, rng.normal(size=len(rows)))
    assert data.folded.known_eigenvalue(ALPHA) <= max(smallest, 0.0) * (1 + 1e-9) + 1e-12

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.data import _BUFFER_ROWS, Statistics


def data(t, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(t, d)), rng.normal(size=t)


@pytest.mark.parametrize("t", [0, 1, 3, 5, 31, 32, 33, 500])
def test_the_factor_has_the_gram_matrix_of_the_data(t):
    Phi, r = data(t, 5)
    stats = Statistics(5)
    stats.update(Phi, r)
    both = np.column_stack((Phi, r))
    C = stats.factor()
    np.testing.assert_allclose(C.T @ C, both.T @ both, atol=1e-11)
    np.testing.assert_array_equal(np.tril(C, -1), 0.0)
    assert stats.count == t


@pytest.mark.parametrize("cuts", [[1] * 100, [32, 1, 67], [99, 1], [33, 33, 34], [0, 100, 0]])
def test_any_grouping_gives_the_same_statistics(cuts):
    Phi, r = data(100, 6)
    whole, parts = Statistics(6), Statistics(6)
    whole.update(Phi, r)
    start = 0
    for cut in cuts:
        parts.update(Phi[start : start + cut], r[start : start + cut])
        start += cut
    a, b = whole.factor(), parts.factor()
    np.testing.assert_allclose(a.T @ a, b.T @ b, rtol=1e-12, atol=1e-12)


def test_reading_changes_nothing():
    Phi, r = data(100, 4)
    read, unread = Statistics(4), Statistics(4)
    for row, reward in zip(Phi, r, strict=True):
        for stats in (read, unread):
            stats.update(row[None], reward[None])
        read.spectrum()
    np.testing.assert_array_equal(read.factor(), unread.factor())


def test_spectrum_explains_the_rewards():
    Phi, r = data(40, 6)
    Phi[:, 5] = Phi[:, 0] - Phi[:, 1]  # rank 5
    stats = Statistics(6)
    stats.update(Phi, r)
    spectrum = stats.spectrum()
    assert spectrum.rank == 5
    fitted = spectrum.basis @ (spectrum.z / spectrum.singular)
    theta, *_ = np.linalg.lstsq(Phi, r, rcond=None)
    np.testing.assert_allclose(fitted, theta, atol=1e-12)
    np.testing.assert_allclose(spectrum.residual(1.0), np.sum((Phi @ theta - r) ** 2), rtol=1e-12)


def test_spectrum_in_whitened_coordinates():
    Phi, r = data(40, 3)
    root, shift = np.tril(np.ones((3, 3))), np.array([1.0, -2.0, 0.5])
    stats = Statistics(3)
    stats.update(Phi, r)
    spectrum = stats.spectrum(shift, root)
    np.testing.assert_allclose(
        spectrum.basis * spectrum.singular**2 @ spectrum.basis.T, root.T @ Phi.T @ Phi @ root, rtol=1e-12
    )
    np.testing.assert_allclose(
        spectrum.basis @ (spectrum.singular * spectrum.z), root.T @ Phi.T @ (r - Phi @ shift), rtol=1e-12
    )


def test_no_information_is_rank_zero():
    stats = Statistics(3)
    assert stats.spectrum().rank == 0
    stats.update(np.zeros((4, 3)), np.ones(4))
    spectrum = stats.spectrum()
    assert (spectrum.rank, spectrum.residual(1.0)) == (0, pytest.approx(4.0))


def test_memory_does_not_grow():
    stats = Statistics(3)
    for _ in range(10 * _BUFFER_ROWS):
        stats.update(np.ones((1, 3)), np.ones(1))
        assert stats._factor.shape == (4, 4)
        assert stats._buffer.shape == (_BUFFER_ROWS, 4)


def test_state_dict_goes_on_to_the_bit():
    Phi, r = data(90, 4)
    stats = Statistics(4)
    stats.update(Phi[:50], r[:50])
    stats.update(Phi[50:55], r[50:55])
    again = Statistics.from_state_dict(stats.state_dict())
    for part in (stats, again):
        for row, reward in zip(Phi[55:], r[55:], strict=True):
            part.update(row[None], reward[None])
    np.testing.assert_array_equal(stats.factor(), again.factor())
    assert again.count == 90


@pytest.mark.parametrize("spoil", ["factor", "buffer", "missing", "nan", "count", "text", "triangle", "dim"])
def test_a_damaged_state_is_refused(spoil):
    stats = Statistics(2)
    stats.update(*data(3, 2))
    state = stats.state_dict()
    if spoil == "missing":
        del state["count"]
    elif spoil == "nan":
        state["buffer"][0, 0] = np.nan
    elif spoil == "count":
        state["count"] = 2.7
    elif spoil == "text":
        state["factor"] = "text"
    elif spoil == "dim":
        state["dim"] = -5
    elif spoil == "triangle":
        state["factor"][1, 0] = 3.0
    elif spoil == "factor":
        state["factor"] = np.zeros((2, 2))
    else:
        state["buffer"] = np.zeros((9, 3))
    with pytest.raises(mb.DamagedState):
        Statistics.from_state_dict(state)

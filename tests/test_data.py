import numpy as np
import pytest

import mixbandit as mb
from mixbandit.data import Factor
from mixbandit.data.factor import _BUFFER_ROWS


def data(t, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(t, d)), rng.normal(size=t)


@pytest.mark.parametrize("t", [0, 1, 3, 5, 31, 32, 33, 500])
def test_the_factor_has_the_gram_matrix_of_the_data(t):
    Phi, r = data(t, 5)
    stats = Factor(5).learn(Phi, r)
    both = np.column_stack((Phi, r))
    C = stats.factor
    np.testing.assert_allclose(C.T @ C, both.T @ both, atol=1e-11)
    np.testing.assert_array_equal(np.tril(C, -1), 0.0)
    assert stats.count == t


@pytest.mark.parametrize("cuts", [[1] * 100, [32, 1, 67], [99, 1], [33, 33, 34], [0, 100, 0]])
def test_any_grouping_gives_the_same_statistics(cuts):
    Phi, r = data(100, 6)
    whole, parts = Factor(6).learn(Phi, r), Factor(6)
    start = 0
    for cut in cuts:
        parts = parts.learn(Phi[start : start + cut], r[start : start + cut])
        start += cut
    a, b = whole.factor, parts.factor
    np.testing.assert_allclose(a.T @ a, b.T @ b, rtol=1e-12, atol=1e-12)


def test_reading_changes_nothing():
    Phi, r = data(100, 4)
    read, unread = Factor(4), Factor(4)
    for row, reward in zip(Phi, r, strict=True):
        read, unread = (part.learn(row[None], reward[None]) for part in (read, unread))
        assert read.spectrum.rank
    np.testing.assert_array_equal(read.factor, unread.factor)


def test_spectrum_explains_the_rewards():
    Phi, r = data(40, 6)
    Phi[:, 5] = Phi[:, 0] - Phi[:, 1]  # rank 5
    stats = Factor(6).learn(Phi, r)
    spectrum = stats.spectrum
    assert spectrum.rank == 5
    fitted = spectrum.basis @ (spectrum.z / spectrum.singular)
    theta, *_ = np.linalg.lstsq(Phi, r, rcond=None)
    np.testing.assert_allclose(fitted, theta, atol=1e-12)
    np.testing.assert_allclose(spectrum.residual(1.0), np.sum((Phi @ theta - r) ** 2), rtol=1e-12)


def test_spectrum_in_whitened_coordinates():
    Phi, r = data(40, 3)
    root, shift = np.tril(np.ones((3, 3))), np.array([1.0, -2.0, 0.5])
    stats = Factor(3).learn(Phi, r)
    spectrum = stats.seen_from(shift, root)
    np.testing.assert_allclose(
        spectrum.basis * spectrum.singular**2 @ spectrum.basis.T, root.T @ Phi.T @ Phi @ root, rtol=1e-12
    )
    np.testing.assert_allclose(
        spectrum.basis @ (spectrum.singular * spectrum.z), root.T @ Phi.T @ (r - Phi @ shift), rtol=1e-12
    )


def test_no_information_is_rank_zero():
    assert Factor(3).spectrum.rank == 0
    spectrum = Factor(3).learn(np.zeros((4, 3)), np.ones(4)).spectrum
    assert (spectrum.rank, spectrum.residual(1.0)) == (0, pytest.approx(4.0))


def test_memory_does_not_grow():
    stats = Factor(3)
    for _ in range(10 * _BUFFER_ROWS):
        stats = stats.learn(np.ones((1, 3)), np.ones(1))
        stored = stats.state_dict()
        assert stored["factor"].shape == (4, 4)
        assert len(stored["buffer"]) <= _BUFFER_ROWS


def test_what_was_learnt_earlier_stays_as_it_was():
    """Values share rows: whoever goes on from an earlier one must not change the later ones."""
    Phi, r = data(70, 4)
    trunk = [Factor(4)]
    for row, reward in zip(Phi, r, strict=True):
        trunk.append(trunk[-1].learn(row[None], reward[None]))
    branches = [part.learn(7.0 * Phi[:3], r[:3]) for part in trunk]
    for n, (part, branch) in enumerate(zip(trunk, branches, strict=True)):
        for found, expected in ((part, Factor(4).learn(Phi[:n], r[:n])), (branch, None)):
            rows = np.column_stack((Phi[:n], r[:n]))
            if expected is None:
                rows = np.vstack((rows, np.column_stack((7.0 * Phi[:3], r[:3]))))
            np.testing.assert_allclose(found.factor.T @ found.factor, rows.T @ rows, atol=1e-9)
            assert found.count == len(rows)


def test_state_dict_goes_on_to_the_bit():
    Phi, r = data(90, 4)
    stats = Factor(4).learn(Phi[:50], r[:50]).learn(Phi[50:55], r[50:55])
    again = Factor.from_state_dict(stats.state_dict())
    for row, reward in zip(Phi[55:], r[55:], strict=True):
        stats, again = (part.learn(row[None], reward[None]) for part in (stats, again))
    np.testing.assert_array_equal(stats.factor, again.factor)
    assert again.count == 90


@pytest.mark.parametrize("spoil", ["factor", "buffer", "missing", "nan", "count", "text", "triangle", "dim"])
def test_a_damaged_state_is_refused(spoil):
    stats = Factor(2).learn(*data(3, 2))
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
        Factor.from_state_dict(state)

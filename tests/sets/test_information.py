"""The information in a direction is by how much it would change the volume of the ellipsoid."""

import warnings

import numpy as np

import mixbandit as mb


def test_information_is_the_change_of_the_log_determinant():
    rng = np.random.default_rng(0)
    Phi, phi = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    cs = mb.OFULSequence(3, sigma=0.3, norm_bound=1.0).update(Phi, rng.normal(size=5))
    V = Phi.T @ Phi + cs.alpha0 * np.eye(3)
    expected = [np.linalg.slogdet(V + np.outer(row, row))[1] - np.linalg.slogdet(V)[1] for row in phi]
    np.testing.assert_allclose(cs.moment.closed_form.information(phi), expected, rtol=1e-10)


def test_information_of_very_wide_directions_is_finite():
    cs = mb.OFULSequence(2, sigma=0.3, norm_bound=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(cs.moment.closed_form.information(np.array([[1e200, 0.0], [1e-200, 0.0]]))).all()

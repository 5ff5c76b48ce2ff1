import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mixbandit as mb
from tests.helpers.instances import draw

PROPERTY = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def problems(draw_value):
    """Data of any rank, scale and length, with queries; c is the mixture's scale."""
    rng = np.random.default_rng(draw_value(st.integers(0, 2**32)))
    d, t = draw_value(st.integers(1, 8)), draw_value(st.integers(0, 40))
    rank = draw_value(st.integers(1, d))
    scale = 10.0 ** draw_value(st.floats(-6, 6))
    Phi = scale * rng.normal(size=(t, rank)) @ rng.normal(size=(rank, d))
    theta = rng.normal(size=d)
    sigma = 10.0 ** draw_value(st.floats(-3, 1))
    slack = 10.0 ** draw_value(st.floats(-0.5, 1))
    r = Phi @ theta + sigma * rng.normal(size=t)
    c = 10.0 ** draw_value(st.floats(-2, 2))
    queries = np.vstack((rng.normal(size=(3, d)), Phi[:2], np.zeros(d)))
    arguments = {"sigma": sigma, "norm_bound": slack * float(np.linalg.norm(theta)), "delta": 0.05}
    return Phi, r, arguments, c, queries


@PROPERTY
@given(problems(), st.floats(-12, 12))
def test_exact_is_below_the_closed_form_at_every_alpha(problem, exponent):
    Phi, r, arguments, c, queries = problem
    cs = mb.MartingaleMixture(Phi.shape[1], **arguments, mixture=mb.Scaled(c)).update(Phi, r)
    if cs.is_empty:
        return
    alpha = cs.alpha0 * 10.0**exponent
    unit = arguments["norm_bound"] * np.linalg.norm(queries, axis=1)
    assert (cs.upper(queries) <= cs.upper(queries, alpha=alpha) + 1e-9 * unit).all()
    assert (cs.lower(queries) >= cs.lower(queries, alpha=alpha) - 1e-9 * unit).all()
    assert (cs.lower(queries) <= cs.upper(queries) + 1e-9 * unit).all()
    assert (cs.upper(queries) <= unit * (1 + 1e-12)).all()


@PROPERTY
@given(problems())
def test_closed_form_is_strictly_below_oful_at_the_same_alpha(problem):
    Phi, r, arguments, c, queries = problem
    cs = mb.MartingaleMixture(Phi.shape[1], **arguments, mixture=mb.Scaled(c)).update(Phi, r)
    oful = mb.OFULSequence(Phi.shape[1], **arguments, alpha=cs.alpha0).update(Phi, r)
    if cs.is_empty:
        return
    nonzero = np.linalg.norm(queries, axis=1) > 0
    ours = cs.upper(queries, alpha=cs.alpha0) - cs.lower(queries, alpha=cs.alpha0)
    theirs = oful.upper(queries) - oful.lower(queries)
    assert (ours[nonzero] < theirs[nonzero]).all()
    assert (cs.upper(queries, alpha=cs.alpha0) < oful.upper(queries))[nonzero].all()


@PROPERTY
@given(problems(), st.data())
def test_row_and_block_updates_agree(problem, data):
    Phi, r, arguments, c, queries = problem
    block = mb.MartingaleMixture(Phi.shape[1], **arguments, mixture=mb.Scaled(c)).update(Phi, r)
    rows = mb.MartingaleMixture(Phi.shape[1], **arguments, mixture=mb.Scaled(c))
    start = 0
    while start < len(Phi):
        size = data.draw(st.integers(1, 12))
        rows.update(Phi[start : start + size], r[start : start + size])
        start += size
    # Rewards are rounded themselves: where they are 10⁹ times σ, no algorithm knows residuals better than this.
    rounding = np.finfo(float).eps * np.linalg.norm(r)
    assert rows.radius == pytest.approx(block.radius, rel=1e-9, abs=rounding)
    ball = block.moment.rule.ball(block.moment.data)
    if ball.slack > 1e-6 * ball.terms:
        unit = arguments["norm_bound"] * np.linalg.norm(queries, axis=1).clip(1e-300)
        assert np.max(np.abs(rows.upper(queries) - block.upper(queries)) / unit) < 1e-9


def from_scratch(Phi, r, cs):
    """The same sequence from one QR of all data at once, without our updates."""
    fresh = mb.MartingaleMixture(cs.features, sigma=cs.sigma, norm_bound=cs.norm_bound, delta=cs.delta)
    state = fresh.state_dict()
    state["statistics"] |= {
        "factor": np.linalg.qr(np.column_stack((Phi, r)), mode="r"),
        "count": len(Phi),
        "weight2": float(len(Phi)),
    }
    return mb.MartingaleMixture.from_state_dict(state)


def assert_same_bounds(cs, fresh, queries):
    assert cs.radius == pytest.approx(fresh.radius, rel=1e-8)
    assert cs.analytic_radius() == pytest.approx(fresh.analytic_radius(), rel=1e-8)
    unit = cs.norm_bound * np.linalg.norm(queries, axis=1)
    for alpha in (None, cs.alpha0):
        assert np.max(np.abs(cs.upper(queries, alpha) - fresh.upper(queries, alpha)) / unit) < 1e-8
        assert np.max(np.abs(cs.lower(queries, alpha) - fresh.lower(queries, alpha)) / unit) < 1e-8


@pytest.mark.heavy
def test_a_million_single_updates_lose_no_digits():
    rng = np.random.default_rng(0)
    d, t = 20, 1_000_000
    theta = rng.normal(size=d)
    Phi = rng.normal(size=(t, d)) / np.sqrt(d)
    r = Phi @ theta + 0.1 * rng.normal(size=t)
    cs = mb.MartingaleMixture(d, sigma=0.1, norm_bound=float(np.linalg.norm(theta)))
    for row, reward in zip(Phi, r, strict=True):
        cs.update(row, reward)
    assert cs.t == t
    assert_same_bounds(cs, from_scratch(Phi, r, cs), rng.normal(size=(50, d)))


def test_a_hundred_thousand_nearly_collinear_updates_lose_no_digits():
    rng = np.random.default_rng(1)
    d, t = 20, 100_000
    theta = rng.normal(size=d)
    Phi = np.ones(d) / np.sqrt(d) + 1e-7 * rng.normal(size=(t, d))
    r = Phi @ theta + 0.1 * rng.normal(size=t)
    cs = mb.MartingaleMixture(d, sigma=0.1, norm_bound=1.2 * float(np.linalg.norm(theta)))
    for row, reward in zip(Phi, r, strict=True):
        cs.update(row, reward)
    queries = np.vstack((rng.normal(size=(20, d)), Phi[:5]))
    assert_same_bounds(cs, from_scratch(Phi, r, cs), queries)


def refuted(**options):
    """Rewards of 5 where a norm bound of 1 allows 1: no θ fits."""
    return mb.MartingaleMixture(2, sigma=0.1, norm_bound=1.0, **options).update([[1.0, 0.0]] * 20, [5.0] * 20)


def test_an_empty_set_is_reported_as_what_it_is():
    cs = refuted()
    assert cs.is_empty
    for ask in (cs.upper, cs.lower, cs.support, lambda a: cs.upper(a, alpha=0.01)):
        with pytest.raises(mb.AssumptionsRefuted, match=r"20 rewards .* delta=0.01 .* sigma=0.1, norm_bound=1"):
            ask([1.0, 0.0])
    assert not cs.contains([1.0, 0.0])


def test_an_empty_set_may_be_inflated_and_says_so_every_time():
    cs = refuted(on_empty="inflate")
    for _ in range(2):
        with pytest.warns(mb.AssumptionsRefutedWarning, match="empty"):
            support = cs.support([1.0, 0.0])
        assert support.inflated
        with pytest.warns(mb.AssumptionsRefutedWarning):
            lower = cs.lower([1.0, 0.0])[0]
        with pytest.warns(mb.AssumptionsRefutedWarning):
            upper = cs.upper([1.0, 0.0])[0]
    assert cs.is_empty
    # The margin is the δ term of R², so that the inflated set has an inside.
    assert upper - lower > 1e-4
    assert upper <= 1.0


def test_more_data_may_reopen_the_set():
    cs = refuted()
    cs.update([[1.0, 0.0]] * 2000, [1.0] * 2000)
    assert cs.is_empty == (cs.moment.rule.ball(cs.moment.data).slack < 0)


def test_the_evalue_measures_distance_from_the_set():
    instance = draw(0)
    cs = instance.sequence()
    on_border = cs.support(instance.phi).theta[0]
    outside = on_border + 0.01 * instance.phi
    residual2 = np.sum((instance.Phi @ outside - instance.r) ** 2)
    expected = (residual2 - cs.radius**2) / (2 * cs.sigma**2) + np.log(1 / cs.delta)
    assert cs.log_evalue(outside) == pytest.approx(expected, rel=1e-9)


def test_the_evalue_does_not_depend_on_delta():
    instance = draw(0)
    theta = np.ones(instance.Phi.shape[1])
    values = [
        mb.MartingaleMixture(len(theta), sigma=0.3, norm_bound=5.0, delta=delta)
        .update(instance.Phi, instance.r)
        .log_evalue(theta)
        for delta in (0.5, 0.01, 1e-6)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


def test_radius_and_analytic_radius_without_data():
    cs = mb.MartingaleMixture(3, sigma=0.1, norm_bound=2.0, delta=0.05)
    assert cs.radius**2 == pytest.approx(2 * 0.01 * np.log(20))
    assert cs.analytic_radius(0.5) ** 2 == pytest.approx(2 * 0.01 * np.log(20) + 0.5 * 4)
    assert cs.upper([3.0, 4.0, 0.0])[0] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: mb.MartingaleMixture(3, sigma=1, norm_bound=1, on_empty="ignore"),
            "raise, inflate; got 'ignore'",
        ),
        (lambda: mb.MartingaleMixture("3", sigma=1, norm_bound=1), "features must be a feature map"),
        (lambda: mb.MartingaleMixture(0, sigma=1, norm_bound=1), "integer ≥ 1"),
        (
            lambda: mb.MartingaleMixture(2, sigma=1, norm_bound=1).contains([1.0]),
            r"theta must have shape \(2,\)",
        ),
    ],
)
def test_bad_arguments_are_named(make, says):
    with pytest.raises(mb.InvalidInput, match=says):
        make()

"""The model that the tuner acts on, against plain formulas."""

import itertools
import math

import numpy as np
import pytest

from mixbandit.tuning import foresight
from mixbandit.tuning.foresight import (
    Foresight,
    Groups,
    Hyperparameters,
    apart,
    fitted,
    last_fit,
    representative,
    scaled,
    warped,
)

# A number, a category of three, a number.
COLUMNS = ((0,), (1, 2, 3), (4,))
GROUPS = Groups(COLUMNS)


def rows(n, rng):
    found = rng.uniform(size=(n, 5))
    found[:, 1:4] = np.eye(3)[rng.integers(3, size=n)]
    return found


def rewards(x, rng, noise=0.1):
    return np.sin(5.0 * x[:, 0]) + 0.5 * x[:, 2] + noise * rng.normal(size=len(x))


def plain_kernel(known, a, b):
    """The definition, one pair at a time."""
    found = np.empty((len(a), len(b)))
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            same = bool((one[1:4] == other[1:4]).all())
            squared = ((one[0] - other[0]) ** 2, 0.0 if same else 1.0, (one[4] - other[4]) ** 2)
            parts = [math.exp(-0.5 * d / math.exp(2.0 * s)) for d, s in zip(squared, known.lengthscales, strict=True)]
            additive, joint = math.exp(known.additive), math.exp(known.joint)
            found[i, j] = additive / 3.0 * sum(parts) + joint * math.prod(parts) + 1.0
    return found


KNOWN = Hyperparameters(np.log([0.3, 0.8, 2.0]), math.log(0.6), math.log(0.4), math.log(0.2))


def test_the_kernel_is_as_defined():
    rng = np.random.default_rng(0)
    a, b = rows(7, rng), rows(5, rng)
    assert KNOWN.kernel(GROUPS, a, b) == pytest.approx(plain_kernel(KNOWN, a, b), abs=1e-12)
    assert pytest.approx(KNOWN.variance) == plain_kernel(KNOWN, a[:1], a[:1])[0, 0]


def test_the_gradient_is_that_of_the_posterior_density():
    rng = np.random.default_rng(1)
    x = rows(20, rng)
    y, noises = rewards(x, rng), rng.uniform(0.5, 2.0, size=20)
    means, spreads = foresight._prior(3)
    at = means + 0.3 * rng.normal(size=6)
    known = (foresight.pairs_of(GROUPS, x), y, noises, means, spreads)
    value, gradient = foresight.negative_log_posterior(at, *known)
    # The density itself, from its definition.
    matrix = plain_kernel(Hyperparameters.of(at), x, x) + math.exp(at[-1]) * np.diag(noises)
    log_density = -0.5 * y @ np.linalg.solve(matrix, y) - 0.5 * np.linalg.slogdet(matrix)[1]
    assert value == pytest.approx(-log_density + 0.5 * (((at - means) / spreads) ** 2).sum())
    for k in range(6):
        step = 1e-5 * np.eye(6)[k]
        up, down = (foresight.negative_log_posterior(at + s, *known)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-6)


def test_predictions_are_those_of_the_gaussian_process():
    rng = np.random.default_rng(2)
    x, new = rows(30, rng), rows(6, rng)
    x[7] = x[3]  # a repeat
    r, weights = rewards(x, rng), rng.uniform(0.5, 2.0, size=30)
    model = Foresight(COLUMNS)
    means, deviations = model.after(x, r, weights).at(new)
    due = last_fit(30)
    known = fitted(GROUPS, x[:due], warped(scaled(r[:due])), weights[:due])
    noise = np.diag(math.exp(known.noise) / weights)
    inverse = np.linalg.inv(plain_kernel(known, x, x) + noise)
    across = plain_kernel(known, new, x)
    assert means == pytest.approx(across @ inverse @ warped(scaled(r)), abs=1e-9)
    variances = known.variance - np.einsum("nt,ts,ns->n", across, inverse, across)
    assert deviations**2 == pytest.approx(variances, abs=1e-9)
    # Rows that are believed to return what is predicted change no mean, and narrow everything.
    believing = model.after(x, r, weights).believing(new[:2])
    assert believing.at(new)[0] == pytest.approx(means, abs=1e-5)
    assert (believing.at(new)[1] <= deviations + 1e-5).all()
    assert believing.at(new)[1][0] < 0.9 * deviations[0]


def test_a_configurations_own_values_count_for_more_in_its_standing():
    rng = np.random.default_rng(3)
    x = rows(40, rng)
    x[20:30] = x[20]  # tried ten times, and far better than its neighbours
    r = rewards(x, rng)
    r[20:30] += 1.0
    outlook = Foresight(COLUMNS).after(x, r, np.ones(40))
    (mean,), (deviation,) = outlook.standings(x[20:21])
    assert mean > outlook.at(x[20:21])[0][0]
    assert deviation < outlook.standings(x[:1])[1][0]
    # Against the definition, with weights, and rows that are only believed.
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=40)
    outlook = Foresight(COLUMNS).after(x, r, weights)
    known, seen = outlook._known, np.vstack((x, x[:2]))
    own, noise = 0.3 * math.exp(known.noise), 0.7 * math.exp(known.noise)
    same = np.array([[float((a == b).all()) for b in seen] for a in seen])
    whole = plain_kernel(known, seen, seen) + own * same
    matrix = whole + np.diag(noise / np.append(weights, [1.0, 1.0]))
    means, deviations = outlook.believing(x[:2]).standings(x[5:8])
    assert means == pytest.approx(whole[5:8, :40] @ np.linalg.solve(matrix[:40, :40], apart(scaled(r))))
    left = np.diag(whole)[5:8] - np.einsum("nt,tn->n", whole[5:8], np.linalg.solve(matrix, whole[:, 5:8]))
    assert deviations**2 == pytest.approx(left)


def test_what_is_predicted_follows_from_the_values_alone():
    """Whether they came one by one, or all at once, or after others that were taken back."""
    rng = np.random.default_rng(4)
    x, new = rows(60, rng), rows(8, rng)
    r, weights = rewards(x, rng), np.ones(60)
    step_by_step = Foresight(COLUMNS)
    for t in range(1, 61):
        last = step_by_step.after(x[:t], r[:t], weights[:t])
        last.believing(new[:2])
    at_once = Foresight(COLUMNS).after(x, r, weights)
    for one, other in zip(last.at(new), at_once.at(new), strict=True):
        assert np.array_equal(one, other)
    changed = r.copy()
    changed[-1] += 1.0
    back = step_by_step.after(x, changed, weights)
    assert np.array_equal(back.at(new)[0], Foresight(COLUMNS).after(x, changed, weights).at(new)[0])
    assert np.array_equal(step_by_step.after(x[:30], r[:30], weights[:30]).at(new)[0],
                          Foresight(COLUMNS).after(x[:30], r[:30], weights[:30]).at(new)[0])  # fmt: skip


def test_it_learns_which_parameters_matter():
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(80, 4))
    y = np.sin(6.0 * x[:, 1]) + 0.05 * rng.normal(size=80)
    known = fitted(Groups(((0,), (1,), (2,), (3,))), x, warped(scaled(y)), np.ones(80))
    assert known.lengthscales[1] < known.lengthscales[[0, 2, 3]].min() - 1.0


def test_the_best_stay_apart():
    values = np.concatenate(
        (np.full(28, 0.1) + 0.01 * np.random.default_rng(0).normal(size=28), np.linspace(0.5, 0.9, 12))
    )
    assert len(set(warped(scaled(values))[-12:])) == 1
    assert (np.diff(apart(scaled(values))[-12:]) > 0.0).all()
    outlier = apart(scaled(np.append(values, 1e6)))
    assert outlier[-1] == pytest.approx(outlier[-2] + 1.0)


@pytest.mark.parametrize(
    "values", [[1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0, 5.0], [-1e9, 1.0, 1.1, 0.9], [1e-300, 2e-300, 0.0]]
)
def test_any_values_can_be_warped(values):
    y = warped(scaled(np.array(values)))
    assert np.isfinite(y).all()
    assert np.abs(y).max() <= 2.5
    order = np.argsort(values, kind="stable")
    assert (np.diff(y[order]) >= 0.0).all()


def test_outliers_do_not_hide_the_rest():
    rng = np.random.default_rng(6)
    usual = rng.normal(size=50)
    wild = np.append(usual, [1e6, -1e6])
    spread = warped(scaled(wild))[:50]
    # They are clipped at the ends; without the floor on the spread all others would be equal.
    assert np.abs(warped(scaled(np.append(usual, -20.0))))[:50].std() > 0.2
    assert np.argmax(spread) == np.argmax(usual)


def test_fits_become_rarer_and_values_are_kept_evenly():
    fits = sorted({last_fit(n) for n in range(2000)})
    assert fits[:5] == [0, 4, 5, 6, 7]
    assert max(b - a for a, b in itertools.pairwise(fits)) == 50
    assert all(b - a <= max(1, a // 4) for a, b in itertools.pairwise(fits[1:]))
    values, rows_ = np.arange(1000.0), np.arange(1000.0)[:, None]
    kept = representative(rows_, values, 100)
    assert len(kept) == len(set(kept.tolist())) == 100
    assert set(range(950, 1000)) <= set(kept.tolist())  # the best half
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert np.array_equal(representative(rows_[:10], values[:10], 100), np.arange(10))


def test_of_many_repeats_not_only_the_lucky_ones_are_kept():
    """The better of two choices is known after 1,000 values, of which 300 are kept; the worse one is noisier."""
    rng = np.random.default_rng(7)
    x = np.eye(2)[np.arange(1000) % 2]
    r = np.where(x[:, 0] == 1.0, 0.50 + 0.2 * rng.normal(size=1000), 0.55 + 0.05 * rng.normal(size=1000))
    means, _ = Foresight(((0, 1),)).after(x, r, np.ones(1000)).standings(np.eye(2))
    assert means[1] > means[0]

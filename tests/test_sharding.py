"""Logs learnt in shards are logs learnt at once."""

import numpy as np
import pytest

import mixbandit as mb
from mixbandit.errors import InvalidInput, NotMergeable


def log(seed, rows=3000, d=6):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, d))
    return features, features @ np.linspace(-1.0, 1.0, d) + 0.1 * rng.normal(size=rows)


def sequence(**options):
    return mb.MartingaleMixture(6, sigma=0.1, norm_bound=3.0, **options)


def same(one, other):
    directions = np.random.default_rng(9).normal(size=(50, 6))
    assert one.t == other.t
    for alpha in (None, one.alpha0):
        np.testing.assert_allclose(one.upper(directions, alpha), other.upper(directions, alpha), rtol=1e-10)


def test_shards_are_one_pass_over_all_rows():
    start = sequence().update(*log(0, 40))
    shards = [log(seed) for seed in range(1, 6)]
    merged = mb.learn_in_shards(start, shards, jobs=2)
    once = start.copy()
    for shard in shards:
        once.update(*shard)
    same(merged, once)
    assert start.t == 40


def test_noise_levels_and_loaders():
    levels = np.linspace(0.1, 0.3, 3000)
    merged = mb.learn_in_shards(sequence(), [3, 4], load=lambda seed: (*log(seed), levels), jobs=1)
    once = sequence().update(*log(3), levels).update(*log(4), levels)
    same(merged, once)


def test_files_are_read_by_the_workers(tmp_path):
    for seed in range(3):
        np.savez(tmp_path / f"{seed}.npz", *log(seed))
    paths = sorted(tmp_path.glob("*.npz"))
    merged = mb.learn_in_shards(sequence(), paths, load=read, jobs=2)
    once = sequence()
    for seed in range(3):
        once.update(*log(seed))
    same(merged, once)


def read(path):
    with np.load(path) as stored:
        return stored["arr_0"], stored["arr_1"]


def test_nothing_is_learnt_from_no_shards():
    assert mb.learn_in_shards(sequence(), []).t == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shards": [(np.ones((2, 6)),)]}, "a shard must be"),
        ({"shards": [(np.ones((2, 5)), [1.0, 2.0])]}, "actions must have shape"),
        ({"shards": [], "jobs": 0}, "jobs"),
        ({"shards": 3}, "shards must be a list"),
        ({"shards": [], "load": 3}, "load must be a function"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        mb.learn_in_shards(sequence(), **{"jobs": 1, **arguments})
    with pytest.raises(InvalidInput, match="a confidence sequence"):
        mb.learn_in_shards(3, [])


def test_what_depends_on_the_order_is_refused_before_anything_is_read():
    with pytest.raises(NotMergeable):
        mb.learn_in_shards(sequence(mixture=mb.Adaptive()), [0], load=lambda _: pytest.fail("read"))


def wrong_after(shards):
    """After which merges the centre's set excludes the truth, .5."""
    centre, wrong = mb.MartingaleMixture(1, sigma=0.5, norm_bound=1.0, delta=0.05), []
    for rewards in shards:
        shard = mb.MartingaleMixture(1, sigma=0.5, norm_bound=1.0, delta=0.05).update(np.ones((50, 1)), rewards)
        centre = centre.merge(shard)
        wrong.append(not centre.contains([0.5]))
    return wrong


def test_when_a_shard_reports_must_not_depend_on_what_it_reports():
    runs = np.random.default_rng(3).integers(0, 2, size=(10, 100, 50)).astype(float)
    lucky_first = [wrong_after(run[np.argsort(-run.mean(axis=1))]) for run in runs]
    assert all(any(wrong) for wrong in lucky_first)  # why the docstrings of merge and learn_in_shards say so
    assert not any(wrong[-1] for wrong in lucky_first)  # once all are in, their order is forgotten
    assert not any(any(wrong_after(run)) for run in runs)
    for promise in (mb.MartingaleMixture.merge.__doc__, mb.learn_in_shards.__doc__):
        assert "must not depend" in promise or "does not depend\n        on what it reports" in promise


def test_what_was_merged_names_that_condition():
    condition = "when shards were merged did not depend on what they contain"
    one, other = sequence().update(*log(0, 40)), sequence().update(*log(1, 40))
    assert condition not in str(sequence().merge(one))  # nothing was known before
    merged = one.merge(other)
    for centre in (
        merged,
        merged.copy(),
        mb.MartingaleMixture.from_state_dict(merged.state_dict()),
        sequence().merge(merged),
    ):
        assert condition in str(centre)
        policy = mb.UCB(centre, actions=mb.Box([-1.0] * 6, [1.0] * 6))
        assert condition in policy.guarantee
        assert condition in str(policy.certificate())
    assert condition not in str(one)
    # All shards were in before anybody could look.
    assert condition not in str(mb.learn_in_shards(sequence(), [log(0, 40), log(1, 40)], jobs=1))
    assert "merged" not in one.state_dict()


@pytest.mark.heavy
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_clusters_learn_shards(backend):
    joblib = pytest.importorskip("joblib")
    shards = [log(seed) for seed in range(4)]
    once = sequence()
    for shard in shards:
        once.update(*shard)
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        with (
            distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"),
            joblib.parallel_config("dask"),
        ):
            same(mb.learn_in_shards(sequence(), shards), once)
        return
    ray = pytest.importorskip("ray")
    ray_joblib = pytest.importorskip("ray.util.joblib")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        ray_joblib.register_ray()
        with joblib.parallel_config("ray"):
            same(mb.learn_in_shards(sequence(), shards), once)
    finally:
        ray.shutdown()

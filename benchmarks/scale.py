"""What does not grow, or not much: many arms, many pending choices, many decisions at once, long logs; and boxes.

    python benchmarks/scale.py [--quick]

One BLAS thread; medians where something is repeated.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import statistics
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.bench.timing import seconds
from mixbandit.paper import svm


def vectors(rows: int, d: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, d)) / np.sqrt(d)


def many_arms(count: int, d: int = 50) -> None:
    """A round and a certificate among many fixed arms."""
    arms, theta = vectors(count, d, 0), np.random.default_rng(1).normal(size=d)
    for make in (mb.AMMUCB, mb.CMMUCB):
        policy = make(d, actions=mb.Arms(arms), sigma=0.1, norm_bound=float(np.linalg.norm(theta)), rng=0)
        policy.learn(arms[:400], arms[:400] @ theta)

        def play(policy: Any = policy) -> None:
            choice = policy.ask()
            policy.tell(choice, float(choice.action @ theta))

        play()
        once = statistics.median(seconds(play) for _ in range(10))
        certified = seconds(policy.certificate)
        print(f"{count:,} arms, d = {d}, {make.__name__}: {1e3 * once:.1f} ms a round, certificate {certified:.2f} s")


def pending(counts: tuple[int, ...], d: int) -> None:
    """A reward and a choice while others are pending."""
    rng, theta, sets = np.random.default_rng(0), np.full(d, 2.0 / np.sqrt(d)), [vectors(10, d, k) for k in range(20)]
    for count in counts:
        policy = mb.AMMUCB(d, sigma=0.1, norm_bound=2.0, rng=0)
        policy.learn(np.concatenate(sets), np.concatenate(sets) @ theta)
        waiting = [policy.ask(sets[k % 20]) for k in range(count)]

        def play(policy: Any = policy, waiting: Any = waiting) -> None:
            choice = waiting.pop(int(rng.integers(len(waiting))))
            policy.tell(choice, float(choice.action @ theta))
            waiting.append(policy.ask(sets[len(waiting) % 20]))

        play()
        once = statistics.median(seconds(play) for _ in range(60))
        print(f"{count:,} pending, d = {d}: {1e6 * once:,.0f} µs for a reward and a choice")


def at_once(count: int) -> None:
    """Many decisions among 5 arms with contexts of 4 numbers."""
    contexts = vectors(count, 4, 0)
    for make in (mb.AMMUCB, mb.CMMUCB):
        policy = make(9, actions=mb.Arms(np.eye(5)), sigma=0.1, norm_bound=3.0, rng=0)
        policy.learn(vectors(60, 9, 1), np.zeros(60))
        policy.choose_many(contexts[:10])
        once = statistics.median(seconds(lambda policy=policy: policy.choose_many(contexts)) for _ in range(5))  # type: ignore[misc]
        print(f"choose_many, {make.__name__}: {1e6 * once / count:.2f} µs per decision")


def shard(seed: int, rows: int = 500_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rows, 20))
    return features, features @ np.linspace(-1.0, 1.0, 20) + 0.1 * rng.standard_normal(rows)


def long_logs(shards: int) -> None:
    """Rows of 20 features, made by one worker or by two."""
    sequence = mb.MartingaleMixture(20, sigma=0.1, norm_bound=5.0)
    found = {}

    def learn(jobs: int) -> None:
        found[jobs] = mb.learn_in_shards(sequence, range(shards), load=shard, jobs=jobs)

    mb.learn_in_shards(sequence, range(2), load=shard, jobs=2)  # starts the workers
    one, two = (min(seconds(lambda jobs=jobs: learn(jobs)) for _ in range(2)) for jobs in (1, 2))  # type: ignore[misc]
    probes = vectors(100, 20, 0)
    apart = float(np.abs(found[1].upper(probes) / found[2].upper(probes) - 1.0).max())
    times = f"{one:.2f} s by one worker, {two:.2f} s by two ({one / two:.2f})"
    print(f"{found[1].t:,} rows: {times}; bounds differ by {apart:.0e}")


def boxes(rounds: int) -> None:
    """A choice on a box of 8 dimensions with 20 features."""
    features, rng = mb.RandomFourier(dim_in=8, dim=20, lengthscale=1.0, rng=0), np.random.default_rng(0)
    theta, box = rng.normal(size=20), mb.Box([0.0] * 8, [1.0] * 8)
    for make in (mb.CMMUCB, mb.AMMUCB):
        for quick in (False, True):
            norm = float(np.linalg.norm(theta))
            policy, times = make(features, actions=box, sigma=0.1, norm_bound=norm, rng=0, quick=quick), []
            for _ in range(rounds):
                times.append(seconds(policy.ask))
                choice = policy.pending[0]
                policy.tell(choice, float(features(choice.action)[0] @ theta) + 0.1 * rng.normal())
            once = statistics.median(times[rounds // 4 :])
            print(f"box, {make.__name__}, quick={quick}: {1e3 * once:.1f} ms")


def papers_experiment(rounds: int) -> None:
    """Choosing beside fitting in the experiment of Table 1, in processor time."""
    for algorithm in svm.PAPER_ALGORITHMS:
        svm.simulate(svm.SvmSettings(algorithm=algorithm, rounds=3), 0)  # imports and compilation
        row = svm.simulate(svm.SvmSettings(algorithm=algorithm, rounds=rounds), 0)
        found = dict(zip(svm.COLUMNS, row, strict=True))
        print(f"raisin, {algorithm}: choosing {found['choosing_ms']} ms, fitting {found['fitting_ms']} ms a round")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what should not grow.")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    many_arms(5_000 if quick else 100_000)
    for d in (20, 100):
        pending((20, 100) if quick else (1, 10, 20, 100, 500, 5_000), d)
    at_once(2_000 if quick else 20_000)
    long_logs(2 if quick else 20)
    boxes(12 if quick else 120)
    papers_experiment(10 if quick else 150)


if __name__ == "__main__":
    main()

"""Bounds with gradients for 100 actions: ours against cvxpylayers, the paper's route for CMM-UCB.

    pip install torch cvxpylayers        # not needed for anything else here
    python benchmarks/gradients.py [--quick]

Same workload and reduced form as bounds.py, B = ‖θ*‖; forward and backward pass of a batch, against `support`
with the factorisation of the round. Repeats are interleaved, and only ratios within a run count.
"""

from __future__ import annotations

from bounds import SIZES, conic_programs, seconds, workload  # first: it limits BLAS to one thread

# isort: split
import argparse
import importlib
import statistics
import sys
from typing import Any

import numpy as np

BATCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description="Time bounds with gradients against cvxpylayers.")
    parser.add_argument("--quick", action="store_true", help="few repeats, to check that it runs")
    repeats = 2 if parser.parse_args().quick else 7
    try:
        torch, layers = importlib.import_module("torch"), importlib.import_module("cvxpylayers.torch")
    except ImportError as error:
        sys.exit(f"{error}: pip install torch cvxpylayers")
    torch.set_num_threads(1)
    print(f"milliseconds for {BATCH} actions, value and gradient; in brackets, how many times faster ours is")
    for t, d in SIZES:
        load = workload(t, d, tight=True)
        actions = load.actions[:BATCH]
        cs = load.sequence()
        problem, phi = conic_programs(load)["CLARABEL, triangular"]
        layer = layers.CvxpyLayer(problem, parameters=[phi], variables=problem.variables())

        def theirs(layer: Any = layer, actions: Any = actions) -> Any:
            batch = torch.tensor(actions, requires_grad=True)
            (theta,) = layer(batch)
            (batch * theta).sum(dim=1).sum().backward()
            return batch.grad

        def ours(cs: Any = cs, actions: Any = actions) -> Any:
            cs._forget()
            return cs.support(actions).grad

        difference = float(np.max(np.abs(theirs().numpy() - ours()))) / load.norm_bound
        times = [(seconds(theirs), seconds(ours)) for _ in range(repeats)]
        layer_time, our_time = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"t={t:5d} d={d:4d}  cvxpylayers {layer_time * 1e3:9.1f}   ours {our_time * 1e3:7.2f}   "
            f"({layer_time / our_time:,.0f})   gradients differ by {difference:.0e}·B"
        )


if __name__ == "__main__":
    main()

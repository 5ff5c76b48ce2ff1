"""Policies made of what `outside` adds, played in one process and resumed in another.

`python -m tests.extending.playing write FOLDER` plays them, saves them, plays on, and kills itself; `read FOLDER` loads
them and plays on. Each writes what was decided after the save.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.bandits import Policy
from tests.extending.outside import (
    Boltzmann,
    Cautious,
    LeastSquares,
    Patient,
    PerArm,
    Powers,
    Prices,
    Running,
    Sometimes,
    Wave,
)

STATED = {"sigma": 0.1, "norm_bound": 3.0, "delta": 0.05}
ARMS = mb.Arms(np.linspace(-1.0, 1.0, 7))
BY_ARM = np.array([[x, arm] for arm in range(3) for x in (0.3, -0.6)])  # (feature, arm)


def _mixture(features, **more):
    return mb.MartingaleMixture(features, **STATED, **more)


MADE = {
    "rule": lambda: Policy(_mixture(1), ARMS, rule=Sometimes(0.5), rng=0),
    "predictor": lambda: Policy(_mixture(1), ARMS, rule=Boltzmann(0.05), predictor=LeastSquares(1), rng=0),
    "feature map": lambda: mb.UCB(_mixture(mb.WithConstant(Powers(3))), ARMS, rng=0),
    "kernel": lambda: mb.UCB(mb.KernelMixture(Wave(2.0) + 0.5 * mb.RBF(0.3), **STATED), ARMS, rng=0),
    "mixture": lambda: mb.UCB(_mixture(1, mixture=mb.Grid([1.0, Running(0.5)])), ARMS, rng=0),
    "sequence": lambda: mb.UCB(Cautious(2, sigma=0.1), mb.Box([-1.0, 0.0], [1.0, 1.0]), rng=0),
    "belief": lambda: mb.UCB(PerArm(3, 1, **STATED), BY_ARM, exploration=0.5, rng=0),
    "response": lambda: mb.UCB(Prices(Powers(2), **STATED, reward_range=(0.0, 5.0)), mb.Box([-1.0], [1.0]), rng=0),
    "policy": lambda: Patient(_mixture(1), ARMS, exploration=0.5, rng=0),
    "all": lambda: Policy(Cautious(Powers(2), sigma=0.1, caution=2.0), ARMS, rule=Sometimes(0.5), rng=3),
    "mixture and features": lambda: mb.UCB(_mixture(Powers(2), mixture=Running(0.5)), ARMS, strict=True, rng=0),
}


def reward(policy, choice):
    """In the units of the policy's rewards."""
    return float(policy.sequence.moment.response.reward(0.05 * float(np.cos(3.0 * choice.action).sum())))


def play(policy, rounds):
    """What was decided, with its probabilities and bounds, to the last bit."""
    decided = []
    for _ in range(rounds):
        choice = policy.ask()
        chances = None if choice.probabilities is None else choice.probabilities.tolist()
        decided.append([choice.action.tolist(), chances, choice.lower, choice.upper])
        policy.tell(choice, reward(policy, choice))
    return decided


def begun(name):
    """A policy after some rounds, with a choice that waits for its reward."""
    policy = MADE[name]()
    play(policy, 5)
    policy.ask()
    return policy


def main(verb, folder):
    found = {}
    for name in MADE:
        file = folder / f"{name}.mixbandit"
        if verb == "write":
            policy = begun(name)
            policy.save(file)
        else:
            policy = mb.load(file)
        (waiting,) = policy.pending
        policy.tell(waiting, reward(policy, waiting))
        found[name] = play(policy, 6)
    (folder / f"{verb}.json").write_text(json.dumps(found))
    if verb == "write":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

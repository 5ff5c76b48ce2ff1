"""A policy that acts on a user's predictor, played in one process and resumed in another, as `playing` does.

`python -m tests.extending.predicting write FOLDER` plays, saves, plays on and kills itself; `read FOLDER` loads and
plays on.
"""

import json
import os
import signal
import sys
from pathlib import Path

import mixbandit as mb
from mixbandit.bandits import Policy
from tests.extending.outside import InverseGap, LeastSquares
from tests.extending.playing import ARMS, STATED, reward


def made():
    sequence = mb.MartingaleMixture(1, **STATED)
    return Policy(sequence, ARMS, rule=InverseGap(50.0), predictor=LeastSquares(1), rng=0)


def play(policy, rounds):
    """What was decided, with its probabilities, to the last bit."""
    decided = []
    for _ in range(rounds):
        choice = policy.ask()
        decided.append([choice.index, choice.probabilities.tolist(), choice.lower, choice.upper])
        policy.tell(choice, reward(policy, choice))
    return decided


def begun():
    """A policy after some rounds, with a choice that waits for its reward."""
    policy = made()
    play(policy, 5)
    policy.ask()
    return policy


def main(verb, folder):
    file = folder / "policy"
    if verb == "write":
        policy = begun()
        policy.save(file)
    else:
        policy = mb.load(file)
    (waiting,) = policy.pending
    policy.tell(waiting, reward(policy, waiting))
    (folder / f"{verb}.json").write_text(json.dumps(play(policy, 6)))
    if verb == "write":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

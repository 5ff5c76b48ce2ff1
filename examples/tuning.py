"""Tune a support vector machine by noisy accuracies, through a crash, to an answer that carries a certificate."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

import mixbandit as mb

data = mb.load_dataset("raisin")
half, rng = len(data.y) // 2, np.random.default_rng(0)
order = rng.permutation(len(data.y))
X, y = (data.X[order] - data.X.mean(axis=0)) / data.X.std(axis=0), data.y[order]

space = mb.Space(
    {
        "C": mb.Float(1e-2, 1e2, log=True),
        "kernel": mb.Categorical(["rbf", "poly", "sigmoid"]),
        "gamma": mb.Float(1e-3, 1e1, log=True),
        "degree": mb.Int(2, 4),
    },
    {"degree": ("kernel", ["poly"])},
)


def accuracy(parameters: dict[str, object]) -> float:
    """On 100 validation rows, drawn anew for every trial."""
    model = SVC(**parameters, max_iter=5000).fit(X[:half], y[:half])
    drawn = rng.integers(half, len(y), size=100)
    return float((model.predict(X[drawn]) == y[drawn]).mean())


folder = Path(tempfile.mkdtemp())
tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rng=0)
for _ in range(40):
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
waiting = tuner.ask(2)  # two machines are at work on these ...
tuner.save(folder / "tuner.mixbandit")  # ... and this one crashes

tuner = mb.Tuner.load(folder / "tuner.mixbandit")  # what was asked for is still waiting
for trial in tuner.pending:
    tuner.tell(trial, accuracy(trial.parameters))
while tuner.told < 80:
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))

print(tuner.certificate())
tuner.plot().savefig(folder / "tuner.png")
print(f"State and picture are in {folder}.")

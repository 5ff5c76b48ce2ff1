"""Tune a model, crash in the middle, certify the answer

A support vector machine with a parameter that only one of its kernels has. Each value is the accuracy on 100 rows,
drawn anew for every trial. The tuner is saved with two trials pending, and loaded again.

See docs/how-to/tuning.md.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import mixbandit as mb
from mixbandit.paper.datasets import load_dataset
from mixbandit.plots import save

warnings.simplefilter("ignore", ConvergenceWarning)  # some configurations are bad
data = load_dataset("raisin")
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
    {"degree": ("kernel", ["poly"])},  # matters only there
)


def accuracy(parameters: dict[str, object]) -> float:
    """Accuracy on 100 validation rows, drawn anew for every trial."""
    model = SVC(**parameters, max_iter=5000).fit(X[:half], y[:half])
    drawn = rng.integers(half, len(y), size=100)
    return float((model.predict(X[drawn]) == y[drawn]).mean())


out = Path("out/examples")
known = mb.Assumptions(reward_range=(0, 1), samples=100, rows="fresh")  # a value is the mean of 100 results in [0, 1]
tuner = mb.Tuner(space, known, rng=0)
for _ in range(40):
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
tuner.ask(2)  # two machines begin to work on these ...
tuner.save(out / "tuning.mixbandit")  # ... and this one crashes

tuner = mb.Tuner.load(out / "tuning.mixbandit")
print(f"{tuner.told} values and {len(tuner.pending)} pending trials after the crash.")
for trial in tuner.pending:
    tuner.tell(trial, accuracy(trial.parameters))
while tuner.told < 80:
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
print(tuner.certificate())

# The picture.
fig = tuner.plot()
fig.axes[0].set_title("80 trials, and the 95 % interval of the recommended one")
save(fig, out / "tuning.png")

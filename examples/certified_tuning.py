"""Tune, confirm, certify, and compare with the present setting

A support vector machine on handwritten digits. Each value is the accuracy on 100 rows, drawn anew for every trial, and
training is not random, so that `samples=100` is true. Confirming the finalists raises the certified value; trials of
the present setting show that the new one is better.

See docs/how-to/tuning.md.
"""

import functools
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import mixbandit as mb
from mixbandit.plots import COLOURS, figure, save

X, y = load_digits(return_X_y=True)
X, rng = X / 16.0, np.random.default_rng(0)
order = rng.permutation(len(y))
training, others = order[:300], order[300:]


@functools.cache
def correct(C: float, gamma: float) -> np.ndarray:
    """Which of the other rows the model gets right."""
    model = SVC(C=C, gamma=gamma).fit(X[training], y[training])
    return model.predict(X[others]) == y[others]


def accuracy(parameters: dict[str, float]) -> float:
    """Accuracy on 100 rows, drawn anew for every trial."""
    return float(rng.choice(correct(**parameters), size=100).mean())


present = {"C": 1.0, "gamma": 0.01}  # the setting in use
space = {"C": mb.Float(1e-1, 1e3, log=True), "gamma": mb.Float(1e-4, 1.0, log=True)}
tuner = mb.Tuner(space, reward_range=(0, 1), samples=100, rows="fresh", rng=0)
for _ in range(5):
    tuner.tell(tuner.adopt(present), accuracy(present))
for _ in range(40):
    trial = tuner.ask()
    tuner.tell(trial, accuracy(trial.parameters))
searched = tuner.certificate()
print(f"After {tuner.told} trials:\n{searched}\n")

for trial in tuner.confirm(20):
    tuner.tell(trial, accuracy(trial.parameters))
confirmed = tuner.certificate()
print(f"After {tuner.told} trials, confirmations included:\n{confirmed}\n")
print(f"Better than the present setting?\n{confirmed.improvement(over=present)}\n")
print(f"What would a higher floor take?\n{tuner.plan(floor=0.97)}\n")

truth = {name: correct(**found).mean() for name, found in (("new", confirmed.parameters), ("present", present))}
print(f"The truth, known only in an example: {truth['new']:.4f}, and {truth['present']:.4f} for the present setting.")

# The picture.
fig, (ax,) = figure(width=6.5, height=2.8)
drawn = {
    "present setting": (confirmed.of(present).interval, truth["present"]),
    "new, before confirming": (searched.interval, correct(**searched.parameters).mean()),
    "new, after confirming": (confirmed.interval, truth["new"]),
}
for row, ((low, high), true) in enumerate(drawn.values()):
    ax.plot([low, high], [row, row], color=COLOURS[0], linewidth=6, solid_capstyle="butt", label="certified interval")
    ax.plot(true, row, "kx", markersize=8, label="truth")
ax.set_yticks(range(len(drawn)), drawn)
ax.margins(y=0.25)
ax.invert_yaxis()
ax.set(xlabel="expected accuracy", title="Two settings of a support vector machine, all at 95 %")
ax.legend(*(some[:2] for some in ax.get_legend_handles_labels()), loc="lower left")
save(fig, Path("out/examples/certified_tuning.png"))

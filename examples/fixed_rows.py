"""One validation set: three cases

If all configurations are measured on the same rows, a guarantee about new rows depends on how the configurations were
chosen. A grid was fixed in advance, so its scores allow one. A search that learns from its own scores allows none,
until its finalists are measured on rows that it never saw.

See docs/how-to/fixed-rows.md.
"""

from pathlib import Path

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

import mixbandit as mb
from mixbandit.plots import COLOURS, figure, save

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_digits(return_X_y=True)
X, X_fresh, y, y_fresh = train_test_split(X, y, test_size=600, random_state=0)  # no search sees the last 600

print("1. A grid with cross-validation: fixed before any score was seen.")
search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [1e-4, 1e-3, 1e-2]}, cv=5).fit(X, y)
grid = mb.certify(search, samples=len(y) // 5, reward_range=(0, 1))
print(grid)

print("\n2. TPE on one validation set: each trial depends on the values before it.")
X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=300, random_state=0)


def accuracy(trial: optuna.Trial) -> float:
    """Accuracy on the same 300 rows in every trial."""
    C, gamma = trial.suggest_float("C", 1e-2, 1e2, log=True), trial.suggest_float("gamma", 1e-5, 1e-1, log=True)
    return float(SVC(C=C, gamma=gamma).fit(X_train, y_train).score(X_valid, y_valid))


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(accuracy, n_trials=30)
print(mb.certify(study, rows="fixed"))

print("\n3. Its two best configurations, measured once on the 600 fresh rows.")
finalists = [trial.params for trial in sorted(study.trials, key=lambda trial: -trial.value)[:2]]
values = [float(SVC(**params).fit(X_train, y_train).score(X_fresh, y_fresh)) for params in finalists]
fresh = mb.certify_finalists(list(zip(finalists, values, strict=True)), samples=len(y_fresh), reward_range=(0, 1))
print(fresh)

# The picture.
fig, (ax,) = figure(width=6.5, height=2.8)
cases = {
    "1. grid, 5 folds": (grid.interval, search.best_score_),
    "2. TPE, one validation set": ((0.0, 1.0), study.best_value),
    "3. TPE's finalist, fresh rows": (fresh.interval, fresh.on_these_rows),
}
for row, ((low, high), measured) in enumerate(cases.values()):
    ax.plot([low, high], [row, row], color=COLOURS[0], linewidth=6, solid_capstyle="butt", label="new rows")
    ax.plot(measured, row, "k.", markersize=8, label="measured")
ax.set_yticks(range(len(cases)), cases)
ax.margins(y=0.25)
ax.invert_yaxis()
ax.set(xlim=(0.84, 1.001), xlabel="accuracy (case 2 goes on down to 0)", title="What is known about new rows, at 95 %")
ax.legend(*(some[:2] for some in ax.get_legend_handles_labels()), loc="lower left")
save(fig, Path("out/examples/fixed_rows.png"))

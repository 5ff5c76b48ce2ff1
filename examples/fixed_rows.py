"""Three certificates for values on the same rows: a grid, a search by its own values, and finalists on fresh rows."""

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

import mixbandit as mb

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_digits(return_X_y=True)
X, X_fresh, y, y_fresh = train_test_split(X, y, test_size=600, random_state=0)  # the search never sees the last 600

print("A grid, by cross-validation: fixed before any score was seen.")
search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [1e-4, 1e-3, 1e-2]}, cv=5).fit(X, y)
print(mb.certify(search, samples=len(y) // 5, reward_range=(0, 1)))

print("\nTPE on one validation set: every trial goes by the values of those before it.")
X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=300, random_state=0)


def accuracy(trial: optuna.Trial) -> float:
    """Accuracy on the same 300 rows for every trial."""
    C, gamma = trial.suggest_float("C", 1e-2, 1e2, log=True), trial.suggest_float("gamma", 1e-5, 1e-1, log=True)
    return float(SVC(C=C, gamma=gamma).fit(X_train, y_train).score(X_valid, y_valid))


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(accuracy, n_trials=30)
print(mb.certify(study, rows="fixed"))

print("\nIts two best configurations, measured once on the 600 fresh rows.")
finalists = [trial.params for trial in sorted(study.trials, key=lambda trial: -trial.value)[:2]]
values = [float(SVC(**params).fit(X_train, y_train).score(X_fresh, y_fresh)) for params in finalists]
print(mb.certify_finalists(list(zip(finalists, values, strict=True)), samples=len(y_fresh), reward_range=(0, 1)))

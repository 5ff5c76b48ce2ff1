"""Certify a GridSearchCV: accuracy, and ROC AUC

A grid was fixed before any score was seen, so that its cross-validation scores allow a guarantee about new rows.
Accuracy is a mean over rows: state how many a fold has. AUC is not: state the noise level of a fold's score. With p
positive and n negative rows it is at most ½√(1/p + 1/n), because one row changes the AUC by at most 1/p or 1/n
(McDiarmid's inequality). The statements are about the mean of the five fitted models, not about the refitted one.

See docs/how-to/fixed-rows.md.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import mixbandit as mb
from mixbandit.plots import COLOURS, MARKERS, figure, save

X, y = make_classification(20_000, n_features=10, n_informative=6, flip_y=0.05, random_state=0)
folds = StratifiedKFold(5)
grid = {"max_depth": [2, 4, 6, 8, 12], "min_samples_leaf": [5, 50]}
tree = DecisionTreeClassifier(random_state=0)  # training is not random

rows = len(y) // 5  # of one fold
fewest = min((y[test] == label).sum() for _, test in folds.split(X, y) for label in (0, 1))
sigma = 0.5 * np.sqrt(2.0 / fewest)
statements = {"accuracy": {"samples": rows}, "roc_auc": {"sigma": sigma}}

found = {}
for scoring, stated in statements.items():
    search = GridSearchCV(tree, grid, scoring=scoring, cv=folds).fit(X, y)
    found[scoring] = mb.certify(search, reward_range=(0, 1), **stated)
    print(f"{scoring}: best mean of 5 folds {search.best_score_:.4f}\n{found[scoring]}\n")

# The picture.
fig, axes = figure(2, width=4.2, height=3.2, sharey=True)
for ax, (scoring, certificate) in zip(axes, found.items(), strict=True):
    for position, leaf in enumerate(grid["min_samples_leaf"]):
        ends = [certificate.of({"max_depth": depth, "min_samples_leaf": leaf}) for depth in grid["max_depth"]]
        low, high = np.array([(end.lower, end.upper) for end in ends]).T
        x, middle = np.arange(len(ends)) + 0.2 * position, (low + high) / 2
        ax.errorbar(x, middle, (high - low) / 2, fmt=MARKERS[position], color=COLOURS[position], capsize=3,
                    label=f"leaves of at least {leaf} rows")  # fmt: skip
    ax.set_xticks(range(len(ends)), grid["max_depth"])
    ax.set(xlabel="max_depth", title=f"{scoring}: all intervals hold at 95 %")
axes[0].set_ylabel("expected score on new rows")
axes[0].legend(fontsize="small", loc="lower right")
save(fig, Path("out/examples/grid_search.png"))

"""Search in scikit-learn, one fold at a time

`MixBanditSearchCV` takes the place of `GridSearchCV`. Its own certificate is about the rows that it was given. For new
rows, measure finalists on rows that the search never saw, or search a grid that was fixed in advance.

See docs/how-to/sklearn.md.
"""

from pathlib import Path

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import mixbandit as mb
from mixbandit.plots import COLOURS, figure, save

X, y = load_digits(return_X_y=True)
X, X_fresh, y, y_fresh = train_test_split(X, y, test_size=600, random_state=0)  # no search sees the last 600

print("50 model fits, each on one of five folds.")
model = make_pipeline(MinMaxScaler(), SVC())
space = {"svc__C": loguniform(1e-2, 1e3), "svc__gamma": loguniform(1e-3, 1e1)}
search = mb.MixBanditSearchCV(model, space, n_trials=50, random_state=0).fit(X, y)
results = search.cv_results_
print(f"{len(results['params'])} configurations, {(results['folds_evaluated'] == 5).sum()} of them on all folds.")
print(search.certificate_)

print("\nIts two best configurations, refitted and measured once on the 600 fresh rows.")
finalists = [results["params"][i] for i in np.argsort(results["rank_test_score"])[:2]]
values = [model.set_params(**parameters).fit(X, y).score(X_fresh, y_fresh) for parameters in finalists]
print(mb.certify_finalists(list(zip(finalists, values, strict=True)), samples=len(y_fresh), reward_range=(0, 1)))

print("\nA plain grid search that refits the configuration with the best guarantee.")
grid = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 0.3, 1.0]}
plain = GridSearchCV(model, grid, refit=mb.best_guaranteed(samples=len(y) // 5)).fit(X, y)
print(mb.certify(plain, samples=len(y) // 5, reward_range=(0, 1)))

# The picture.
fig, (ax,) = figure(width=6.5, height=3.5)
C, gamma = (np.array([parameters[name] for parameters in results["params"]]) for name in space)
folds, score = results["folds_evaluated"], results["mean_test_score"]
shown = ax.scatter(C, gamma, s=25 * folds, c=score, vmin=0.9, edgecolors="black", label="a configuration")
best = search.best_index_
ax.plot(C[best], gamma[best], "o", markersize=18, color=COLOURS[1], fillstyle="none", mew=2, label="the best")
ax.set(xscale="log", yscale="log", xlabel="C", ylabel="gamma", title="50 fits: the larger a circle, the more folds")
fig.colorbar(shown, extend="min", label="mean accuracy of its folds")
ax.legend(fontsize="small", markerscale=0.5, loc="lower left")
save(fig, Path("out/examples/sklearn_search.png"))

"""A contextual bandit: which article for which reader?

The click rate of each article is linear in the reader's features, here an intercept and the age, with parameters of its
own. All bounds hold at all times at once with probability 0.95, if that is so and the norm of each article's parameters
is at most 0.7.

See docs/how-to/bandits.md. For contexts as dicts, and choices that go by predictions, see docs/how-to/contexts.md.
"""

from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.plots import bounds, figure, save

rng = np.random.default_rng(0)
rates = {"sport": (0.50, -0.40), "politics": (0.10, 0.35), "weather": (0.20, 0.00)}  # at age 0, and the slope
articles = mb.Arms(range(3), labels=list(rates))
one = mb.MartingaleMixture(2, sigma=0.5, norm_bound=0.7, reward_range=(0, 1), delta=0.05)
bandit = mb.UCB(mb.Blocks(one, arms=3), actions=articles, rng=0)

shown = dict.fromkeys(rates, 0)
clicks = 0
for age in rng.uniform(size=3000):  # from 0, the youngest, to 1, the oldest
    choice = bandit.ask(context=[1.0, age])
    intercept, slope = rates[choice.label]
    click = rng.random() < intercept + slope * age
    bandit.tell(choice, click)  # yes or no: the noise level is at most 0.5
    shown[choice.label] += 1
    clicks += click
print(f"{clicks} clicks of 3000 readers; shown: {shown}")
for age in (0.1, 0.9):
    print(f"\nA reader of age {age}:\n{bandit.certificate(context=[1.0, age])}")

# The picture.
fig, axes = figure(3, width=2.7, height=3.0, sharey=True)
ages = np.linspace(0, 1, 50)
for position, (name, (intercept, slope)) in enumerate(rates.items()):
    rows = np.column_stack((np.ones(50), ages, np.full(50, position)))
    lower, upper = (np.clip(end(rows), 0, 1) for end in (bandit.sequence.lower, bandit.sequence.upper))
    bounds(axes[position], ages, lower, upper, truth=intercept + slope * ages, label="95 % bounds")
    axes[position].set(xlabel="age of the reader", ylim=(0, 0.8), title=f"{name}: shown {shown[name]} times")
axes[0].set(ylabel="click rate")
axes[0].legend()
fig.suptitle("Click rates of three articles, after 3,000 readers")
save(fig, Path("out/examples/contextual.png"))

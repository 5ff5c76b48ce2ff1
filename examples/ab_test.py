"""One A/B test, looked at every day

The interval for the difference of two conversion rates may be read after every visitor, and the test stopped at any
time: it is wrong at any of the looks with probability at most 5 %. Visitors are independent, and each counts once.

See docs/how-to/means.md.
"""

from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.plots import curve, figure, save

rng = np.random.default_rng(1)
new, old = np.empty(0), np.empty(0)
lower, upper = [], []
for day in range(1, 29):
    new = np.append(new, rng.random(300) < 0.125)  # who bought, of 300 visitors of the new page
    old = np.append(old, rng.random(300) < 0.100)  # and of 300 of the old one
    result = mb.compare_means(new, old, delta=0.05)
    lower.append(result.lower)
    upper.append(result.upper)
    decided = result.lower > 0 or result.upper < 0
    if day % 7 == 0 or decided:
        print(f"day {day:2d}: the difference is in [{result.lower:+.4f}, {result.upper:+.4f}], p = {result.pvalue:.3g}")
    if decided:
        print(f"Stop: the new page sells {'more' if result.lower > 0 else 'less'}.")
        break
print(f"Observed: {new.mean():.4f} against {old.mean():.4f}. True difference: 0.025.")

# The picture.
fig, (ax,) = figure(width=6.5, height=3.2)
days = np.arange(1, len(lower) + 1)
middle = (np.array(lower) + np.array(upper)) / 2
curve(ax, days, middle, low=lower, high=upper, label="95 % interval, valid on all days at once, and its middle")
ax.axhline(0.0, color="black", linewidth=1.0)
ax.axhline(0.025, color="black", linestyle="--", linewidth=1.0, label="true difference")
ax.set(xlabel="day, 300 visitors of each page", ylabel="difference of the rates", ylim=(-0.1, 0.15))
ax.set_title(f"An A/B test, stopped on day {len(lower)}: the interval excludes 0")
ax.legend(fontsize="small", loc="upper right")
save(fig, Path("out/examples/ab_test.png"))

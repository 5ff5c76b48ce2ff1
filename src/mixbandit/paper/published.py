"""What the paper says: the numbers of its Table 1, and claims to check against our results."""

from __future__ import annotations

from dataclasses import dataclass

# Mean and maximum test accuracy over 500 rounds, means over 100 repetitions.
TABLE1 = {
    "raisin": {
        "CMM-UCB": (0.818, 0.893),
        "AMM-UCB": (0.800, 0.892),
        "OFUL": (0.764, 0.891),
        "IDS": (0.706, 0.891),
        "Freq-TS": (0.527, 0.884),
    },
    "maternal": {
        "CMM-UCB": (0.744, 0.829),
        "AMM-UCB": (0.736, 0.829),
        "OFUL": (0.722, 0.827),
        "IDS": (0.714, 0.827),
        "Freq-TS": (0.616, 0.823),
    },
    "banknotes": {
        "CMM-UCB": (0.954, 1.000),
        "AMM-UCB": (0.948, 1.000),
        "OFUL": (0.929, 1.000),
        "IDS": (0.926, 1.000),
        "Freq-TS": (0.808, 1.000),
    },
}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and what we found."""

    where: str  # "Table 1", "Figure 2"
    text: str
    seen: str
    holds: bool

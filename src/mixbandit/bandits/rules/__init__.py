"""Acting rules decide what to play from what is known at a moment: with what probability each arm.

On predictions, about which nothing is proven: `Optimistic`, `Greedy`, `Thompson`, `InverseGap`. On proven bounds:
`Optimism` (the paper's), `LeastRegretPerInformation`, and `Thompson`, too. On nothing: `Uniform`.
"""

from mixbandit.bandits.rules.base import NO_BELIEF, ActingRule, View, as_shares
from mixbandit.bandits.rules.information import LeastRegretPerInformation
from mixbandit.bandits.rules.optimism import Optimism
from mixbandit.bandits.rules.predictions import Greedy, InverseGap, Optimistic
from mixbandit.bandits.rules.thompson import Thompson
from mixbandit.bandits.rules.uniform import Uniform

__all__ = [
    "NO_BELIEF",
    "ActingRule",
    "Greedy",
    "InverseGap",
    "LeastRegretPerInformation",
    "Optimism",
    "Optimistic",
    "Thompson",
    "Uniform",
    "View",
    "as_shares",
]

"""Bandits: what to choose next, behind one `ask` and `tell`."""

from mixbandit.bandits.base import Policy
from mixbandit.bandits.choice import Choice
from mixbandit.bandits.named import (
    AMMUCB,
    CMMUCB,
    IDS,
    OFUL,
    POLICIES,
    UCB,
    FreqTS,
    Greedy,
    InformationDirected,
    ThompsonSampling,
    Uniform,
    UniformSampling,
    policy_from_state_dict,
)
from mixbandit.bandits.rules import ActingRule, LeastRegretPerInformation, Optimism, Thompson, Uniformly, View
from mixbandit.bandits.state import State
from mixbandit.bandits.stored import POLICY, difference, is_state_of

__all__ = [
    "AMMUCB",
    "CMMUCB",
    "IDS",
    "OFUL",
    "POLICIES",
    "POLICY",
    "UCB",
    "ActingRule",
    "Choice",
    "FreqTS",
    "Greedy",
    "InformationDirected",
    "LeastRegretPerInformation",
    "Optimism",
    "Policy",
    "State",
    "Thompson",
    "ThompsonSampling",
    "Uniform",
    "UniformSampling",
    "Uniformly",
    "View",
    "difference",
    "is_state_of",
    "policy_from_state_dict",
]

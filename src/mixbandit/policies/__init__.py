"""Policies: what to choose next, behind one `ask` and `tell`."""

from mixbandit.policies.base import Policy
from mixbandit.policies.choice import Choice
from mixbandit.policies.ids import InformationDirected
from mixbandit.policies.named import AMMUCB, CMMUCB, IDS, OFUL, FreqTS, Greedy, Uniform
from mixbandit.policies.thompson import ThompsonSampling
from mixbandit.policies.ucb import UCB
from mixbandit.policies.uniform import UniformSampling

__all__ = [
    "AMMUCB",
    "CMMUCB",
    "IDS",
    "OFUL",
    "UCB",
    "Choice",
    "FreqTS",
    "Greedy",
    "InformationDirected",
    "Policy",
    "ThompsonSampling",
    "Uniform",
    "UniformSampling",
]

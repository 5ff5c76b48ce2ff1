"""Bandits: what to choose next, behind one `ask` and `tell`."""

from mixbandit.bandits.base import Policy
from mixbandit.bandits.choice import Choice
from mixbandit.bandits.events import Cancelled, Decided, Event, Learnt, Refuted, Told
from mixbandit.bandits.journal import Journal, MemoryJournal
from mixbandit.bandits.named import (
    AMMUCB,
    CMMUCB,
    IDS,
    OFUL,
    UCB,
    FreqTS,
    Greedy,
    InformationDirected,
    ThompsonSampling,
    Uniform,
    UniformSampling,
)
from mixbandit.bandits.rules import (
    ActingRule,
    InverseGap,
    LeastRegretPerInformation,
    Optimism,
    Optimistic,
    Thompson,
    View,
)
from mixbandit.bandits.rules import Uniform as Uniformly
from mixbandit.bandits.state import State
from mixbandit.bandits.stored import difference

__all__ = [
    "AMMUCB",
    "CMMUCB",
    "IDS",
    "OFUL",
    "UCB",
    "ActingRule",
    "Cancelled",
    "Choice",
    "Decided",
    "Event",
    "FreqTS",
    "Greedy",
    "InformationDirected",
    "InverseGap",
    "Journal",
    "Learnt",
    "LeastRegretPerInformation",
    "MemoryJournal",
    "Optimism",
    "Optimistic",
    "Policy",
    "Refuted",
    "State",
    "Thompson",
    "ThompsonSampling",
    "Told",
    "Uniform",
    "UniformSampling",
    "Uniformly",
    "View",
    "difference",
]

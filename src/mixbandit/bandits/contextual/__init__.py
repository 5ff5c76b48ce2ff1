"""Decisions in context: labelled arms, named contexts, stated probabilities, and a journal that leads to the state."""

from mixbandit.bandits.contextual.bandit import ContextualBandit
from mixbandit.bandits.contextual.choice import ContextualChoice, Probabilities
from mixbandit.bandits.contextual.control import Control
from mixbandit.bandits.contextual.events import (
    ArmAdded,
    ArmRemoved,
    ContextualEvent,
    DecidedInContext,
    DecisionCancelled,
    RewardTold,
)
from mixbandit.bandits.contextual.explanation import Explanation
from mixbandit.bandits.contextual.intervals import Intervals

__all__ = [
    "ArmAdded",
    "ArmRemoved",
    "ContextualBandit",
    "ContextualChoice",
    "ContextualEvent",
    "Control",
    "DecidedInContext",
    "DecisionCancelled",
    "Explanation",
    "Intervals",
    "Probabilities",
    "RewardTold",
]

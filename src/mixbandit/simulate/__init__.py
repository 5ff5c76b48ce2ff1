"""Run policies on environments, and keep records."""

from mixbandit.simulate.environments import ChangingArms, Environment, FunctionEnvironment, LinearEnvironment, Offer
from mixbandit.simulate.players import Player
from mixbandit.simulate.records import Record, Records
from mixbandit.simulate.runner import StopWhen, run, stop_when

__all__ = [
    "ChangingArms",
    "Environment",
    "FunctionEnvironment",
    "LinearEnvironment",
    "Offer",
    "Player",
    "Record",
    "Records",
    "StopWhen",
    "run",
    "stop_when",
]

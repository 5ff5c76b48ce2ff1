"""Run policies on environments, and keep records."""

from mixbandit.simulate.environments import ChangingArms, Environment, FunctionEnvironment, LinearEnvironment, Offer
from mixbandit.simulate.records import Record, Records
from mixbandit.simulate.runner import StopWhen, run, stop_when

__all__ = [
    "ChangingArms",
    "Environment",
    "FunctionEnvironment",
    "LinearEnvironment",
    "Offer",
    "Record",
    "Records",
    "StopWhen",
    "run",
    "stop_when",
]

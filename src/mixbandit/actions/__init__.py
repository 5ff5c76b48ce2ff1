"""What can be chosen: finitely many arms, which may change, or a box, with some coordinates possibly discrete."""

from mixbandit.actions.arms import REGIONS, Arms, storable_label
from mixbandit.actions.box import Box
from mixbandit.actions.levels import Exchanges, Levels, OneHot, Pin
from mixbandit.actions.mixed import MixedBox, mixed
from mixbandit.actions.regions import Region, as_context, as_region, is_region, offered

__all__ = [
    "REGIONS",
    "Arms",
    "Box",
    "Exchanges",
    "Levels",
    "MixedBox",
    "OneHot",
    "Pin",
    "Region",
    "as_context",
    "as_region",
    "is_region",
    "mixed",
    "offered",
    "storable_label",
]

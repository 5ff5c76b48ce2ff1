"""What can be chosen: finitely many arms, which may change, or a box, with some coordinates possibly discrete."""

from mixbandit.actions.arms import Arms, storable_label
from mixbandit.actions.box import Box
from mixbandit.actions.levels import Exchanges, Levels, OneHot, Pin
from mixbandit.actions.mixed import MixedBox
from mixbandit.actions.regions import REGION, Region, as_context, as_region, is_region, offered, region_from_state_dict

__all__ = [
    "REGION",
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
    "offered",
    "region_from_state_dict",
    "storable_label",
]

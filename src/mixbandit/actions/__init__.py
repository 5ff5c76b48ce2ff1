"""What may be chosen: finitely many arms, which may change, or a box, in which some coordinates may be discrete."""

from mixbandit.actions.arms import Arms, storable_label
from mixbandit.actions.box import Box
from mixbandit.actions.mixed import Levels, MixedBox, Pin
from mixbandit.actions.regions import Region, as_context, as_region, offered, region_from_state_dict

__all__ = [
    "Arms",
    "Box",
    "Levels",
    "MixedBox",
    "Pin",
    "Region",
    "as_context",
    "as_region",
    "offered",
    "region_from_state_dict",
    "storable_label",
]

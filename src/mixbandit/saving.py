"""Save and load: one file, versioned, atomic, checked, no pickle."""

from __future__ import annotations

import os

from mixbandit._checks import as_path, shown
from mixbandit._files import read_state, write_state
from mixbandit.bandits import Policy
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.features import FeatureMap
from mixbandit.means import MeanSequence
from mixbandit.sequences import ConfidenceSequence
from mixbandit.storage import FILES, IMPORT_IT, Storable
from mixbandit.tuning import Tuner


def save(what: Policy | Tuner | ConfidenceSequence | MeanSequence, path: str | os.PathLike[str]) -> None:
    """Write a policy, a tuner or a sequence to one file. A crash leaves either the old file or the new one."""
    if not isinstance(what, Storable) or FILES not in (what.family, what.family.within):
        raise InvalidInput(f"only policies, tuners and confidence sequences can be saved, got {shown(what)}")
    write_state(as_path(path), what.state_dict())


def load(
    path: str | os.PathLike[str], features: FeatureMap | int | None = None
) -> Policy | Tuner | ConfidenceSequence | MeanSequence:
    """Load what `save` wrote, bit for bit. Your own feature functions are not saved: pass them again to be verified."""
    state = read_state(as_path(path))
    kind = state.get("type")
    if not isinstance(kind, str):
        raise DamagedState(f"{path} does not say what kind of object it holds")
    if kind not in FILES.kinds:
        raise DamagedState(f"{path} holds a {kind!r}, which this mixbandit does not know{IMPORT_IT}")
    return FILES.kinds[kind].from_state_dict(state, features)  # type: ignore[return-value]

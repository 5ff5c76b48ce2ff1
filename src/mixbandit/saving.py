"""Save and load: one file, versioned, atomic, checked, no pickle."""

from __future__ import annotations

import os
from typing import Any

from mixbandit._checks import as_path, shown
from mixbandit._files import read_state, write_state
from mixbandit.bandits import Policy
from mixbandit.bandits.contextual import ContextualBandit
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.means import MeanSequence
from mixbandit.sequences import ConfidenceSequence
from mixbandit.storage import FILES, IMPORT_IT, Storable
from mixbandit.tuning import Tuner

Saved = ContextualBandit | Policy | Tuner | ConfidenceSequence | MeanSequence


def save(what: Saved, path: str | os.PathLike[str]) -> None:
    """Write a bandit, a tuner or a sequence to one file. A crash leaves either the old file or the new one."""
    if not isinstance(what, Storable) or FILES not in (what.family, what.family.within):
        raise InvalidInput(f"only bandits, tuners and confidence sequences can be saved, got {shown(what)}")
    write_state(as_path(path), what.state_dict())


def load(path: str | os.PathLike[str], features: Any = None) -> Saved:
    """Load what `save` wrote, bit for bit.

    Your own feature functions, and transformers, are not saved: pass them again as `features`, to be verified.
    """
    state = read_state(as_path(path))
    kind = state.get("type")
    if not isinstance(kind, str):
        raise DamagedState(f"{path} does not say what kind of object it holds")
    if kind not in FILES.kinds:
        raise DamagedState(f"{path} holds a {kind!r}, which this mixbandit does not know{IMPORT_IT}")
    return FILES.kinds[kind].from_state_dict(state, features)  # type: ignore[return-value]

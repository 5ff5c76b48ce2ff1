"""Certificates of studies that go on although a value contradicts what was stated."""

from __future__ import annotations

import dataclasses
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

from mixbandit.errors import InvalidInput
from mixbandit.tuning import Assumptions, Space, StudyCertificate
from mixbandit.tuning.certification import certified

if TYPE_CHECKING:
    from optuna.study import Study


def certify_study(
    study: Study, assumptions: Assumptions, space: Space | None = None, *, refuted: bool = False
) -> StudyCertificate:
    """The certificate of a study, without warnings.

    Values that contradict the assumptions are left out and counted by reason. They were left out because of what they
    are, and they refute the assumptions, as a caller may know something else does (`refuted`): nothing that is said
    about the others is guaranteed then.
    """
    if not (hasattr(study, "get_trials") and hasattr(study, "directions")):
        raise InvalidInput(f"study must be an Optuna study, got {study!r}")
    usable, left_out = [], Counter[str]()
    for trial in study.get_trials(deepcopy=False):
        values = trial.values or []
        objection = assumptions.objection(values[0]) if trial.state.name == "COMPLETE" and len(values) == 1 else None
        if objection is None:
            usable.append(trial)
        else:
            left_out[objection] += 1
    if left_out and not any(trial.state.name == "COMPLETE" for trial in usable):
        told = ", ".join(f"{count} {why}" for why, count in left_out.items())
        raise InvalidInput(f"no completed trial can be used (found: {told})")
    # What `certify` reads of a study.
    rest = SimpleNamespace(directions=study.directions, get_trials=lambda **_: usable)
    found = certified(rest, assumptions, space=space, stated={})
    if not (left_out or refuted):
        return found
    left_out.update(found.left_out)
    return dataclasses.replace(found, left_out=dict(left_out), trusted=False, search_possible=None)

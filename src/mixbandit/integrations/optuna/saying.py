"""Saying things once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.study import Study


class Said:
    """What has been said about which study, so that it is not said again with every trial."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def is_new(self, study: Study, what: str) -> bool:
        """Whether something has not been said about a study yet; it counts as said from now on."""
        new = (study.study_name, what) not in self._said
        self._said.add((study.study_name, what))
        return new

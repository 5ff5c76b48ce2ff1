"""Saying things once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixbandit.integrations.optuna.storage import identity

if TYPE_CHECKING:
    from optuna.study import Study


class Said:
    """What has been said about which study, so that it is not said again with every trial."""

    def __init__(self) -> None:
        self._said: set[tuple[Any, str]] = set()

    def __getstate__(self) -> dict[str, Any]:
        # Storages cannot travel to other processes, which may say everything once more.
        return {"_said": set()}

    def is_new(self, study: Study, what: str) -> bool:
        """Whether something has not been said about a study yet; it counts as said from now on."""
        said = (identity(study), what)
        new = said not in self._said
        self._said.add(said)
        return new

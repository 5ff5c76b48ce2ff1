"""One valid call of something public: a row of the table of bad values."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import mixbandit as mb
from mixbandit import plots
from mixbandit.integrations import optuna as in_optuna

Arguments = dict[str, Any]

# Ids begin with a random token; this one stands in messages, and must not change from run to run.
TOKEN = "1f2e3d4c5b6a7980"
SAME_IDS = mock.patch("secrets.token_hex", return_value=TOKEN)

_MODULES = {"plots": plots, "optuna": in_optuna}


@dataclass(frozen=True)
class Call:
    """One valid call: of a function, of a class, or of a method of a subject made for it."""

    name: str  # what is called: "certify", "Box", "CMMUCB.tell"
    arguments: Callable[[], Arguments]  # fresh and valid
    subject: Callable[[], Any] | None = None
    variant: str = ""  # tells several calls of the same callable apart

    @property
    def target(self) -> Callable[..., Any]:
        """What is called, without a subject."""
        return resolved(self.name)

    @property
    def label(self) -> str:
        return f"{self.name} ({self.variant})" if self.variant else self.name

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.arguments())

    def __call__(self, subject: Any, arguments: Arguments) -> Any:
        if self.subject is None:
            return self.target(**arguments)
        method = self.name.rpartition(".")[2]
        return getattr(subject, method)(**arguments)


def resolved(name: str) -> Any:
    """The object of a dotted name: `regret.worst_case`, `plots.curve`, `optuna.publish`, `Box`, `UCB.ask`."""
    found: Any = mb
    for part in name.split("."):
        found = _MODULES.get(part) or getattr(found, part)
    return found


def many(
    subjects: dict[str, Callable[[], Any]], methods: dict[str, Callable[[], Arguments]], module: str = ""
) -> list[Call]:
    """Every method of every subject that has it; the class of the subject is in the name, after that of a module."""
    calls = []
    for variant, make in subjects.items():
        kind = type(make()).__name__
        calls += [
            Call(f"{module}{kind}.{method}", arguments, make, variant if variant != kind else "")
            for method, arguments in methods.items()
            if hasattr(make(), method)
        ]
    return calls

"""Attributes and imports made once, when first needed."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used as a decorator, like property
    """An attribute that is computed when first read, and kept.

    Like functools.cached_property, which before Python 3.12 takes a lock that costs more than most values kept here.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def setting(path: str, doc: str | None = None) -> Any:
    """A read-only attribute that is kept elsewhere in the object."""
    return property(operator.attrgetter(path), doc=doc)


@functools.cache
def lapack() -> ModuleType:
    """Scipy's LAPACK, imported late: it would be a third of the package's import time."""
    module: ModuleType = importlib.import_module("scipy.linalg.lapack")
    return module


@functools.cache
def blas() -> ModuleType:
    """Scipy's BLAS, imported late for the same reason."""
    module: ModuleType = importlib.import_module("scipy.linalg.blas")
    return module

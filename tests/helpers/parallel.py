"""Work that other processes import."""

import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Settings:
    name: str = "x"


def slow(repetition):
    time.sleep(0.1)
    return (repetition**2,)

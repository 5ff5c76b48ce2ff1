"""How commands end: errors become messages, signals an orderly stop, and the exit code says which kind it was.

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: a broken promise, an unwritable file, a missing package, failing trials or confirmations, or a bug |
| 2 | wrong input: an option, an assumption that is missing, or a file or storage that cannot be read |
| 3 | `certify`, `report`, `tune`: the data refute the stated assumptions |
| 130, 143, 129 | stopped by Ctrl-C, SIGTERM or a closed terminal |
| 141 | nobody reads the output any more, as in `| head` |
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from mixbandit._compiling import raise_interrupt_in
from mixbandit.errors import AssumptionsMissing, AssumptionsRefuted, DamagedState, InvalidInput, MixbanditError
from mixbandit.tuning.tables import masked

FAILED, WRONG_INPUT, REFUTED = 1, 2, 3
_SIGNALLED = 128
_UNREAD = _SIGNALLED + 13  # SIGPIPE
_ADVICE = "on the command line: --range LOW HIGH and --samples N, or --sigma S with --range or --norm-bound B"


class Stopped(KeyboardInterrupt):
    """A signal that asks to stop: whatever is undone after Ctrl-C is undone after this."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = code_after(number)


def stop_orderly() -> None:
    """Turn SIGTERM and a closed terminal into an exception, so that processes are ended and files closed."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: a second one must not interrupt the end
    raise Stopped(number)


def code_after(number: int) -> int:
    """The exit code after a signal."""
    return _SIGNALLED + number


def code_of(interrupt: KeyboardInterrupt) -> int:
    """The exit code after an interrupt."""
    return interrupt.code if isinstance(interrupt, Stopped) else code_after(signal.SIGINT)


class Commands(TyperGroup):
    """The commands, with errors turned into messages and exit codes in one place."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _ending():  # --help and --version are done here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _ending():
            return super().invoke(ctx)


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    try:
        with _interrupted():
            yield
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(code_of(interrupt)) from None
    except BrokenPipeError:
        raise typer.Exit(_UNREAD) from None
    except (MixbanditError, OSError, MemoryError) as error:
        raise typer.Exit(_told(error)) from None
    except Exception as error:
        if _is_of_typer(error):
            raise
        _say(f"{type(error).__name__}: {error}")
        _say("this is a bug in mixbandit: please report it, with the traceback shown by MIXBANDIT_DEBUG=1")
        _trace(error)
        raise typer.Exit(FAILED) from None


@contextlib.contextmanager
def _interrupted() -> Iterator[None]:
    """Ctrl-C that came out of C code as another error is Ctrl-C nevertheless."""
    try:
        yield
    except SystemError as error:
        raise_interrupt_in(error)
        raise


def _told(error: MixbanditError | OSError | MemoryError) -> int:
    """Say what went wrong; the exit code."""
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory {text}".strip()
    if isinstance(error, AssumptionsMissing):
        text = f"{text} ({_ADVICE})"
    _say(text)
    _trace(error)
    if isinstance(error, AssumptionsRefuted):
        return REFUTED
    return WRONG_INPUT if isinstance(error, InvalidInput | DamagedState) else FAILED


def _say(text: str) -> None:
    # Control characters in a file must not reach the terminal.
    shown = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in masked(text))
    _write(f"mixbandit: {shown}")


def _trace(error: BaseException) -> None:
    if os.environ.get("MIXBANDIT_DEBUG"):
        _write(masked("".join(traceback.format_exception(error))))


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # if nobody can be told, the exit code has to do
        print(text, file=sys.stderr)  # noqa: T201


def _is_of_typer(error: Exception) -> bool:
    """Exits and usage errors, which typer reports itself; it has its own copy of click."""
    return hasattr(error, "exit_code")

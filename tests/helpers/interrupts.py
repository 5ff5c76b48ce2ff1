"""Interrupts and kills at every line, one after the other."""

import contextlib
import dis
import gc
import os
import signal
import sys
import warnings

# Where a try ends CPython puts one that no handler covers; it can afford to, because no signal is handled there.
_NOP = dis.opmap["NOP"]


class Interrupted(KeyboardInterrupt):
    pass


@contextlib.contextmanager
def at_line(number, happens, event="line", within="mixbandit"):
    """Call `happens` at the given line that mixbandit executes, or the given instruction if the event is "opcode".

    Only modules whose names begin with `within` count. Yields a list with the number of lines or instructions that were
    still to come.
    """
    left = [number]

    def on_line(frame, met, argument):
        if met == event and not (met == "opcode" and frame.f_code.co_code[frame.f_lasti] == _NOP):
            left[0] -= 1
            if left[0] == 0:
                happens()
        return on_line

    def on_call(frame, met, argument):
        if not str(frame.f_globals.get("__name__")).startswith(within):
            return None
        frame.f_trace_opcodes = event == "opcode"
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield left
    finally:
        sys.settrace(before)


def _interrupt():
    raise Interrupted


def instructions(work):
    """How many instructions of mixbandit `work` executes."""
    with at_line(0, _interrupt, "opcode") as left:
        work()
    return -left[0]


def finishes(work, number, event="line", within="mixbandit"):
    """Run `work` with an interrupt at the given line, or instruction; whether it was done before that."""
    try:
        with at_line(number, _interrupt, event, within):
            work()
    except Interrupted:
        return False
    return True


def outlasts(work, seconds):
    """Run `work` with a real Ctrl-C after so many seconds; whether it was done before that.

    Compiled code converts arguments and results when the signal comes, which no line of Python shows. Anything but
    KeyboardInterrupt is raised, and so is a Ctrl-C that nobody noticed, as AssertionError.
    """
    came = []

    def interrupt(number, frame):
        came.append(number)
        raise Interrupted

    # Hypothesis times garbage collections in a callback, where Python drops whatever is raised.
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    before = signal.signal(signal.SIGINT, interrupt)
    timer = signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        try:
            work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert not came, "an interrupt was lost"
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGALRM, timer)
        signal.signal(signal.SIGINT, before)
        gc.callbacks.extend(callbacks)
    return True


def survives(work, lines):
    """Run `work` in a child process that is killed at the given line; whether it was done before that."""
    with warnings.catch_warnings():  # numpy's threads are idle, and the child only computes and writes
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    status = 1
    try:
        with at_line(lines, lambda: os._exit(1)):
            work()
        status = 0
    finally:
        os._exit(status)

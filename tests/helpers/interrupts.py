"""Interrupts and kills at every line, one after the other."""

import contextlib
import os
import sys
import warnings


class Interrupted(KeyboardInterrupt):
    pass


@contextlib.contextmanager
def at_line(number, happens, event="line"):
    """Call `happens` at the given line that mixbandit executes, or the given instruction if the event is "opcode".

    Yields a list with the number of lines or instructions that were still to come.
    """
    left = [number]

    def on_line(frame, met, argument):
        if met == event:
            left[0] -= 1
            if left[0] == 0:
                happens()
        return on_line

    def on_call(frame, met, argument):
        if not str(frame.f_globals.get("__name__")).startswith("mixbandit"):
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


def finishes(work, number, event="line"):
    """Run `work` with an interrupt at the given line, or instruction; whether it was done before that."""
    try:
        with at_line(number, _interrupt, event):
            work()
    except Interrupted:
        return False
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

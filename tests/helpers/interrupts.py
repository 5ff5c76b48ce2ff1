"""Interrupts and kills at every line, one after the other."""

import contextlib
import os
import sys
import warnings


class Interrupted(KeyboardInterrupt):
    pass


@contextlib.contextmanager
def at_line(number, happens):
    """Call `happens` at the given line that mixbandit executes, counted from here."""
    left = [number]

    def on_line(frame, event, argument):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                happens()
        return on_line

    def on_call(frame, event, argument):
        return on_line if str(frame.f_globals.get("__name__")).startswith("mixbandit") else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def _interrupt():
    raise Interrupted


def finishes(work, lines):
    """Run `work` with an interrupt at the given line that mixbandit executes; whether it was done before that."""
    try:
        with at_line(lines, _interrupt):
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

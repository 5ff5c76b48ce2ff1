"""Interrupts at every line, one after the other."""

import sys


class Interrupted(KeyboardInterrupt):
    pass


def finishes(work, lines):
    """Run `work` with an interrupt at the given line that mixbandit executes; whether it was done before that."""
    left = [lines]

    def on_line(frame, event, argument):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted
        return on_line

    def on_call(frame, event, argument):
        return on_line if str(frame.f_globals.get("__name__")).startswith("mixbandit") else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    except Interrupted:
        return False
    finally:
        sys.settrace(before)
    return True

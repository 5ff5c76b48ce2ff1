"""A journal of a user's own: a file with an event a line, which several processes on one machine may share."""

import fcntl
import os

from mixbandit.bandits import Event
from mixbandit.storage import from_line, to_line


class LinesJournal:
    """Events in a file, locked while they are written."""

    def __init__(self, path):
        self.path = path

    def append(self, events, number):
        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            kept = _whole_lines(file)
            file.truncate(len(kept))  # what a crash left of a line was never kept
            if kept.count(b"\n") != number:
                return False
            try:
                file.write("".join(to_line(event.state_dict()) + "\n" for event in events).encode())
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(len(kept))  # all or none
                raise
        return True

    def since(self, number):
        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            lines = _whole_lines(file).decode().splitlines()[number:]
        return [Event.family.load(from_line(line)) for line in lines]


def _whole_lines(file):
    file.seek(0)
    known = file.read()
    return known[: known.rfind(b"\n") + 1]

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
        with open(self.path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if sum(1 for _ in file) != number:
                return False
            file.write("".join(to_line(event.state_dict()) + "\n" for event in events))
            file.flush()
            os.fsync(file.fileno())
        return True

    def since(self, number):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            return [Event.family.load(from_line(line)) for line in list(file)[number:]]

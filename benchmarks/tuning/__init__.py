"""Tuners compared: what they earn while they tune, what they recommend, and how long they take. See README.md."""

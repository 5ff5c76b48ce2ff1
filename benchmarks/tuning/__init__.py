"""Tuners compared: their rewards while tuning, what they recommend, and how long they take. See README.md."""

"""A hostile week in a box: state machines, damaged files, bad values, interrupts and kills.

Every part is a module with `run(budget, seed, progress) -> Tally`. `make test` runs each with a small budget
(`test_battery.py`); `python -m tests.battery` runs all of them at length and writes docs/results/battery.md.
"""

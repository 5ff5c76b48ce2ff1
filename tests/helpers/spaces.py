"""Spaces that several tests share."""

import mixbandit as mb

# Three floats, two integers, two categoricals, one condition.
EVERYTHING = mb.Space(
    {
        "a": mb.Float(0.0, 1.0),
        "b": mb.Float(1e-3, 1.0, log=True),
        "c": mb.Float(0.0, 2.0, step=0.25),
        "i": mb.Int(1, 9, step=2),
        "j": mb.Int(1, 64, log=True),
        "p": mb.Categorical(["x", "y", "z"]),
        "q": mb.Categorical([True, False]),
    },
    {"j": ("p", ["x", "y"])},
)

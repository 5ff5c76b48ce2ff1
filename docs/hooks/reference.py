"""What the reference says of attributes and defaults: their description, not the code that makes them.

An extension of Griffe, which reads the source. An attribute that is made by `setting(path, doc)` or `property(get,
doc=…)` has that `doc`, and a default that is a lambda shows as `...`.
"""

from __future__ import annotations

import ast
from typing import Any

import griffe

MADE_BY = {"setting": 1, "property": 3}  # where the description is, unless it is named `doc`


class Described(griffe.Extension):
    """The extension."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        value = attr.value
        if not isinstance(value, griffe.ExprCall):
            return
        for part in value.arguments:
            if isinstance(part, griffe.ExprKeyword) and isinstance(part.value, griffe.ExprLambda):
                if str(value.function) == "field":  # of a data class, whose constructor has it
                    part.name = "default"
                part.value = "..."
        if str(value.function) in MADE_BY:
            attr.value, attr.labels = None, {"property"}
            text = _description(value)
            if text is not None and attr.docstring is None:
                attr.docstring = griffe.Docstring(text, parent=attr)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        for parameter in func.parameters:
            if isinstance(parameter.default, griffe.ExprLambda):
                parameter.default = "..."


def _description(made: griffe.ExprCall) -> str | None:
    """The text among the arguments of a call that makes an attribute; None if there is none."""
    named = {part.name: part.value for part in made.arguments if isinstance(part, griffe.ExprKeyword)}
    placed = [part for part in made.arguments if not isinstance(part, griffe.ExprKeyword)]
    place = MADE_BY[str(made.function)]
    given = named.get("doc", placed[place] if len(placed) > place else None)
    return None if given is None else str(ast.literal_eval(str(given)))

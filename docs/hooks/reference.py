"""What the reference says of attributes and defaults: their description, not the code that makes them.

An extension of Griffe, which reads the source. An attribute that is made by `setting(path, doc)` or `property(get,
doc=…)` has that `doc`, a default that is a lambda shows as `...`, and a named tuple is made from its fields.
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

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        if "NamedTuple" not in map(str, cls.bases) or "__init__" in cls.members:
            return
        fields = [member for member in cls.members.values() if member.is_attribute and member.annotation is not None]
        kind = griffe.ParameterKind.positional_or_keyword
        made = [griffe.Parameter(f.name, annotation=f.annotation, kind=kind, default=f.value) for f in fields]
        made.insert(0, griffe.Parameter("self", kind=kind))
        cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*made)))


def _description(made: griffe.ExprCall) -> str | None:
    """The text among the arguments of a call that makes an attribute; None if there is none."""
    named = {part.name: part.value for part in made.arguments if isinstance(part, griffe.ExprKeyword)}
    placed = [part for part in made.arguments if not isinstance(part, griffe.ExprKeyword)]
    place = MADE_BY[str(made.function)]
    given = named.get("doc", placed[place] if len(placed) > place else None)
    return None if given is None else str(ast.literal_eval(str(given)))

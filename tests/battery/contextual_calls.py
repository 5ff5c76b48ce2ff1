"""Valid calls for decisions in context: the bandit, its features, predictors and rule, and bounds per arm."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import mixbandit as mb
from mixbandit.bandits import MemoryJournal, Optimistic
from mixbandit.features import MappedContexts, NamedContexts, TransformedContexts
from mixbandit.predictors import RidgePerArm
from tests.battery.call import SAME_IDS, TOKEN, Arguments, Call, many

CONTEXT = {"tokens": 310.0, "topic": "code"}
VECTOR = [0.3, 0.4]
OFFERED = {"a": {"size": 1.0}, "b": {"size": 2.5}}

WITHIN_MODULES = (
    *(f"features.MappedContexts{method}" for method in ("", ".read", ".name")),
    *("predictors.RidgePerArm", "predictors.SharedRidge", "bandits.Optimistic"),
)
"""What users pass to a bandit, from modules of its own: their other methods take what the bandit has checked."""


class Doubling:
    """A fitted transformer."""

    n_features_in_ = 2

    def transform(self, X: Any) -> Any:
        return 2.0 * np.asarray(X, dtype=float)

    def get_feature_names_out(self) -> list[str]:
        return ["x", "y"]

    def __repr__(self) -> str:
        return "Doubling()"


# --- subjects: prepared once, copied for every case


@functools.cache
def _lived(arms: Any, contexts: Any) -> mb.ContextualBandit:
    """With decisions 0 to 7, of which 6 and 7 are open, and arm c removed."""
    bandit = mb.ContextualBandit(OFFERED if arms == "described" else ["a", "b", "c"], rng=3)
    with SAME_IDS:
        for t in range(6):
            context = {"tokens": 100.0 + t, "topic": ("code", "chat")[t % 2]} if contexts == "named" else [0.1 * t, 0.4]
            bandit.tell(bandit.ask(context), 0.5)
        bandit.ask_many([CONTEXT, CONTEXT] if contexts == "named" else [VECTOR, VECTOR])
    return bandit if arms == "described" else bandit.remove_arm("c")


def bandit(arms: str = "plain", contexts: str = "named") -> mb.ContextualBandit:
    """A copy of a bandit that has lived."""
    return copy.copy(_lived(arms, contexts))


def blocks() -> mb.Blocks:
    return _blocks().copy()


@functools.cache
def _blocks() -> mb.Blocks:
    made = mb.Blocks(_one(), ["a", "b"])
    made.update([[0.1, 0.2, 0], [0.3, 0.4, 1], [0.5, 0.1, 1]], [0.1, 0.2, 0.3])
    made.add("c")
    return made.remove("c")


def _one() -> mb.MartingaleMixture:
    return mb.MartingaleMixture(2, sigma=1.0, norm_bound=5.0, delta=0.05)


@functools.cache
def _named() -> NamedContexts:
    read = NamedContexts()
    return read.after(read.read(CONTEXT))


# --- the calls


def _making() -> Arguments:
    return {
        "arms": ["a", "b"],
        "reward_range": (0.0, 1.0),
        "features": None,
        "predictor": RidgePerArm(),
        "rule": Optimistic(),
        "floor": 0.1,
        "control": mb.Control("a", share=0.1),
        "delta": 0.05,
        "journal": MemoryJournal(),
        "rng": 0,
    }


_DECIDING: dict[str, Callable[[], Arguments]] = {
    "ask": lambda: {"context": dict(CONTEXT), "arms": ["a", "b"]},
    "ask_many": lambda: {"contexts": [dict(CONTEXT)] * 2, "arms": ["a", "b"]},
    "tell": lambda: {"choice": f"{TOKEN}-6", "reward": 0.5},
    "tell_many": lambda: {"choices": [f"{TOKEN}-6", f"{TOKEN}-7"], "rewards": [0.5, 0.6]},
    "cancel": lambda: {"choice": f"{TOKEN}-6"},
    "add_arm": lambda: {"label": "d", "features": None},
    "remove_arm": lambda: {"label": "b"},
    "interval": lambda: {
        "context": dict(CONTEXT),
        "arm": "a",
        "norm_bound": 2.0,
        "sigma": 0.5,
        "arms": None,
    },
    "explain": lambda: {"choice": f"{TOKEN}-6"},
    "save": lambda: {"path": "a.state"},
}
_BY_VECTOR: dict[str, Callable[[], Arguments]] = {
    "ask": lambda: {"context": list(VECTOR), "arms": None},
    "ask_many": lambda: {"contexts": np.array([VECTOR, VECTOR]), "arms": None},
    "interval": lambda: {"context": list(VECTOR), "arm": None, "norm_bound": 2.0, "sigma": None, "arms": ["a"]},
}
_DESCRIBED: dict[str, Callable[[], Arguments]] = {
    "add_arm": lambda: {"label": "d", "features": {"size": 3.0}},
    "ask": lambda: {"context": dict(CONTEXT), "arms": None},
}
_PER_ARM: dict[str, Callable[[], Arguments]] = {
    "update": lambda: {"actions": [[0.3, 0.4, 1.0]], "rewards": [0.1], "sigma": None},
    "after": lambda: {"actions": [[0.3, 0.4, 1.0]], "rewards": [0.1], "sigma": None},
    "upper": lambda: {"actions": [[0.3, 0.4, 1.0]], "alpha": None},
    "lower": lambda: {"actions": [[0.3, 0.4, 1.0]], "alpha": None},
    "contains": lambda: {"theta": np.zeros((3, 2)), "rtol": 1e-9},
    "merge": lambda: {"other": blocks()},
    "difference": lambda: {"other": blocks()},
    "of": lambda: {"arm": "a"},
    "add": lambda: {"label": "d", "taught": False},
    "remove": lambda: {"label": "a"},
    "interval": lambda: {"context": np.array(VECTOR), "arms": ["a", "b"], "alpha": None},
    "advantage": lambda: {"context": np.array(VECTOR), "arm": "a", "over": ["b"]},
}
_READING: dict[str, Callable[[], Arguments]] = {
    "read": lambda: {"context": list(VECTOR)},
    "name": lambda: {"column": 1},
}

CALLS: tuple[Call, ...] = (
    Call("Control", lambda: {"arm": "a", "share": 0.1}),
    Call("ContextualBandit", _making),
    Call("ContextualBandit", lambda: {**_making(), "arms": dict(OFFERED)}, variant="arms with features"),
    *many({"ContextualBandit": bandit}, _DECIDING),
    *many({"vectors": functools.partial(bandit, contexts="vectors")}, _BY_VECTOR),
    *many({"arms with features": functools.partial(bandit, "described")}, _DESCRIBED),
    Call("Blocks", lambda: {"sequence": _one(), "arms": ["a", "b"], "growing": True}),
    *many({"Blocks": blocks}, _PER_ARM),
    Call("Blocks.add", lambda: {"label": "d", "taught": True}, blocks, "taught"),
    Call("NamedContexts", lambda: {
        "numbers": ["tokens"],
        "categories": {"topic": ["code", "chat"]},
        "unknown": "ignore",
        "reach": 8.0,
        "own_columns": 8,
        "hashed_columns": 4,
    }),
    *many({"NamedContexts": _named}, {**_READING, "read": lambda: {"context": dict(CONTEXT)}}),
    Call("TransformedContexts", lambda: {"transformer": Doubling(), "example": list(VECTOR), "outputs": None}),
    *many({"TransformedContexts": lambda: TransformedContexts(Doubling())}, _READING),
    Call("features.MappedContexts", lambda: {"features": mb.RandomFourier(2, 4, rng=0)}),
    *many({"MappedContexts": lambda: MappedContexts(2)}, _READING, "features."),
    *(Call(f"predictors.{kind}", lambda: {"ridge": 0.1, "noise": 0.5}) for kind in ("RidgePerArm", "SharedRidge")),
    Call("bandits.Optimistic", lambda: {"scale": 1.0}),
)  # fmt: skip

EXCLUDED = {
    **dict.fromkeys(
        ("*.believing", "*.recalled", "*Contexts.unplain"),
        "reads a stored state, which is the subject of damaged files",
    ),
    **{f"*Contexts.{method}": "takes contexts that `read` returned" for method in ("after", "plain", "row", "rows")},
    **{f"*Contexts.{method}": "takes an earlier value of the same chain" for method in ("change", "provisos")},
    "*Contexts.check_column": "called by `name`",
    "Arms.row": "takes the index of an arm that was chosen",
    "Blocks.support": "a parameter for every arm has no gradient: it always says so",
}

"""The shape of the code: no module reaches into another, nobody asks a sequence what it can do, classes stay small."""

import ast
from pathlib import Path

import mixbandit
from mixbandit.sequences import ConfidenceSequence

PACKAGE = Path(mixbandit.__file__).parent
TREES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
# What named tuples offer everybody, underscore or not.
NAMED_TUPLES = {"_replace", "_asdict", "_make", "_fields"}
# Optuna hands its samplers no public way to a trial's attributes: three names of its own, behind one module of ours.
OF_OPTUNA = {"_storage", "_trial_id", "_study_id", "_raise_error_if_multi_objective"}
# scikit-learn's searches stand on names that it keeps to itself; so do ours, behind one module.
OF_SKLEARN = {
    "_fit_context",
    "_yield_masked_array_for_each_param",
    "_fit_and_score",
    "_insert_error_scores",
    "_warn_or_raise_about_fit_failures",
    "_check_method_params",
    "_init_callback_context",
}
MOST_METHODS = 25  # a thermometer: at 20, methods were exiled into functions


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def defined(tree):
    """The private names that a module defines: functions, methods, attributes, variables."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return {name for name in found if is_private(name)}


def foreign_accesses(tree):
    """Accesses to private names through anything but `self`, `cls` or `super()`, of names from elsewhere."""
    own = defined(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in NAMED_TUPLES | own:
            value = node.value
            through_self = isinstance(value, ast.Name) and value.id in ("self", "cls")
            through_super = isinstance(value, ast.Call) and getattr(value.func, "id", None) == "super"
            if not (through_self or through_super):
                yield node.attr
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))


def test_no_module_reaches_into_another():
    found = {str(path): set(foreign_accesses(tree)) for path, tree in TREES.items()}
    assert {
        path: names - OF_OPTUNA - OF_SKLEARN for path, names in found.items() if names - OF_OPTUNA - OF_SKLEARN
    } == {}
    assert {path for path, names in found.items() if names & OF_OPTUNA} == {"integrations/optuna/storage.py"}
    assert {path for path, names in found.items() if names & OF_SKLEARN} == {"integrations/sklearn/base.py"}


def questions(tree, kinds):
    """`isinstance`, `getattr` and `hasattr` about what a sequence, its moment or its rule can do."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)) or len(node.args) < 2:
            continue
        if node.func.id == "isinstance":
            named = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if named & kinds:
                yield ast.unparse(node)
        elif node.func.id in ("getattr", "hasattr"):
            about = ast.unparse(node.args[0])
            if any(word in about for word in ("sequence", "moment", "rule", "policy")):
                yield ast.unparse(node)


def subclasses(cls):
    return {cls.__name__}.union(*map(subclasses, cls.__subclasses__()))


def test_nobody_asks_what_a_sequence_can_do():
    rules = {
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Rule", "FixedMultiplier"))
    }
    kinds = subclasses(ConfidenceSequence) - {"ConfidenceSequence"} | rules
    assert {"MartingaleMixture", "OFULRule"} <= kinds
    found = {str(path): list(questions(tree, kinds)) for path, tree in TREES.items()}
    # Options of a policy are read by name where it is stored.
    found["bandits/stored.py"] = [q for q in found["bandits/stored.py"] if "getattr(policy, name)" not in q]
    assert {path: asked for path, asked in found.items() if asked} == {}


HOMES = {
    **dict.fromkeys(("Arms", "Box", "MixedBox"), "actions"),
    **dict.fromkeys(("Data", "Factor", "Observations", "Alternatives"), "data"),
    **dict.fromkeys(("ActingRule", "Optimism", "Thompson", "LeastRegretPerInformation", "Uniformly"), "bandits"),
}


def test_nobody_asks_what_actions_data_and_rules_are_outside_of_their_folders():
    found = [
        (str(path), ast.unparse(node))
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        for name in {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)} & HOMES.keys()
        if not str(path).startswith(f"{HOMES[name]}/")
    ]
    assert found == []


def test_classes_stay_small():
    sizes = {
        node.name: sum(
            isinstance(part, ast.FunctionDef) and not any("overload" in ast.unparse(d) for d in part.decorator_list)
            for part in node.body
        )
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: size for name, size in sizes.items() if size > MOST_METHODS} == {}


def test_nothing_changes_the_filters_of_warnings():
    """They belong to the process: changing them, even for a moment, is not safe with threads."""
    names = ("simplefilter", "filterwarnings", "catch_warnings", "seterr")
    touching = {
        str(path)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in names
    }
    # The paper's experiments have a process of their own; the reference silences CVXPY, which tests compare with.
    assert touching <= {"paper/svm.py", "sequences/conic.py"}

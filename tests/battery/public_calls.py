"""Every public callable with one valid call: what the table of bad values starts from.

`discovered` finds the callables by looking, `CALLS` has a call of each, and `EXCLUDED` says why others have none; a
test holds the three against each other, so that a new public name must join.
"""

import fnmatch
import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd

import mixbandit as mb
from mixbandit import plots
from mixbandit._checks import as_float_array
from mixbandit._files import digest
from mixbandit.bandits import Optimism
from mixbandit.errors import NotStorable
from mixbandit.integrations import optuna as in_optuna
from tests.battery import contextual_calls
from tests.battery.call import SAME_IDS, TOKEN, Arguments, Call, many, resolved
from tests.helpers import sequences as problem
from tests.helpers.worlds import ARMS, BOX, PHI, THETA, reward

# A wide noise level: valid calls must not refute what is stated.
SETTINGS = {"sigma": 1.0, "norm_bound": 5.0, "delta": 0.05}


# Optuna itself calls the others: a sampler and a callback, whose tests are those of the integration.
_IN_OPTUNA = ("Publish", "plot_certificate", "plot_worths", "publish")


def fingerprint(subject: Any) -> str:
    """A hash of everything that a call might change."""
    if isinstance(subject, mb.ContextualBandit):
        state = subject.state
        learnt = (state.features.state_dict(), state.predictor.state_dict())
        return digest((subject.state_dict(), *learnt, list(state.counts), subject.open, subject.arms))
    if isinstance(subject, mb.RunningIntersection):
        parts = (subject.sequence.state_dict(), subject.lower, subject.upper, subject.is_empty)
        return digest(parts)
    if isinstance(subject, mb.Records):
        return digest([repr(row) for row in subject])
    if isinstance(subject, mb.Environment):
        return digest(subject.fingerprint())
    try:
        return digest(subject.state_dict()) if hasattr(subject, "state_dict") else digest(repr(subject))
    except NotStorable:
        return digest(repr(subject))


# --- subjects: prepared once, copied for every case


@functools.cache
def _played(name: str) -> mb.Policy:
    policy = POLICIES[name]()
    context = [0.2, 0.7] if "context" in name else None
    with SAME_IDS:
        for t in range(6):
            choice = policy.ask(context=context)
            policy.tell(choice, reward(choice, t))
        policy.ask(context=context, n=3)
    return policy


def policy(name: str) -> mb.Policy:
    """A copy of a policy with six rewards and the pending choices 6, 7 and 8."""
    played = _played(name)
    return played.at(played.state)


def _named(kind: str, **options: Any) -> Callable[[], mb.Policy]:
    return lambda: getattr(mb, kind)(PHI, **{"actions": ARMS, "rng": 7, **SETTINGS, **options})


def _on(kind: str, sequence: Callable[[], mb.ConfidenceSequence], **options: Any) -> Callable[[], mb.Policy]:
    return lambda: getattr(mb, kind)(sequence(), ARMS, rng=7, **options)


def _mixture() -> mb.MartingaleMixture:
    return mb.MartingaleMixture(PHI, **SETTINGS)


def _contextual() -> mb.Policy:
    features = mb.Interaction(2, 2)
    return mb.CMMUCB(features, actions=ARMS, rng=7, **{**SETTINGS, "norm_bound": 20.0})


POLICIES: dict[str, Callable[[], mb.Policy]] = {
    **{kind: _named(kind) for kind in ("CMMUCB", "AMMUCB", "OFUL", "IDS", "FreqTS", "Greedy", "Uniform")},
    "UCB": _on("UCB", _mixture),
    "Policy": _on("Policy", _mixture, rule=Optimism()),
    "InformationDirected": _on("InformationDirected", lambda: mb.OFULSequence(PHI, **SETTINGS)),
    "ThompsonSampling": _on("ThompsonSampling", _mixture),
    "UniformSampling": _on("UniformSampling", _mixture),
    "AMMUCB over a box": _named("AMMUCB", actions=BOX, quick=True, track_regret=False),
    "AMMUCB, strict, with a history": _named("AMMUCB", strict=True, keep_history=True),
    "CMMUCB with a context": _contextual,
}


@functools.cache
def _informed(name: str) -> mb.ConfidenceSequence:
    return problem.SEQUENCES[name]().update(problem.ACTIONS[:12], problem.REWARDS[:12])


def sequence(name: str) -> mb.ConfidenceSequence:
    return _informed(name).copy()


@functools.cache
def _of_kernel(*kernels: mb.Kernel) -> mb.KernelMixture:
    made = mb.KernelMixture(list(kernels) if len(kernels) > 1 else kernels[0], **SETTINGS)
    return made.update(problem.ACTIONS[:12], problem.REWARDS[:12])


def one_kernel() -> mb.KernelMixture:
    return _of_kernel(mb.RBF(0.5)).copy()


def several_kernels() -> mb.KernelMixture:
    return _of_kernel(mb.RBF(0.5), mb.Matern()).copy()


@functools.cache
def _space() -> mb.Space:
    parameters = {"C": mb.Float(1e-2, 1e2, log=True), "kernel": mb.Categorical(["rbf", "poly"]), "degree": mb.Int(2, 5)}
    return mb.Space(parameters, {"degree": ("kernel", ["poly"])})


CONFIGURATION = {"C": 1.0, "kernel": "poly", "degree": 3}


@functools.cache
def _tuned() -> mb.Tuner:
    made = mb.Tuner(_space(), reward_range=(0, 1), samples=100, rows="fresh", initial=4, rng=0)
    with SAME_IDS:
        for _ in range(6):
            trial = made.ask()
            made.tell(trial, 0.5)
        made.ask(n=2)
    return made


def tuner() -> mb.Tuner:
    return _tuned().copy()


@functools.cache
def _choice() -> mb.Choice:
    return policy("CMMUCB").ask()


def _linear() -> mb.LinearEnvironment:
    return mb.LinearEnvironment(PHI, THETA, ARMS, sigma=0.1)


def _changing() -> mb.ChangingArms:
    return mb.ChangingArms(PHI, THETA, sigma=0.1, arms=4)


def _function() -> mb.FunctionEnvironment:
    return mb.FunctionEnvironment(lambda action: float(action.sum()), ARMS, expected=lambda action: 0.5, best=1.0)


@functools.cache
def _recorded() -> mb.Records:
    return mb.run(mb.AMMUCB(PHI, actions=ARMS, rng=0, **SETTINGS), _linear(), 4)


def _axes() -> Any:
    return plots.figure()[1][0]


class _Regressor:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class _SklearnKernel:
    """What a kernel of scikit-learn can do."""

    def __call__(self, X, Y):
        return np.exp(-np.abs(X[:, None, 0] - Y[None, :, 0]))

    def diag(self, X):
        return np.ones(len(X))

    def get_params(self):
        return {}

    def __eq__(self, other):
        return type(other) is _SklearnKernel

    def __hash__(self):
        return 0

    def __repr__(self):
        return "a kernel"


# --- the calls


def _same(subject: Any) -> Callable[[], Any]:
    return lambda: subject


_NAMED = {
    "features": PHI,
    "actions": ARMS,
    **SETTINGS,
    "mixture": None,
    "reward_range": None,
    "misspecification": 0.0,
    "alpha": None,
    "exploration": 1.0,
    "on_empty": "raise",
    "rng": 0,
    "strict": False,
    "keep_history": False,
    "track_regret": True,
    "quick": False,
    "journal": None,
}
_OPTIONS = {name: _NAMED[name] for name in ("rng", "strict", "keep_history", "track_regret", "quick", "journal")}
_STATED = {"features": PHI, **SETTINGS}
_TRIED = [({"C": 0.1 * (i + 1), "kernel": "rbf"}, 0.5) for i in range(6)]
_VECTOR = [0.1, 0.2, 0.3]

CONSTRUCTORS: dict[str, Callable[[], Arguments]] = {
    **{kind: (lambda: dict(_NAMED)) for kind in ("CMMUCB", "AMMUCB", "OFUL", "IDS", "FreqTS", "Greedy", "Uniform")},
    "UCB": lambda: {"sequence": _mixture(), "actions": ARMS, "alpha": None, "exploration": 1.0, **_OPTIONS},
    "Policy": lambda: {"sequence": _mixture(), "actions": ARMS, "rule": Optimism(), **_OPTIONS, "predictor": None},
    "InformationDirected": lambda: {"sequence": mb.OFULSequence(**_STATED), "actions": ARMS},
    "ThompsonSampling": lambda: {"sequence": _mixture(), "actions": ARMS},
    "UniformSampling": lambda: {"sequence": _mixture(), "actions": ARMS},
    "MartingaleMixture": lambda: {
        **_STATED,
        "mixture": None,
        "reward_range": None,
        "misspecification": 0.0,
        "on_empty": "raise",
        "suspects": [],
    },
    "KernelMixture": lambda: {
        "kernel": mb.RBF(0.5),
        **SETTINGS,
        "mixture": None,
        "reward_range": None,
        "misspecification": 0.0,
        "on_empty": "raise",
        "dim_in": 2,
        "suspects": [],
    },
    "GeneralLambda": lambda: {**_STATED, "lam": None, "mixture": None, "reward_range": None, "on_empty": "raise"},
    "UnknownNoise": lambda: {
        "features": PHI,
        "norm_bound": 5.0,
        "delta": 0.05,
        "reward_range": None,
        "misspecification": 0.0,
        "on_empty": "raise",
    },
    "BoundedMixture": lambda: {
        "phi": PHI,
        "norm_bound": 5.0,
        "delta": 0.05,
        "reward_range": (-5.0, 5.0),
        "exact": False,
        "samples": 100,
        "mixture": None,
        "misspecification": 0.0,
        "on_empty": "raise",
        "suspects": [],
    },
    "OFULSequence": lambda: {**_STATED, "alpha": None, "on_empty": "raise"},
    "MeanSequence": lambda: {"reward_range": (0.0, 1.0), "delta": 0.05, "sigma": None, "noise": None},
    "Spending": lambda: {"delta": 0.05},
    "IGPSequence": lambda: {**_STATED, "horizon": None, "eta": None, "on_empty": "raise"},
    "BayesCredible": lambda: {**_STATED, "mixture": None},
    "RunningIntersection": lambda: {"sequence": _mixture(), "actions": problem.PROBES},
    "Scaled": lambda: {"c": 0.5},
    "Linear": lambda: {"theta0": np.zeros(2), "Sigma0": np.eye(2)},
    "Grid": lambda: {"members": [0.1, 1.0], "weights": None},
    "Bank": lambda: {"kernels": [mb.RBF(0.5)], "scales": [0.1], "noises": [0.1, 0.2], "share": 0.01},
    "Gaussian": lambda: {"mean": 0.0, "kernel": mb.RBF(0.5)},
    "Adaptive": lambda: {"beta": None, "kernel": None},
    "SemiAdaptive": lambda: {"c": 0.5, "kernel": None},
    "FromRegressor": lambda: {
        "regressor": _Regressor(),
        "sigma": 0.1,
        "refit_every": 2,
        "window": 5,
        "mean": 0.0,
        "variance": 1.0,
    },
    "RBF": lambda: {"lengthscale": 1.0, "variance": 1.0},
    "Matern": lambda: {"nu": 2.5, "lengthscale": 1.0, "variance": 1.0},
    "ConstantKernel": lambda: {"variance": 1.0},
    "LinearKernel": lambda: {"variance": 1.0},
    "PolynomialKernel": lambda: {"degree": 2, "constant": 1.0, "variance": 1.0},
    "SumKernel": lambda: {"kernels": [mb.RBF(), mb.LinearKernel()]},
    "ProductKernel": lambda: {"kernels": [mb.RBF(), mb.LinearKernel()]},
    "OnColumns": lambda: {"kernel": mb.RBF(), "columns": [1]},
    "OverlapKernel": lambda: {"columns": [0, 1], "similarity": 0.5, "variance": 1.0},
    "ConditionalKernel": lambda: {"kernel": mb.RBF(), "active": [0]},
    "SklearnKernel": lambda: {"kernel": _SklearnKernel()},
    "Identity": lambda: {"dim": 2},
    "RandomFourier": lambda: {"dim_in": 2, "dim": 4, "lengthscale": 1.0, "rng": 0},
    "RandomLayer": lambda: {"dim_in": 2, "dim": 4, "activation": "tanh", "rng": 0},
    "FromCallable": lambda: {"function": lambda a: a, "dim_in": 2, "dim": 2, "vjp": None, "lipschitz": None},
    "Interaction": lambda: {"context": 2, "action": 2},
    "Disjoint": lambda: {"context": 2, "arms": 3},
    "WithConstant": lambda: {"features": 2, "value": 1.0},
    "Arms": lambda: {"actions": np.eye(2), "labels": ["a", "b"]},
    "Box": lambda: {"low": [0.0, 0.0], "high": [1.0, 1.0]},
    "Float": lambda: {"low": 0.0, "high": 1.0, "log": False, "step": None},
    "Int": lambda: {"low": 1, "high": 9, "log": False, "step": 1},
    "Categorical": lambda: {"choices": ["a", "b"]},
    "Space": lambda: {"parameters": dict(_space()), "conditions": {"degree": ("kernel", ["poly"])}},
    "Tuner": lambda: {
        "space": _space(),
        "assumptions": _known(),
        "features": None,
        "mixture": None,
        "acting": None,
        "exploration": None,
        "initial": 3,
        "exact": False,
        "rng": 0,
    },
    "LinearEnvironment": lambda: {
        "features": PHI,
        "theta": THETA,
        "actions": ARMS,
        "sigma": 0.1,
        "noise": "gaussian",
        "context": None,
        "seed": 0,
    },
    "ChangingArms": lambda: {
        "features": PHI,
        "theta": THETA,
        "arms": 4,
        "sigma": 0.1,
        "noise": "gaussian",
        "draw": None,
        "seed": 0,
    },
    "FunctionEnvironment": lambda: {
        "function": lambda action: 0.5,
        "actions": ARMS,
        "expected": lambda action: 0.5,
        "best": 1.0,
    },
    "Records": lambda: {"rows": list(_recorded())},
}

FUNCTIONS: dict[str, Callable[[], Arguments]] = {
    "save": lambda: {"what": policy("CMMUCB"), "path": "a.state"},
    "load": lambda: {"path": _saved(), "features": None},
    "run": lambda: {
        "policy": policy("AMMUCB"),
        "environment": _linear(),
        "rounds": 2,
        "records": None,
        "batch": 1,
        "delay": 0,
        "stop_when": None,
        "checkpoint": None,
        "checkpoint_seconds": 30.0,
        "progress": None,
    },
    "stop_when": lambda: {"gap": 0.1, "every": 10},
    "load_dataset": lambda: {"name": "raisin"},
    "learn_in_shards": lambda: {
        "sequence": mb.MartingaleMixture(2, sigma=0.1, norm_bound=2.0),
        "shards": [(ARMS.actions[:2].copy(), [0.1, 0.2])],
        "load": None,
        "jobs": 1,
    },
    "compare_means": lambda: {
        "a_values": [0.4, 0.5, 0.9],
        "b_values": [0.1, 0.3],
        "reward_range": (0.0, 1.0),
        "delta": 0.05,
        "paired": False,
        "a_samples": 10,
        "b_samples": [3, 4],
        "sigma": None,
        "noise": None,
    },
    "regret.analytic_width": lambda: {"sequence": sequence("standard"), "action": [0.3, 0.4]},
    "regret.worst_case": lambda: {
        "rounds": 100,
        "dim": 2,
        "sigma": 0.1,
        "norm_bound": 2.0,
        "feature_norm": 1.0,
        "delta": 0.05,
        "c": 1.0,
        "reward_bound": None,
    },
    "regret.worst_case_general": lambda: {
        "rounds": 100,
        "dim": 2,
        "sigma": 0.1,
        "norm_bound": 2.0,
        "feature_norm": 1.0,
        "alpha": 0.1,
        "sigma0": 1.0,
        "prior_distance": None,
        "delta": 0.05,
        "reward_bound": None,
    },
    "plots.figure": lambda: {"columns": 1, "rows": 1, "width": 4.0, "height": 3.0},
    "plots.save": lambda: {"fig": plots.figure(width=1.0, height=1.0)[0], "path": "a.svg"},
    "plots.bounds": lambda: {
        "ax": _axes(),
        "x": _VECTOR,
        "lower": _VECTOR,
        "upper": _VECTOR,
        "truth": None,
        "data": None,
        "colour": "red",
        "label": "bounds",
        "line": "-",
    },
    "plots.curve": lambda: {
        "ax": _axes(),
        "x": _VECTOR,
        "y": _VECTOR,
        "label": "a",
        "position": 0,
        "low": _VECTOR,
        "high": _VECTOR,
        "marks": False,
    },
    "plots.outcomes": lambda: {
        "ax": _axes(),
        "t": _VECTOR,
        "lower": _VECTOR,
        "upper": _VECTOR,
        "reward": _VECTOR,
        "expected": _VECTOR,
    },
    "plots.miss_rates": lambda: {"ax": _axes(), "first_misses": {("a", "b"): [0, 1, 2]}, "rounds": 3, "delta": 0.05},
    "plots.tuning": lambda: {"values": _VECTOR, "lower": _VECTOR, "upper": _VECTOR, "recommended": (0.1, 0.2)},
}


def _saved() -> str:
    policy("CMMUCB").save("saved.state")
    return "saved.state"


_PLAYING: dict[str, Callable[[], Arguments]] = {
    "ask": lambda: {"arms": None, "context": None, "n": None, "distinct": True, "contexts": None},
    "choose_many": lambda: {"contexts": None, "arms": ARMS.actions.copy()},
    "adopt": lambda: {"action": ARMS.actions[0].copy(), "context": None},
    "tell": lambda: {"choice": f"{TOKEN}-6", "reward": 0.3, "sigma": None},
    "cancel": lambda: {"choice": f"{TOKEN}-6", "played": False},
    "learn": lambda: {"actions": ARMS.actions[:2].copy(), "rewards": [0.1, 0.2], "sigma": None},
    "certificate": lambda: {"over": None, "context": None, "proof": None},
    "save": lambda: {"path": "a.state"},
}
_IN_CONTEXT: dict[str, Callable[[], Arguments]] = {
    **_PLAYING,
    "ask": lambda: {"arms": None, "context": [0.2, 0.7], "n": None, "distinct": True, "contexts": None},
    "choose_many": lambda: {"contexts": [[0.2, 0.7], [0.1, 0.3]], "arms": None},
    "adopt": lambda: {"action": ARMS.actions[0].copy(), "context": [0.2, 0.7]},
    "learn": lambda: {"actions": np.ones((2, 4)), "rewards": [0.1, 0.2], "sigma": None},
    "certificate": lambda: {"over": None, "context": [0.2, 0.7], "proof": None},
}
_SEVERAL = {"tell": lambda: {"choice": [f"{TOKEN}-6", f"{TOKEN}-7"], "reward": [0.3, 0.4], "sigma": [0.1, 0.2]}}
_BOUNDING: dict[str, Callable[[], Arguments]] = {
    "update": lambda: {"actions": problem.ACTIONS[:2].copy(), "rewards": [0.1, 0.2], "sigma": None},
    "after": lambda: {"actions": problem.ACTIONS[:2].copy(), "rewards": [0.1, 0.2], "sigma": None},
    "upper": lambda: {"actions": problem.PROBES.copy(), "alpha": None},
    "lower": lambda: {"actions": problem.PROBES.copy(), "alpha": None},
    "support": lambda: {"actions": problem.PROBES.copy(), "alpha": None},
    "contains": lambda: {"theta": problem.THETA.copy(), "rtol": 1e-9},
    "merge": lambda: {"other": sequence("standard")},
    "difference": lambda: {"other": sequence("standard")},
    "analytic_radius": lambda: {"alpha": None},
    "log_evalue": lambda: {"theta": problem.THETA.copy()},
    "pvalue": lambda: {"theta": problem.THETA.copy()},
}


def _bounding(name: str) -> dict[str, Callable[[], Arguments]]:
    """The methods that a sequence supports, with one of its kind to merge with."""
    methods = {**_BOUNDING, "merge": lambda: {"other": sequence(name)}}
    without = ("log_evalue", "pvalue") if "misspecified" in name else ()
    if name.startswith("bounded"):
        values = {"actions": problem.ACTIONS[:2].copy(), "values": [0.1, 0.2], "samples": [3, 4], "sigma": None}
        methods |= dict.fromkeys(("update", "after"), lambda: dict(values))
        without = ("merge", "analytic_radius", "pvalue")
    if name in ("gaussian", "adaptive", "grid of anything"):  # they depend on the order of rewards
        without = ("merge",)
    return {method: arguments for method, arguments in methods.items() if method not in without}


EXCLUDED = {
    **contextual_calls.EXCLUDED,
    "BoundedMixture.merge": "depends on the order of values: it always says so",
    "Bank.log_*": "takes values that a sequence has checked",
    "*.from_state_dict": "reads a stored state, which is the subject of damaged files",
    "*.restored": "reads a stored state, which is the subject of damaged files",
    "*.check_state": "reads a stored state, which is the subject of damaged files",
    "*.keywords": "reads a stored state, which is the subject of damaged files",
    "*.family": "a schema of stored states, which is the subject of damaged files",
    "*.schema": "a schema of stored states, which is the subject of damaged files",
    "*.memory": "a schema of stored states, which is the subject of damaged files",
    "Dataset": "a record that mixbandit returns",
    "Audit": "a record that mixbandit returns",
    "Certificate": "a record that mixbandit returns",
    "Choice": "a record that mixbandit returns",
    "MeanComparison": "a record that mixbandit returns",
    "ListCertificate": "a record that mixbandit returns",
    "Offer": "a record that mixbandit returns",
    "Recommendation": "a record that mixbandit returns",
    "RegretBound": "a record that mixbandit returns",
    "regret.RegretBound": "a record that mixbandit returns",
    "StudyCertificate": "a record that mixbandit returns",
    "Support": "a record that mixbandit returns",
    "Told": "a record that mixbandit returns",
    "Trial": "a record that mixbandit returns",
    "ConfidenceSequence": "the base of sequences, on which its methods are tried",
    "ConfidenceSequence.*": "the base of sequences, on which its methods are tried",
    "*.evaluate": "takes rows that were checked",
    "*.pullback": "takes rows that were checked",
    "*.linearised": "takes rows that were checked",
    "*.remainder": "takes rows that were checked",
    "*.cost": "called by sequences with what they checked",
    "*.prior": "called by sequences with what they checked",
    "*.dense_prior": "called by sequences with what they checked",
    "*.alpha0": "called by sequences with what they checked",
    "*.absorb": "takes rewards that were checked",
    "*.follow": "refuses a policy that has decided: tests/bandits/test_journal.py tries odd journals",
    "*.live_in": "ties a sequence to the policy that holds it",
    "*.refute": "called by policies with words of their own",
    "*.at": "takes a state or coordinates that were checked",
    "*.unit": "takes rows that were checked",
    "Box.snapped": "takes rows that were checked",
    **{f"Box.{method}": "takes rows that were checked" for method in ("nudged", "pinned", "active")},
    "*.cells": "called by searches",
    "*.decode": "takes coordinates that were checked",
    **{f"ListCertificate.{method}": "lists have no model: it always says so" for method in ("compare", "improvement")},
    **{
        f"MixBanditSearchCV{part}": "follows scikit-learn, where `fit` checks what was stored: tests/integrations"
        for part in ("", ".*")
    },
    "Tuner.knowing": "called by the Optuna sampler with what it checked",
    "Assumptions.*": "called with what was checked",
    "Categorical.index": "called by `encode`",
    "*.exchanged": "takes rows that were checked",
    "*.jacobian_along": "takes rows that were checked",
    "*.restricted": "takes rows that were checked",
    **{
        f"*.{method}": "takes rows that were checked"
        for method in ("matrix", "diagonal", "diagonal_pullback", "stray", "largest", "check_dim_in")
    },
    "*.fingerprint": "takes nothing",
    **{
        f"KernelMixture.{method}": "functions of a kernel have no parameter vector: it always says so"
        for method in ("contains", "log_evalue", "pvalue")
    },
}


def _without_vectors(other: Callable[[], mb.KernelMixture]) -> dict[str, Callable[[], Arguments]]:
    methods = {**_BOUNDING, "merge": lambda: {"other": other()}, "difference": lambda: {"other": other()}}
    return {name: arguments for name, arguments in methods.items() if f"KernelMixture.{name}" not in EXCLUDED}


def _mean(**known: Any) -> Callable[[], mb.MeanSequence]:
    return lambda: mb.MeanSequence(**known).update([0.2, 0.3, 0.7, 0.4, 0.5, 0.6, 0.9])


_MEANS: dict[str, Callable[[], Arguments]] = {
    "update": lambda: {"values": [0.1, 0.2], "samples": None, "sigma": None},
    "after": lambda: {"values": [0.1, 0.2], "samples": None, "sigma": None},
    "log_evalue": lambda: {"mean": 0.3},
    "pvalue": lambda: {"mean": 0.3, "alternative": "two-sided"},
}
_MAPPING: dict[str, Callable[[], Arguments]] = {
    "__call__": lambda: {"actions": [[0.3, 0.4]]},
    "vjp": lambda: {"actions": [[0.3, 0.4]], "v": np.ones(4)},
    "jacobian": lambda: {"actions": [[0.3, 0.4]]},
}
_WIDER: dict[str, Callable[[], Arguments]] = {
    "__call__": lambda: {"actions": [[0.3, 0.4, 0.1, 1.0]]},
    "vjp": lambda: {"actions": [[0.3, 0.4, 0.1, 1.0]], "v": np.ones(4)},
    "jacobian": lambda: {"actions": [[0.3, 0.4, 0.1, 1.0]]},
}
_PER_ARM: dict[str, Callable[[], Arguments]] = {
    "__call__": lambda: {"actions": [[0.3, 0.4, 1.0]]},
    "vjp": lambda: {"actions": [[0.3, 0.4, 1.0]], "v": np.ones(4)},
    "jacobian": lambda: {"actions": [[0.3, 0.4, 1.0]]},
}
_REGION: dict[str, Callable[[], Arguments]] = {
    "sample": lambda: {"n": 2, "rng": np.random.default_rng(0)},
    "index_of": lambda: {"row": ARMS.actions[0].copy()},
    "given": lambda: {"context": np.array([0.3, 0.4])},
}
_ROUND: dict[str, Callable[[], Arguments]] = {
    "offer": lambda: {"t": 0},
    "reward": lambda: {"t": 0, "choice": _choice()},
    "expected": lambda: {"t": 0, "choice": _choice()},
    "best": lambda: {"t": 0},
}
_TUNING: dict[str, Callable[[], Arguments]] = {
    "ask": lambda: {"n": None},
    "adopt": lambda: {"parameters": dict(CONFIGURATION)},
    "tell": lambda: {"trial": f"{TOKEN}-6", "value": 0.5, "sem": None, "sigma": None},
    "fail": lambda: {"trial": f"{TOKEN}-6"},
    "trials": lambda: {"n_trials": 3, "confirmations": 1},
    "optimize": lambda: {"objective": lambda parameters: 0.5, "n_trials": 3, "confirmations": 1},
    "learn": lambda: {"history": _history(), "value": None, "ordered": None},
    "recommend": lambda: {"by": "lower", "tried": False},
    "certificate": lambda: {"tried": False},
    "interval": lambda: {"parameters": dict(CONFIGURATION)},
    "improvement": lambda: {"over": dict(CONFIGURATION)},
    "compare": lambda: {"one": dict(CONFIGURATION), "other": {"C": 3.0, "kernel": "rbf"}, "pairs": None},
    "confirm": lambda: {"n": 2, "finalists": 1},
    "plan": lambda: {"floor": 0.4, "gap": None},
    "reseed": lambda: {"rng": 0},
    "save": lambda: {"path": "a.state"},
}
_SPACE: dict[str, Callable[[], Arguments]] = {
    "is_active": lambda: {"name": "degree", "parameters": dict(CONFIGURATION)},
    "columns": lambda: {"name": "degree"},
    "encode": lambda: {"parameters": dict(CONFIGURATION)},
    "encode_all": lambda: {"configurations": [dict(CONFIGURATION)]},
    "snapped": lambda: {"row": np.full(4, 0.5)},
    "same": lambda: {"one": dict(CONFIGURATION), "other": dict(CONFIGURATION)},
    "decode": lambda: {"row": np.full(4, 0.5)},
    "sample": lambda: {"n": 2, "rng": 0},
    "spread": lambda: {"n": 2, "rng": 0},
}
_VALUES = {"C": (mb.Float(1e-2, 1e2, log=True), 1.0), "i": (mb.Int(2, 9), 3), "k": (mb.Categorical(["a", "b"]), "a")}

_CERTIFIED: dict[str, Callable[[], Arguments]] = {
    "of": lambda: {"parameters": dict(CONFIGURATION)},
    "improvement": lambda: {"over": dict(CONFIGURATION)},
    "compare": lambda: {"one": dict(CONFIGURATION), "other": {"C": 3.0, "kernel": "rbf"}, "pairs": None},
    "sentences": lambda: {"named": "it"},
}
_ASSUMED = {
    "norm_bound": 2.0,
    "delta": 0.05,
    "misspecification": 0.0,
    "direction": None,
    "reward_range": None,
    "samples": None,
    "rows": None,
    "pool": None,
    "sigma": None,
    "noise": None,
    "planned": None,
}


def _known() -> mb.Assumptions:
    return mb.Assumptions((0, 1), 100, rows="fresh")


def _history() -> list[tuple[dict[str, Any], float]]:
    return [(parameters, 0.5) for parameters in _space().sample(4, rng=0)]


def _certifying() -> Arguments:
    choices = {"space": None, "value": None, "parameters": None, "features": None, "mixture": None, "rng": 0}
    rows = {"ordered": None, "fixed_list": None}
    return {"history": _history(), "assumptions": _known(), **choices, **rows}


@functools.cache
def _study_certificate() -> mb.tuning.StudyCertificate:
    return mb.certify(_history(), reward_range=(0, 1), samples=100, rows="fresh", space=_space())


def _reporting() -> Arguments:
    return {"certificate": _study_certificate(), "path": "a.html", "default": dict(CONFIGURATION), "title": "a title"}


def _certifying_a_table() -> Arguments:
    table = pd.DataFrame({"x": [0.1, 0.2, 0.3], "value": [0.5, 0.6, 0.4]})
    return {**_certifying(), "history": table, "ordered": np.True_}  # not a bool, as None is valid, too


def _certifying_a_list() -> Arguments:
    known = mb.Assumptions((0, 1), 100, rows="fixed")
    return {
        **_certifying(),
        "assumptions": known,
        "fixed_list": np.True_,
    }  # not a bool, as None is valid, too


def _finalists() -> Arguments:
    return {"finalists": _history(), "assumptions": _known()}


class _AlwaysYes:
    """A classifier."""

    def predict(self, X: Any) -> Any:
        return np.ones(len(as_float_array(X, "X")), dtype=int)


def _fitted() -> Arguments:
    rows = {"model": {"yes": _AlwaysYes()}, "X": [[0.0], [1.0]], "y": [1, 0]}
    return {**rows, "scoring": "accuracy", "delta": 0.05, "pos_label": None, "clip": None, "reward_range": None}


def _one_finalist() -> Arguments:
    return {**_finalists(), "finalists": [({"C": 1.0}, 0.5)]}


def _guaranteeing() -> Arguments:
    results = {"params": [{"C": 1.0}, {"C": 2.0}], "split0_test_score": [0.5, 0.6], "split1_test_score": [0.7, 0.6]}
    known = {"samples": 30, "reward_range": (0.0, 1.0), "delta": 0.05, "scorer": "score"}
    return {"cv_results": results, **known}


@functools.cache
def _study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: 0.5 + 0.1 * trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    return study


def _drawing(**further: Any) -> Callable[[], Arguments]:
    known = {"assumptions": _known(), "space": None, "certificate": None}
    return lambda: {"study": _study(), **known, **further}


CALLS: tuple[Call, ...] = (
    *(Call(name, arguments) for name, arguments in CONSTRUCTORS.items()),
    *(Call(name, arguments) for name, arguments in FUNCTIONS.items()),
    Call("Tuner.load", lambda: {"path": _saved_tuner(), "features": None}),
    *many({n: functools.partial(policy, n) for n in POLICIES if "context" not in n}, _PLAYING),
    *many({n: functools.partial(policy, n) for n in POLICIES if "context" in n}, _IN_CONTEXT),
    *many({"several": functools.partial(policy, "AMMUCB")}, _SEVERAL),
    *(call for n in problem.SEQUENCES for call in many({n: functools.partial(sequence, n)}, _bounding(n))),
    *many({"one kernel": one_kernel}, _without_vectors(one_kernel)),
    *many({"several kernels": several_kernels}, _without_vectors(several_kernels)),
    *many({"MeanSequence": _mean(), "a level": _mean(sigma=0.3), "gaussian": _mean(noise="gaussian")}, _MEANS),
    *many({"Spending": lambda: mb.Spending(0.05)}, {
        "each": lambda: {"n": 3},
        "nth": lambda: {"j": 3},
        "nth_square": lambda: {"j": 3},
        "line": lambda: {"what": "a bound", "how": "once"},
        "ledger": lambda: {"failure": "a bound is wrong"},
    }),
    Call(
        "MeanSequence.update",
        lambda: {"values": [0.1, 0.2], "samples": [5, 6], "sigma": None},
        _mean(),
        "means of results",
    ),
    Call(
        "MeanSequence.update",
        lambda: {"values": [0.1, 0.2], "samples": None, "sigma": [0.2, 0.4]},
        _mean(sigma=0.3),
        "levels",
    ),
    Call(
        "compare_means",
        lambda: {
            "a_values": [0.4, 0.5],
            "b_values": [0.1, 0.3],
            "reward_range": (0.0, 1.0),
            "delta": 0.05,
            "paired": True,
            "a_samples": None,
            "b_samples": None,
            "sigma": None,
            "noise": None,
        },
        variant="pairs",
    ),
    *many(
        {"RunningIntersection": lambda: mb.RunningIntersection(sequence("standard"), problem.PROBES)},
        {"update": _BOUNDING["update"]},
    ),
    *many(
        {
            "RandomFourier": lambda: mb.RandomFourier(2, 4, rng=0),
            "RandomLayer": lambda: mb.RandomLayer(2, 4, rng=0),
            "FromCallable": lambda: mb.FromCallable(lambda a: np.hstack((a, a)), 2, 4),
            "WithConstant": lambda: mb.WithConstant(mb.RandomFourier(2, 3, rng=0)),
        },
        _MAPPING,
    ),
    *many({"Identity": lambda: mb.Identity(4)}, _WIDER),
    *many({"Interaction": lambda: mb.Interaction(2, 2)}, _WIDER),
    *many({"Disjoint": lambda: mb.Disjoint(2, 2)}, _PER_ARM),
    *many(
        {
            "RBF": lambda: mb.RBF(0.5),
            "Matern": mb.Matern,
            "ConstantKernel": mb.ConstantKernel,
            "LinearKernel": mb.LinearKernel,
            "PolynomialKernel": lambda: mb.PolynomialKernel(3),
            "SumKernel": lambda: mb.RBF() + mb.LinearKernel(),
            "ProductKernel": lambda: mb.RBF() * mb.LinearKernel(),
            "OnColumns": lambda: mb.RBF().on([1]),
            "OverlapKernel": lambda: mb.OverlapKernel([0, 1]),
            "ConditionalKernel": lambda: mb.ConditionalKernel(mb.RBF().on([1]), [0]),
            "SklearnKernel": lambda: mb.SklearnKernel(_SklearnKernel()),
        },
        {
            "__call__": lambda: {"A": [[0.3, 0.4]], "B": [[0.1, 0.2], [0.3, 0.4]]},
            "on": lambda: {"columns": [1, 0]},
        },
    ),
    *many({"Arms": lambda: ARMS, "Box": lambda: mb.Box([0.0, 0.0], [1.0, 1.0])}, _REGION),
    *many({"LinearEnvironment": _linear, "ChangingArms": _changing, "FunctionEnvironment": _function}, _ROUND),
    *many({"Tuner": tuner}, _TUNING),
    Call("Tuner.plan", lambda: {"floor": None, "gap": 0.5}, tuner, "a gap"),
    *many({"StudyCertificate": _study_certificate}, _CERTIFIED),
    *many({"Space": _space}, _SPACE),
    Call("Space.from_toml", lambda: {"path": _written_space()}),
    Call("certify", _certifying),
    Call("certify", _certifying_a_list, variant="a fixed list"),
    Call("certify", _certifying_a_table, variant="a table"),
    Call("certify_finalists", _finalists),
    Call("certify_fitted", _fitted),
    Call("report", _reporting),
    Call("best_guaranteed", _guaranteeing),
    Call("optuna.plot_certificate", _drawing(target_name="accuracy")),
    Call("optuna.plot_worths", _drawing(target_name="accuracy", n=2)),
    Call("optuna.publish", _drawing()),
    Call("optuna.Publish", lambda: {"every": 5, "assumptions": _known(), "space": None}),
    *many({"ListCertificate": lambda: mb.certify_finalists(**_one_finalist())}, {
        "of": lambda: {"parameters": {"C": 1.0}},
        "sentences": lambda: {"named": "it"},
    }),
    Call("Assumptions", lambda: {**_ASSUMED, "reward_range": (0.0, 1.0), "samples": 50, "rows": "fresh", "planned": 9}),
    Call("Assumptions", lambda: {**_ASSUMED, "sigma": 0.1}, variant="a level"),
    Call("Assumptions", lambda: {**_ASSUMED, "noise": "gaussian"}, variant="a level that is learnt"),
    *(
        Call(f"{type(parameter).__name__}.encode", functools.partial(dict, value=value, name=name), _same(parameter))
        for name, (parameter, value) in _VALUES.items()
    ),
    *many({"Records": lambda: mb.Records(list(_recorded()))}, {
        "append": lambda: {"record": _recorded()[0]},
        "column": lambda: {"name": "reward"},
        "to_csv": lambda: {"path": "a.csv"},
    }),
    *many({"FromRegressor": lambda: mb.FromRegressor(_Regressor(), 0.1)}, {
        "predict": lambda: {"x": np.array([0.3, 0.4])},
        "update": lambda: {"x": np.array([0.3, 0.4]), "r": 0.5},
    }),
    *contextual_calls.CALLS,
)  # fmt: skip


def _written_space() -> str:
    Path("space.toml").write_text('kernel = { choices = ["rbf", "poly"] }')
    return "space.toml"


def _saved_tuner() -> str:
    tuner().save("saved.tuner")
    return "saved.tuner"


# --- what has no call, and why


def is_excluded(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in EXCLUDED)


def discovered() -> dict[str, tuple[str, ...]]:
    """The public callables that take arguments, with the names of those."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted({*mb.__all__, *dir(mb)} - {"importlib", "Any"}):
        value = None if name.startswith("_") else getattr(mb, name)
        if isinstance(value, types.ModuleType):
            continue
        if isinstance(value, type):
            found |= _of_class(name, value)
        elif callable(value):
            found[name] = _parameters(value)
    for module, prefix in ((mb.regret, "regret"), (plots, "plots")):
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                found[f"{prefix}.{name}"] = _parameters(value)
    found |= {f"optuna.{name}": _parameters(getattr(in_optuna, name)) for name in _IN_OPTUNA}
    for name in contextual_calls.WITHIN_MODULES:
        found[name] = tuple(each for each in _parameters(resolved(name)) if each != "self")
    return {name: parameters for name, parameters in found.items() if parameters}


def _of_class(name: str, kind: type) -> dict[str, tuple[str, ...]]:
    if issubclass(kind, BaseException) or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return {}  # errors are raised, not called; what abstract classes offer is tried on those that are not
    found = {name: _parameters(kind)}
    for method in dir(kind):
        value = getattr(kind, method)
        is_ours = str(getattr(value, "__module__", "")).startswith("mixbandit")
        if (method == "__call__" or not method.startswith("_")) and callable(value) and is_ours:
            is_method = inspect.isfunction(value) and not isinstance(
                inspect.getattr_static(kind, method), staticmethod | classmethod
            )
            found[f"{name}.{method}"] = _parameters(value)[1:] if is_method else _parameters(value)
    return found


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(p.name for p in inspect.signature(function).parameters.values() if p.kind in named)

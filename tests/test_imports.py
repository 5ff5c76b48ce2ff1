"""The tree is the pipeline: a module imports only from those above it; and importing stays light."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import mixbandit

PACKAGE = Path(mixbandit.__file__).parent

# The order of DESIGN.md, with the helpers that everything may use on top.
ORDER = [
    "errors",
    "_extras",
    "_lazy",
    "_words",
    "_locks",
    "_threads",
    "_checks",
    "_rows",
    "_schema",
    "_files",
    "storage",
    "spending",
    "_compiling",
    "_compile_cache",
    "_jit",
    "means",
    "features",
    "kernels",
    "actions",
    "data",
    "models",
    "mixtures",
    "sets",
    "sequences",
    "search",
    "predictors",
    "certificates",
    "regret",
    "plots",
    "bandits",
    "tuning",
    "integrations",
    "saving",
    "sharding",
    "simulate",
    "paper",
    "bench",
    "reporting",
    "cli",
    "__main__",
]
INSIDE = {
    "means": ["kinds", "finite", "portfolio", "bounded", "gaussian", "sequence", "compare", "challenge"],
    "features": [
        "base",
        "random",
        "context",
        "contexts",
        "columns",
        "scales",
        "named_schema",
        "named",
        "fingerprint",
        "transformed",
    ],
    "kernels": ["rows", "base", "stationary", "polynomial", "categories", "sklearn"],
    "actions": ["arms", "box", "levels", "mixed", "regions"],
    "data": [
        "directions",
        "cholesky",
        "sections",
        "spectrum",
        "base",
        "grouped",
        "_compiled_ridge",
        "products",
        "ridge",
        "triangular",
        "factor",
        "recovered",
        "ridges",
        "observations",
        "alternatives",
        "arm_directions",
    ],
    "models": ["base", "features", "kernels", "arms"],
    "mixtures": ["base", "linear", "prequential", "gaussian", "adaptive", "semi_adaptive", "grid", "pooled", "bank"],
    "sets": [
        "base",
        "dual",
        "_compiled",
        "_compiled_form",
        "leaning",
        "_compiled_ellipsoid",
        "ellipsoid",
        "point",
        "residual_ball",
        "_compiled_newton",
        "_compiled_krylov",
        "projected",
        "krylov",
        "_compiled_eigen",
        "eigen",
        "krylov_ball",
        "tightest",
        "likelihood",
        "convex",
        "union",
        "from_maximum",
        "arms",
    ],
    "sequences": [
        "response",
        "refutation",
        "ridge_only",
        "rules",
        "quick",
        "suspects",
        "examined",
        "belief",
        "moment",
        "learning",
        "base",
        "own",
        "martingale",
        "alternatives",
        "kernel",
        "unknown_noise",
        "dispersion",
        "bounded",
        "oful",
        "igp",
        "bayes",
        "arm_members",
        "arm_beliefs",
        "blocks",
        "intersection",
        "conic",
    ],
    "search": ["scores", "arms", "_compiled_climb", "climb", "box", "offers", "branch_and_bound"],
    "predictors": ["base", "ridge", "cosines", "ensemble"],
    "bandits": [
        "persistent",
        "crowd",
        "choice",
        "history",
        "rules",
        "state",
        "choosing",
        "events",
        "journal",
        "many",
        "stored",
        "base",
        "named",
        "contextual",
    ],
    "bandits.rules": ["base", "optimism", "information", "predictions", "thompson", "uniform"],
    "bandits.contextual": [
        "roster",
        "control",
        "waiting",
        "state",
        "events",
        "choice",
        "deciding",
        "stored",
        "anchored",
        "intervals",
        "explanation",
        "bandit",
    ],
    "bench": [
        "workloads",
        "timing",
        "peers",
        "players",
        "context_players",
        "rounds",
        "contexts",
        "busy",
        "first_decision",
        "bounds",
        "growth",
        "memory",
        "report",
    ],
    "tuning": [
        "choices",
        "parameters",
        "conditions",
        "toml_spaces",
        "space",
        "foresight",
        "proposing",
        "default_model",
        "assumptions",
        "chernoff",
        "trials",
        "columns",
        "tables",
        "selection",
        "marks",
        "runs",
        "prefixes",
        "possible",
        "repeats",
        "evidence",
        "modelling",
        "judgement",
        "ledgers",
        "pools",
        "comparing",
        "recommending",
        "study_certificate",
        "moments",
        "list_certificate",
        "searches",
        "fixed_rows",
        "score_bounds",
        "measures",
        "scorers",
        "fitted_certificate",
        "fitted",
        "guaranteed",
        "certification",
        "confirming",
        "reports",
        "stored",
        "finals",
        "asking",
        "tuner",
    ],
    "integrations": ["algorithm", "coba", "mabwiser", "optuna", "sklearn"],
    "integrations.optuna": [
        "storage",
        "trials",
        "certifying",
        "confirming",
        "saying",
        "stopping",
        "pruning",
        "finalists",
        "sampler",
        "drawn",
        "pictures",
        "note",
        "dashboard",
    ],
    "integrations.sklearn": [
        "base",
        "spaces",
        "race",
        "scores",
        "results",
        "certificate",
        "evaluation",
        "search",
    ],
    "simulate": ["environments", "records", "players", "runner"],
    "paper": [
        "datasets",
        "general_lambda",
        "store",
        "parallel",
        "published",
        "functions",
        "delays",
        "coverage",
        "grid_scale",
        "regret",
        "kernels",
        "svm",
        "fig1",
        "fig2",
        "table1",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "deviations",
        "parts",
        "page",
    ],
    "reporting": ["wording", "markup", "drawing", "gathering", "timeline", "around", "sections", "style", "page"],
    "cli": [
        "exits",
        "shared",
        "journals",
        "storage",
        "demo",
        "stating",
        "certify",
        "report",
        "objectives",
        "workers",
        "watching",
        "running",
        "tune",
        "measurements",
        "paper",
        "bench",
    ],
}


def rank(module: str) -> tuple[int, ...]:
    """Where `mixbandit.x.y` stands; a package itself comes after its modules."""
    _, part, *rest = module.split(".")
    places, inside = [ORDER.index(part)], part
    for name in rest:
        if inside not in INSIDE:
            break
        assert name in INSIDE[inside], f"{module} is not in the order: add it"
        places.append(INSIDE[inside].index(name))
        inside = f"{inside}.{name}"
    return (*places, len(INSIDE.get(inside, [])))


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("mixbandit", *path.relative_to(PACKAGE).with_suffix("").parts))
        if name != "mixbandit.__init__":
            yield name.removesuffix(".__init__"), path


@functools.cache
def known() -> set[str]:
    return {name for name, _ in modules()}


def imported(path: Path) -> set[str]:
    """The modules of ours that the file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (submodules & known()) or {node.module or ""}
    # The package itself imports everything: only the command line, which comes last, may ask it for its version.
    assert path.parent.name == "cli" or "mixbandit" not in found, path
    return {name for name in found if name.startswith("mixbandit.")}


@pytest.mark.parametrize(
    ("name", "path"), list(modules()), ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_a_module_imports_only_from_those_above(name, path):
    for other in imported(path):
        assert rank(other) < rank(name), f"{name} imports {other}"


def test_importing_the_package_stays_light():
    heavy = ["scipy.linalg", "scipy.stats", "scipy.optimize", "scipy.special", "numba", "matplotlib", "cvxpy",
             "pandas", "typer", "rich", "torch", "jax", "sklearn", "joblib"]  # fmt: skip
    code = f"import sys, mixbandit; print([m for m in {heavy!r} if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_files_stay_short():
    long = {path.name: count for _, path in modules() if (count := len(path.read_text().splitlines())) > 450}
    assert long == {}


def test_everything_public_exists():
    for name in mixbandit.__all__:
        assert hasattr(mixbandit, name)

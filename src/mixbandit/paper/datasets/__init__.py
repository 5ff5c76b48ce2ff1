"""Data sets: the paper's three, scikit-learn's small ones, and your own CSV files.

The files beside this module are facts from the UCI Machine Learning Repository under CC BY 4.0, in their original row
order, duplicates included (562 rows of Maternal and 24 of Banknotes repeat others, as the paper used them):

- raisin: Çınar, Koklu & Taşdemir (2020), Raisin, doi 10.24432/C5660T
- maternal: Ahmed (2020), Maternal Health Risk, doi 10.24432/C5DP5D
- banknotes: Lohweg (2012), Banknote Authentication, doi 10.24432/C55P57
"""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from mixbandit._checks import Array, as_path, as_text, shown
from mixbandit._extras import import_extra
from mixbandit.errors import DamagedState, InvalidInput

# Checksums of the embedded files.
_SHA256 = {
    "raisin": "47d7b6ae8b3b89d2349f3794a446e0196b3f9f140917920280273ded3f44dc83",
    "maternal": "16aa6306995c7e3509f9020029791018b4cb17f84342223ff3a4da58cb08b4ed",
    "banknotes": "a4e6eb57f00dc0c5696badf6553001e8871644b5b98ab1b2869054af1d255125",
}
_FROM_SKLEARN = ("breast_cancer", "wine", "digits")
DATASETS = (*_SHA256, *_FROM_SKLEARN)


@dataclass(frozen=True)
class Dataset:
    """A classification problem."""

    name: str
    X: Array  # (n, p)
    y: NDArray[np.int64]  # (n,), indices into `classes`
    features: tuple[str, ...]  # names of the columns of X
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {int((self.y == i).sum())}" for i, name in enumerate(self.classes))
        return f"Dataset({self.name}: {len(self.X)} rows, {len(self.features)} features, {counts})"


def load_dataset(name: str | os.PathLike[str]) -> Dataset:
    """A data set by name, or from a CSV file: a header, numbers, and the class in the last column."""
    name = as_text(name, "name") if isinstance(name, str) else name
    if isinstance(name, str) and name in _SHA256:
        content = files("mixbandit.paper.datasets").joinpath(f"{name}.csv").read_bytes()
        if hashlib.sha256(content).hexdigest() != _SHA256[name]:
            raise DamagedState(f"the data set {name} that ships with mixbandit is damaged: reinstall mixbandit")
        return _parsed(name, content.decode(), name)
    if isinstance(name, str) and name in _FROM_SKLEARN:
        return _from_sklearn(name)
    path = as_path(name, "name")
    if not path.is_file():
        raise InvalidInput(f"{shown(str(path))} is neither a file nor one of {', '.join(DATASETS)}")
    try:
        return _parsed(path.stem, path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file: {error}") from error


def _parsed(name: str, text: str, where: str) -> Dataset:
    header, *rows = [row for row in csv.reader(text.splitlines()) if row] or [[]]
    if len(header) < 2 or not rows:
        raise InvalidInput(f"{where} must have a header of at least two columns, and rows; got {header!r}")
    values = np.empty((len(rows), len(header) - 1))
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise InvalidInput(f"{where}, row {i + 1}: expected {len(header)} columns, got {len(row)}")
        try:
            values[i] = [float(entry) for entry in row[:-1]]
        except ValueError as error:
            raise InvalidInput(f"{where}, row {i + 1}: all columns but the last must be numbers ({error})") from error
        if not np.isfinite(values[i]).all():
            raise InvalidInput(f"{where}, row {i + 1}: numbers must be finite, got {row[:-1]}")
    classes, y = np.unique([row[-1] for row in rows], return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(f"{where} must have at least two classes in its last column, got {classes.tolist()}")
    return Dataset(name, values, y.astype(np.int64), tuple(header[:-1]), tuple(str(c) for c in classes))


def _from_sklearn(name: str) -> Dataset:
    bunch = getattr(import_extra("sklearn.datasets", extra="experiments"), f"load_{name}")()
    return Dataset(
        name,
        np.asarray(bunch.data, dtype=np.float64),
        np.asarray(bunch.target, dtype=np.int64),
        tuple(str(feature) for feature in bunch.feature_names),
        tuple(str(label) for label in bunch.target_names),
    )

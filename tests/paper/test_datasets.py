import numpy as np
import pytest

import mixbandit as mb
from mixbandit.paper import datasets
from mixbandit.paper.datasets import load_dataset


@pytest.mark.parametrize(
    ("name", "rows", "features", "counts"),
    [
        ("raisin", 900, 7, {"Besni": 450, "Kecimen": 450}),
        ("maternal", 1014, 6, {"high risk": 272, "low risk": 406, "mid risk": 336}),
        ("banknotes", 1372, 4, {"0": 762, "1": 610}),
        ("breast_cancer", 569, 30, {"malignant": 212, "benign": 357}),
        ("wine", 178, 13, {"class_0": 59, "class_1": 71, "class_2": 48}),
        ("digits", 1797, 64, None),
    ],
)
def test_the_data_sets_are_what_they_should_be(name, rows, features, counts):
    data = load_dataset(name)
    assert data.X.shape == (rows, features)
    assert len(data.features) == features
    if counts is not None:
        assert {label: int((data.y == i).sum()) for i, label in enumerate(data.classes)} == counts
    assert f"{rows} rows" in repr(data)


def test_rows_and_duplicates_are_the_originals():
    raisin = load_dataset("raisin")
    np.testing.assert_array_equal(
        raisin.X[0], [87524, 442.2460114, 253.291155, 0.819738392, 90546, 0.758650579, 1184.04]
    )
    assert raisin.classes[raisin.y[0]] == "Kecimen"
    maternal = load_dataset("maternal")
    both = np.column_stack((maternal.X, maternal.y))
    assert len(both) - len(np.unique(both, axis=0)) == 562
    notes = load_dataset("banknotes")
    both = np.column_stack((notes.X, notes.y))
    assert len(both) - len(np.unique(both, axis=0)) == 24


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,kind\n1,2.5,x\n3,-4,y\n\n")
    data = load_dataset(path)
    assert (data.name, data.features, data.classes) == ("mine", ("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(data.X, [[1.0, 2.5], [3.0, -4.0]])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "header"),
        ("a,b\n", "header"),
        ("a\n1\n", "at least two columns"),
        ("a,kind\n1,x\n2\n", "row 2: expected 2 columns, got 1"),
        ("a,kind\n1,x\nred,y\n", "row 2: all columns but the last must be numbers"),
        ("a,kind\nnan,x\n2,y\n", "row 1: numbers must be finite"),
        ("a,kind\n1,x\n2,x\n", "at least two classes"),
    ],
)
def test_a_wrong_file_is_explained(text, says, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(mb.InvalidInput, match=says):
        load_dataset(path)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(mb.InvalidInput, match="neither a file nor one of raisin"):
        load_dataset("iris")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(mb.InvalidInput, match="not a text file"):
        load_dataset(tmp_path / "binary.csv")


def test_a_truncated_resource_is_noticed(monkeypatch):
    monkeypatch.setitem(datasets._SHA256, "raisin", "0" * 64)
    with pytest.raises(mb.DamagedState, match="raisin that ships with mixbandit is damaged"):
        load_dataset("raisin")

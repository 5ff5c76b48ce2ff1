"""Tables of trials: every row and column is used, or named, or refused."""

import math
import os
import threading
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import optuna
import pandas as pd
import pytest

import mixbandit as mb
from mixbandit.tuning.runs import Run, read_run
from tests.helpers import tensors
from tests.helpers.runs import SPACE

STATED = {"reward_range": (0.0, 1.0), "samples": 100, "rows": "fresh"}
FRAME = pd.DataFrame({"lr": [0.1, 0.2, 0.3, 0.4], "depth": [1, 2, 3, 1], "value": [0.1, 0.2, 0.3, 0.4]})


def read(tmp_path, content, **options) -> Run:
    path = tmp_path / "runs.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_run(path, **options)


def refused(tmp_path, content, message, **options):
    with pytest.raises(mb.InvalidInput, match=message) as told:
        read(tmp_path, content, **options)
    assert type(told.value) is mb.InvalidInput
    return str(told.value)


# ---- nothing is dropped without a word


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    run = read(tmp_path, "lr,depth,value\n0.1,1,0.5\n0.2,2,0.6\n".encode("utf-8-sig"))
    assert set(run.space) == {"lr", "depth"}
    run = read(tmp_path, "params_lr,params_depth,value\n0.1,1,0.5\n0.2,2,0.6\n".encode("utf-8-sig"))
    assert set(run.space) == {"lr", "depth"}
    assert run.unused == {}


def test_columns_named_by_integers_are_columns():
    frame = pd.DataFrame({0: [0.1, 0.2, 0.3], 1: [3, 4, 5], "value": [0.5, 0.6, 0.7]})
    run = read_run(frame)
    assert set(run.space) == {"0", "1"}
    assert run.configurations[2] == {"0": 0.3, "1": 5}
    assert set(read_run(frame, value=1, parameters=[0]).space) == {"0"}
    with pytest.raises(mb.InvalidInput, match="several columns named '1'"):
        read_run(pd.DataFrame([[0.1, 0.2, 0.5]], columns=[1, "1", "value"]))


def test_rows_that_begin_with_a_hash_are_rows(tmp_path):
    run = read(tmp_path, "# mixbandit: 1.0\n# more\n\ntag,lr,value\n#a,0.1,0.5\nb,0.2,0.6\n#a,0.3,0.7\n")
    assert list(run.values) == [0.5, 0.6, 0.7]
    assert run.space["tag"].choices == ("#a", "b")


@pytest.mark.parametrize("content", ["lr,lr,value\n1,2,3\n", "lr,value,value\n1,2,3\n", "lr,,,value\n1,2,3,4\n"])
def test_columns_that_share_a_name_are_refused(tmp_path, content):
    refused(tmp_path, content, "several columns named")
    frame = pd.DataFrame([[0.1, 0.2, 0.5], [0.2, 0.1, 0.6]], columns=["lr", "lr", "value"])
    with pytest.raises(mb.InvalidInput, match="several columns named 'lr'"):
        mb.certify(frame, **STATED)


def test_columns_with_several_levels_are_refused():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    with pytest.raises(mb.InvalidInput, match="several levels"):
        mb.certify(study.trials_dataframe(multi_index=True), **STATED)


def test_the_certificate_names_what_is_not_used():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial):
        trial.suggest_float("fixed", 0.5, 0.5)
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=4)
    found = mb.certify(study.trials_dataframe(), **STATED)
    aside = ("datetime_start", "datetime_complete", "duration")
    assert found.unused == {**dict.fromkeys(aside, "not a parameter"), "params_fixed": "never varies"}
    text = found.details()
    assert found.ordered  # which is what the column "number" is used for
    assert "Not used: 'datetime_start', 'datetime_complete', 'duration' (not a parameter)" in text
    assert "'params_fixed' (never varies)" in text
    assert mb.certify(study, **STATED).unused == {"fixed": "never varies"}
    space = mb.Space({"x": mb.Float(0, 1)})
    assert mb.certify(study, space=space, **STATED).unused == {"fixed": "not in the space"}


def test_parameters_say_which_columns_they_are(tmp_path):
    content = "number,lr,note,value\n0,0.1,good,0.5\n1,0.2,bad,0.6\n2,0.3,good,0.7\n"
    refused(tmp_path, content, r"'number' looks like a record of the tuner.*--parameter")
    run = read(tmp_path, content, parameters=["lr"])
    assert list(run.space) == ["lr"]
    assert run.unused == {"note": "not among the parameters stated"}
    assert run.ordered
    assert set(read(tmp_path, content, parameters=["lr", "number", "note"]).space) == {"lr", "number", "note"}
    assert not read(tmp_path, content, parameters=["lr", "number", "note"]).ordered
    optunas = "number,params_lr,params_fixed,value\n0,0.1,7,0.5\n1,0.2,7,0.6\n"
    for names in (["lr"], ["params_lr"], ("lr",)):
        run = read(tmp_path, optunas, parameters=names)
        assert list(run.space) == ["lr"]
        assert set(run.unused) == {"params_fixed"}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("lr,params_lr,value\n1,2,3\n2,3,4\n", {}, "'lr' and 'params_lr'"),
        ("value,params_value\n1,2\n2,3\n", {}, "'value' and 'params_value'"),
        ("lr,value\n1,2\n", {"parameters": ["width"]}, "no column 'width'"),
        ("lr,value\n1,2\n", {"parameters": ["value"]}, "holds the values"),
        ("lr,value\n1,2\n", {"parameters": ["lr", "lr"]}, "stated twice"),
        ("lr,value\n1,2\n", {"parameters": "lr"}, "list of names"),
        ("lr,value\n1,2\n", {"parameters": []}, "list of names"),
        ("lr,value\n1,2\n", {"parameters": [None]}, "name of a column"),
        ("lr,value\n1,2\n", {"parameters": ["lr"], "space": SPACE}, "not both"),
        ("lr,value\n1,2\n", {"value": ["lr"]}, "name of a column"),
        ("params_a,params_b,value\n1,2,3\n2,3,4\n", {"parameters": ["a"]}, "varies 'b'"),
        ("params_a,params_b,value\n1,2,3\n2,3,4\n", {"space": mb.Space({"a": mb.Float(0, 9)})}, "varies 'b'"),
        ("lr,state,value\n1,solid,3\n2,liquid,4\n", {}, "must hold Optuna's states"),
        ("lr,state,value\n1,1,3\n2,2,4\n", {}, "must hold Optuna's states"),
        ("C,params_C,value\n1,2,3\n", {"space": mb.Space({"C": mb.Float(0, 9)})}, "either of the columns"),
        ("a,value\n1,2\n", {"space": mb.Space({"C": mb.Float(0, 9)})}, "no column 'C'"),
    ],
)
def test_ambiguity_is_an_error(tmp_path, content, options, message):
    refused(tmp_path, content, message, **options)


def test_a_parameter_called_value_or_state_can_be_stated(tmp_path):
    run = read(tmp_path, "value,params_value\n0.1,2\n0.2,3\n", value="value")
    assert list(run.space) == ["value"]
    run = read(tmp_path, "lr,state,value\n1,solid,3\n2,liquid,4\n", parameters=["lr", "state"])
    assert run.space["state"].choices == ("liquid", "solid")


def test_names_of_columns_belong_to_tables():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    for history in (study, [({"x": 0.1}, 0.5), ({"x": 0.2}, 0.6)]):
        with pytest.raises(mb.InvalidInput, match="value applies only to tables"):
            mb.certify(history, value="x", **STATED)
        with pytest.raises(mb.InvalidInput, match="parameters applies only to tables"):
            mb.certify(history, parameters=["x"], **STATED)


def test_rows_are_counted_by_reason(tmp_path):
    run = read(
        tmp_path,
        "lr,state,value\n1,COMPLETE,3\n2,TrialState.PRUNED,4\n3,FAIL,\n4,,5\n5,complete,\n6,Complete,7\n7,COMPLETE,nan\n",
    )
    assert list(run.values) == [3.0, 7.0]
    assert run.left_out == {"PRUNED": 1, "FAIL": 1, "without a state": 1, "without a value": 2}


def test_the_index_of_a_frame_is_named_too():
    run = read_run(FRAME.set_index("depth"))
    assert run.unused == {"depth": "the index, not a column"}
    assert list(run.space) == ["lr"]


# ---- text


def test_fields_may_have_several_lines_and_odd_characters(tmp_path):
    run = read(tmp_path, 'params_a,user_attrs_log,value\r\n1,"x\r\ny, ""z""",0.1\r\n2,"\u2028\x85\x0b",0.2\r\n')
    assert list(run.values) == [0.1, 0.2]
    assert run.unused == {"user_attrs_log": "not a parameter"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a header and at least one row"),
        (b"\n\n# only\n", "a header and at least one row"),
        (b"lr,value\n", "a header and at least one row"),
        (b"lr;value\n1;2\n", "separated by commas"),
        ("lr,value\n1,2\n".encode("utf-16"), "UTF-16"),
        ("lr,value\n1,2\n".encode("utf-16-le"), "line 1 has NUL bytes"),
        ("lr,value,näme\n1,2,3\n".encode("latin-1"), r"line 1 is not UTF-8 text \(byte 0xe4\).*LATIN1"),
        ("lr,value,name\n1,2,x\n3,4,ä\n".encode("latin-1"), "line 3 is not UTF-8"),
        (b"lr,value\n1,2\n\0,3\n", "line 3 has NUL"),
        (b"SQLite format 3\x00" + bytes(100), "sqlite:///"),
        (b"PK\x03\x04" + bytes(100), "spreadsheet"),
        (b"\x1f\x8b\x08" + bytes(100), "gzip"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not UTF-8|NUL"),
        (b"lr,value\n1,2\n3,4,5\n6,7\n", "line 3 has 3 fields, but the header has 2"),
        (b"# a\nlr,value\n\n1,2\n3\n", "line 5 has 1 field, but the header has 2"),
        (b'lr,value\n1,2\n"3,4\n5,6\n', "quoted field is not closed"),
        (b'lr,value\n1,2\n"3"x,4\n', "not CSV"),
        (b"lr,value\n1,2\n" + b"x" * 140_000 + b",4\n", "longer than 131072 characters"),
        (b"lr,value\n1,high\n2,3\n", "must hold numbers, got 'high'"),
        (b"lr,value\n1,1_000\n2,3\n", "must hold numbers, got '1_000'"),
        (b"lr,value\n1,2\n1" + b"0" * 400 + b",3\n", "'lr' holds inf"),
        (b"lr,value\n1,2\n1" + b"0" * 5000 + b",3\n", "'lr' holds inf"),
        (b"lr,value\n1,2\n-1e300,3\n", "finite and at most 1e[+]200"),
    ],
)
def test_files_that_are_not_tables_are_refused_with_help(tmp_path, content, message):
    refused(tmp_path, content, message)


def test_huge_values_are_refused(tmp_path):
    path = tmp_path / "runs.csv"
    for digits in (400, 5000):
        path.write_text(f"lr,value\n1,0.5\n2,1{'0' * digits}\n")
        with pytest.raises(mb.InvalidInput):
            mb.certify(path, **STATED)
    with pytest.raises(mb.InvalidInput, match="must hold numbers, got an integer of about 400 digits"):
        mb.certify([({"x": 1}, 0.5), ({"x": 2}, 10**400)], **STATED)
    with pytest.raises(mb.InvalidInput, match="'x' holds an integer of about 400 digits"):
        mb.certify([({"x": 1}, 0.5), ({"x": 10**400}, 0.5)], **STATED)


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(mb.InvalidInput, match="is a folder"):
        read_run(tmp_path)
    with pytest.raises(mb.InvalidInput, match="No such file"):
        read_run(tmp_path / "none.csv")
    with pytest.raises(mb.InvalidInput, match="must be the path of a file"):
        read_run("a\0b.csv")
    with pytest.raises(mb.InvalidInput, match="cannot be read"):
        read_run("a" * 5000)


def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("lr,value\n1,0.5\n2,0.6\n"))
    writer.start()
    assert list(read_run(path).values) == [0.5, 0.6]
    writer.join()


def test_text_beside_numbers_is_a_name(tmp_path):
    run = read(tmp_path, "size,value\n01,1\n1,2\nauto,3\n2,4\n2,5\n")
    assert set(run.space["size"].choices) == {"01", "1", "auto", 2}
    run = read(tmp_path, "size,value\n01,1\n1,2\n2,3\n")
    assert run.space["size"] == mb.Int(1, 2)


# ---- cells


def test_a_column_of_notes_is_not_a_parameter(tmp_path):
    rows = [f"{i % 7},run number {i},{i / 100}" for i in range(40)]
    content = "lr,note,value\n" + "\n".join(rows)
    told = refused(tmp_path, content, "'note' has 40 different values in 40 rows")
    assert "parameters=[…]" in told
    assert list(read(tmp_path, content, parameters=["lr"]).space) == ["lr"]
    with pytest.raises(mb.InvalidInput, match="'note' has 40 different"):
        mb.certify(pd.read_csv(tmp_path / "runs.csv"), **STATED)
    many = "lr,note,value\n" + "\n".join(f"{i % 7},n{i},{i / 1e5}" for i in range(12_000))
    refused(tmp_path, many, "'note' has thousands of different values in 12000 rows, such as 'n0'")
    assert len(read(tmp_path, many, parameters=["lr"]).values) == 12_000
    refused(tmp_path, many, "must hold numbers, got 'n0'", value="note", parameters=["lr"])


def test_many_numbers_are_numbers(tmp_path):
    numbers = np.random.default_rng(0).uniform(size=12_000)
    cells = ["" if i % 5 == 0 else repr(x) for i, x in enumerate(numbers.tolist())]
    kinds = ["off" if cell == "" else "on" for cell in cells]
    content = "x,kind,n,value\n" + "".join(
        f"{cell},{kind},{i},{i % 3}\n" for i, (cell, kind) in enumerate(zip(cells, kinds, strict=True))
    )
    run = read(tmp_path, content)
    assert run.space.conditions == {"x": ("kind", ("on",))}
    assert run.space["n"] == mb.Int(0, 11_999)
    assert run.configurations[7] == {"x": numbers[7], "kind": "on", "n": 7}
    assert run.configurations[10] == {"kind": "off", "n": 10}
    some = run.configurations[:300]
    np.testing.assert_allclose(run.encoded(slice(0, 300)), run.space.encode_all(some), atol=1e-15)


def test_memory_is_for_numbers_not_for_rows(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.uniform(size=(30_000, 5))
    path = tmp_path / "runs.csv"
    np.savetxt(path, cells, delimiter=",", header="a,b,c,d,value", comments="")
    tracemalloc.start()
    try:
        run = read_run(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(run.values) == 30_000
    assert peak < 10e6  # a dict per row took 30 MB


@pytest.mark.parametrize(
    "space",
    [
        mb.Space({"a": mb.Float(0, 8), "b": mb.Int(1, 9)}),
        mb.Space({"a": mb.Float(0.5, 8, log=True), "b": mb.Int(1, 9, log=True)}),
        mb.Space({"a": mb.Float(0, 8, step=0.5), "b": mb.Int(1, 9, step=2)}),
        mb.Space({"a": mb.Categorical([0.5, 2.5, 8.0]), "b": mb.Categorical([1, 5, 9])}),
        mb.Space({"a": mb.Float(0, 8 + 1e-12), "b": mb.Float(1, 9)}),
    ],
)
def test_columns_are_encoded_as_configurations_are(space):
    pairs = [({"a": a, "b": b}, 0.5) for a, b in ((0.5, 1), (2.5, 5), (8.0, 9), (8.0 * (1 + 1e-16), 1))]
    run = read_run(pairs, space=space)
    np.testing.assert_allclose(run.rows, space.encode_all([p for p, _ in pairs]), rtol=0, atol=1e-15)
    with pytest.raises(mb.InvalidInput, match="trial 5 of 5: a must"):
        _ = read_run([*pairs, ({"a": 99.0, "b": 1}, 0.5)], space=space).rows
    with pytest.raises(mb.InvalidInput, match=r"trial 5 of 5.*'b' missing"):
        _ = read_run([*pairs, ({"a": 0.5}, 0.5)], space=space).rows
    with pytest.raises(mb.InvalidInput, match="unknown parameters: 'c'"):
        read_run([*pairs, ({"a": 0.5, "b": 1, "c": 1}, 0.5)], space=space)


def test_learning_in_pieces_gives_the_same_bounds(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = [({"x": x, "y": y}, 0.5) for x, y in rng.uniform(size=(200, 2)).tolist()]
    whole = mb.certify(pairs, **STATED)
    monkeypatch.setattr("mixbandit.tuning.prefixes._AT_ONCE", 64)
    monkeypatch.setattr("mixbandit.tuning.judgement._AT_ONCE", 64)
    parts = mb.certify(pairs, **STATED)
    assert parts.interval == pytest.approx(whole.interval, abs=1e-9)
    assert parts.t == whole.t == 200


def test_polars_frames_are_frames():
    pl = pytest.importorskip("polars")
    expected = read_run(FRAME)
    for frame in (pl.from_pandas(FRAME), pl.from_pandas(FRAME).lazy()):
        run = read_run(frame)
        assert run.space == expected.space
        assert list(run.configurations) == list(expected.configurations)
    nulls = pl.DataFrame({"x": [0.1, 0.2, None], "kind": ["a", "a", "b"], "value": [0.5, None, 0.7]})
    run = read_run(nulls)
    assert run.left_out == {"without a value": 1}
    assert run.space.conditions == {"x": ("kind", ("a",))}
    assert mb.certify(pl.from_pandas(FRAME), **STATED).t == 4


def test_arrow_tables_are_frames():
    class Column(list):
        to_pylist = list.copy

    class ArrowTable:  # as much of pyarrow's as is used
        column_names = tuple(FRAME.columns)
        columns = tuple(Column(FRAME[name]) for name in FRAME.columns)

        def __len__(self):
            return len(FRAME)

        def to_pylist(self):
            raise AssertionError

    assert list(read_run(ArrowTable()).configurations) == list(read_run(FRAME).configurations)


def test_numbers_of_all_kinds_are_numbers():
    cells = [Decimal("0.5"), np.float32(0.25), Fraction(1, 8), np.int64(1), 2, np.array(0.75)]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "value": [Decimal("0.1")] * 6})
    run = read_run(frame)
    assert run.space["x"] == mb.Float(0.125, 2.0)
    assert [c["x"] for c in run.configurations] == [0.5, 0.25, 0.125, 1.0, 2.0, 0.75]
    assert list(run.values) == [0.1] * 6
    torch = tensors.torch()
    pairs = [({"x": torch.tensor(x)}, torch.tensor(0.5)) for x in (0.25, 0.5)]
    assert read_run(pairs).space["x"] == mb.Float(0.25, 0.5)


def test_absent_cells_of_all_kinds_are_absent():
    cells = pd.Series([None, float("nan"), pd.NA, Decimal("NaN"), np.ma.masked, pd.NaT, "", 0.5], dtype=object)
    frame = pd.DataFrame({"x": range(8), "value": cells})
    frame.loc[8] = [9, 0.25]
    run = read_run(frame)
    assert run.left_out == {"without a value": 7}
    assert list(run.values) == [0.5, 0.25]


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, np.array([1, 2]), {1, 2}, ([1],)])
def test_cells_that_cannot_be_compared_are_refused_by_name(cell):
    frame = pd.DataFrame({"x": pd.Series([1, cell, 3], dtype=object), "value": [0.1, 0.2, 0.3]})
    with pytest.raises(mb.InvalidInput, match=f"column 'x' holds a {type(cell).__name__}.*in row 2"):
        mb.certify(frame, **STATED)
    with pytest.raises(mb.InvalidInput, match="column 'x' holds a"):
        mb.certify([({"x": 1}, 0.1), ({"x": cell}, 0.2)], **STATED)
    aside = frame.rename(columns={"x": "note"}).assign(lr=[1, 2, 3])
    assert read_run(aside, parameters=["lr"]).unused == {"note": "not among the parameters stated"}


def test_pairs_without_a_value_are_counted():
    run = read_run([({"x": 1}, 0.1), ({"x": 2}, None), ({"x": 3}, math.nan), ({"x": 4}, 0.2)])
    assert list(run.values) == [0.1, 0.2]
    assert run.left_out == {"without a value": 2}


def test_integers_that_floats_do_not_hold_stay_exact():
    pairs = [({"n": 2**60 + i}, 0.1) for i in (0, 3, 7)]
    run = read_run(pairs)
    assert run.space["n"] == mb.Int(2**60, 2**60 + 7)
    assert [c["n"] for c in run.configurations] == [2**60, 2**60 + 3, 2**60 + 7]


def test_an_empty_cell_is_none_where_the_space_has_that_choice(tmp_path):
    content = "penalty,lr,value\nl1,1,0.5\n,2,0.6\nNone,3,0.7\n"
    refused(tmp_path, content, "'penalty' is missing from some trials")
    space = mb.Space({"penalty": mb.Categorical(["l1", None]), "lr": mb.Int(1, 3)})
    run = read(tmp_path, content, space=space)
    assert [c["penalty"] for c in run.configurations] == ["l1", None, None]
    assert run.rows.shape == (3, 3)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (np.ma.masked, "is masked"),
        (np.ma.array(0.3, mask=True), "is masked"),
        (np.complex128(0.3 + 1j), "must not be complex"),
        (tensors.torch().tensor(0.3, requires_grad=True), "detach it first"),
    ],
    ids=["masked", "masked array", "complex", "gradient"],
)
def test_cells_without_a_plain_value_are_no_parameters(cell, says):
    with pytest.raises(mb.InvalidInput, match=f"'x' in row 1 .*{says}"):
        read_run([({"x": cell}, 0.3), ({"x": 0.2}, 0.4)])


def test_masked_values_are_left_out_and_counted():
    pairs = [({"x": x / 4}, value) for x, value in enumerate([0.3, np.ma.array(0.3, mask=True), np.ma.masked, 0.4])]
    run = read_run(pairs)
    assert run.left_out == {"without a value": 2}
    assert list(run.values) == [0.3, 0.4]


@pytest.mark.parametrize("first", [2**60, 2**70])
def test_many_integers_that_floats_cannot_tell_apart_are_refused(tmp_path, first):
    file = tmp_path / "run.csv"
    file.write_text("n,lr,value\n" + "".join(f"{first + i},0.{i % 7 + 1},0.5\n" for i in range(10_500)))
    with pytest.raises(mb.InvalidInput, match="too large to tell apart"):
        read_run(file)
    assert "n" in read_run(file, parameters=["lr"]).unused


def test_a_column_without_a_name_is_an_index_only_if_it_counts_the_rows(tmp_path):
    file = tmp_path / "run.csv"
    file.write_text(",lr,value\n0,0.1,0.3\n1,0.2,0.4\n2,0.3,0.5\n")
    assert read_run(file).unused == {"": "the index of a saved DataFrame"}
    for text in (",lr,value\n30,0.1,0.3\n10,0.2,0.4\n20,0.3,0.5\n", "lr,,value\n0.1,30,0.3\n0.2,10,0.4\n0.3,20,0.5\n"):
        file.write_text(text)
        with pytest.raises(mb.InvalidInput, match="has no name and is not a row index"):
            read_run(file)


def test_a_row_with_an_unknown_constraint_is_not_known_to_be_feasible():
    frame = pd.DataFrame(
        {
            "params_x": [0.1, 0.2, 0.3],
            "value": [0.3, 0.4, 0.5],
            "system_attrs_constraints:0": [-1.0, -1.0, 1.0],
            "system_attrs_constraints:1": [-1.0, None, -1.0],
        }
    )
    assert read_run(frame).feasible.tolist() == [True, False, False]

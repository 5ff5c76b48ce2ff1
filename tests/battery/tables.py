"""CSV files with a few bytes, cells, rows or columns changed: read in full, or refused with an error of ours.

"In full" is counted independently, by a parser of ten lines: rows that count and rows left out are all the rows, and
parameters, values, states and unused columns are all the columns.
"""

import csv
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import mixbandit as mb
from mixbandit.tuning.runs import read_run
from tests.battery.tally import Progress, Tally, silent

PLAIN = "lr,depth,kernel,value\n" + "".join(
    f"{10 ** -(i % 4 + 1)!r},{i % 5 + 1},{('rbf', 'poly', 'linear')[i % 3]},{(i * 7 % 10) / 10}\n" for i in range(12)
)
OPTUNAS = (
    ",number,value,datetime_start,duration,params_C,params_degree,params_kernel,user_attrs_note,state\n"
    + "".join(
        f"{i},{i},{'' if i == 4 else i / 10},2024-01-0{i + 1} 10:00:00,0 days 00:00:01,{0.5 + i},"
        f"{2 + i % 3 if i % 2 else ''},{'poly' if i % 2 else 'rbf'},"
        + (f'"two\nlines, {i}"' if i == 3 else "")
        + f",{'PRUNED' if i == 6 else 'COMPLETE'}\n"
        for i in range(9)
    )
)
OURS = "# mixbandit: 1.0; command: none\n" + PLAIN.replace("kernel", "flag").replace("rbf", "True").replace("poly", "")
SEEDS = tuple(text.encode() for text in (PLAIN, OPTUNAS, OURS, PLAIN.replace("\n", "\r\n")))
CELLS = (
    *("", " ", "#", "#1", '"', '""', "'", ",", "nan", "NaN", "inf", "-inf", "None", "True", "1e400", "-0", "0x10"),
    *("1_000", "9" * 30, "9" * 400, "9" * 5000, "1.0", "01", "١", "ü", "\u2028", "\x85", "\ufeff", "\x1b[0m", "=1+1"),
    *("value", "params_value", "state", "COMPLETE", "TrialState.FAIL", "number", "x" * 1000, "x" * 140_000, "a\nb"),
)
NAMES = ("", " ", "lr ", "#lr", "Value", "0", "extra", "params_extra", "params_", "id", "Unnamed: 0", "notes\n", "ü")
ACTIONS = (*(5 * ("cell",)), "name", "drop a cell", "double a cell", "drop a row", "double a row", "double a column",
           "drop a column", *(3 * ("add a column",)))  # fmt: skip
BYTES = (
    b"\xef\xbb\xbf",
    b"\0",
    b'"',
    b'""',
    b"#",
    b"\n",
    b"\r",
    b",",
    b";",
    b"\xff",
    b"\xc3",
    b"\x1a",
    b"\xe2\x80\xa8",
)
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp037")
STATED = {"reward_range": (0.0, 1.0), "samples": 50, "rows": "fresh"}
# Certificates take a hundred times as long as reading.
CERTIFIED = 100


def run(budget: int, seed: int, progress: Progress = silent) -> Tally:
    """Read `budget` files, each with one to three changes; certify one in a hundred."""
    tally = Tally("mutated tables")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        for case in range(budget):
            rng = np.random.default_rng([seed, case])
            content = mutated(rng)
            path.write_bytes(content)
            try:
                tally.note(outcome(path, content, certify=case % CERTIFIED == 0))
            except mb.InvalidInput as error:
                tally.note(f"refused: {type(error).__name__}")
            except Exception as error:  # what nobody should see
                tally.fail(f"seed {seed}, case {case}: {type(error).__name__}: {error}")
            progress(case + 1)
    return tally


def outcome(path: Path, content: bytes, *, certify: bool) -> str:
    """Read a file and compare with what it holds; AssertionError if something is lost or made up."""
    found = read_run(path)
    header, rows = counted(content)
    left_out = sum(found.left_out.values())
    assert len(found.values) + left_out == len(rows), f"{len(found.values)} + {left_out} of {len(rows)} rows"
    assert np.isfinite(found.rows).all()
    written = [f"params_{name}" if f"params_{name}" in header else name for name in found.space]
    state = ["state"] if "state" in header and "state" not in [*written, *found.unused] else []
    number = ["number"] if "number" in header and "number" not in [*written, *found.unused] else []  # tells the order
    assert Counter([*written, *found.unused, *state, *number, "value"]) == Counter(header), (
        f"{header} became {found.unused}"
    )
    place = header.index("value")
    values = [row[place] for row in rows if is_value(row[place]) and ("state" not in header or counts(header, row))]
    numbers, expected = found.values, np.array([float(value) for value in values])
    if number:  # the numbers of trials tell their order
        numbers, expected = np.sort(numbers), np.sort(expected)
    np.testing.assert_array_equal(numbers, expected)
    if certify:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.AssumptionsRefutedWarning)  # values of any kind may refute them
            certificate = mb.certify(path, **STATED)
        assert certificate.t == len(found.values)
        assert certificate.unused == found.unused
        for name in found.unused:
            assert repr(name) in certificate.details()
        return "certified"
    return "read"


def is_value(text: str) -> bool:
    return text.strip().lower() not in ("", "nan", "+nan", "-nan") and text != "None"


def counts(header: list[str], row: list[str]) -> bool:
    return row[header.index("state")].upper().endswith("COMPLETE")


def counted(content: bytes) -> tuple[list[str], list[list[str]]]:
    """The header and the rows, by the standard parser on the whole text; blank lines are not rows."""
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines[0].startswith("#") or not lines[0].strip():
        del lines[0]
    header, *rows = csv.reader([f"{line}\n" for line in lines], strict=True)
    return header, [row for row in rows if len(row) > 1]


def mutated(rng: np.random.Generator) -> bytes:
    content = SEEDS[rng.integers(len(SEEDS))]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        content = CHANGES[rng.integers(len(CHANGES))](content, rng)
    return content


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    place = 0 if rng.random() < 0.2 else int(rng.integers(len(content) + 1))
    return content[:place] + BYTES[rng.integers(len(BYTES))] + content[place:]


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    first, last = sorted(rng.integers(len(content) + 1, size=2).tolist())
    return content[:first] if rng.random() < 0.3 else content[:first] + content[min(last, first + 20) :]


def _encode(content: bytes, rng: np.random.Generator) -> bytes:
    text = content.decode("utf-8", errors="replace").replace("poly", "pöly")
    return text.encode(ENCODINGS[rng.integers(len(ENCODINGS))], errors="replace")


def _grid(content: bytes, rng: np.random.Generator) -> bytes:
    """Change the table itself: a cell, a row or a column, dropped, doubled, moved or replaced."""
    try:
        table = list(csv.reader(content.decode("utf-8", errors="replace").splitlines(keepends=True)))
    except csv.Error:  # an earlier change left no table
        return content
    table = [row for row in table if row] or [["value"]]
    i = int(rng.integers(len(table)))
    j = int(rng.integers(len(table[i])))
    action = rng.choice(ACTIONS)
    if action == "cell":
        table[i][j] = CELLS[rng.integers(len(CELLS))]
    elif action == "name":
        table[0][min(j, len(table[0]) - 1)] = NAMES[rng.integers(len(NAMES))]
    elif action == "drop a cell":
        del table[i][j]
    elif action == "double a cell":
        table[i].insert(j, table[i][j])
    elif action == "drop a row":
        del table[i]
    elif action == "double a row":
        table.insert(i, list(table[i]))
    elif action == "double a column":
        table = [[*row, row[min(j, len(row) - 1)]] for row in table]
    elif action == "drop a column":
        table = [row[:j] + row[j + 1 :] for row in table]
    else:
        few = rng.choice(np.array(CELLS[:30], dtype=object), size=rng.integers(1, 4))
        cells = [NAMES[rng.integers(len(NAMES))], *rng.choice(few, size=max(len(table) - 1, 0))]
        table = [[*row, str(cell)] for row, cell in zip(table, cells, strict=True)]
    lines = (",".join(_quoted(cell, rng) for cell in row) for row in table)
    return "\n".join([*lines, ""]).encode("utf-8", errors="replace")


def _quoted(cell: str, rng: np.random.Generator) -> str:
    """As a writer would; now and then not."""
    needed = any(mark in cell for mark in '",\n\r')
    return '"' + cell.replace('"', '""') + '"' if needed and rng.random() < 0.98 else cell


# Most kinds of damage are refused at once; the table itself changes in ways that may be read.
CHANGES = (_flip, _flip, _insert, _insert, _cut, _encode, *(9 * (_grid,)))

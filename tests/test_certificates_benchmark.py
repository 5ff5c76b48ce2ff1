"""The functions of benchmarks/certificates: what is known about them is true. Its summary counts correctly."""

from collections import Counter

import numpy as np
import pytest
from benchmarks.certificates.functions import KINDS, functions
from benchmarks.certificates.histories import Key, load, store, uniform
from benchmarks.certificates.play import COLUMNS, Job, falsehoods, play, read, write
from benchmarks.certificates.summary import clustered, ratio, share, summarise


def test_kinds_have_equally_many_functions():
    counts = Counter(function.kind for function in functions().values())
    assert set(counts) == set(KINDS)
    assert len(set(counts.values())) == 1
    assert min(counts.values()) >= 5


@pytest.mark.parametrize("name", functions())
def test_no_configuration_is_better_than_the_stored_maximum(name):
    function = functions()[name]
    values = [function(configuration) for configuration in uniform(function.space, 2000, np.random.default_rng(0))]
    assert min(values) >= 0.0
    assert max(values) <= function.best + 1e-9 <= 1.0
    function.space.encode(function.best_at)  # which must be a configuration
    assert function(function.best_at) == pytest.approx(function.best, abs=1e-3)


def test_the_function_with_a_cliff():
    cliff = functions()["cliff-line"]
    assert [cliff({"x": x}) for x in (0.0, 0.4, 0.7, 1.0)] == pytest.approx([0.7, 0.8, 0.1, 0.1])


@pytest.mark.parametrize("name", [name for name, function in functions().items() if function.hit_above is not None])
def test_most_histories_miss_a_needle(name):
    function, rng = functions()[name], np.random.default_rng(0)
    hits = [function(configuration) > function.hit_above for configuration in uniform(function.space, 3000, rng)]
    assert np.mean(hits) < 1.0 / 300
    assert function.best > function.hit_above > 0.5


def test_a_stored_history_is_certified_and_checked(tmp_path):
    key, rng = Key("categorical-machine", "uniform", 100, 0), np.random.default_rng(0)
    function = functions()[key.function]
    history = [(c, float(rng.binomial(100, function(c))) / 100) for c in uniform(function.space, 20, rng)]
    store(key, history, tmp_path)
    assert load(key, tmp_path) == history
    row = play(Job(key, 15), {}, tmp_path)
    assert tuple(row) == COLUMNS
    assert (row["trials"], row["refuted"], row["wrong"], row["hit"]) == ("15", "0", "0", "")
    assert float(row["lower"]) <= float(row["truth"]) <= float(row["upper"])
    narrow = play(Job(key, 15), {"norm_bound": "0.05"}, tmp_path)
    assert float(narrow["mean_width"]) < float(row["mean_width"])


def test_what_counts_as_false():
    class Certificate:
        interval, best_possible, gap, proven = (0.5, 0.7), 0.8, 0.1, True

    found = Certificate()
    assert falsehoods(found, 0.7, 0.8) == (False, False, False)
    assert falsehoods(found, 0.71, 0.8) == (True, False, False)
    assert falsehoods(found, 0.72, 0.81) == (True, True, False)
    assert falsehoods(found, 0.6, 0.75) == (False, False, True)
    found.proven = False
    assert falsehoods(found, 0.6, 0.9) == (False, False, False)


def made_up(function, seed, **known):
    kind = functions()[function].kind
    row = dict.fromkeys(COLUMNS, "0") | {"kind": kind, "function": function, "sampler": "TPE", "seed": str(seed)}
    hit = "" if functions()[function].hit_above is None else "0"
    return row | {"trials": "100", "samples": "100", "hit": hit, "mean_width": "0.5"} | known


def test_summary_compares_labels(tmp_path):
    before = [made_up("smooth-hump", seed, wrong=str(seed), silent=str(seed)) for seed in (0, 1)]
    before += [made_up("smooth-branin", seed) for seed in (0, 1)]
    before += [made_up("needle-line", 0, wrong="1", silent="1"), made_up("needle-pair", 0, hit="1")]
    after = [row | {"mean_width": "0.25" if row["function"] == "smooth-hump" else "0.5"} for row in before]
    files = [tmp_path / "before.csv", tmp_path / "after.csv"]
    for path, rows in zip(files, (before, after), strict=True):
        write(path, "made up", rows)
    with files[0].open("a") as file:
        file.write("smooth,half a li")
    assert len(read(files[0])[1]) == len(before)

    smooth = before[:4]
    assert share(smooth, "wrong").mean == 0.25
    assert share(smooth, "wrong").error == pytest.approx(0.25)  # of shares 0.5 and 0
    assert ratio(after[:4], smooth).mean == pytest.approx(0.75)
    assert clustered({"f": [1.0, 2.0], "g": [3.0]}).mean == 2.0

    lines = {line.split(" | ")[0][2:]: line for line in summarise(files).split("\n\n")[1].splitlines()}
    assert lines["smooth"].startswith(
        "| smooth | 4 | 25.0 ± 25.0 | 25.0 ± 25.0 | 25.0 ± 25.0 | 25.0 ± 25.0 | 0.0 ± 0.0"
    )
    assert " 0.750 ± 0.250 " in lines["smooth"]
    assert lines["needle, missed"].startswith("| needle, missed | 1 | 100.0 ")
    assert lines["needle, hit"].startswith("| needle, hit | 1 | 0.0 ")
    assert lines["all but missed needles"].startswith("| all but missed needles | 5 | 20.0 ")

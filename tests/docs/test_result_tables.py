"""Tables with errors that are computed from the files of results: every row of a file is on its page."""

import math

import pytest

from tests.docs.pages import DOCS
from tests.docs.test_results import rows


def share(part, runs):
    """A share and its standard error, in per cent."""
    part = float(part)
    return f"{100 * part:.1f} ± {100 * math.sqrt(part * (1 - part) / int(runs)):.1f} %"


def repeats():
    for row in rows("repeats.csv"):
        spread = "1 (not random)" if row["spread"] == "1.0" else row["spread"]
        found = (share(row[column], row["runs"]) for column in ("found", "ceiling", "wrong", "silent"))
        yield row["p"], spread, row["repeats"], *found


def delays():
    for row in rows("delays.csv"):
        missed = share(int(row["misses"]) / int(row["runs"]), row["runs"])
        yield "play" if row["strict"] == "True" else "arrival", missed


def unknown_noise():
    for row in rows("unknown_noise.csv"):
        if row["measure"] == "missed":
            yield (share(row["value"], row["runs"]),)
        else:
            found = f"{float(row['value']):.3f} ± {float(row['standard error']):.3f}"
            yield row["sigma"], row["measure"].split()[-1], found


def means():
    for row in rows("means.csv"):
        value = float(row["value"])
        if row["measure"].startswith("missed") and row["method"] != "gaussian":  # that one may refuse values
            yield (share(value, row["runs"]),)
        elif (row["measure"] == "width" and row["method"] == "MeanSequence") or row["measure"].startswith("width, 50"):
            yield (f"{value:.4f} ± {float(row['standard error']):.4f}",)


def bounded():
    for row in rows("bounded.csv"):
        if row["model"] == "kernel":
            closed = f"{100 * float(row['closed']):.0f} ± {100 * float(row['closed error']):.0f} %"
            lower = f"{float(row['lower']):.3f} ± {float(row['lower error']):.3f}", f"{float(row['truth']):.3f}"
            yield *lower, "" if row["method"] == "MartingaleMixture" else closed, row["seconds"]


def mixtures():
    cells = {}
    for row in rows("mixtures.csv"):
        if row["mixture"] != "Scaled(.1)":
            key = row["values"], row["actions"], row["d"], row["mixture"]
            cells.setdefault(key, []).append((float(row["width_ratio"]), float(row["width_error"])))
    for found in cells.values():
        ratio, error = (sum(numbers) / len(found) for numbers in zip(*found, strict=True))
        yield (f"{ratio:.3f} ± {error:.3f}",)


def regret():
    for row in rows("regret.csv"):
        lost = f"{float(row['final']):.1f} ± {float(row['final_standard_error']):.1f}"
        bounds = (f"{float(row[name]):.0f}" for name in ("hindsight", "widths", "analytic"))
        wrong = (f"{row[name]} of {row['repetitions']}" for name in ("regret_missed", "certificate_missed", "refuted"))
        yield row["algorithm"], lost, *bounds, f"{float(row['gap']):.3f}", *wrong


def searching():
    found = {(row["tasks"], row["trials"], row["against"], row["what"]): row for row in rows("searching/wins.csv")}
    for tasks in ("tables", "functions", "unseen", "all of these"):
        for trials in ("50", "100", "200"):
            shown = []
            for key in (("TPE", "recommended"), ("CMA-ES", "recommended"), ("TPE", "mean"), ("CMA-ES", "mean")):
                ahead, behind = (int(found[tasks, trials, *key][name]) for name in ("ahead", "behind"))
                part = ahead / (ahead + behind)
                shown.append(f"{100 * part:.0f} ± {100 * math.sqrt(part * (1 - part) / (ahead + behind)):.0f} %")
            yield tasks, trials, *shown


TABLES = {
    "repeats": repeats,
    "late-rewards": delays,
    "unknown-noise": unknown_noise,
    "means": means,
    "bounded": bounded,
    "mixtures": mixtures,
    "regret": regret,
    "searching": searching,
}


@pytest.mark.parametrize("page", TABLES)
def test_rows_of_the_results_are_on_the_page(page):
    text = (DOCS / "results" / f"{page}.md").read_text()
    expected = [" | ".join(row) + " |" for row in TABLES[page]()]
    assert len(expected) >= 3
    assert [row for row in expected if f"| {row}" not in text and f" {row}" not in text] == []

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mixbandit as mb
from mixbandit.cli import app
from mixbandit.paper import coverage, delays, kernels, regret

run = CliRunner().invoke
PNG = b"\x89PNG"


def test_coverage_prints_a_verdict_and_a_picture(tmp_path):
    arguments = ["coverage", "--sequence", "standard", "--sequence", "bayes-wrong", "--design", "all"]
    arguments += ["-d", "2", "-T", "10", "-n", "20", "--out", str(tmp_path)]
    result = run(app, arguments)
    assert result.exit_code == 0, result.output
    assert "standard / gaussian / optimistic / at once" in result.output
    assert "holds" in result.output
    assert "misses" in result.output
    assert (tmp_path / "coverage.png").read_bytes().startswith(PNG)
    summary = (tmp_path / "summary.csv").read_text().splitlines()
    made_by, command = summary[0].split("; command: ")
    assert made_by == f"# mixbandit: {mb.__version__}"
    assert len(summary) == 2 + 10
    assert len((tmp_path / "by_sequence.csv").read_text().splitlines()) == 2 + 2
    again = run(app, [*shlex.split(command)[1:], "--out", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "summary.csv").read_text().splitlines() == summary
    assert str(tmp_path) not in command


def test_coverage_says_what_it_leaves_out_and_refuses_what_was_asked_for(tmp_path):
    small = ["-d", "2", "-T", "5", "-n", "2", "--out", str(tmp_path)]
    crossed = run(app, ["coverage", "--sequence", "unknown-noise", "--noise", "all", "--feedback", "by value", *small])
    assert crossed.exit_code == 0, crossed.output
    assert "Left out: unknown-noise with uniform noise" in crossed.output
    asked = run(app, ["coverage", "--sequence", "unknown-noise", "--noise", "uniform", *small])
    assert asked.exit_code != 0
    assert "assumes gaussian noise" in f"{asked.exception} {asked.output}"
    small[small.index("-T") + 1] = "3"
    means = ["coverage", "--sequence", "mean", "--noise", "beta", "--sigma", "0.5", "--sigma", "0.05"]
    crossed = run(app, [*means, "--design", "all", "--means", "all", *small])
    assert crossed.exit_code == 0, crossed.output
    assert "Left out: mean with the design 'chasing': it is for one mean." in crossed.output
    summary = (tmp_path / "summary.csv").read_text().splitlines()
    assert "--means all --sigma 0.5 --sigma 0.05" in summary[0]
    assert len(summary) == 2 + 4
    nothing = run(app, ["coverage", "--sequence", "bounded", "--noise", "gaussian", "--design", "all", *small])
    assert nothing.exit_code == 2
    assert "there is nothing left to measure" in nothing.output
    unknown = run(app, ["coverage", "--feedback", "never", *small])
    assert unknown.exit_code == 2


def test_coverage_fails_where_a_promise_is_broken(tmp_path, monkeypatch):
    def overconfident(theta, sigma, delta):
        return mb.MartingaleMixture(len(theta), sigma=sigma / 5, delta=delta, norm_bound=1.1)

    monkeypatch.setitem(coverage.SEQUENCES, "standard", overconfident)
    result = run(app, ["coverage", "-d", "2", "-T", "30", "-n", "30", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "BROKEN" in result.output


def test_coverage_stops_cleanly(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(coverage, "simulate", interrupted)
    result = run(app, ["coverage", "-n", "3", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "resume from" in result.output


def test_regret_prints_a_table_and_a_picture(tmp_path):
    arguments = ["regret", "--algorithm", "CMM-UCB", "--algorithm", "Uniform", "-T", "30", "-n", "2", "-d", "8"]
    result = run(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "CMM-UCB lost less in 2 of 2" in result.output
    assert "0 0 0" in result.output
    assert (tmp_path / "regret.png").read_bytes().startswith(PNG)
    assert len((tmp_path / "summary.csv").read_text().splitlines()) == 4


def test_regret_fails_where_a_promise_is_broken(tmp_path, monkeypatch):
    honest = regret.simulate

    def wrong(settings, repetition):
        row = list(honest(settings, repetition))
        row[regret.COLUMNS.index("certificate_missed")] = 1
        return tuple(row)

    monkeypatch.setattr(regret, "simulate", wrong)
    result = run(app, ["regret", "--algorithm", "OFUL", "-T", "5", "-n", "4", "-d", "4", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "BROKEN" in result.output


def test_delays_prints_what_is_promised(tmp_path, monkeypatch):
    monkeypatch.setattr(delays, "simulate", lambda settings, run: (0 if settings.valid else 7,))
    result = run(app, ["delays", "-n", "20", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert re.search(r"by value, in order of arrival +20/20 +nothing", result.output)
    assert re.search(r"by value, in order of play +0/20 +≤ 0.05", result.output)
    monkeypatch.setattr(delays, "simulate", lambda settings, run: (7,))
    result = run(app, ["delays", "-n", "20", "--out", str(tmp_path / "broken")])
    assert result.exit_code == 1
    assert "BROKEN" in result.output


def test_kernels_prints_a_table_and_a_picture(tmp_path):
    arguments = ["kernels", "--kernel", "RBF", "--kernel", "Matérn 3/2", "-T", "5", "-n", "2", "--arms", "20"]
    result = run(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("RBF", "Matérn 3/2", "CMM-UCB", "IGP-UCB", "own data", "0 of 2"):
        assert text in result.output
    assert (tmp_path / "kernels.png").exists()
    comment, _, *rows = (tmp_path / "summary.csv").read_text().splitlines()
    assert len(rows) == 10
    told = shlex.split(comment.partition("command: ")[2])[1:]
    again = run(app, [*told, "--out", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "curves.csv").read_text() == (tmp_path / "curves.csv").read_text()


def test_kernels_fails_where_a_promise_is_broken(tmp_path, monkeypatch):
    looks = " ".join(["1"] * 25)
    monkeypatch.setattr(kernels, "simulate", lambda settings, run: (looks, looks, looks, "1 0 0 0 0", looks[:9]))
    result = run(app, ["kernels", "--kernel", "RBF", "-T", "5", "-n", "4", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "BROKEN: the bounds of CMM-UCB with RBF" in result.output
    assert "of DMM-UCB" not in result.output


@pytest.mark.usefixtures("children_heed_ctrl_c")
@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.heavy), "2"])
def test_ctrl_c_stops_all_processes_and_keeps_the_results(tmp_path, jobs):
    """As a terminal does it: the signal goes to every process of the group."""
    arguments = ["coverage", "-T", "200", "-n", "5000", "-j", jobs, "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mixbandit", *arguments], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    for _ in range(300):  # until results are on disk
        time.sleep(0.1)
        if list(tmp_path.glob("coverage-*.csv")):
            break
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume from" in output
    (results,) = tmp_path.glob("coverage-*.csv")
    assert 2 < len(results.read_text().splitlines()) < 5000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--sequence", "magic"], "magic"), (["--noise", "cauchy"], "cauchy"), (["--design", "lazy"], "lazy")],
)
def test_unknown_names_are_refused(arguments, says):
    result = run(app, ["coverage", *arguments])
    assert result.exit_code == 2
    assert says in result.output


def test_the_module_runs_and_errors_are_messages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = [sys.executable, "-m", "mixbandit"]
    version = subprocess.run([*module, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"mixbandit {mb.__version__}\n"
    bad = subprocess.run([*module, "coverage", "--delta", "2"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr.strip() == "mixbandit: delta must lie strictly between 0 and 1, got 2.0"
    (tmp_path / "file").touch()
    blocked = run(app, ["coverage", "-n", "2", "-T", "2", "--out", "file/inside"])
    assert blocked.exit_code == 1
    assert isinstance(blocked.exception, SystemExit)
    assert blocked.stderr.strip().startswith("mixbandit: ")
    assert "Traceback" not in blocked.stderr


def test_a_missing_extra_is_named(monkeypatch):
    from mixbandit._extras import import_extra

    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(mb.MissingDependency, match=r"pip install 'mixbandit\[conic\]'"):
        import_extra("cvxpy", extra="conic")


def test_paper_prints_the_table_in_the_papers_form_and_writes_everything(tmp_path):
    result = run(app, ["paper", "table1", "fig6", "fig1", "--reps", "1", "--rounds", "3", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("Raisin", "Maternal", "Banknotes", "mean acc", "max acc", "(0.818)", "Freq-TS"):
        assert text in result.output
    assert "nan" not in result.output
    preview = tmp_path / "preview"
    assert {path.stem for path in preview.glob("*.csv")} == {"table1", "table1-repetitions", "table1-time", "fig6"}
    assert {path.name for path in preview.glob("fig*.p*")} == {"fig6.pdf", "fig6.png"}
    comment = (preview / "table1.csv").read_text().splitlines()[0]
    assert comment == f"# mixbandit: {mb.__version__}; command: mixbandit paper table1 --reps 1 --rounds 3 --seed 0"
    # Figure 1 is always at full scale.
    assert {path.name for path in tmp_path.glob("*.*")} == {"fig1.csv", "fig1.pdf", "fig1.png", "claims.csv"}


@pytest.mark.heavy
def test_paper_previews_judge_no_claim_and_leave_full_results_alone(tmp_path, monkeypatch):
    from mixbandit.paper import parts

    def fig2(*options):
        result = run(app, ["paper", "fig2", "--seed", "3", "--out", str(tmp_path), *options])
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    monkeypatch.setitem(parts.REPETITIONS, "fig2", 2)
    first = fig2("--reps", "1")
    assert "preview of 1 repetition, made in" in first
    assert re.search(r"The full run is 2 repetitions: about \d+ (second|minute)s? at this pace", first)
    assert "mixbandit paper fig2 --seed 3 --out" in first
    assert "holds" not in first
    assert not (tmp_path / "claims.csv").exists()

    full = fig2()
    assert "holds" in full
    assert "This is a preview" not in full
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert set(kept) == {"fig2.csv", "fig2.pdf", "fig2.png", "claims.csv"}
    assert "--reps 2" in kept["claims.csv"].decode()

    again = fig2("--reps", "1")
    assert "its duration is not known" in again  # nothing was left to do
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == kept


def test_paper_estimates_the_full_run_from_repetitions_and_rounds():
    from rich.progress import Progress

    from mixbandit.cli.paper import _preview
    from mixbandit.cli.shared import Meter
    from mixbandit.paper.parallel import Workers
    from mixbandit.paper.parts import Plan

    now = [0.0]
    meter = Meter(Progress(get_time=lambda: now[0], disable=True))
    meter("a", 2, 30)  # two were stored
    for done, seconds in ((3, 40.0), (4, 41.0), (5, 43.0)):  # the first waits for imports and compilation
        now[0] = seconds
        meter("a", done, 30)
    assert (meter.pace, meter.elapsed) == (1.5, 43.0)
    # 15 cells of 100 repetitions, 1.5 seconds for each tenth of one: 15 × 100 × 15 seconds.
    text = _preview(Plan(Path("here"), 2, 50, workers=Workers(2)), "table1", meter)
    assert "preview of 2 repetitions × 50 rounds, made in 43 seconds" in text
    assert "The full run is 100 repetitions × 500 rounds: about 6.2 hours at this pace." in text
    assert text.endswith("  mixbandit paper table1 --jobs 2 --out here")
    # Rounds alone make a preview, too, and more repetitions than the full run has do not count.
    plans = [Plan(Path("here"), reps, rounds) for reps, rounds in ((None, 500), (200, 600), (None, 100), (50, 500))]
    assert [plan.share("table1") for plan in plans] == [1, 1, 0.2, 0.5]
    assert [plan.share("fig2") for plan in plans] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "'nonsense' is not one of"),
        (["all", "nonsense"], "'nonsense' is not one of"),
        (["fig1", "--backend", "threads"], "--backend"),
        (["fig1", "--reps", "0"], "--reps"),
        (["fig1", "--seed", "-1"], "--seed"),
        ([], "WHAT"),
    ],
)
def test_paper_refuses_what_it_does_not_know(tmp_path, arguments, named):
    result = run(app, ["paper", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert named in result.output or named in result.output.upper()
    assert not (tmp_path / "out").exists()


def test_the_time_left_does_not_count_what_was_there_already():
    from rich.progress import Progress

    from mixbandit.cli.shared import Meter, TimeLeft

    now = [0.0]
    bar = Progress(TimeLeft(), get_time=lambda: now[0], disable=True)
    meter = Meter(bar)
    task = bar.tasks[0]

    def left():
        return TimeLeft().render(task).plain

    meter("a", 0, 40)
    assert left() == "left: ?"
    now[0] = 10.0
    meter("a", 1, 40)
    assert left() == "left: 0:06:30"  # 39 at 10 s each
    meter("a", 10, 40)
    meter("b", 20, 40)  # ten were stored
    now[0] = 100.0
    assert left() == "left: 0:03:20"  # 20 at 10 s each: ten took 100 s
    meter("b", 40, 40)
    assert left() == ""

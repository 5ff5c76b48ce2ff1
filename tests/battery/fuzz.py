"""Coverage-guided fuzzing (atheris) of what reads files: state files with a valid checksum, raw bytes, CSV files.

`python -m tests.battery.fuzz state --seconds 60` runs one target in this process, which then ends; `run` starts it.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.battery.tally import Tally, silent

TARGETS = ("state", "bytes", "csv")


def run(budget, seed, progress=silent):
    """`budget` seconds of fuzzing, shared by the targets."""
    tally = Tally("fuzzing (atheris; inputs)")
    for i, target in enumerate(TARGETS):
        seconds = max(5, budget // len(TARGETS))
        command = [sys.executable, "-W", "ignore", "-m", "tests.battery.fuzz", target]
        done = subprocess.run(
            [*command, "--seconds", str(seconds), "--seed", str(seed + 1)], capture_output=True, text=True, check=False
        )
        executed = re.search(r"stat::number_of_executed_units:\s+(\d+)", done.stderr)
        if done.returncode or executed is None:
            base64 = re.search(r"Base64: (.*)", done.stderr)
            tally.fail(f"{target}, input {base64 and base64[1]} (base64): {done.stdout[-1500:]}")
        else:
            tally.outcomes[f"{target}: refused or read"] += int(executed[1])
        progress((i + 1) * seconds)
    return tally


def _reader(target, folder):
    """A function that reads bytes as a file of this kind; our errors are fine."""
    import mixbandit as mb
    from mixbandit.tuning.runs import read_run
    from tests.battery.state_files import with_checksum

    file = folder / "file"

    def read(data):
        file.write_bytes(with_checksum(data) if target == "state" else data)
        with contextlib.suppress(mb.MixbanditError):
            read_run(file) if target == "csv" else mb.load(file)

    return read


def _corpus(target, folder):
    """A few valid files to start from."""
    from tests.helpers.worlds import make, play

    folder.mkdir()
    if target == "csv":
        (folder / "optuna").write_text(
            "number,value,params_x,params_kind,state\n0,0.5,1.5,a,COMPLETE\n1,0.7,2,b,FAIL\n"
        )
        (folder / "plain").write_text('# made by hand\nx,"a ""name""",value\n1,u,0.1\n2.5,"v\nw",0.3\n')
        return
    for kind in ("CMMUCB", "OFUL", "UCB over a grid, exploration 0.2"):
        policy = make(kind)
        play(policy, 2)
        policy.ask()
        file = folder / kind
        policy.save(file)
        if target == "state":
            file.write_bytes(file.read_bytes().partition(b"\n")[2])


def _main():
    import atheris

    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with atheris.instrument_imports(include=["mixbandit"]):
        import mixbandit.saving
        import mixbandit.tuning.runs  # noqa: F401
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _corpus(given.target, folder / "corpus")
        options = [f"-max_total_time={given.seconds}", f"-seed={given.seed}", "-print_final_stats=1", "-timeout=20"]
        options += ["-rss_limit_mb=4096", f"-artifact_prefix={folder}/", str(folder / "corpus")]
        atheris.Setup([sys.argv[0], *options], _reader(given.target, folder))
        atheris.Fuzz()


if __name__ == "__main__":
    _main()

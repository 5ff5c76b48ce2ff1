"""Worker processes on one Optuna study: trials per second, and how long choosing takes.

    python benchmarks/workers.py [--quick] [--out docs/results/workers.csv]

One study, 1, 2, 4 and 8 processes, in a PostgreSQL server of its own (apt-get install postgresql) and in a journal
file, all on this machine. A trial takes `seconds` of waiting, as training on another machine or a GPU would. `trials/s`
counts from the first trial to the end of the last; `choosing` is the time from the beginning of a trial until its
parameters are there, reading and writing the study included: a median and a 95 % quantile. `CPU` is a worker's own
computing time for a trial, all of Optuna included: medians over all trials and over the last 50. Other work on the
machine changes it less.

    python benchmarks/workers.py work STORAGE [--seed 0] [--trials 400] [--seconds 0.5] [--log FILE] [--heartbeat 1]

is one worker. It adds a line of JSON to its log for each value that it returns.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.paper.store import write_table

STUDY, SEED = "workers", 0
KNOWN = mb.Assumptions(reward_range=(0.0, 1.0), samples=100, rows="fresh")
# A study ends when this many of its trials have a value or are being run.
COUNTED = (TrialState.COMPLETE, TrialState.RUNNING)


def opened(address: str, heartbeat: int | None = None) -> optuna.storages.BaseStorage:
    """A storage by its address: a URL, or the path of a journal."""
    if "://" not in address:
        return optuna.storages.JournalStorage(JournalFileBackend(address))
    if heartbeat is None:
        return optuna.storages.RDBStorage(address)
    retry = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=1)
    return optuna.storages.RDBStorage(address, heartbeat_interval=heartbeat, heartbeat_stale_trial_callback=retry)


def accuracy(trial: optuna.Trial) -> float:
    """The accuracy on 100 rows of a made-up model; the rows are new in every trial."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 1e-3, 1e1, log=True)
    off = 0.05 if trial.suggest_categorical("kind", ["a", "b", "c"]) == "b" else 0.0
    expected = 0.95 - off - 0.4 * (x - 0.7) ** 2 - 0.03 * (np.log10(y) + 1.0) ** 2
    return float(np.random.default_rng((SEED, trial.number)).binomial(100, expected)) / 100


def work(options: argparse.Namespace) -> None:
    """Run trials until there are enough."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = MixBanditSampler(assumptions=KNOWN, seed=options.seed)
    study = optuna.load_study(study_name=STUDY, storage=opened(options.storage, options.heartbeat), sampler=sampler)

    computed = time.process_time()

    def objective(trial: optuna.Trial) -> float:
        nonlocal computed
        assert trial.datetime_start is not None
        value, begun = accuracy(trial), trial.datetime_start.timestamp()
        chosen = time.time()
        for name, known in (("chosen", chosen), ("worker", options.seed)):
            trial.set_user_attr(name, known)
        time.sleep(options.seconds)
        before, computed = computed, time.process_time()
        if options.log is not None:
            line = {"number": trial.number, "params": trial.params, "value": value, "begun": begun, "chosen": chosen}
            with options.log.open("a") as file:
                file.write(json.dumps({**line, "returned": time.time(), "computed": computed - before}) + "\n")
        return value

    study.optimize(objective, callbacks=[optuna.study.MaxTrialsCallback(options.trials, states=COUNTED)])


def started(storage: str, seed: int, log: Path | None, **options: object) -> subprocess.Popen[bytes]:
    """A worker in a process of its own, with one thread for linear algebra."""
    command = [sys.executable, __file__, "work", storage, "--seed", str(seed)]
    given = {"log": log, **options}
    command += [part for name, value in given.items() if value is not None for part in (f"--{name}", str(value))]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})


def logged(folder: Path) -> list[dict[str, Any]]:
    """What workers returned, from their logs."""
    return [json.loads(line) for path in sorted(folder.glob("*.log")) for line in path.read_text().splitlines()]


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The address of an empty database, in a server of its own."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found is None and not places:
        raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
    binaries = Path(found).parent if found else places[0]
    # A folder with a short path, because that of a socket has to be short, and for nobody else to clear away.
    folder = Path(tempfile.mkdtemp(prefix="mixbandit-"))
    # The server refuses to run as root.
    own = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if own:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def program(name: str, *options: str | Path) -> None:
        subprocess.run([*own, binaries / name, *options], check=True, cwd="/", stdout=subprocess.DEVNULL)

    data = folder / "data"
    program("initdb", "-D", data, "-U", "mixbandit", "-A", "trust")
    program("pg_ctl", "-D", data, "-o", f"-p {port} -k {folder} -h 127.0.0.1", "-w", "start")
    try:
        yield f"postgresql+psycopg2://mixbandit@127.0.0.1:{port}/postgres"
    finally:
        program("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def measured(storage: str, workers: int, trials: int, seconds: float) -> list[Any]:
    """One row of the table."""
    with contextlib.suppress(KeyError):
        optuna.delete_study(study_name=STUDY, storage=opened(storage))
    optuna.create_study(study_name=STUDY, storage=opened(storage), direction="maximize")
    with tempfile.TemporaryDirectory() as folder:
        running = [
            started(storage, i, Path(folder) / f"{i}.log", trials=trials, seconds=seconds) for i in range(workers)
        ]
        if any(worker.wait() for worker in running):
            raise RuntimeError("a worker failed")
        lines = sorted(logged(Path(folder)), key=lambda line: line["begun"])
    took = max(line["returned"] for line in lines) - lines[0]["begun"]
    choosing = [line["chosen"] - line["begun"] for line in lines]
    computing = [line["computed"] for line in lines]
    kind = "PostgreSQL" if "://" in storage else "journal file"
    figures = (*np.quantile(choosing, (0.5, 0.95)), np.median(computing), np.median(computing[-50:]))
    return [kind, workers, len(lines), round(len(lines) / took, 2), *(round(float(figure), 3) for figure in figures)]


def main() -> None:
    """Print and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few trials, to see that it works")
    parser.add_argument("--out", type=Path, default=None)
    commands = parser.add_subparsers()
    worker = commands.add_parser("work", help="one worker")
    worker.add_argument("storage")
    worker.add_argument("--seed", type=int, default=0)
    worker.add_argument("--trials", type=int, default=400)
    worker.add_argument("--seconds", type=float, default=0.5)
    worker.add_argument("--log", type=Path, default=None)
    worker.add_argument("--heartbeat", type=int, default=None)
    options = parser.parse_args()
    if hasattr(options, "storage"):
        work(options)
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trials, seconds, rows = (12, 0.1, []) if options.quick else (200, 0.25, [])
    with postgresql() as server, tempfile.TemporaryDirectory() as folder:
        for storage in (server, str(Path(folder) / "journal.log")):
            for workers in (2,) if options.quick else (1, 2, 4, 8):
                rows.append(measured(storage, workers, trials, seconds))
                print(*rows[-1], flush=True)
    if options.out is not None:
        columns = [
            "storage",
            "workers",
            "trials",
            "trials/s",
            "choosing, s: median",
            "95 %",
            "CPU, s: median",
            "last 50",
        ]
        made = {"command": "python benchmarks/workers.py", "seed": SEED, "cores": os.cpu_count(), "seconds": seconds}
        write_table(options.out, columns, rows, **made)


if __name__ == "__main__":
    main()

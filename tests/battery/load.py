"""Eight processes on one file, one store of results and one study: readers see whole files, and nothing is lost."""

import contextlib
import dataclasses
import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path

import optuna

import mixbandit as mb
from mixbandit.integrations.optuna import MixBanditSampler
from mixbandit.paper.store import ResultStore
from tests.battery.tally import Tally, silent
from tests.helpers.worlds import make

WORKERS = 8


def run(budget, seed, progress=silent):
    """About `budget` writes: half to a state file that others read, most others to a store, some to a study."""
    tally = Tally(f"load ({WORKERS} processes on one file, store and study)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _one_state_file(folder, max(1, budget // (2 * WORKERS)), tally)
        progress(tally.tried)
        _one_store(folder, max(1, budget // (3 * WORKERS)), tally)
        progress(tally.tried)
        _one_study(folder, max(1, budget // (50 * WORKERS)), seed, tally)
        progress(tally.tried)
    return tally


@contextlib.contextmanager
def _workers(target, *arguments):
    """Eight processes, each told its number; an error of one of them is an error here."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=target, args=(number, *arguments)) for number in range(WORKERS)]
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            process.join()


def _save(number, file, count):
    policy = make("Uniform")
    for _ in range(number):  # so that readers can tell whose file it is
        policy.ask()
    for _ in range(count):
        policy.save(file)


def _one_state_file(folder, count, tally):
    file = folder / "policy"
    make("Uniform").save(file)
    with _workers(_save, file, count) as processes:
        while any(process.is_alive() for process in processes):
            try:
                found = mb.load(file)
            except mb.MixbanditError as error:
                tally.fail(f"a reader met a torn file: {error}")
            else:
                tally.note("reads of a whole file" if found.rounds < WORKERS else "of nobody's")
    tally.outcomes["saves"] += count * WORKERS
    _note_deaths(processes, "saving", tally)
    if sorted(path.name for path in folder.iterdir()) != ["policy"]:
        tally.fail(f"saving left {sorted(path.name for path in folder.iterdir())}")


@dataclasses.dataclass(frozen=True)
class _Settings:
    name: str = "load"


def _add(number, folder, count):
    store = ResultStore(folder, "load", _Settings(), ("worker",))
    for i in range(count):
        store.add(number * count + i, number)
    store.tidy()  # others may not have finished, and their rows must stay


def _one_store(folder, count, tally):
    folder = folder / "store"
    with _workers(_add, folder, count) as processes:
        pass
    _note_deaths(processes, "adding results", tally)
    rows = ResultStore(folder, "load", _Settings(), ("worker",)).rows
    written = (folder / ResultStore(folder, "load", _Settings(), ("worker",)).path.name).read_text().splitlines()
    if len(rows) != count * WORKERS or len(written) < count * WORKERS + 2:
        tally.fail(f"{count * WORKERS} results were added to a store, {len(rows)} are there in {len(written)} lines")
    tally.outcomes["results kept"] += len(rows)


def _storage(file):
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))


def _optimise(number, file, count, seed):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = MixBanditSampler(seed=seed + number, n_startup_trials=4, reward_range=(0, 1), samples=100, rows="fresh")
    study = optuna.load_study(study_name="load", storage=_storage(file), sampler=sampler)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("worker", number)
        time.sleep(0.02)
        return 0.3 + 0.4 * x

    study.optimize(objective, n_trials=count)


def _one_study(folder, count, seed, tally):
    file = folder / "journal"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name="load", storage=_storage(file), direction="maximize")
    with _workers(_optimise, file, count, seed) as processes:
        pass
    _note_deaths(processes, "tuning", tally)
    trials = optuna.load_study(study_name="load", storage=_storage(file)).trials
    done = Counter(t.user_attrs["worker"] for t in trials if t.state.name == "COMPLETE")
    if done != Counter(dict.fromkeys(range(WORKERS), count)):
        tally.fail(f"{WORKERS} processes played {count} trials each; the study has {dict(done)}")
    tally.outcomes["trials of one study"] += done.total()


def _note_deaths(processes, doing, tally):
    for process in processes:
        if process.exitcode:
            tally.fail(f"a process died with {process.exitcode} while {doing} (its message is above)")

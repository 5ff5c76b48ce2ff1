"""Optuna's storages, without passwords in messages.

`study_in` only reads: nothing is created, changed or upgraded. `storage_to_tune` creates what is not there.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from mixbandit._checks import as_path, clipped
from mixbandit._extras import import_extra
from mixbandit.cli.journals import journal_to_write, said_on_stderr
from mixbandit.errors import InvalidInput, MissingDependency, MixbanditError
from mixbandit.tuning.assumptions import DIRECTIONS
from mixbandit.tuning.tables import masked, secrets_in

Kind = TypeVar("Kind")

_ADDRESS = re.compile(r"[a-z0-9+_.-]+://", re.IGNORECASE)
# Tables that every version of Optuna made, and the one that says which version of the schema they have.
_TABLES, _SCHEMA = {"studies", "trials", "version_info"}, "alembic_version"
_JOURNAL = b'{"op_code"'
# Another command may just be making the same database: seconds to wait for all of its tables.
_PATIENCE, _LOOK_EVERY = 3.0, 0.1
_DRIVERS = {
    "psycopg2": "psycopg2-binary",
    "psycopg": "psycopg[binary]",
    "MySQLdb": "mysqlclient",
    "pymysql": "PyMySQL",
    "mysql": "mysql-connector-python",
}


def is_address(source: str) -> bool:
    """Whether this is the address of a storage and not a path."""
    return _ADDRESS.match(source) is not None


def is_journal(path: Path) -> bool:
    """Whether a file is a journal of Optuna's; a pipe cannot be looked at twice, and is not."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_JOURNAL)) == _JOURNAL
    except OSError:
        return False


def study_in(source: str, name: str | None) -> Any:
    """The study of this name, or the only one, in a storage given by its address or the path of its journal."""
    with _reading(source):
        optuna = import_extra("optuna", extra="optuna")
        optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # this process says itself what is wrong
        storage = _storage(source) if is_address(source) else _journal(optuna, source)
        names = sorted(optuna.get_all_study_names(storage=storage))
        if not names:
            raise InvalidInput(f"there is no study in {masked(source)}")
        if name is None and len(names) > 1:
            raise InvalidInput(f"there are several studies; choose one with --study: {', '.join(names)}")
        if name is not None and name not in names:
            raise InvalidInput(f"there is no study {name!r}; the studies are {', '.join(names)}")
        study = optuna.load_study(study_name=name or names[0], storage=storage)
        study.get_trials(deepcopy=False)  # damaged trials show here, where errors are understood
        return study


def study_to_tune(source: str, name: str, direction: str | None, say: Callable[[str], None]) -> Any:
    """The study of this name, which is created if it is not there; InvalidInput if it has another direction."""
    with _reading(source):
        optuna = import_extra("optuna", extra="optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = storage_to_tune(source, say)
        if name not in optuna.get_all_study_names(storage=storage):
            # Another process may create it at the same time.
            optuna.create_study(
                study_name=name, storage=storage, direction=direction or DIRECTIONS[0], load_if_exists=True
            )
        study = optuna.load_study(study_name=name, storage=storage)
        if len(study.directions) != 1:
            raise InvalidInput(f"the study {name!r} has {len(study.directions)} objectives; only one can be tuned")
        stored = study.direction.name.lower()
        if direction not in (None, stored):
            raise InvalidInput(f"the direction of the study {name!r} is {stored}, but --direction is {direction}")
        study.get_trials(deepcopy=False)  # damaged trials show here, where errors are understood
        return study


def storage_to_tune(source: str, say: Callable[[str], None] = said_on_stderr) -> Any:
    """A storage to write to, given by its address or the path of its journal; it is created if it is not there."""
    check_may_be_tuned(source)
    with _reading(source):
        optuna = import_extra("optuna", extra="optuna")
        if not is_address(source):
            return journal_to_write(source, say)
        return _once_made(
            lambda: optuna.storages.RDBStorage(source, engine_kwargs={"pool_pre_ping": True}), _file_of(source)
        )


def _once_made(work: Callable[[], Kind], path: Path | None) -> Kind:
    """What `work` returns; an error in a database that is new counts only if it persists."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return work()
        except Exception:
            if path is None or not _is_new(path) or time.monotonic() > until:
                raise
        time.sleep(_LOOK_EVERY)


def _is_new(path: Path) -> bool:
    """Whether a file was written a moment ago."""
    try:
        return abs(time.time() - path.stat().st_mtime) < _PATIENCE
    except OSError:
        return False


def _file_of(source: str) -> Path | None:
    """The file of a SQLite database; None for other addresses."""
    url = import_extra("sqlalchemy.engine", extra="optuna").make_url(source)
    return _sqlite_path(str(url.database)) if url.get_backend_name() == "sqlite" and url.database else None


def resolved(source: str) -> str:
    """The same storage for a process in another folder: objectives may call `os.chdir`."""
    if not is_address(source):
        return str(as_path(source, "the storage").absolute())
    with _reading(source):
        url = import_extra("sqlalchemy.engine", extra="optuna").make_url(source)
        if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
            return source
        scheme = "file:" if url.database.startswith("file:") else ""
        path = url.database.removeprefix(scheme)
        if Path(path).is_absolute():
            return source
        here = quote(str(Path.cwd())) if scheme else Path.cwd()
        found = str(url.set(database=f"{scheme}{here}/{path}").render_as_string(hide_password=False))
        # Optuna fills in {SCHEMA_VERSION}, which has to stay as it was written.
        return source if "{" in f"{url.database}{found}" else found


def check_may_be_tuned(source: str) -> None:
    """Refuse files that are something else, and what cannot be created; nothing is changed here."""
    with _reading(source):
        if not is_address(source):
            _check_may_be_journal(as_path(source, "the storage"))
            return
        url = import_extra("sqlalchemy.engine", extra="optuna").make_url(source)
        if url.get_backend_name() == "sqlite":
            _check_may_be_storage(str(url.database or ""), masked(source))


def _check_may_be_journal(path: Path) -> None:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: give the path of a file, which will become an Optuna journal")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}")
    if path.is_file() and path.stat().st_size and not is_journal(path):
        database = path.read_bytes()[:6] == b"SQLite"
        hint = f": for a database, give sqlite:///{path}" if database else ""
        raise InvalidInput(f"{path} is not an Optuna journal{hint}. Nothing was changed")


def _check_may_be_storage(database: str, source: str) -> None:
    """Refuse to add Optuna's tables to the database of something else."""
    try:
        tables = _sqlite_tables(_sqlite_file(database, source))
    except InvalidInput:
        path = _sqlite_path(database)
        if not database or database == ":memory:" or path.is_dir():
            raise
        if not path.absolute().parent.is_dir():
            raise InvalidInput(f"there is no folder {path.parent}") from None
        return  # it will be created
    if tables & _TABLES:
        path = _sqlite_path(database)
        _once_made(lambda: _check_tables(_sqlite_tables(path.absolute()), source), path)
    elif tables:
        _check_tables(tables, source)


@contextlib.contextmanager
def _reading(source: str) -> Iterator[None]:
    """Errors of Optuna, of databases and of drivers as ours, without the password that they may quote."""
    try:
        yield
    except MixbanditError:
        raise
    except ImportError as error:
        first = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        missing = (first.name or "its driver").partition(".")[0]
        raise MissingDependency(
            f"reading {masked(source)} needs {missing}, which is not installed: "
            f"pip install '{_DRIVERS.get(missing, missing)}'"
        ) from None
    except Exception as error:  # whatever a database may raise
        cause = error.__cause__ or error  # Optuna explains at length what a database said in a line
        said = _without_secrets(f"{type(cause).__name__}: {cause}".splitlines()[0], source)
        raise InvalidInput(f"{masked(source)} cannot be read as an Optuna storage: {said}") from None


def _without_secrets(text: str, source: str) -> str:
    """A message without the password of the address, as it is, with its escapes resolved, or in parts."""
    text = masked(text.replace(source, masked(source)))
    for secret in sorted(secrets_in(source) - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _journal(optuna: Any, path: str) -> Any:
    journal = optuna.storages.journal
    return optuna.storages.JournalStorage(journal.JournalFileBackend(path))


def _storage(source: str) -> Any:
    """A storage that is known to be Optuna's, and is only read."""
    storages = import_extra("optuna.storages", extra="optuna")
    url = import_extra("sqlalchemy.engine", extra="optuna").make_url(source)
    if url.get_backend_name() == "sqlite":
        path = _sqlite_file(str(url.database or ""), masked(source))
        _check_tables(_sqlite_tables(path), masked(source))
        source = f"sqlite:///file:{quote(str(path))}?mode=ro&uri=true"
        return storages.RDBStorage(source.replace("{", "{{").replace("}", "}}"), skip_table_creation=True)
    engine = import_extra("sqlalchemy", extra="optuna").create_engine(url)
    try:
        tables = import_extra("sqlalchemy", extra="optuna").inspect(engine).get_table_names()
    finally:
        engine.dispose()
    _check_tables(set(tables), masked(source))
    # Other databases have no such option; with all tables there, Optuna only reads.
    readonly = {"execution_options": {"postgresql_readonly": True}} if url.get_backend_name() == "postgresql" else {}
    return storages.RDBStorage(source, engine_kwargs=readonly, skip_table_creation=True)


def _sqlite_path(database: str) -> Path:
    """The path in an address, which may be written as a URI itself."""
    return Path(unquote(database.removeprefix("file:")) if database.startswith("file:") else database)


def _sqlite_file(database: str, source: str) -> Path:
    """The file of an address, which has to be there."""
    path = _sqlite_path(database)
    if not database or database == ":memory:":
        raise InvalidInput("a database in memory is gone when its process ends: give the path of a file")
    if path.is_dir():
        raise InvalidInput(f"{source} is a folder, not a database")
    if not path.is_file():  # SQLite would create it
        raise InvalidInput(f"there is no file {source}")
    return path.absolute()


def _sqlite_tables(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _check_tables(found: set[str], source: str) -> None:
    lacking = sorted(_TABLES - found)
    if lacking:
        has = f"it has {clipped(', '.join(sorted(found)))}" if found else "it is empty"
        raise InvalidInput(
            f"{source} is a database, but not an Optuna storage: it lacks {', '.join(lacking)} ({has}). "
            "Nothing was changed"
        )
    if _SCHEMA not in found:
        raise InvalidInput(
            f"{source} was made by a very old Optuna: upgrade a copy of it with `optuna storage upgrade --storage …`"
        )

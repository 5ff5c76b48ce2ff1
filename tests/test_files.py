"""Files are replaced as a whole, keep what they were, and nobody's file in the making is removed."""

import ast
import dataclasses
import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import mixbandit
from mixbandit import _files, plots
from mixbandit._files import write_atomically
from mixbandit.errors import DamagedState, InvalidInput
from mixbandit.paper.store import ResultStore

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_atomically(path, "one")
    write_atomically(path, b"two")
    assert path.read_text() == "two"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_atomically(path, "old")

    def fail(handle):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@posix
def test_a_full_disk_leaves_the_old_file(tmp_path):
    """A limit on the size of files stands in for a full disk: the system refuses the write half-way."""
    path = tmp_path / "file"
    write_atomically(path, "old")
    code = (
        "import resource, sys, pathlib\n"
        "from mixbandit._files import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomically(pathlib.Path(sys.argv[1]), 'x' * 5000)\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(errno.EFBIG)]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_an_existing_file_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    os.chown(path, 1234, 5678)
    write_atomically(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_usual_permissions(umask, tmp_path):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~umask


@posix
def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    """It belongs to all threads: a file that another one creates meanwhile must not become public."""
    monkeypatch.setattr("os.umask", lambda mask: pytest.fail("the umask was changed"))
    write_atomically(tmp_path / "file", "new")


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_one(exists, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    if exists:
        target.write_text("old")
    link.symlink_to(Path("elsewhere") / "target")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == link.read_text() == "new"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["elsewhere", "link", "target"]


@posix
def test_links_in_a_circle_are_the_usual_error(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").is_symlink()


@posix
def test_a_device_is_written_to_and_not_replaced():
    write_atomically(Path("/dev/null"), "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def parts(folder):
    return [path for path in folder.iterdir() if path.suffix == ".part"]


@posix
def test_files_in_the_making_are_left_alone_whatever_their_writer_is_called(tmp_path):
    """Two containers may share host name and process ids: only the lock of its writer tells that a file is in use."""
    path = tmp_path / "state"
    temporary = _files._part_of(path)
    handle = _files._made(temporary, 0o600)
    try:
        write_atomically(path, "one")
        assert parts(tmp_path) == [temporary]
    finally:
        os.close(handle)  # as the system does when a writer is killed
    if _files._kernel():
        write_atomically(path, "two")
        assert parts(tmp_path) == []


def test_files_of_other_systems_must_be_a_day_old(tmp_path):
    """A shared folder: locks of another computer may not be visible here."""
    path = tmp_path / "state"
    name = ".state.{}.0123456789abcdef.part"
    foreign, old_style, abandoned = (
        tmp_path / name.format("0" * 32),
        tmp_path / f".state.host.{2**22 + 1}.abc.part",  # by earlier versions; no process has this id here
        tmp_path / name.format("1" * 32),
    )
    for each in (foreign, old_style, abandoned):
        each.write_text("half")
    os.utime(abandoned, (time.time() - 90_000,) * 2)
    write_atomically(path, "whole")
    assert sorted(parts(tmp_path)) == sorted([foreign, old_style])


def test_names_of_any_legal_length_can_be_written(tmp_path):
    for name in ("x" * 255, "θ" * 127):
        write_atomically(tmp_path / name, "content")
        assert (tmp_path / name).read_text() == "content"


def test_the_names_of_temporary_files_cannot_be_foreseen(tmp_path):
    made = [(_files._made(path, 0o600), path) for path in (_files._part_of(tmp_path / "state") for _ in range(3))]
    for handle, _ in made:
        os.close(handle)
    assert len({path.name for _, path in made}) == 3


def test_a_picture_is_written_atomically(tmp_path, monkeypatch):
    fig, _ = plots.figure()
    for name, begins in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG")):
        plots.save(fig, tmp_path / "new" / name)
        assert (tmp_path / "new" / name).read_bytes().startswith(begins)

    old = (tmp_path / "new" / "a.png").read_bytes()

    def fail(handle):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    fig.set_size_inches(1, 1)
    with pytest.raises(OSError, match="disk full"):
        plots.save(fig, tmp_path / "new" / "a.png")
    assert (tmp_path / "new" / "a.png").read_bytes() == old
    for name in ("a.xyz", "plain"):
        with pytest.raises(InvalidInput, match=r"must end in \.png"):
            plots.save(fig, tmp_path / name)


def test_nothing_else_writes_files():
    """Every file is written by `_files`; the exceptions append or cut single lines, under a lock."""
    package = Path(mixbandit.__file__).parent
    writers = {"write_text", "write_bytes", "savefig", "savetxt", "savez", "to_csv", "tofile", "open", "fdopen"}
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", None))
                stated = (*node.args, *(k.value for k in node.keywords if k.arg == "mode"))
                modes = [a.value for a in stated if isinstance(a, ast.Constant)]
                reads = name == "open" and not any(isinstance(m, str) and set(m) & set("wax+") for m in modes)
                if name in writers and not reads:
                    found.add((str(path.relative_to(package)), name))
    assert found - {("plots.py", "savefig")} <= {
        ("_files.py", "write_bytes"),
        ("_files.py", "fdopen"),
        ("_files.py", "open"),
        ("paper/store.py", "open"),
        ("cli/journals.py", "open"),  # under Optuna's lock
        ("simulate/records.py", "to_csv"),
    }, found


@dataclasses.dataclass(frozen=True)
class Settings:
    size: int = 1


def test_a_result_store_goes_on_after_half_a_line(tmp_path):
    """A full disk may cut a line while the process lives on: the next row must not be glued to its remains."""
    store = ResultStore(tmp_path, "x", Settings(), ("value",))
    store.add(0, 0.5)
    with store.path.open("a") as file:
        file.write("1,0.2")
    store.add(2, 0.75)
    assert ResultStore(tmp_path, "x", Settings(), ("value",)).rows == {0: ("0.5",), 2: ("0.75",)}


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"\xc2\xb2,1\n", b"0,1,2\n", b"9" * 5000 + b",1\n", b"0," + b"x" * 200_000 + b"\n"]
)
def test_a_damaged_result_store_says_so(line, tmp_path):
    store = ResultStore(tmp_path, "x", Settings(), ("value",))
    store.add(0, 0.5)
    with store.path.open("ab") as file:
        file.write(line)
    with pytest.raises(DamagedState, match="remove it to start over"):
        ResultStore(tmp_path, "x", Settings(), ("value",))


@posix
def test_what_is_being_written_is_as_private_as_what_it_replaces(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_atomically(file, "old")
    file.chmod(0o600)
    modes = []
    monkeypatch.setattr("os.fsync", lambda handle: modes.append(stat.S_IMODE(os.fstat(handle).st_mode)))
    monkeypatch.setattr("mixbandit._files._take_over", lambda handle, known: modes.append(os.fstat(handle).st_size))
    write_atomically(file, "new")
    assert modes == [0, 0o600]  # nothing is written before the permissions are those of the old file


@posix
def test_a_sweep_that_comes_first_makes_the_writer_begin_again(tmp_path):
    """It has the lock before the writer does: the file is about to go, and must not be written to."""
    part = _files._part_of(tmp_path / "state")
    begun, swept = threading.Event(), os.open(part, os.O_RDWR | os.O_CREAT)
    assert _files._lock(swept, wait=False)

    def sweep():
        begun.wait()
        time.sleep(0.05)
        part.unlink()
        os.close(swept)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    real = os.open

    def existing(path, flags, mode=0o777):
        begun.set()
        return real(path, os.O_RDWR)  # as if the sweep had come right after the file was made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.open", existing)
        assert _files._made(part, 0o600) is None
    sweeper.join()

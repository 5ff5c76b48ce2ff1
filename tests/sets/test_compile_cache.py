"""A damaged cache of compiled code costs time and one warning, never a crash or a number."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from mixbandit import _compiling
from mixbandit.sets import dual

numba = pytest.importorskip("numba")
_compiled = pytest.importorskip("mixbandit.sets._compiled")
_jit = pytest.importorskip("mixbandit._jit")
_compile_cache = pytest.importorskip("mixbandit._compile_cache")

DAMAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "garbage": lambda content: b"\x80\x04garbage" * 500,
    "one bit of machine code": lambda content: content[:-50] + bytes([content[-50] ^ 1]) + content[-49:],
    "longer": lambda content: content + b"\0",
}


def damage(folder, how):
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(DAMAGES[how](path.read_bytes()))
    return files


def double(x):
    return 2.0 * x


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    _compile_cache._said.clear()
    return tmp_path / "cache"


def called():
    """As a new process would: the value, and whether the code came from the cache."""
    compiled = _jit.jit(double)
    return compiled(1.5), sum(compiled.stats.cache_hits.values())


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_code_is_compiled_again_with_one_warning(how, cache, caplog):
    assert [called(), called()] == [(3.0, 0), (3.0, 1)]
    assert not caplog.records
    for _ in range(2):
        assert len(damage(cache, how)) == 1
        assert called() == (3.0, 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "is damaged and is compiled again" in caplog.text
    assert called() == (3.0, 1)  # healed


def test_code_of_another_numba_is_compiled_again_without_a_word(cache, caplog, monkeypatch):
    called()
    monkeypatch.setattr(_compile_cache.numba, "__version__", "0.0")
    assert called() == (3.0, 0)
    assert not caplog.records


@pytest.mark.parametrize("error", [RuntimeError("no locator"), OSError("read-only"), AttributeError("another numba")])
def test_where_nothing_can_be_cached_it_works_without(error, monkeypatch):
    def fail(function):
        raise error

    monkeypatch.setattr(_jit, "CheckedCache", fail)
    assert called() == (3.0, 0)


def test_what_cannot_be_read_or_written_is_one_warning_without_a_traceback(cache, caplog):
    called()
    (path,) = (path for path in cache.rglob("*") if path.is_file())
    path.unlink()
    path.mkdir()
    for _ in range(2):
        assert called() == (3.0, 0)
    (record,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert "cannot be read" in record.message
    assert record.exc_info is None


def test_compiled_code_that_disagrees_with_numpy_is_not_used(monkeypatch, caplog):
    def wrong(*arguments):
        for array in arguments[12:]:
            array[...] = 1.0

    monkeypatch.setattr(_compiled, "solve_rows", wrong)
    _compiling.forget()
    try:
        assert dual._compiled_kernel() is None
    finally:
        _compiling.forget()
    assert "slower numpy code is used" in caplog.text


REAL = """
import numpy as np
import mixbandit as mb
from mixbandit.sets import dual

cs = mb.MartingaleMixture(3, sigma=0.1, norm_bound=2.0).update(np.eye(3)[:2], [0.5, 0.2])
print(repr(float(cs.upper([[0.3, 0.2, 1.0]])[0])), dual._compiled_kernel() is not None)
"""


@pytest.mark.heavy
def test_the_solver_survives_every_damage(tmp_path):
    def run():
        known = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, env=known, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr

    expected, _ = run()
    assert expected[1] == "True"
    for how in DAMAGES:
        assert len(damage(tmp_path, how)) >= 8
        printed, warned = run()
        assert printed[1] == "True", how
        np.testing.assert_array_equal(float(printed[0]), float(expected[0]))
        assert warned.count("is damaged and") == 1, how


def test_code_is_compiled_again_when_code_that_it_inlines_has_changed(cache, monkeypatch):
    helper = _jit.jit(double)
    monkeypatch.setitem(globals(), "inlined", helper)
    called()
    assert called() == (3.0, 1)
    # The helper now comes from another module, whose source counts as well.
    monkeypatch.setattr(helper.py_func, "__module__", "mixbandit.errors")
    assert called() == (3.0, 0)


def test_a_long_compilation_says_so_once_and_a_short_one_nothing(monkeypatch, caplog):
    monkeypatch.setattr(_compiling, "_said", [])
    _compiling._found("mixbandit.sets._compiled.solve_rows", lambda kernel: None)
    assert not caplog.records
    monkeypatch.setattr(_compiling, "_SILENT", 0.0)
    for _ in range(2):
        _compiling._found("mixbandit.sets._compiled.solve_rows", lambda kernel: time.sleep(0.2))
    (record,) = caplog.records
    assert "compiling numerical code" in record.message


def nested(error, depth=3):
    """What comes out of C code that calls C code."""
    for _ in range(depth):
        outer = SystemError("returned a result with an exception set")
        outer.__cause__ = error
        error = outer
    return error


@pytest.mark.parametrize(
    ("cause", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (nested(KeyboardInterrupt()), KeyboardInterrupt),
        (ValueError(), SystemError),
        (nested(ValueError()), SystemError),
    ],
)
def test_ctrl_c_comes_out_of_compiled_code_as_itself(cause, raised, monkeypatch):
    def interrupted(*arguments):
        raise SystemError("returned a result with an exception set") from cause  # as Python does

    monkeypatch.setattr(_compiled, "solve_rows", interrupted)
    call = _compiling._found("mixbandit.sets._compiled.solve_rows", lambda kernel: None)
    with pytest.raises(raised):
        call(1.0)


def test_ctrl_c_while_compiled_code_is_checked_is_not_taken_for_broken_numba():
    def check(kernel):
        raise nested(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        _compiling._found("mixbandit.sets._compiled.solve_rows", check)

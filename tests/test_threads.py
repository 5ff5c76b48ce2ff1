"""Linear algebra keeps to one BLAS thread where more would make decisions wait."""

import threading
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mixbandit._lazy import blas
from mixbandit._threads import one_thread, single_threaded


def threads():
    """The numbers of threads of the libraries of numpy and scipy; other packages bring further ones."""
    ours = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in ours if {"numpy", "scipy"} & set(_folders(library["filepath"]))}


def _folders(path):
    return [part.removesuffix(".libs") for part in Path(path).parts]


@pytest.fixture(autouse=True)
def _two_threads():
    blas()  # of scipy; numpy has one of its own
    limits = threadpool_limits(2, user_api="blas")
    yield
    limits.restore_original_limits()


def elsewhere(function):
    found = []
    other = threading.Thread(target=lambda: found.append(function()))
    other.start()
    other.join()
    return found[0]


def limited():
    with one_thread():
        return threads()


def test_blas_has_one_thread_inside_and_its_own_number_again_after():
    assert threads() == {2}
    with one_thread():
        assert limited() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_lifts_the_limit():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert threads() == {2}


def test_a_limit_of_another_thread_serves_and_is_left_alone():
    with one_thread():
        assert elsewhere(limited) == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_small_matrices_need_no_limit():
    seen = single_threaded(lambda matrix: threads())
    assert seen(np.zeros((20, 20))) == {2}
    assert seen(np.zeros((60, 60))) == {1}

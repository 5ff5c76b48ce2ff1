"""What tests of several folders share."""

import gc
import os
import signal

import pytest

# Tests run on several processes. Threads of linear algebra on top of them, waiting for each other, take many times as
# long. Before numpy is imported.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# Thousands of tests and large packages are loaded first and stay: looking for garbage among them takes half of that
# time, and more later, whenever a test looks for garbage of its own.
gc.disable()


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


@pytest.fixture
def children_heed_ctrl_c():
    """Processes that a test starts can be interrupted, though the tests themselves may run where Ctrl-C is ignored.

    A shell starts what runs in the background so, and children inherit it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

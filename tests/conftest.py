"""What tests of several folders share."""

import signal

import pytest


@pytest.fixture
def children_heed_ctrl_c():
    """Processes that a test starts can be interrupted, though the tests themselves may run where Ctrl-C is ignored.

    A shell starts what runs in the background so, and children inherit it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

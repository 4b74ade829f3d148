import socket

import pytest


def test_no_test_reaches_beyond_this_machine() -> None:
    """The blocked connection raises a warning, and warnings are errors in tests."""
    with socket.socket() as probe, pytest.raises(UserWarning, match=r"192\.0\.2\.1"):
        probe.connect(("192.0.2.1", 9))

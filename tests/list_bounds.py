"""A lower bound for the totals of lists, so that a few thousand rows are more than it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from db import lists

LOW_BOUND = 1000


@contextmanager
def lowered_bound() -> Iterator[None]:
    """For lists whose statements are built when they are read."""
    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith(("app.", "db.")) and getattr(module, "BOUND", None) is lists.BOUND
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "BOUND", LOW_BOUND)
        yield

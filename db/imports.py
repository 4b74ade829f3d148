"""Imports a library without the optional libraries that it would import as well."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


@contextmanager
def hide_modules(*names: str) -> Iterator[None]:
    """Makes modules look as if they were not installed, unless they are imported already."""
    hidden = [name for name in names if name not in sys.modules]
    # Python refuses to import a module whose entry is None.
    cast("dict[str, ModuleType | None]", sys.modules).update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]

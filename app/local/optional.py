"""Features whose packages have no wheel on every platform.

`scripts/setup` tries to install each from a lock file of its own, `requirements-<group>.lock`, and
notes why it could not. Everything else works without them.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Final

import msgspec


class Feature(msgspec.Struct, frozen=True):
    name: str
    group: str
    module: str


FEATURES: Final = (Feature("speech recognition", group="speech", module="moonshine_voice"),)


def is_installed(feature: Feature) -> bool:
    return importlib.util.find_spec(feature.module) is not None


def why_missing(feature: Feature) -> str:
    """What `scripts/setup` noted, if it was what installed us."""
    try:
        return _note(feature).read_text(encoding="utf-8").strip()
    except OSError:
        return f"{feature.module.replace('_', '-')} is not installed"


def _note(feature: Feature) -> Path:
    return Path(sys.prefix) / f".unavailable-{feature.group}"

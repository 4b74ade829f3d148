"""Optional features, whose packages lack a wheel on some platforms.

`scripts/setup` tries to install each from its lock file, `requirements-<group>.lock`, and records
the reason of a failure in a file. Everything else works without them.
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


SPEECH_RECOGNITION: Final = Feature("speech recognition", group="speech", module="moonshine_voice")
SENTENCE_ENCODERS: Final = Feature("sentence encoders", group="encoder", module="onnxruntime")
FEATURES: Final = (SPEECH_RECOGNITION, SENTENCE_ENCODERS)


def is_installed(feature: Feature) -> bool:
    return importlib.util.find_spec(feature.module) is not None


def read_missing_reason(feature: Feature) -> str:
    """Returns the reason that `scripts/setup` recorded, or a general one."""
    try:
        return _reason_file(feature).read_text(encoding="utf-8").strip()
    except OSError:
        return f"{feature.module.replace('_', '-')} is not installed"


def _reason_file(feature: Feature) -> Path:
    return Path(sys.prefix) / f".unavailable-{feature.group}"

"""The sentence encoders, and which of them is for a language."""

import importlib.util
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from . import english, multilingual
from .protocol import Calibration, Encoder, EncoderInfo

ENCODERS: Final = (english.INFO, multilingual.INFO)
_BY_NAME = {info.name: info for info in ENCODERS}


def encoder_of(language: str | None) -> EncoderInfo:
    return english.INFO if language == "en" else multilingual.INFO


def calibration_of(name: str) -> Calibration:
    return _BY_NAME[name].calibration


def are_installed() -> bool:
    packages = {package for info in ENCODERS for package in info.packages}
    return all(importlib.util.find_spec(package) is not None for package in packages)


class SentenceEncoders:
    """Loads each encoder on the first use. Every call that encodes blocks, so it belongs on a
    thread.
    """

    def __init__(self, folder: Path, *, enabled: bool) -> None:
        self._folder = folder
        self.enabled = enabled and are_installed()
        self._loading = threading.Lock()
        self._loaded: dict[str, Encoder] = {}

    def encode(self, name: str, texts: list[str]) -> Any:
        """Returns a float32 matrix with a row per text, each of length 1."""
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = _BY_NAME[name].load(self._folder)
            encoder = self._loaded[name]
        return encoder.encode(texts)


def list_encoders(languages: Iterable[str | None]) -> list[EncoderInfo]:
    """Returns the encoders of a knowledge base in these languages."""
    needed = {encoder_of(language).name for language in languages}
    return [info for info in ENCODERS if info.name in needed]

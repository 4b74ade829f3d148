"""What a sentence encoder does, and what a search has to know about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec


class Encoder(Protocol):
    """Loads its files when it is created. Every call blocks, and may be made by several threads."""

    def encode(self, texts: list[str]) -> Any:
        """Returns a float32 matrix with a row per text, each of length 1."""


class Calibration(msgspec.Struct, frozen=True):
    """Similarities of encoders differ: what one gives to the best passage, another never gives.
    Measured on questions with an answer, questions about something else, and questions about the
    subject of the documents without an answer.
    """

    # That of the best passage for a usual question with an answer.
    usual: float
    # So much below the best passage a passage says nothing.
    scale: float
    # Questions about something else mostly find nothing above it.
    floor: float
    # How much nearer the best passage mostly is than the 15th when it has the answer.
    lead: float


class EncoderInfo(msgspec.Struct, frozen=True):
    """`name` is a part of the names of tables: another model needs another one."""

    name: str
    dimensions: int
    # Its packages, which the lock `requirements-encoder.lock` has.
    packages: tuple[str, ...]
    calibration: Calibration
    # Takes a folder for files that processes share.
    load: Callable[[Path], Encoder]

"""What is run, and what came of it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Language = Literal["python", "node", "bash"]
Ending = Literal["exited", "timeout", "output", "memory"]


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Code to run: files by name, and which of them is where to begin.

    `apart`: what the code has to say leaves by descriptor 3, and what it prints is its log.
    """

    language: Language
    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    apart: bool = False


class Ran(msgspec.Struct, frozen=True):
    ending: Ending
    exit_code: int
    output: bytes
    log: bytes

"""The program of a run, and the result of the run."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Language = Literal["python", "node", "bash"]
# With `machine_memory`, the machine had too little memory left, and this was the largest run.
Ending = Literal["exited", "timeout", "output", "memory", "machine_memory"]


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Code to run: files by name, and the name of the file to start.

    With `result_on_fd3` the code writes its result to descriptor 3, and what it prints is its log.
    """

    language: Language
    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    result_on_fd3: bool = False


class RunResult(msgspec.Struct, frozen=True):
    ending: Ending
    exit_code: int
    output: bytes
    log: bytes

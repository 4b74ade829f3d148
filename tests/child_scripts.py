"""Runs the scripts of child processes within the test process, which takes a hundredth of the time.

For tests of what surrounds a script. `tests/sandbox/test_child_rights.py` starts every script in a
process, and the tests of each script do so with what it reads.
"""

import importlib.util
import io
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed


def run_scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone, scripts run here, without limits but that of their output."""
    monkeypatch.setattr(child_process, "_run", _run)


async def _run(script: Path, content: bytes, arguments: tuple[str, ...], limits: Limits) -> bytes:
    stdin, stdout = (io.TextIOWrapper(io.BytesIO(initial), "utf-8") for initial in (content, b""))
    module = _load(script)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "argv", [str(script), *arguments])
        try:
            module.main()
        except Exception as error:
            raise ProcessFailed("ended with 1", 1) from error
    stdout.flush()
    output: bytes = stdout.buffer.getvalue()
    if len(output) > limits.output_bytes:
        raise ProcessFailed(f"wrote more than {limits.output_bytes} bytes")
    return output


@cache
def _load(script: Path) -> Any:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "load"):
        module.load()
    return module

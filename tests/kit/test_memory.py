"""The garbage collector's settings."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_a_tuned_process_collects_garbage_rarely_but_still_collects_it() -> None:
    script = """
import gc, weakref
from app.kit import memory
class Cycle:
    pass
memory.tune_gc()
assert gc.get_freeze_count() > 1000
references = []
for _ in range(3 * gc.get_threshold()[0]):
    cycle = Cycle()
    cycle.itself = cycle
    if not references:
        references.append(weakref.ref(cycle))
assert references[0]() is None
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system has no /proc")
def test_a_buffer_that_grew_is_given_back_when_it_is_freed() -> None:
    """Also after an earlier large block, and with smaller ones behind it."""
    script = """
from app.kit import memory
memory.return_large_blocks()
def resident():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024
bytearray(30 << 20)
before, kept = resident(), []
for _ in range(4):
    buffer = bytearray()
    while len(buffer) < 24 << 20:
        buffer += bytes(1 << 19)
        kept.append(bytes(1 << 12))
    del buffer
assert resident() - before < 20, resident() - before
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()

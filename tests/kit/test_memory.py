"""The garbage collector's settings."""

import subprocess
import sys


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

"""The limits on how long all tests together may take."""

import subprocess
import sys

import pytest

from tests import run


def test_a_run_is_judged_by_the_speed_of_its_machine(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    cases = [
        (7.9, 1.0, 0, "counts as 7.9 minutes"),
        (8.1, 1.0, 0, "WARNING"),
        (21.9, 1.0, 0, "WARNING"),
        (22.1, 1.0, 1, "FAILED: more than 22 minutes"),
        (15.0, 2.0, 0, "counts as 7.5 minutes"),
        (45.0, 2.0, 1, "FAILED"),
        (11.5, 0.5, 1, "counts as 23.0 minutes"),
    ]
    for minutes, slowness, code, said in cases:
        with subtests.test(minutes=minutes, slowness=slowness):
            assert run.judge(minutes, 2 * minutes, slowness) == code
            output = capsys.readouterr().out
            assert said in output
            assert (counted := minutes / slowness) > 8 or "WARNING" not in output, counted


def test_time_that_other_programs_took_from_a_run_is_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run.judge(30, 18, 1.0) == 0
    assert "counts as 10.0 minutes" in capsys.readouterr().out


def test_the_time_of_processes_without_a_parent_is_counted() -> None:
    """In a process of its own, which adopts the orphan."""
    program = """
import subprocess, sys
from tests import run
orphan = "import time\\nwhile time.process_time() < 0.2: pass"
parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {orphan!r}])"
run.adopt_orphans()
with run.processor_time() as used:
    subprocess.run([sys.executable, "-c", parent], check=True)
    run.wait_for_orphans()
print(sum(used))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) > 0.2


@pytest.mark.long  # every run begins with it
def test_the_fixed_piece_of_work_takes_time() -> None:
    assert 0.05 < run.time_work() < 60

"""`parley up` goes on restarting a part, whatever goes wrong with a start."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app.local import up
from app.local.up import Part, Up, plan_restart
from app.settings import Settings
from tests.assertions import until


class UnreliablePart:
    """Runs for real, except that the second start and the second check of readiness fail."""

    def __init__(self) -> None:
        self.starts = 0
        self.checks = 0

    def start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        if self.starts == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return subprocess.Popen(["sleep", "60"])

    async def is_ready(self) -> bool:
        self.checks += 1
        if self.checks == 2:
            raise ConnectionResetError
        return True


async def test_a_part_is_restarted_until_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "_RESTART_DELAYS", (0.0,))
    lines: list[str] = []
    instance = Up(Settings(data_dir=tmp_path), lines.append)
    source = UnreliablePart()
    part = Part("worker", source.start, source.is_ready)

    def kill_and_wait_for(line: str) -> Callable[[], bool]:
        assert part.process is not None
        part.process.kill()
        return lambda: line in lines

    await instance._add(part)
    try:
        await until(kill_and_wait_for("worker: cannot be restarted (ConnectionResetError)"))
        assert any("Resource temporarily unavailable" in line for line in lines)
        await until(kill_and_wait_for("worker: restarted"))
        assert part.exit_code is None
    finally:
        await instance._stop_all()


def test_repeated_exits_delay_a_restart_until_a_part_lives_for_a_minute(
    subtests: pytest.Subtests,
) -> None:
    for exits, seconds, expected in [
        (0, 1, (1, 0)),
        (1, 1, (2, 0.5)),
        (2, 59, (3, 1)),
        (5, 1, (6, 10)),
        (100, 1, (101, 10)),
        (100, 60, (1, 0)),
        (1, 3600, (1, 0)),
    ]:
        with subtests.test(exits=exits, seconds=seconds, expected=expected):
            assert plan_restart(exits, seconds) == expected

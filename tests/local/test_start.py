"""A start of `parley up` that is refused, and what a start prints."""

import socket
from pathlib import Path

import pytest

from app.bootstrap import AdminAccount
from app.local.up import Up
from app.settings import Settings
from tests.local.instance import UpWithoutModel
from tests.ports import free_port
from tests.processes import run_parley_with


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        started = UpWithoutModel(tmp_path / "output", tmp_path / "data", port)
        assert started.wait_ended() == 1
    (problem,) = [line for line in started.text.splitlines() if line.startswith("parley:")]
    assert str(port) in problem
    assert "PARLEY_PORT" in problem


def test_a_wrong_setting_stops_the_start_with_one_line_that_names_it(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for variable, value in [
        ("PARLEY_PORT", "http"),
        ("PARLEY_MASTER_KEYS", "k1:c2hvcnQ="),
        ("PARLEY_DEFAULT_PLAN", "gold"),
        ("PARLEY_ADMIN_PASSWORD", "weak"),
    ]:
        with subtests.test(variable=variable, value=value):
            data_dir = tmp_path / "data"
            result = run_parley_with({"PARLEY_DATA_DIR": str(data_dir), variable: value}, "up")
            assert (result.returncode, result.stdout) == (1, "")
            assert result.stderr.startswith(f"parley: {variable}")
            assert result.stderr.count("\n") == 1
            assert not data_dir.exists()


def test_a_socket_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    """A long data directory puts the sockets into the shared temporary directory."""
    data_dir = tmp_path / ("x" * 80) / "data"
    run_dir = Settings(data_dir=data_dir).run_dir
    run_dir.mkdir(mode=0o755)
    run_dir.chmod(0o755)
    started = UpWithoutModel(tmp_path / "output", data_dir, free_port())
    code = started.wait_ended()
    run_dir.rmdir()
    assert code == 1
    assert str(run_dir) in started.text


async def test_only_the_start_that_creates_the_admin_shows_a_password(tmp_path: Path) -> None:
    lines: list[str] = []
    started = Up(Settings(data_dir=tmp_path), lines.append)
    started._show_welcome(AdminAccount("admin@example.com", "Good7Password"), 1.0)
    started._show_welcome(None, 1.0)
    first, second = lines
    assert "Good7Password   (shown this once)" in first
    assert "the password you were shown at the first start" in second
    assert "shown this once" not in second

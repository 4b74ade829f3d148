"""The folder of sockets: short enough for them, whatever the data directory."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from app.settings import Settings

# The longest path of a socket on macOS; Linux allows a little more.
MAX_SOCKET_BYTES = 103
POSTGRES_SOCKET = ".s.PGSQL.5432"


def test_sockets_are_in_the_data_directory_while_its_path_is_short() -> None:
    assert Settings(data_dir=Path("/srv/parley")).run_dir == Path("/srv/parley/run")


def test_a_socket_fits_however_long_the_data_directory(subtests: pytest.Subtests) -> None:
    for length in [1, 60, 80, 85, 86, 90, 95, 100, 500]:
        with subtests.test(length=length):
            run_dir = Settings(data_dir=Path("/") / ("d" * length)).run_dir
            assert len(os.fsencode(run_dir / POSTGRES_SOCKET)) <= MAX_SOCKET_BYTES


def test_a_socket_fits_whatever_the_letters_of_the_data_directory(
    subtests: pytest.Subtests,
) -> None:
    for letter in ["\u00e9", "\u6587", "\U0001f600"]:
        with subtests.test(letter=letter):
            run_dir = Settings(data_dir=Path("/") / (letter * 60)).run_dir
            assert len(os.fsencode(run_dir / POSTGRES_SOCKET)) <= MAX_SOCKET_BYTES


def test_a_socket_can_be_created_for_a_long_data_directory(tmp_path: Path) -> None:
    run_dir = Settings(data_dir=tmp_path / ("d" * 200)).run_dir
    run_dir.mkdir()
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(run_dir / POSTGRES_SOCKET))
        assert (run_dir / POSTGRES_SOCKET).is_socket()
    finally:
        (run_dir / POSTGRES_SOCKET).unlink(missing_ok=True)
        run_dir.rmdir()


def test_the_fallback_is_in_the_temporary_directory_and_names_the_user() -> None:
    run_dir = Settings(data_dir=Path("/") / ("d" * 200)).run_dir
    assert run_dir.parent == Path(tempfile.gettempdir())
    assert run_dir.name.startswith(f"parley-{os.getuid()}-")


def test_every_long_data_directory_has_a_fallback_of_its_own() -> None:
    first = Settings(data_dir=Path("/a") / ("d" * 200)).run_dir
    second = Settings(data_dir=Path("/b") / ("d" * 200)).run_dir
    assert first != second


def test_the_fallback_is_the_same_each_time() -> None:
    first, second = (Settings(data_dir=Path("/") / ("d" * 200)) for _ in range(2))
    assert first.run_dir == second.run_dir

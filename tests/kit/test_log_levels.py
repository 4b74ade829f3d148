"""Loggers follow a change of the level."""

import pytest

from app.kit import logs


def test_a_logger_that_was_used_follows_a_new_level(capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.get("levels")
    try:
        logs.configure("warning", "json")
        log.info("first")
        logs.configure("info", "json")
        log.info("second")
        logs.configure("warning", "json")
        log.info("third")
    finally:
        logs.configure("warning", "json")
    printed = capsys.readouterr().err
    assert "second" in printed
    assert "first" not in printed
    assert "third" not in printed

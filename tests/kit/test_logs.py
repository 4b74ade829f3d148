"""Log lines: their fields, and the secrets that they hide."""

import contextvars
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest
import structlog

from app.kit import logs, trace


@contextmanager
def _configured_logs(log_format: str, level: str = "info") -> Iterator[None]:
    """Configures logging for this test and restores the previous configuration."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, threshold = root.handlers, root.level
    logs.configure(level, log_format)
    try:
        yield
    finally:
        structlog.configure(**before)
        root.handlers = handlers
        root.setLevel(threshold)


def _json_line(
    capsys: pytest.CaptureFixture[str], write_log: Callable[[], object]
) -> dict[str, Any]:
    """Returns the single line that `write_log` logs."""
    with _configured_logs("json"):
        write_log()
    (line,) = capsys.readouterr().err.splitlines()
    decoded: dict[str, Any] = msgspec.json.decode(line)
    return decoded


def test_a_json_line_has_event_level_part_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(capsys, lambda: logs.get("mail").warning("sent", count=3))
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    line.pop("correlation_id", None)
    line.pop("request_id", None)
    assert line == {"event": "sent", "level": "warning", "part": "mail", "count": 3}


_CASES: list[str] = [
    "password",
    "new_password",
    "PASSWORD",
    "passwd",
    "token",
    "refresh_token",
    "api_key",
    "apikey",
    "x_api_key",
    "client_secret",
    "authorization",
    "cookie",
    "set_cookie",
    "credential",
    "private_key",
]


def test_the_value_of_a_key_that_names_a_secret_is_masked(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for key in _CASES:
        with subtests.test(key=key):
            line = _json_line(capsys, lambda: logs.get("test").info("event", **{key: "hunter2"}))  # noqa: B023
            assert line[key] == "********"


def test_a_secret_inside_of_a_value_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    inner = {"headers": [{"authorization": "hunter2"}], "password": "hunter2"}
    line = _json_line(capsys, lambda: logs.get("test").info("event", request=inner))
    assert "hunter2" not in str(line)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET /a?api_key=hunter2", "GET /a?api_key=********"),
        ("GET /a?x=1&api_key=hunter2&y=2", "GET /a?x=1&api_key=********&y=2"),
        ("GET /a?API_KEY=hunter2 200", "GET /a?API_KEY=******** 200"),
        ("https://a.test/reset?token=hunter2", "https://a.test/reset?token=********"),
        ("'/a?access_token=hunter2'", "'/a?access_token=********'"),
    ],
)
def test_a_secret_in_a_query_is_masked(
    capsys: pytest.CaptureFixture[str], text: str, masked: str
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info(text, path=text))
    assert (line["event"], line["path"]) == (masked, masked)


def test_a_secret_in_a_line_of_a_library_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(
        capsys, lambda: logging.getLogger("library").warning("GET %s", "/a?api_key=hunter2")
    )
    assert line["event"] == "GET /a?api_key=********"


def _fail(message: str) -> None:
    secret = "local-" + "hunter2"
    raise LookupError(message, len(secret))


def _log_failure(logger: Any, message: str) -> None:
    try:
        _fail(message)
    except LookupError:
        logger.exception("failed")


def test_a_traceback_shows_places_and_types_but_no_texts_and_variables(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for get in [logs.get, logging.getLogger]:
        for log_format in ["json", "console"]:
            with subtests.test(get=get, log_format=log_format):
                with _configured_logs(log_format):
                    _log_failure(get("test"), "what a customer wrote".upper())
                output = capsys.readouterr().err
                assert "in _fail" in output
                assert "LookupError" in output
                assert "WHAT A CUSTOMER WROTE" not in output
                assert "local-hunter2" not in output


def _fail_with_cause() -> None:
    try:
        _fail("the " + "cause")
    except LookupError as error:
        raise ExceptionGroup("the " + "group", [ValueError("the " + "part")]) from error


def test_a_traceback_shows_causes_and_parts_of_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def log_failure() -> None:
        try:
            _fail_with_cause()
        except ExceptionGroup:
            logs.get("test").exception("failed")

    text = _json_line(capsys, log_failure)["exception"]
    assert text.index("LookupError") < text.index("ExceptionGroup") < text.index("ValueError")
    assert not [word for word in ("the cause", "the group", "the part") if word in text]


def test_a_console_line_masks_secrets_too(capsys: pytest.CaptureFixture[str]) -> None:
    with _configured_logs("console"):
        logs.get("test").info("GET /a?token=hunter2", password="hunter2")
    output = capsys.readouterr().err
    assert "GET /a?token=********" in output
    assert "hunter2" not in output


def _in_trace(write_log: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        trace.begin(trace.Trace(correlation_id="cor_1", request_id="req_1"))
        return write_log()

    return lambda: contextvars.Context().run(run)


@pytest.mark.parametrize("get", [logs.get, logging.getLogger])
def test_a_line_has_the_ids_of_its_trace(
    capsys: pytest.CaptureFixture[str], get: Callable[[str], Any]
) -> None:
    line = _json_line(capsys, _in_trace(lambda: get("test").warning("event")))
    assert (line["correlation_id"], line["request_id"]) == ("cor_1", "req_1")


def test_a_correlation_id_of_the_line_itself_wins(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(capsys, _in_trace(lambda: logs.get("test").info("a", correlation_id="cor_2")))
    assert line["correlation_id"] == "cor_2"


def test_a_line_outside_of_any_trace_has_no_ids(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(
        capsys, lambda: contextvars.Context().run(lambda: logs.get("test").info("event"))
    )
    assert not {"correlation_id", "request_id"} & set(line)


def test_a_line_break_in_a_value_does_not_make_a_second_json_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info('a\n{"event": "forged"}'))
    assert line["event"] == 'a\\n{"event": "forged"}'


def test_a_value_that_json_does_not_know_is_shown_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info("event", error=LookupError("why")))
    assert line["error"] == "why"


def test_a_line_below_the_level_is_not_written(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for get in [logs.get, logging.getLogger]:
        with subtests.test(get=get):
            with _configured_logs("json", "error"):
                get("test").warning("event")
            assert capsys.readouterr().err == ""


def test_control_characters_never_reach_the_log(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for log_format in ["json", "console"]:
        with subtests.test(log_format=log_format):
            with _configured_logs(log_format):
                logs.get("test").info("request", path="/a\x1b[2J\nforged\x07")
            printed = capsys.readouterr().err
            assert printed.count("\n") == 1
            assert "\x1b[2J" not in printed
            assert "\x07" not in printed

"""Structured logs: one line an event, console or JSON, with the ids that tie a story together.

Secrets are kept out by construction (nothing logs a body, a header or a query string), and a last
filter blanks the values of keys that name a secret.
"""

import io
import logging
import re
import sys
from functools import lru_cache
from typing import Any, TextIO, cast

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from app.kit import trace

_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|api_?key|authorization|cookie|credential|private", re.IGNORECASE
)
_SECRET_TEXT = re.compile(r"((?:api_key|token)=)[^&\s\"']+", re.IGNORECASE)
_encoder = msgspec.json.Encoder(enc_hook=str)


def _add_trace(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    known = trace.known()
    if known is not None:
        event.setdefault("correlation_id", known.correlation_id)
        if known.request_id:
            event.setdefault("request_id", known.request_id)
    return event


def _hide_secrets(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        event[key] = _shown(key, value)
    return event


def _plain(text: str, key: str) -> str:
    """No control characters: they would forge lines or drive somebody's terminal."""
    if text.isprintable():
        return text
    kept = "\n" if key == "exception" else ""
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


@lru_cache(maxsize=1024)
def _names_a_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _shown(key: str, value: Any) -> Any:
    if _names_a_secret(key):
        return "********"
    match value:
        case str():
            return _plain(_SECRET_TEXT.sub(r"\1********", value) if "=" in value else value, key)
        case dict():
            return {name: _shown(str(name), item) for name, item in value.items()}
        case list() | tuple():
            return [_shown("", item) for item in value]
    return value


def _json(_logger: WrappedLogger, _name: str, event: EventDict) -> str:
    try:
        return _encoder.encode(event).decode()
    except UnicodeEncodeError:
        # A lone surrogate from somebody's input must not lose the line.
        return _encoder.encode({key: ascii(value) for key, value in event.items()}).decode()


class _StandardError(io.TextIOBase):
    """Whatever standard error is at the moment, not what it was when logging was set up."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_STDERR = cast("TextIO", _StandardError())
_loggers: list[Any] = []


def configure(level: str, log_format: str) -> None:
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
        # Tracebacks as plain text: prettier ones show local variables, and those may be secrets.
        structlog.processors.format_exc_info,
        _hide_secrets,
    ]
    tail: list[Any] = [
        _json if log_format == "json" else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *tail],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(_STDERR),
        cache_logger_on_first_use=True,
    )
    for logger in _loggers:
        # Bound at its first use, with the settings of that moment.
        vars(logger).pop("bind", None)
    handler = logging.StreamHandler(_STDERR)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tail],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    # SAQ warns of every idle loop that it cancels at the end.
    logging.getLogger("saq").setLevel(logging.ERROR)
    for noisy in ("sqlalchemy", "alembic", "aiohttp", "uvicorn.access", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # These repeat addresses and answers, and both may hold somebody's key.
    for telltale in ("mcp", "httpx", "httpx2", "httpcore", "httpcore2", "asyncssh", "aiomysql"):
        logging.getLogger(telltale).setLevel(logging.CRITICAL)
    for own in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(own).handlers = []
        logging.getLogger(own).propagate = True


def get(name: str) -> Any:  # structlog's loggers are typed as Any
    logger = structlog.get_logger(part=name)
    _loggers.append(logger)
    return logger

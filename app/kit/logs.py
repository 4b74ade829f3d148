"""Structured logs: one line per event, for the console or as JSON, with correlation ids.

No caller logs a body, a header or a query string. As a second defence, a processor masks the values
of keys that name a secret, and errors are logged without their texts.
"""

import io
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TextIO, cast

import msgspec

from app.kit import trace
from db.imports import hide_modules

# structlog imports it where it is installed, for stack traces that are not in use here.
with hide_modules("rich"):
    import structlog
from structlog.typing import EventDict, ExcInfo, WrappedLogger

_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|api_?key|authorization|cookie|credential|private", re.IGNORECASE
)
_SECRET_TEXT = re.compile(r"((?:api_key|token)=)[^&\s\"']+", re.IGNORECASE)
_encoder = msgspec.json.Encoder(enc_hook=str)


def _add_trace(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    current = trace.current_or_none()
    if current is not None:
        event.setdefault("correlation_id", current.correlation_id)
        if current.request_id:
            event.setdefault("request_id", current.request_id)
    return event


def _hide_secrets(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        event[key] = _mask_value(key, value)
    return event


def _format_exception(exc_info: ExcInfo) -> str:
    """Returns the types and places of an error, its causes and its parts. Their texts and local
    variables may contain secrets or what users wrote.
    """
    return "\n".join(_format_errors(exc_info[1], set()))


def _format_errors(error: BaseException | None, seen: set[int]) -> Iterator[str]:
    """Yields the causes before the error, as a traceback does, and its parts after it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    context = None if error.__suppress_context__ else error.__context__
    yield from _format_errors(error.__cause__ or context, seen)
    yield "".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _format_errors(part, seen)


def _escape_controls(text: str, key: str) -> str:
    """Escapes control characters, which could forge log lines or control a terminal."""
    if text.isprintable():
        return text
    allowed = "\n" if key == "exception" else ""
    return "".join(c if c.isprintable() or c in allowed else ascii(c)[1:-1] for c in text)


@lru_cache(maxsize=1024)
def _is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _mask_value(key: str, value: Any) -> Any:
    if _is_secret_key(key):
        return "********"
    match value:
        case str():
            masked = _SECRET_TEXT.sub(r"\1********", value) if "=" in value else value
            return _escape_controls(masked, key)
        case dict():
            return {name: _mask_value(str(name), item) for name, item in value.items()}
        case list() | tuple():
            return [_mask_value("", item) for item in value]
    return value


def _render_json(_logger: WrappedLogger, _name: str, event: EventDict) -> str:
    try:
        return _encoder.encode(event).decode()
    except UnicodeEncodeError:
        # The input contains a lone surrogate: log the escaped text.
        return _encoder.encode({key: ascii(value) for key, value in event.items()}).decode()


class _StandardError(io.TextIOBase):
    """Writes to the current `sys.stderr`, not to the one at configuration time."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_STDERR = cast("TextIO", _StandardError())
_loggers: list[Any] = []
_LIBRARY_LEVELS = {
    # SAQ warns of every idle loop that it cancels at shutdown.
    "saq": logging.ERROR,
    **dict.fromkeys(("sqlalchemy", "alembic", "aiohttp", "asyncio"), logging.WARNING),
    "uvicorn.access": logging.WARNING,
    # These log URLs and responses, which may contain credentials.
    **dict.fromkeys(("mcp", "httpx", "httpx2", "httpcore", "httpcore2"), logging.CRITICAL),
    **dict.fromkeys(("asyncssh", "aiomysql"), logging.CRITICAL),
}


def configure(level: str, log_format: str) -> None:
    """Sets up structlog and the standard library's logging with the same format and level."""
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
        structlog.processors.ExceptionRenderer(_format_exception),
        _hide_secrets,
    ]
    renderer: Any = (
        _render_json
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(_STDERR),
        cache_logger_on_first_use=True,
    )
    for logger in _loggers:
        # A logger caches its configuration at its first use.
        vars(logger).pop("bind", None)
    _configure_standard_logging(threshold, shared, renderer)


def _configure_standard_logging(threshold: int, shared: list[Any], renderer: Any) -> None:
    handler = logging.StreamHandler(_STDERR)
    formatter = structlog.stdlib.ProcessorFormatter
    handler.setFormatter(
        formatter(foreign_pre_chain=shared, processors=[formatter.remove_processors_meta, renderer])
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name, library_level in _LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(library_level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True


# Anyone who knows such an id, key or token can use it: a conversation with a form, an embed
# key, a visitor's session, the link of an approval.
_SECRET_IDS = re.compile(r"\b(fcv_|emb_|vst_|apl_)[\w.~-]+")
# Nothing else protects an incoming webhook without a signature.
_SECRET_SLUGS = re.compile(r"(/webhooks/+in/+)[^/]+", re.IGNORECASE)


def mask_path(path: str) -> str:
    """Removes what is secret from the path of a request."""
    return _SECRET_SLUGS.sub(r"\1[redacted]", _SECRET_IDS.sub(r"\1[redacted]", path))


def get(name: str) -> Any:  # structlog's loggers are typed as Any
    logger = structlog.get_logger(part=name)
    _loggers.append(logger)
    return logger

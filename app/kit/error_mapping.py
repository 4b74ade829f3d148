"""Maps any exception to the error that the caller sees, and logs internal failures."""

from typing import Any

import asyncpg
import msgspec
from redis.exceptions import RedisError
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.kit import logs, trace
from app.kit.errors import ApiError, Conflict, Invalid, NotReady, Unavailable

log = logs.get("http")

HTTP_SERVER_ERROR = 500

_UNAVAILABLE = "A dependency is unavailable; try again in 5 seconds"
# Two transactions conflicted; the same request succeeds when it is sent again.
_CONFLICT_STATES = frozenset({"40001", "40P01", "55P03"})
_DEPENDENCY_ERRORS = (
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.OperatorInterventionError,
    InterfaceError,
    OperationalError,
    PoolTimeout,
    RedisError,
    ConnectionError,
)


class ErrorBody(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    details: dict[str, Any] | None = None


class OpenAIErrorBody(ErrorBody, kw_only=True):
    """The error as OpenAI's SDKs read it, too."""

    type: str
    param: str | None


_OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def to_openai_body(body: ErrorBody, error: BaseException) -> OpenAIErrorBody:
    """`param` is the first field that is wrong."""
    status = to_api_error(error).status
    default = "api_error" if status >= HTTP_SERVER_ERROR else "invalid_request_error"
    fields = body.details if isinstance(error, Invalid) else None
    param = next(iter(fields), None) if fields else None
    kind = _OPENAI_TYPES.get(status, default)
    return OpenAIErrorBody(body.code, body.message, body.details, type=kind, param=param)


def to_api_error(error: BaseException) -> ApiError:
    """Returns the error that the caller sees; only an ApiError keeps its text."""
    match error:
        case ApiError():
            return error
        case _ if _sqlstate(error) in _CONFLICT_STATES:
            return Unavailable("This conflicts with a simultaneous change; try again", 1)
        case IntegrityError() | asyncpg.IntegrityConstraintViolationError():
            return Conflict("This conflicts with something that already exists")
        case DataError() | asyncpg.DataError():
            return Invalid("A value is outside what can be stored")
        case DBAPIError() if error.connection_invalidated:
            return Unavailable(_UNAVAILABLE)
        case _ if isinstance(error, _DEPENDENCY_ERRORS):
            return Unavailable(_UNAVAILABLE)
    return ApiError(f"Something went wrong on our side; quote request {trace.current().request_id}")


def _sqlstate(error: BaseException) -> str | None:
    """Returns the SQLSTATE of an error of asyncpg or SQLAlchemy."""
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state if isinstance(state, str) else None


def report(api_error: ApiError, error: BaseException, path: str) -> None:
    """Logs an internal failure, with its traceback unless a dependency is unavailable. NotReady is
    not logged for each request.
    """
    if isinstance(api_error, NotReady):
        return
    if isinstance(api_error, Unavailable):
        reason = f"{type(error).__name__}: {error}"[:200]
        log.warning("a dependency is unavailable", path=logs.mask_path(path), reason=reason)
    elif not isinstance(error, ApiError):
        log.error("request failed", path=logs.mask_path(path), exc_info=error)

"""Errors that a caller sees: one class per case, each with a status and a stable code.

An area defines its own beside its rules; this module has those that belong to no area, and the one
place that turns any exception into the envelope.
"""

import re
from typing import Any, ClassVar

import asyncpg
import msgspec
from litestar import Request, Response
from litestar.exceptions import (
    ClientException,
    HTTPException,
    InternalServerException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
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

log = logs.get("http")

HTTP_SERVER_ERROR = 500

_AWAY = "A part of this instance is away; try again shortly"
_DISCONNECTED = "client disconnected prematurely"
_NO_FILE = "Unsupported type: <class"
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
# Two transactions were in each other's way; the same request succeeds when it is sent again.
_IN_THE_WAY = frozenset({"40001", "40P01", "55P03"})
_PART_AWAY = (
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


class ApiError(Exception):
    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.headers = headers


class Unauthorized(ApiError):
    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    status, code = 403, "forbidden"


class NotFound(ApiError):
    """A missing thing. Each area's subclass has the code `<thing>_not_found`."""

    status, code = 404, "not_found"


class TenantNotFound(NotFound):
    status, code = 404, "tenant_not_found"


class MethodNotAllowed(ApiError):
    status, code = 405, "method_not_allowed"


class Conflict(ApiError):
    status, code = 409, "conflict"


class PayloadTooLarge(ApiError):
    status, code = 413, "payload_too_large"


class FileTooLarge(ApiError):
    status, code = 413, "file_too_large"


class UnsupportedFileType(ApiError):
    status, code = 415, "unsupported_file_type"


class Invalid(ApiError):
    """Bad input; `details` maps a field to what is wrong with it."""

    status, code = 422, "validation_error"

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls(f"{name}: {message}", details={name: message})

    @classmethod
    def fields(cls, details: dict[str, str]) -> "Invalid":
        first = next(iter(details.items()), ("body", "is not valid"))
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        return cls(f"{first[0]}: {first[1]}{more}", details=dict(details))


class IdempotencyMismatch(ApiError):
    status, code = 422, "idempotency_mismatch"


class RateLimited(ApiError):
    status, code = 429, "rate_limited"


class ProviderError(ApiError):
    status, code = 502, "provider_error"


class Unavailable(ApiError):
    status, code = 503, "unavailable"

    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)})


class ClientGone(ApiError):
    """The caller went away in the middle of its request; nobody reads this answer."""

    status, code = 499, "client_closed_request"


class ErrorBody(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    details: dict[str, Any] | None = None


class ErrorEnvelope(msgspec.Struct):
    error: ErrorBody


def envelope(error: ApiError) -> bytes:
    body = ErrorEnvelope(ErrorBody(error.code, error.message, error.details))
    return msgspec.json.encode(body)


def to_api_error(error: BaseException) -> ApiError:  # noqa: C901  # a table of cases
    """What the caller is told about any exception. Nothing of its text unless it is ours."""
    match error:
        case ApiError():
            return error
        case InternalServerException() if error.detail == _DISCONNECTED:
            return ClientGone("The request was not sent to its end")
        case ValidationException():
            return _invalid_parameters(error)
        case MethodNotAllowedException():
            return MethodNotAllowed("This path does not take that method", headers=error.headers)
        case NotFoundException():
            return NotFound("There is nothing at this path; see /docs for what there is")
        case HTTPException() if error.status_code == PayloadTooLarge.status:
            return PayloadTooLarge("The request body is larger than this instance takes")
        case ClientException():
            return Invalid("The request cannot be read", details={"body": error.detail})
        case _ if _sqlstate(error) in _IN_THE_WAY:
            return Unavailable("This met another change at the same moment; try again", 1)
        case IntegrityError() | asyncpg.IntegrityConstraintViolationError():
            return Conflict("This conflicts with something that already exists")
        case DataError() | asyncpg.DataError():
            return Invalid("A value is outside what can be stored")
        case DBAPIError() if error.connection_invalidated:
            return Unavailable(_AWAY)
        case _ if isinstance(error, _PART_AWAY):
            return Unavailable(_AWAY)
    return ApiError(f"Something went wrong on our side; quote request {trace.current().request_id}")


def _sqlstate(error: BaseException) -> str | None:
    """Postgres' own code, whichever library brought the error here."""
    found = getattr(getattr(error, "orig", error), "sqlstate", None)
    return found if isinstance(found, str) else None


def _invalid_parameters(error: ValidationException) -> ApiError:
    details: dict[str, str] = {}
    for item in error.extra or []:
        if isinstance(item, dict):
            key = str(item.get("key", "body"))
            message = str(item.get("message", "is not valid"))
            missing = _MISSING.fullmatch(message)
            if missing:
                key, message = missing.group(1), "is required"
            if message == "'data'":
                # Litestar's words where there is no body at all.
                message = "is required"
            if message.startswith(_NO_FILE):
                message = "must be one file"
            details["body" if key == "data" else key] = message
    return Invalid.fields(details or {"request": str(error.detail)})


def _use_public_names(request: Request[Any, Any, Any], error: ValidationException) -> None:
    """A parameter is named as callers know it, not as the handler does."""
    known = request.route_handler.parsed_fn_signature.parameters
    for item in error.extra or []:
        if isinstance(item, dict) and item.get("key") in known:
            alias = getattr(known[item["key"]].kwarg_definition, "name", None)
            item["key"] = alias or item["key"]


def report(told: ApiError, error: BaseException, path: str) -> None:
    """A failure of ours in the log: with its traceback, unless a part is merely away."""
    if isinstance(told, Unavailable):
        log.warning("a part is away", path=path, reason=f"{type(error).__name__}: {error}"[:200])
    elif not isinstance(error, ApiError):
        log.error("request failed", path=path, exc_info=error)


def handle(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    if isinstance(error, ValidationException):
        _use_public_names(request, error)
    told = to_api_error(error)
    if isinstance(told, PayloadTooLarge) and request.route_handler.opt.get("upload"):
        told = FileTooLarge(told.message)
    if told.status >= HTTP_SERVER_ERROR:
        report(told, error, request.scope["path"])
    return Response(
        envelope(told),
        status_code=told.status,
        media_type="application/json",
        headers=told.headers,
    )

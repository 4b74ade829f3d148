"""Errors that an API caller sees: one class per case, each with a status and a stable code.

An area defines its own in its `errors.py`; these belong to no area.
"""

from typing import Any, ClassVar


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
    """A missing resource. Each area's subclass has the code `<resource>_not_found`."""

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
    """The caller closed its connection during the request."""

    status, code = 499, "client_closed_request"

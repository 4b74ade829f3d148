"""Errors that an API caller sees: one class per case, each with a status and a stable code.

An area defines its own in its `errors.py`; these belong to no area.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any, ClassVar, Final

import msgspec

# The limits of one answer and of the problems in it.
_MAX_BYTES = 16 * 1024
# What an answer has besides its problems: keys, code, and the end of the message.
_ENVELOPE_BYTES = 256
_MAX_PROBLEMS = 100
_MAX_NAME_CHARS = 200
_MAX_MESSAGE_CHARS = 500

# Tells the SDKs of OpenAI and others that the same request would fail again.
NO_RETRY: Final = {"x-should-retry": "false"}

# The name of a field and what is wrong with it.
Problem = tuple[str, str]


class ApiError(Exception):
    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init_subclass__(cls, *, status: int | None = None, code: str | None = None) -> None:
        """Sets what the class does not share with its base."""
        super().__init_subclass__()
        cls.status = status or cls.status
        cls.code = code or cls.code

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


class MalformedRequest(ApiError, status=400, code="malformed_request"):
    """The bytes of a connection are no HTTP request."""


class Unauthorized(ApiError, status=401, code="unauthorized"): ...


class Forbidden(ApiError, status=403, code="forbidden"): ...


class NotFound(ApiError, status=404, code="not_found"):
    """A missing resource. Each area's subclass has the code `<resource>_not_found`."""


class MethodNotAllowed(ApiError, status=405, code="method_not_allowed"): ...


class RequestTimeout(ApiError, status=408, code="request_timeout"): ...


class Conflict(ApiError, status=409, code="conflict"): ...


class PreconditionFailed(ApiError, status=412, code="precondition_failed"): ...


class PayloadTooLarge(ApiError, status=413, code="payload_too_large"): ...


class UriTooLong(ApiError, status=414, code="uri_too_long"): ...


class HeadersTooLarge(ApiError, status=431, code="headers_too_large"): ...


class FileTooLarge(ApiError, status=413, code="file_too_large"): ...


class UnsupportedFileType(ApiError, status=415, code="unsupported_file_type"): ...


class Invalid(ApiError, status=422, code="validation_error"):
    """Bad input; `details` maps a field to what is wrong with it."""

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls.fields([(name, message)])

    @classmethod
    def fields(cls, problems: Iterable[Problem]) -> "Invalid":
        """Lists problems up to the limits of an answer, and takes no more from an iterator, so
        that it does not search for problems that are not listed.
        """
        details: dict[str, str] = {}
        count, size, rest = 0, _ENVELOPE_BYTES, ""
        for name, message in problems:
            problem = (name[:_MAX_NAME_CHARS], message[:_MAX_MESSAGE_CHARS])
            # The first one is also the message.
            size += len(msgspec.json.encode(problem)) * (1 if count else 2)
            if count == _MAX_PROBLEMS or size > _MAX_BYTES:
                rest = "; the rest was not checked"
                break
            details.setdefault(*problem)
            count += 1
        first = next(iter(details.items()), ("body", "is not valid"))
        more = f" (and {count - 1} more{rest})" if count > 1 else ""
        return cls(f"{first[0]}: {first[1]}{more}", details=details)

    @classmethod
    def check(cls, problems: Iterable[Problem]) -> None:
        """Raises Invalid when there is a problem."""
        iterator = iter(problems)
        for first in iterator:
            raise cls.fields(chain([first], iterator))


class IdempotencyMismatch(ApiError, status=422, code="idempotency_mismatch"): ...


class RateLimited(ApiError, status=429, code="rate_limited"): ...


class ProviderError(ApiError, status=502, code="provider_error"): ...


class Unavailable(ApiError, status=503, code="unavailable"):
    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)})


class NotReady(Unavailable):
    """The process must not use its database; `Readiness` logs why."""


class TooManyConnections(Unavailable, code="too_many_connections"): ...


class ClientGone(ApiError, status=499, code="client_closed_request"):
    """The caller closed its connection during the request."""

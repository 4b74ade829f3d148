"""The error responses of the OpenAPI document, one for each status."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from app.http.openapi_schemas import Schema, SchemaBuilder
from app.kit.error_mapping import ErrorBody
from app.kit.errors import ApiError, ClientGone

Response = dict[str, Any]


class _Error(NamedTuple):
    """`name` is that of the response, `code` that of its example."""

    name: str
    code: str
    meaning: str


_ERRORS: Final = {
    "400": _Error(
        "InvalidAnswers",
        "validation_error",
        "The answers are not valid; details.errors has one for each field",
    ),
    "401": _Error("Unauthorized", "unauthorized", "Sign in first"),
    "403": _Error(
        "Forbidden",
        "forbidden",
        "The role lacks the permission, or (email_not_verified) the address is not verified",
    ),
    "404": _Error("NotFound", "not_found", "It does not exist, or is not visible to this caller"),
    "408": _Error("RequestTimeout", "request_timeout", "The body did not arrive in time"),
    "409": _Error("Conflict", "conflict", "The request conflicts with the current state"),
    "412": _Error(
        "PreconditionFailed",
        "precondition_failed",
        "The record has changed since the ETag in If-Match was read; details has its current tag,"
        " and the names of the fields that have changed",
    ),
    "413": _Error(
        "PayloadTooLarge",
        "payload_too_large",
        "The body is too large, or (quota_exceeded) the storage is full",
    ),
    "415": _Error(
        "UnsupportedFileType", "unsupported_file_type", "The type of the file is not supported"
    ),
    "416": _Error(
        "RangeNotSatisfiable", "range_not_satisfiable", "The range is beyond the end of the file"
    ),
    "422": _Error(
        "InvalidInput",
        "validation_error",
        "The input is not valid; details has a message per field",
    ),
    "429": _Error("RateLimited", "rate_limited", "Too many requests; see Retry-After"),
    "500": _Error("InternalError", "internal_error", "The server failed unexpectedly"),
    "502": _Error(
        "ProviderError",
        "provider_error",
        "A server that Parley called failed; details has the reason",
    ),
    "503": _Error("Unavailable", "unavailable", "A dependency is unavailable; see Retry-After"),
}
# Where a model answers, status 400 is its provider's.
_REJECTED: Final = _Error(
    "ProviderRejected",
    "provider_rejected",
    "The model's provider refused the request; the message has its words",
)
_FORMS: Final = "/forms/"

_DETAILS: Final[dict[str, dict[str, Any]]] = {
    "InvalidAnswers": {"errors": [{"field": "email", "message": "is required"}]},
    "Forbidden": {"required": "agents:write", "your_role": "agent_user"},
    "PreconditionFailed": {"current": '"pQx0a_2kB1cD2eF3"', "changed": ["name"]},
    "InvalidInput": {"name": "is required"},
    "RateLimited": {"limit": 60, "window": 60, "retry_after": 12},
}


def describe_envelope(builder: SchemaBuilder) -> Schema:
    body = builder.describe(ErrorBody)
    return {"type": "object", "properties": {"error": body}, "required": ["error"]}


def list_responses() -> dict[str, Response]:
    """Returns the responses that operations refer to, by name."""
    return {error.name: _describe(error) for error in (*_ERRORS.values(), _REJECTED)}


def refer_to(status: str, path: str) -> Response:
    return {"$ref": f"#/components/responses/{_find(status, path).name}"}


def code_of(status: str, path: str) -> str:
    """Returns the code of the response's example."""
    return _find(status, path).code


def _find(status: str, path: str) -> _Error:
    is_provider = status == "400" and _FORMS not in path
    return _REJECTED if is_provider else _ERRORS[status]


def _describe(error: _Error) -> Response:
    body: dict[str, Any] = {"code": error.code, "message": error.meaning}
    if error.name in _DETAILS:
        body["details"] = _DETAILS[error.name]
    schema = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": schema, "example": {"error": body}}}
    return {"description": error.meaning, "content": content}


def list_classes() -> Iterator[type[ApiError]]:
    """Yields the error classes of the application, without the one that no caller receives."""
    pending = [ApiError]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.status != ClientGone.status:
            yield kind


def list_codes() -> str:
    """Returns a Markdown list of the codes of all error classes, by status."""
    codes: dict[int, set[str]] = {}
    for kind in list_classes():
        codes.setdefault(kind.status, set()).add(f"`{kind.code}`")
    return "".join(f"- {status}: {', '.join(sorted(codes[status]))}\n" for status in sorted(codes))

"""Turns every exception into a response with the error envelope."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

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

from app.http import refunds
from app.http.route_options import RouteOptions, request_options
from app.kit import error_mapping, validation
from app.kit.error_mapping import HTTP_SERVER_ERROR, ErrorBody, report
from app.kit.errors import (
    ApiError,
    ClientGone,
    FileTooLarge,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    Problem,
    ProviderError,
)
from app.kit.unknown_fields import strip_optional

_DISCONNECTED = "client disconnected prematurely"
_NO_FILE = "Unsupported type: <class"
_OURS = "must be one of "
_MISSING = re.compile(r"Object missing required field `([^`]+)`")


class Replayed(Exception):
    """Ends a request whose response is known already from an earlier one."""

    def __init__(self, response: Response[bytes]) -> None:
        super().__init__("the response of an earlier request is sent again")
        self.response = response


class ErrorEnvelope(msgspec.Struct):
    error: ErrorBody


# Routes in OpenAI's wire format.
_OPENAI_PATH = "/v1/"


def envelope(error: ApiError, path: str = "") -> bytes:
    body = ErrorBody(error.code, error.message, error.details)
    if path.startswith(_OPENAI_PATH):
        body = error_mapping.to_openai_body(body, error)
    return msgspec.json.encode(ErrorEnvelope(body))


def to_api_error(error: BaseException) -> ApiError:
    """Maps Litestar's own exceptions; `app.kit.error_mapping` maps all others."""
    match error:
        case InternalServerException() if error.detail == _DISCONNECTED:
            return ClientGone("The client disconnected before the request was complete")
        case ValidationException():
            return _invalid_parameters(error)
        case MethodNotAllowedException():
            return MethodNotAllowed("This path does not support that method", headers=error.headers)
        case NotFoundException():
            return NotFound("There is nothing at this path; see /docs for what there is")
        case HTTPException() if error.status_code == PayloadTooLarge.status:
            return PayloadTooLarge("The request body is larger than this instance accepts")
        case ClientException():
            return Invalid.field("body", f"cannot be read: {error.detail}")
    return error_mapping.to_api_error(error)


def _invalid_parameters(error: ValidationException) -> ApiError:
    return Invalid.fields(
        _list_invalid_parameters(error) if error.extra else [("request", str(error.detail))]
    )


def _list_invalid_parameters(error: ValidationException) -> Iterator[Problem]:
    for item in error.extra or []:
        if isinstance(item, dict):
            key = str(item.get("key", "body"))
            message = str(item.get("message", ""))
            missing = _MISSING.fullmatch(message)
            if missing:
                key, message = missing.group(1), "is required"
            elif message == "'data'":
                # Litestar's message for a missing body.
                message = "is required"
            elif message.startswith(_NO_FILE):
                message = "must be one file"
            elif not message.startswith(_OURS):
                message = validation.describe(message)
            yield "body" if key == "data" else key, message


def _describe_parameters(request: Request[Any, Any, Any], error: ValidationException) -> None:
    """Replaces the names of a handler's arguments by those of the query parameters, and lists the
    values where only some are allowed.
    """
    parameters = request.route_handler.parsed_fn_signature.parameters
    for item in error.extra or []:
        if isinstance(item, dict) and item.get("key") in parameters:
            parameter = parameters[item["key"]]
            item["key"] = getattr(parameter.kwarg_definition, "name", None) or item["key"]
            kind = strip_optional(parameter.annotation)
            if get_origin(kind) is Literal:
                item["message"] = _list_values(kind)


def _list_values(kind: Any) -> str:
    return f"{_OURS}{', '.join(map(str, get_args(kind)))}"


def _refuse_upload(error: PayloadTooLarge, options: RouteOptions) -> ApiError:
    """The error of a route for files; on other routes the same."""
    if not options.takes_files:
        return error
    limit = options.max_upload_mb
    return FileTooLarge(error.message, details={"max_size_mb": limit} if limit else None)


def handle(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    if isinstance(error, Replayed):
        return error.response
    if isinstance(error, ValidationException):
        _describe_parameters(request, error)
    api_error = to_api_error(error)
    if isinstance(api_error, PayloadTooLarge):
        api_error = _refuse_upload(api_error, request_options(request))
    if isinstance(api_error, ProviderError):
        # It was asked, at the cost of the tenant, whatever its answer.
        refunds.keep_charges(request.scope["state"])
    if api_error.status >= HTTP_SERVER_ERROR:
        report(api_error, error, request.scope["path"])
    return Response(
        envelope(api_error, request.scope["path"]),
        status_code=api_error.status,
        media_type="application/json",
        headers=api_error.headers,
    )

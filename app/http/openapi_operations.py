"""The operations of the OpenAPI document: what Litestar leaves out of them, or says otherwise."""

from collections.abc import Sequence
from http import HTTPStatus
from types import NoneType
from typing import Any, Final, get_args, get_origin

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from app.http import openapi_codes, openapi_errors, openapi_streams, preconditions
from app.http.costs import is_uncounted
from app.http.openapi_schemas import Schema, SchemaBuilder
from app.http.route_options import RouteOptions, options_of
from app.http.sse import MEDIA_TYPE
from app.security.service_keys import WITHHELD

Operation = dict[str, Any]

_JSON: Final = "application/json"
_NULL: Final = {"type": "null"}
_FILE: Final = {"type": "string", "format": "binary"}
_IF_MATCH: Final = (
    "Entity tags: the record is changed only while one of them is its ETag; or else the answer is "
    "412 `precondition_failed`"
)
_IF_NONE_MATCH: Final = "Entity tags: the answer is 304 while one of them is the record's ETag"
_IF_ABSENT: Final = (
    "`*`: the record is created only while there is none; or else the answer is 412 "
    "`precondition_failed`"
)
_ETAG: Final = {
    "description": "A tag of the fields that a PUT or PATCH can change, for If-Match",
    "schema": {"type": "string"},
}
_FIRST_ERROR: Final = 400
_EMBED_KEY: Final = ["embed_key", "embed_key_header", "embed_key_query"]


def complete(
    operation: Operation, path: str, method: str, handler: HTTPRouteHandler, builder: SchemaBuilder
) -> None:
    options = options_of(handler)
    operation.pop("deprecated")
    operation["security"] = _list_security(options)
    if options.needs:
        operation["x-permission"] = options.needs
    for parameter in operation.get("parameters", []):
        _simplify_parameter(parameter)
    _describe_filters(operation, options.filters)
    _describe_preconditions(operation, handler)
    _describe_body(operation, options, handler, builder)
    responses = operation["responses"]
    responses.pop("400", None)
    for status, response in responses.items():
        _describe_answer(status, response, handler, builder)
    _describe_tag(responses, handler)
    errors = _list_errors(path, method, options)
    if preconditions.takes_if_match(handler):
        errors.add("412")
    for status in sorted(errors):
        responses.setdefault(status, openapi_errors.refer_to(status, path))
    failed = sorted(status for status in responses if int(status) >= _FIRST_ERROR)
    operation[openapi_codes.KEY] = openapi_codes.list_codes(handler, failed, path)


def _list_errors(path: str, method: str, options: RouteOptions) -> set[str]:
    statuses = {"422", "500", "503", *map(str, options.errors)}
    if not is_uncounted(method.upper(), path):
        statuses.add("429")
    if not options.public:
        statuses.add("401")
    if not (options.public or options.is_open_to_unverified):
        statuses.add("403")
    if "{" in path or not options.finds_tenant:
        statuses.add("404")
    if method not in {"get", "head"}:
        statuses |= {"409", "413"}
    return statuses


def _list_security(options: RouteOptions) -> list[dict[str, list[str]]]:
    """Returns an empty list for a route that is open to anybody."""
    schemes = []
    if not options.finds_tenant or options.keyed == "either":
        schemes.append("access_token")
        if not options.own and options.needs not in WITHHELD:
            schemes.append("service_key")
    if options.visitor_token:
        schemes.append("visitor_token")
    if options.keyed and options.takes_key:
        schemes += _EMBED_KEY
    return [{scheme: []} for scheme in schemes]


def _simplify_parameter(parameter: dict[str, Any]) -> None:
    """Bounds stand in the branches of a union, for which most generators of clients look. A URL
    has no null: an optional parameter is left out.
    """
    for name in ("deprecated", "allowEmptyValue", "allowReserved"):
        parameter.pop(name, None)
    schema = parameter["schema"]
    schema.pop("description", None)
    branches = [branch for branch in schema.pop("oneOf", []) if branch != _NULL]
    if len(branches) > 1:
        raise TypeError(f"the parameter {parameter['name']} has a type that is not documented")
    for branch in branches:
        schema |= branch
    if isinstance(schema["type"], list):
        [schema["type"]] = [name for name in schema["type"] if name != "null"]
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    if schema["type"] == "integer":
        for bound in {"minimum", "maximum"} & schema.keys():
            schema[bound] = int(schema[bound])


def _describe_filters(operation: Operation, description: str | None) -> None:
    """Adds query parameters like `filter[name][operator]=value`, whose names no signature has."""
    if description is None:
        return
    operations = {"type": "object", "additionalProperties": {"type": "string"}}
    value = {"anyOf": [{"type": "string"}, operations]}
    parameter = {
        "name": "filter",
        "in": "query",
        "description": description,
        "style": "deepObject",
        "explode": True,
        "schema": {"type": "object", "additionalProperties": value},
    }
    operation.setdefault("parameters", []).append(parameter)


def _describe_preconditions(operation: Operation, handler: HTTPRouteHandler) -> None:
    """Adds the headers that no signature has."""
    parameters = []
    if preconditions.takes_if_match(handler):
        parameters.append((preconditions.IF_MATCH, _IF_MATCH))
    if preconditions.takes_if_none_match(handler):
        parameters.append((preconditions.IF_NONE_MATCH, _IF_NONE_MATCH))
    if preconditions.creates_record(handler):
        parameters.append((preconditions.IF_NONE_MATCH, _IF_ABSENT))
    for name, description in parameters:
        parameter = {
            "name": name,
            "in": "header",
            "description": description,
            "required": False,
            "schema": {"type": "string"},
        }
        operation.setdefault("parameters", []).append(parameter)


def _describe_tag(responses: dict[str, Any], handler: HTTPRouteHandler) -> None:
    if preconditions.route_of(handler) is None:
        return
    for response in responses.values():
        response["headers"] = {"ETag": _ETAG}
    if preconditions.takes_if_none_match(handler):
        description = HTTPStatus.NOT_MODIFIED.phrase
        responses["304"] = {"description": description, "headers": {"ETag": _ETAG}}


def _describe_body(
    operation: Operation, options: RouteOptions, handler: HTTPRouteHandler, builder: SchemaBuilder
) -> None:
    if options.streamed_file is not None:
        operation["requestBody"] = _describe_upload(options.streamed_file, options.streamed_texts)
    elif handler.parsed_data_field is not None:
        schema = _without_null(builder.describe(handler.parsed_data_field.annotation))
        for content in operation["requestBody"]["content"].values():
            content["schema"] = schema


def _without_null(schema: Schema) -> Schema:
    """Returns the schema of a body that may be left out."""
    branches = [branch for branch in schema.get("anyOf", []) if branch != _NULL]
    return branches[0] if len(branches) == 1 else schema


def _describe_upload(field: str, texts: Sequence[str]) -> dict[str, Any]:
    """The body of a route that reads it itself, while it arrives."""
    properties: Schema = {name: {"type": "string"} for name in texts}
    properties[field] = _FILE
    schema = {"type": "object", "required": [*texts, field], "properties": properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def _describe_answer(
    status: str, response: dict[str, Any], handler: HTTPRouteHandler, builder: SchemaBuilder
) -> None:
    response["description"] = HTTPStatus(int(status)).phrase
    response.pop("headers", None)
    annotation: Any = handler.parsed_return_field.annotation
    if get_origin(annotation) is Response:
        (annotation,) = get_args(annotation)
    if annotation in {None, NoneType}:
        response.pop("content", None)
    for media_type, content in response.get("content", {}).items():
        if media_type == _JSON:
            content["schema"] = builder.describe(annotation)
        else:
            content["schema"] = {"type": "string"} if media_type.startswith("text/") else _FILE
    if (events := options_of(handler).events) is not None:
        response["content"][MEDIA_TYPE] = openapi_streams.describe(events, builder)

"""The OpenAPI document with error responses, examples and security of every operation."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Router
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from app.http.costs import is_uncounted
from app.http.route_options import RouteOptions, options_of
from app.kit.errors import ApiError, ClientGone

_JSON = "application/json"
_ABOUT = """Agents, chat, tools, webhooks, events and forms, for many tenants.

Sign in with `POST /auth/login` and send the access token as `Authorization: Bearer …`. Every error
is `{ "error": { "code", "message", "details"? } }`. Every POST that creates or starts something
takes an `Idempotency-Key` header, except streams and `/v1/chat/completions`. Every answer carries
`X-Request-ID`, `X-Correlation-ID` and the `X-RateLimit-*` headers. A URL may have 16 KiB, all
headers together 64 KiB, and a JSON body 1 MiB.

The codes of errors, by status:

"""

_ERRORS = {
    "400": ("validation_error", "The answers are not valid; details.errors has one for each field"),
    "401": ("unauthorized", "Sign in first"),
    "403": (
        "forbidden",
        "The role lacks the permission, or (email_not_verified) the address is not verified",
    ),
    "404": ("not_found", "It does not exist, or is not visible to this caller"),
    "408": ("request_timeout", "The body did not arrive in time"),
    "409": ("conflict", "The request conflicts with the current state"),
    "413": ("payload_too_large", "The body is too large, or (quota_exceeded) the storage is full"),
    "415": ("unsupported_file_type", "The type of the file is not supported"),
    "416": ("range_not_satisfiable", "The range is beyond the end of the file"),
    "422": ("validation_error", "The input is not valid; details has a message per field"),
    "429": ("rate_limited", "Too many requests; see Retry-After"),
    "500": ("internal_error", "The server failed unexpectedly"),
    "502": ("provider_error", "A server that Parley called failed; details has the reason"),
    "503": ("unavailable", "A dependency is unavailable; see Retry-After"),
}

_DETAILS: dict[str, dict[str, Any]] = {
    "400": {"errors": [{"field": "email", "message": "is required"}]},
    "403": {"required": "agents:write", "your_role": "agent_user"},
    "422": {"name": "is required"},
    "429": {"limit": 60, "window": 60, "retry_after": 12},
}

_EMBED_KEY = ["embed_key", "embed_key_header", "embed_key_query"]

_ENVELOPE = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object"},
            },
        }
    },
}


# The tags of operations, by the groups of the product and in the order in which they are shown.
TAG_GROUPS: Final = {
    "Agents": [
        *("Agents", "Sub-agents", "Models", "Knowledge", "Tools", "Credentials"),
        *("Web search", "Usage"),
    ],
    "Conversations": ["Chat", "Conversations", "Speech", "Embedding", "OpenAI-compatible"],
    "Forms": ["Forms", "Public forms"],
    "Automation": ["Workflows", "Approvals", "Subscriptions", "Incoming webhooks"],
    "Messaging": ["Webhooks", "Notifications", "Notification channels"],
    "Data": ["Data tables"],
    "Identity": ["Auth", "MFA", "Users", "Profile", "Roles", "Tenants"],
    "Platform": ["Events", "Files", "Health"],
}
# Litestar names the schema of a generic struct after the modules of its arguments.
_GENERIC = re.compile(r"(\w+?)_(list_)?app\.[\w.]*?(\w+?)_")
_PAGE = {
    "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    "total": 1,
    "page": 1,
    "per_page": 20,
}
_SHAPES = {"Data": "Data", "Paged": "Page", "Flat": "FlatPage", "OperationResult": "Result"}


def document(app: Litestar) -> dict[str, Any]:
    schema: dict[str, Any] = app.openapi_schema.to_schema()
    schema["info"]["description"] = _ABOUT + _list_error_codes()
    components = schema.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _ENVELOPE
    components["securitySchemes"] = {
        "access_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "visitor_token": {"type": "http", "scheme": "bearer", "bearerFormat": "vst_…"},
        "embed_key": {"type": "http", "scheme": "bearer", "bearerFormat": "emb_…"},
        "embed_key_header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "embed_key_query": {"type": "apiKey", "in": "query", "name": "api_key"},
    }
    _add_examples(app, components["schemas"])
    schema = _rename_generics(schema)
    schema["tags"] = [{"name": tag} for tags in TAG_GROUPS.values() for tag in tags]
    schema["x-tagGroups"] = [{"name": name, "tags": tags} for name, tags in TAG_GROUPS.items()]
    for path, method, operation in _operations(schema):
        _complete_operation(operation, path, method, _find_handler(app, path, method))
    return schema


def _list_error_codes() -> str:
    """Returns a Markdown list of the codes of all error classes, by status."""
    codes: dict[int, set[str]] = {}
    pending = [ApiError]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.status != ClientGone.status:
            codes.setdefault(kind.status, set()).add(f"`{kind.code}`")
    return "".join(f"- {status}: {', '.join(sorted(codes[status]))}\n" for status in sorted(codes))


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            if method in {"get", "head", "post", "put", "patch", "delete"}:
                yield path, method, operation


def _find_handler(app: Litestar, path: str, method: str) -> HTTPRouteHandler:
    for route in app.routes:
        if getattr(route, "path_format", None) == path:
            handlers: dict[str, Any] = route.route_handler_map  # type: ignore[assignment, union-attr]
            handler: HTTPRouteHandler = handlers[method.upper()][0]
            return handler
    raise LookupError(f"{method} {path}")


def _complete_operation(
    operation: dict[str, Any], path: str, method: str, handler: HTTPRouteHandler
) -> None:
    options = options_of(handler)
    if security := _list_security(options):
        operation["security"] = security
    if options.needs:
        operation["x-permission"] = options.needs
    statuses = {"422", "500", "503"}
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
    responses = operation["responses"]
    responses.pop("400", None)
    _describe_files(operation, options)
    _describe_filters(operation, options.filters)
    for status in sorted(statuses | {str(code) for code in options.errors}):
        responses.setdefault(status, _error_response(status))


def _list_security(options: RouteOptions) -> list[dict[str, list[str]]]:
    schemes = []
    if not options.finds_tenant or options.keyed == "either":
        schemes.append("access_token")
    if options.visitor_token:
        schemes.append("visitor_token")
    if options.keyed and options.takes_key:
        schemes += _EMBED_KEY
    return [{scheme: []} for scheme in schemes]


def _describe_filters(operation: dict[str, Any], description: str | None) -> None:
    """Adds query parameters like `filter[name][operator]=value`, whose names no signature has."""
    if description is None:
        return
    operations = {"type": "object", "additionalProperties": {"type": "string"}}
    value = {"oneOf": [{"type": "string"}, operations]}
    parameter = {
        "name": "filter",
        "in": "query",
        "description": description,
        "style": "deepObject",
        "explode": True,
        "schema": {"type": "object", "additionalProperties": value},
    }
    operation.setdefault("parameters", []).append(parameter)


def _describe_upload(field: str, texts: Sequence[str]) -> dict[str, Any]:
    """The body of a route that reads it itself, while it arrives."""
    properties = {name: {"type": "string"} for name in texts}
    properties[field] = {"type": "string", "format": "binary"}
    schema = {"type": "object", "required": [*texts, field], "properties": properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def _describe_files(operation: dict[str, Any], options: RouteOptions) -> None:
    if options.streamed_file is not None:
        body = _describe_upload(options.streamed_file, options.streamed_texts)
        operation["requestBody"] = body
    for response in operation["responses"].values():
        for media_type, content in response.get("content", {}).items():
            if media_type.startswith(("audio/", "image/")):
                content["schema"] = {"type": "string", "format": "binary"}


def _error_response(status: str) -> dict[str, Any]:
    code, meaning = _ERRORS[status]
    error: dict[str, Any] = {"code": code, "message": meaning}
    if status in _DETAILS:
        error["details"] = _DETAILS[status]
    example = {"error": error}
    content = {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}
    return {"description": meaning, "content": {_JSON: content}}


def _add_examples(app: Litestar, schemas: dict[str, Any]) -> None:
    """Adds the `example` of each struct to its schema; a test validates them."""
    for kind in structs_of(app):
        example = getattr(kind, "example", None)
        if example is not None and kind.__name__ in schemas:
            schemas[kind.__name__]["example"] = example


def _rename_generics(schema: dict[str, Any]) -> dict[str, Any]:
    """Names the schemas of generic structs for readers, after what they hold, and adds examples."""
    schemas = schema["components"]["schemas"]
    names = {name: new for name in schemas if (new := _name_generic(name)) != name}
    if len({*schemas, *names.values()}) != len(schemas) + len(names):
        raise RuntimeError("two schemas have the same name")
    text = msgspec.json.encode(schema).decode()
    for name, new_name in names.items():
        text = text.replace(f'"{name}"', f'"{new_name}"')
        text = text.replace(f'/schemas/{name}"', f'/schemas/{new_name}"')
    renamed: dict[str, Any] = msgspec.json.decode(text)
    schemas = renamed["components"]["schemas"]
    for name in names.values():
        schemas[name]["title"] = name
        _add_generic_example(schemas[name], schemas)
    return renamed


def _name_generic(name: str) -> str:
    """Turns `Paged_app.domain.tools.schemas.ToolView_` into `ToolPage`."""
    parts = _GENERIC.fullmatch(name)
    if parts is None:
        return name
    shape, is_list, held = parts.groups()
    return held.removesuffix("View") + ("List" if is_list else _SHAPES[shape])


def _add_generic_example(generic: dict[str, Any], schemas: dict[str, Any]) -> None:
    data = generic["properties"].get("data")
    if data is None:
        return
    reference: str = data.get("items", data).get("$ref", "")
    example = schemas.get(reference.rpartition("/")[2], {}).get("example")
    if example is None:
        return
    content = {"data": [example] if "items" in data else example}
    generic["example"] = content | {
        name: value for name, value in _PAGE.items() if name in generic["properties"]
    }


def structs_of(app: Litestar) -> set[type[msgspec.Struct]]:
    """Returns every struct that a handler receives or returns, with the structs inside them."""
    structs: set[type[msgspec.Struct]] = set()

    def visit(annotation: Any) -> None:
        for argument in getattr(annotation, "__args__", ()):
            visit(argument)
        kind = getattr(annotation, "__origin__", annotation)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in structs:
            structs.add(kind)
            for field in msgspec.structs.fields(kind):
                visit(field.type)

    for route in app.routes:
        for handler in getattr(route, "route_handlers", []):
            if handler.parsed_data_field is not None:
                visit(handler.parsed_data_field.annotation)
            visit(handler.parsed_return_field.annotation)
    return structs


def _refuse(_request: Request[Any, Any, Any]) -> None:
    raise NotFoundException


def config(version: str) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Parley",
        version=version,
        description=_ABOUT,
        use_handler_docstrings=True,
        # Litestar would serve its own document here; Parley serves one at /openapi.json.
        openapi_router=Router(
            "/docs/schema",
            route_handlers=[],
            before_request=_refuse,
            opt={"public": True},
            include_in_schema=False,
        ),
        render_plugins=[JsonRenderPlugin()],
    )

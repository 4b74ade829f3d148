"""The OpenAPI document, completed: error answers, examples and security for every operation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import swagger_ui
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import FromPath

from app.http.costs import is_uncounted
from app.kit.errors import ApiError, ClientGone

_ASSETS = Path(swagger_ui.__file__).parent / "static"
_SERVED = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
_JSON = "application/json"
_ABOUT = """Agents, chat, tools, webhooks, events and forms, for many tenants.

Sign in with `POST /auth/login` and send the access token as `Authorization: Bearer …`. Every error
is `{ "error": { "code", "message", "details"? } }`. Every POST that creates or starts something
takes an `Idempotency-Key` header, except streams and `/v1/chat/completions`. Every answer carries
`X-Request-ID`, `X-Correlation-ID` and the `X-RateLimit-*` headers.

The codes of errors, by status:

"""

_ERRORS = {
    "401": ("unauthorized", "Sign in first"),
    "403": ("forbidden", "The role lacks the permission"),
    "404": ("not_found", "There is no such thing, or not for this caller"),
    "409": ("conflict", "It does not fit the present state"),
    "413": ("payload_too_large", "The body is larger than this instance takes"),
    "415": ("unsupported_file_type", "The file is not of a type that is taken here"),
    "422": ("validation_error", "The input is not valid; details has a message per field"),
    "429": ("rate_limited", "Too many requests; see Retry-After"),
    "500": ("internal_error", "Something went wrong on our side"),
    "502": ("provider_error", "Somebody else's server failed; details says how"),
    "503": ("unavailable", "A part of this instance is away; see Retry-After"),
}

_DETAILS: dict[str, dict[str, Any]] = {
    "403": {"required": "agents:write", "your_role": "agent_user"},
    "422": {"name": "is required"},
    "429": {"limit": 60, "window": 60, "retry_after": 12},
}

_EMBED_KEY: list[dict[str, list[str]]] = [
    {"embed_key": []},
    {"embed_key_header": []},
    {"embed_key_query": []},
]

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

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Parley API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/docs/assets/favicon-32x32.png">
<link rel="stylesheet" href="/docs/assets/swagger-ui.css"></head>
<body><div id="docs"></div><script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script></body></html>
"""
_START = (
    'SwaggerUIBundle({url: "/openapi.json", dom_id: "#docs", deepLinking: true,'
    " persistAuthorization: true, tryItOutEnabled: true, displayRequestDuration: true});\n"
)
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self' data:; frame-ancestors 'none'"
)


def document(app: Litestar) -> dict[str, Any]:
    schema: dict[str, Any] = app.openapi_schema.to_schema()
    schema["info"]["description"] = _ABOUT + _codes()
    components = schema.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _ENVELOPE
    components["securitySchemes"] = {
        "access_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "embed_key": {"type": "http", "scheme": "bearer", "bearerFormat": "emb_…"},
        "embed_key_header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "embed_key_query": {"type": "apiKey", "in": "query", "name": "api_key"},
    }
    _add_examples(app, components["schemas"])
    for path, method, operation in _operations(schema):
        _complete(operation, path, method, _handler(app, path, method))
    return schema


def _codes() -> str:
    """Each area has errors of its own; whoever handles them wants to know them all."""
    found: dict[int, set[str]] = {}
    waiting = [ApiError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.status != ClientGone.status:
            found.setdefault(kind.status, set()).add(f"`{kind.code}`")
    return "".join(f"- {status}: {', '.join(sorted(found[status]))}\n" for status in sorted(found))


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                yield path, method, operation


def _handler(app: Litestar, path: str, method: str) -> HTTPRouteHandler:
    for route in app.routes:
        if getattr(route, "path_format", None) == path:
            handlers: dict[str, Any] = route.route_handler_map  # type: ignore[assignment, union-attr]
            found: HTTPRouteHandler = handlers[method.upper()][0]
            return found
    raise LookupError(f"{method} {path}")


def _complete(operation: dict[str, Any], path: str, method: str, handler: HTTPRouteHandler) -> None:
    public = bool(handler.opt.get("public"))
    needed = handler.opt.get("needs")
    keyed = handler.opt.get("keyed")
    if not public or keyed == "either":
        operation["security"] = [{"access_token": []}]
    if keyed:
        operation.setdefault("security", []).extend(_EMBED_KEY)
    if needed:
        operation["x-permission"] = needed
    statuses = {"422", "500", "503"}
    if not is_uncounted(method.upper(), path):
        statuses.add("429")
    if not public or keyed:
        statuses.add("401")
    if needed or keyed:
        statuses.add("403")
    if "{" in path or not public:
        statuses.add("404")
    if method != "get":
        statuses |= {"409", "413"}
    answers = operation["responses"]
    answers.pop("400", None)
    for status in sorted(statuses | {str(code) for code in handler.opt.get("errors", ())}):
        answers.setdefault(status, _error(status))


def _error(status: str) -> dict[str, Any]:
    code, meaning = _ERRORS[status]
    told: dict[str, Any] = {"code": code, "message": meaning}
    example = {"error": told | ({"details": _DETAILS[status]} if status in _DETAILS else {})}
    content = {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}
    return {"description": meaning, "content": {_JSON: content}}


def _add_examples(app: Litestar, schemas: dict[str, Any]) -> None:
    """A struct's own `example` goes with its schema; it is checked against it by a test."""
    for kind in structs_of(app):
        example = getattr(kind, "example", None)
        if example is not None and kind.__name__ in schemas:
            schemas[kind.__name__]["example"] = example


def structs_of(app: Litestar) -> set[type[msgspec.Struct]]:
    """Every struct that a handler takes or gives, with those inside it."""
    found: set[type[msgspec.Struct]] = set()

    def visit(annotation: Any) -> None:
        for argument in getattr(annotation, "__args__", ()):
            visit(argument)
        kind = getattr(annotation, "__origin__", annotation)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
            found.add(kind)
            for field in msgspec.structs.fields(kind):
                visit(field.type)

    for route in app.routes:
        for handler in getattr(route, "route_handlers", []):
            if handler.parsed_data_field is not None:
                visit(handler.parsed_data_field.annotation)
            visit(handler.parsed_return_field.annotation)
    return found


def config(version: str) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Parley",
        version=version,
        description=_ABOUT,
        use_handler_docstrings=True,
        # Litestar answers for everything below its own path; ours is /openapi.json.
        openapi_router=Router(
            "/docs/schema", route_handlers=[], opt={"public": True}, include_in_schema=False
        ),
        render_plugins=[JsonRenderPlugin()],
    )


@get("/openapi.json", include_in_schema=False, public=True, sync_to_thread=False)
def openapi_json(request: Request[Any, Any, Any]) -> Response[bytes]:
    if "openapi" not in request.app.state:
        request.app.state.openapi = msgspec.json.encode(document(request.app))
    return Response(request.app.state.openapi, media_type=_JSON)


@get("/docs", include_in_schema=False, public=True, sync_to_thread=False)
def docs_page() -> Response[str]:
    return Response(_PAGE, media_type=MediaType.HTML, headers={"content-security-policy": _CSP})


@get("/docs/start.js", include_in_schema=False, public=True, sync_to_thread=False)
def docs_script() -> Response[str]:
    return Response(_START, media_type="text/javascript")


@get("/docs/assets/{name:str}", include_in_schema=False, public=True, sync_to_thread=True)
def docs_asset(name: FromPath[str]) -> Response[bytes]:
    if name not in _SERVED:
        raise NotFoundException
    return Response(
        (_ASSETS / name).read_bytes(),
        media_type=_SERVED[name],
        headers={"cache-control": "public, max-age=86400"},
    )

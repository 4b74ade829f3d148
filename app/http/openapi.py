"""The OpenAPI document with error responses, examples and security of every operation."""

from typing import Any, Final

from litestar import Litestar, Request, Router
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from app.http import openapi_codes, openapi_errors, openapi_operations
from app.http.openapi_schemas import SchemaBuilder
from app.http.route_options import list_handlers

_ABOUT = """Agents, chat, tools, webhooks, events and forms, for many tenants.

## Authentication

Sign in with `POST /auth/login` and send the access token as `Authorization: Bearer …`; programs
send a service key instead.

## Errors

Every error is `{ "error": { "code", "message", "details"? } }`. `x-error-codes` describes each
code, and that of an operation lists those that it answers with.

## Idempotency

Every POST that creates or starts something takes an `Idempotency-Key` header, except streams,
`/v1/chat/completions` and `/v1/responses`.

## Paging

Lists take `page` and `per_page`, and answer with `data` and `pagination`.

## Headers and streams

Every answer carries `X-Request-ID`, `X-Correlation-ID` and the `X-RateLimit-*` headers. Answers of
type `text/event-stream` have the schemas of their events' data as `x-events`.

## Limits

A URL may have 16 KiB, all headers together 64 KiB, and a JSON body 1 MiB: 8 MiB for chat
completions and responses, 4 MiB for embeddings. Too many requests within a minute are answered with
429; `Retry-After` says for how long to wait. Of two paths that match a URL, the one with the
earlier literal part is meant: `/api/v1/forms/slug/{slug}`, not
`/api/v1/forms/{form_id}/versions`.

## Error codes

The codes of errors, by status:

"""

# The tags of operations and what they are about, by the groups of the product and in the order in
# which they are shown.
TAG_GROUPS: Final = {
    "Agents": {
        "Agents": "Agents, their versions and their settings",
        "Sub-agents": "Agents that others delegate to",
        "Models": "Language models, and the keys of their providers",
        "Knowledge": "Documents that agents answer from, and searches in them",
        "Sources": "Web pages, feeds, buckets and archives that documents are kept equal to",
        "Tools": "Tools that agents and workflows call, and their executions",
        "Credentials": "The vault: secrets, who may use them, and its audit log",
        "Web search": "How an agent searches the web",
        "Usage": "Tokens, cost and requests, and the limits of the plan",
    },
    "Conversations": {
        "Chat": "Chat with agents: whole, streamed or asynchronous",
        "Conversations": "Conversations, their messages and ratings",
        "Speech": "Chat by voice, and text read aloud",
        "Embedding": "Agents on other web sites: keys, visitors and their chats",
        "OpenAI-compatible": "Agents for clients that speak OpenAI's wire format",
    },
    "Forms": {
        "Forms": "Forms, their versions, submissions and analytics",
        "Public forms": "Forms for those who fill them in: on a page, by chat or through the API",
    },
    "Automation": {
        "Workflows": "Workflows, their versions and executions",
        "Approvals": "Decisions that workflows wait for",
        "Subscriptions": "What happens when an event is emitted",
        "Incoming webhooks": "Addresses that receive payloads of other services",
    },
    "Messaging": {
        "Webhooks": "Signed events for other servers, and their deliveries",
        "Notifications": "The notifications of the caller, and preferences",
        "Notification channels": "E-mail, team chats, SMS and webhooks that deliver notifications",
    },
    "Data": {
        "Data tables": "Tables with typed columns, their rows, imports and exports",
    },
    "Identity": {
        "Auth": "Sign-up, sign-in, passwords and sessions",
        "MFA": "Two-factor codes and recovery codes",
        "Users": "The users of a tenant, and invitations",
        "Profile": "The caller's own account",
        "Roles": "Roles and their permissions",
        "Saved views": "Filters of lists, under a name",
        "Service keys": "Keys with which programs use the API as themselves",
        "Tenants": "Tenants, their plans and limits",
    },
    "Platform": {
        "Events": "The catalogue of events, the event log and traces",
        "History": "Who changed which record, when, and what",
        "Files": "Stored files, and the space that they take",
        "Settings": "What configures the instance and the tenant, and where it comes from",
        "Work": "Work in the background: what waits, what runs and what has failed",
        "Health": "Probes for those who run the instance",
    },
}
_SECURITY_SCHEMES: Final = {
    "access_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "service_key": {"type": "http", "scheme": "bearer", "bearerFormat": "svc_…"},
    "visitor_token": {"type": "http", "scheme": "bearer", "bearerFormat": "vst_…"},
    "embed_key": {"type": "http", "scheme": "bearer", "bearerFormat": "emb_…"},
    "embed_key_header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "embed_key_query": {"type": "apiKey", "in": "query", "name": "api_key"},
}
_METHODS: Final = {"get", "head", "post", "put", "patch", "delete"}


def document(app: Litestar) -> dict[str, Any]:
    schema: dict[str, Any] = app.openapi_schema.to_schema()
    handlers = {(path, method): handler for method, path, handler in list_handlers(app)}
    builder = SchemaBuilder()
    for path, item in schema["paths"].items():
        for method in _METHODS & item.keys():
            handler = handlers[path, method.upper()]
            openapi_operations.complete(item[method], path, method, handler, builder)
    schema["info"]["description"] = _ABOUT + openapi_errors.list_codes()
    schema["tags"] = [
        {"name": name, "description": description}
        for tags in TAG_GROUPS.values()
        for name, description in tags.items()
    ]
    schema["x-tagGroups"] = [
        {"name": group, "tags": list(tags)} for group, tags in TAG_GROUPS.items()
    ]
    schema[openapi_codes.KEY] = openapi_codes.describe()
    builder.components["Error"] = openapi_errors.describe_envelope(builder)
    schema["components"] = {
        "schemas": dict(sorted(builder.components.items())),
        "responses": openapi_errors.list_responses(),
        "securitySchemes": _SECURITY_SCHEMES,
    }
    return schema


def _name_operation(handler: HTTPRouteHandler, _method: object, _path: object) -> str:
    """Returns the name of the handler, which names a function of generated clients."""
    return handler.handler_name


def _refuse(_request: Request[Any, Any, Any]) -> None:
    raise NotFoundException


def config(version: str) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Parley",
        version=version,
        description=_ABOUT,
        use_handler_docstrings=True,
        operation_id_creator=_name_operation,
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

"""Answers of type text/event-stream in /openapi.json."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args

import msgspec
from litestar import Litestar

from app.domain.conversations.openai import response_events
from app.http import openapi_streams
from app.http.openapi_schemas import SchemaBuilder
from app.http.route_options import list_handlers, options_of
from app.http.sse import MEDIA_TYPE
from tests.openapi.document import Document, list_operations, resolve

_CHAT = {
    *("message_start", "queue", "progress", "content_delta", "tool_use", "tool_result"),
    *("message_stop", "error"),
}
_FORM = {"message_start", "content_delta", "form_progress", "message_stop", "error"}
_MESSAGES = "/api/v1/public/forms/{slug}/conversations/{conversation_id}/messages"
_STREAMS = {
    "POST /api/v1/agents/{agent_id}/chat/stream": _CHAT,
    "POST /api/v1/agents/{agent_id}/preview": _CHAT,
    "POST /api/v1/public/agents/{agent_id}/chat/stream": _CHAT,
    f"POST {_MESSAGES}/stream": _FORM,
    "GET /api/v1/notifications/stream": {"notification"},
    "GET /api/v1/event-log/stream": {"events"},
    "POST /v1/chat/completions": {"message"},
    "POST /v1/responses": set(response_events.EVENTS),
}


def _streams(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, _, operation in list_operations(document):
        for response in operation["responses"].values():
            if MEDIA_TYPE in (content := resolve(document, response).get("content", {})):
                yield name, content[MEDIA_TYPE]


def test_every_stream_lists_its_events(document: Document) -> None:
    assert {name: content["x-events"].keys() for name, content in _streams(document)} == _STREAMS


def test_the_data_of_every_event_has_a_described_schema(document: Document) -> None:
    for _, content in _streams(document):
        assert content["schema"]["type"] == "string"
        for schema in content["x-events"].values():
            for branch in schema.get("anyOf", [schema]):
                assert resolve(document, branch)["type"] in {"object", "string"}


def test_a_completion_is_whole_or_a_stream(document: Document) -> None:
    content = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/Completion"}
    names = [branch.get("$ref") for branch in content[MEDIA_TYPE]["x-events"]["message"]["anyOf"]]
    assert "#/components/schemas/CompletionChunk" in names


def test_the_example_of_a_stream_is_valid(app: Litestar, document: Document) -> None:
    """Each event of the example has the data that the event is declared with."""
    contents = dict(_streams(document))
    for method, path, handler in list_handlers(app):
        if (events := options_of(handler).events) is None:
            continue
        shown = contents[f"{method} {path}"]["example"]
        assert shown.endswith("\n\n")
        for block in shown.removesuffix("\n\n").split("\n\n"):
            name, data = re.fullmatch(r"(?:event: ([\w.]+)\n)?data: (.+)", block).groups()  # type: ignore[union-attr]
            if data != "[DONE]":
                _check(json.loads(data), events[name or "message"])


def _check(value: Any, data: Any) -> None:
    kind, *_ = get_args(data) or (data,)
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert value.keys() <= names | {kind.__struct_config__.tag_field}
    msgspec.convert(value, kind)


def test_every_event_but_errors_is_shown(document: Document) -> None:
    for name, content in _streams(document):
        shown = set(re.findall(r"^event: ([\w.]+)$", content["example"], re.MULTILINE)) or {
            "message"
        }
        assert shown == content["x-events"].keys() - {"error"}, name


def test_an_event_without_a_name_is_a_message() -> None:
    content = openapi_streams.describe({"message": Literal["ping", "pong"]}, SchemaBuilder())
    assert content["example"] == "data: ping\n\ndata: pong\n\n"
    assert content["x-events"] == {"message": {"type": "string", "enum": ["ping", "pong"]}}

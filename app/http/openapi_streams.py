"""Streams of events in the OpenAPI document.

OpenAPI 3.1 has no schema for the items of a stream: the content is a string, and `x-events` has the
schemas of the events' data.
"""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from app.http.openapi_schemas import SchemaBuilder

# What clients call an event that has no name on the wire.
_UNNAMED = "message"


def describe(events: dict[str, Any], builder: SchemaBuilder) -> dict[str, Any]:
    return {
        "schema": {
            "type": "string",
            "description": "Server-sent events; `x-events` has the schema of the data of each.",
        },
        "example": "".join(_show(name, data) for name, data in events.items()),
        "x-events": {name: builder.describe(data) for name, data in events.items()},
    }


def _show(name: str, data: Any) -> str:
    """Returns an event for each example of its data."""
    line = "" if name == _UNNAMED else f"event: {name}\n"
    return "".join(f"{line}data: {text}\n\n" for text in _list_examples(data))


def _list_examples(data: Any) -> list[str]:
    if get_origin(data) in {Union, UnionType}:
        return [text for branch in get_args(data) for text in _list_examples(branch)]
    if get_origin(data) is Literal:
        return list(get_args(data))
    example = getattr(data, "example", None)
    return [] if example is None else [msgspec.json.encode(example).decode()]

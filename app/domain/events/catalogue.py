"""Event types: their category and the JSON Schema of their data."""

from functools import cache
from typing import Any

import msgspec

from app.domain.area import Areas, Event
from app.kit.errors import Invalid

NO_EVENT_TYPE = "is no event type; GET /api/v1/event-types lists them"


def category_of(event_type: str) -> str:
    return event_type.partition(".")[0]


@cache
def schema_of(event: type[Event]) -> dict[str, Any]:
    """Returns the JSON Schema with the definitions that it refers to."""
    (top,), definitions = msgspec.json.schema_components([event], ref_template="#/$defs/{name}")
    name = top["$ref"].rpartition("/")[2]
    schema = dict(definitions.pop(name))
    schema["description"] = event.description
    return schema | ({"$defs": definitions} if definitions else {})


def check_type(areas: Areas, event_type: str, field: str = "event_type") -> None:
    if event_type not in areas.event_types:
        raise Invalid.field(field, NO_EVENT_TYPE)

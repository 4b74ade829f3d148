"""Event types: their category and the JSON Schema of their data."""

from functools import cache
from typing import Any

import msgspec

from app.domain.area import CATEGORIES, Areas, Event
from app.kit.errors import Invalid
from app.kit.spelling import find_nearest

from .errors import EventTypeNotFound
from .schemas import Categories, Category, EventType, EventTypes, FullEventType


def describe_unknown(areas: Areas, event_type: str) -> str:
    """Returns the end of a sentence about a field with a type that does not exist."""
    nearest = find_nearest(event_type, areas.event_types)
    hint = f"did you mean {nearest}?" if nearest else "GET /api/v1/event-types lists them"
    return f"is not an event type; {hint}"


def list_types(areas: Areas, category: str | None) -> EventTypes:
    return EventTypes(
        [
            EventType(*_describe(event))
            for name, event in sorted(areas.event_types.items())
            if category in {None, category_of(name)}
        ]
    )


def list_categories(areas: Areas) -> Categories:
    names = [category_of(name) for name in areas.event_types]
    return Categories(
        [Category(name, description, names.count(name)) for name, description in CATEGORIES.items()]
    )


def get_type(areas: Areas, name: str) -> FullEventType:
    event = areas.event_types.get(name)
    if event is None:
        raise EventTypeNotFound(f"There is no event type {name[:64]}")
    return FullEventType(*_describe(event), event.example())


def _describe(event: type[Event]) -> tuple[str, str, str, dict[str, Any]]:
    return event.type, category_of(event.type), event.description(), schema_of(event)


def category_of(event_type: str) -> str:
    return event_type.partition(".")[0]


@cache
def schema_of(event: type[Event]) -> dict[str, Any]:
    """Returns the JSON Schema with the definitions that it refers to."""
    (top,), definitions = msgspec.json.schema_components([event], ref_template="#/$defs/{name}")
    name = top["$ref"].rpartition("/")[2]
    schema = dict(definitions.pop(name))
    schema["description"] = event.description()
    return schema | ({"$defs": definitions} if definitions else {})


def check_type(areas: Areas, event_type: str, field: str = "event_type") -> None:
    if event_type not in areas.event_types:
        raise Invalid.field(field, describe_unknown(areas, event_type))

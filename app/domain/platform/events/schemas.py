from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from app.domain.area import Span

_ACTOR = {"type": "user", "id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4", "name": "Ada Lovelace"}
_ENTRY = {
    "id": "evt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "type": "system.user.invited",
    "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "parent_id": None,
    "actor": _ACTOR,
    "data": {"invitation_id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4", "email": "ada@example.com"},
    "created_at": "2026-01-01T12:00:00Z",
}


class Actor(msgspec.Struct):
    """Who did it. `anonymous` is a visitor, or somebody who is not signed in yet; `system` stands
    for work in the background, whose `parent_id` leads to who caused it. `name` is null for
    somebody of another tenant.
    """

    example: ClassVar[dict[str, Any]] = _ACTOR

    type: Literal["user", "service_key", "embed_key", "anonymous", "system"]
    id: str | None
    name: str | None


class Entry(msgspec.Struct, omit_defaults=True):
    """`test` is present, and true, on a test event: nothing happened. In a long trace, `omitted`
    marks entries without their data; `GET /api/v1/event-log/:id` has it.
    """

    example: ClassVar[dict[str, Any]] = _ENTRY

    id: str
    type: str
    correlation_id: str
    parent_id: str | None
    actor: Actor
    data: dict[str, Any]
    created_at: datetime
    test: bool = False
    omitted: bool = False


class NewEvents(msgspec.Struct):
    """Types of events that were recorded."""

    example: ClassVar[dict[str, Any]] = {"types": ["agent.chat.message", "agent.chat.completed"]}

    types: list[str]


class TraceView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "correlation_id": _ENTRY["correlation_id"],
        "data": [_ENTRY],
        "spans": [
            {
                "kind": "job",
                "id": "wrk_01k9x3m7e8c0v2q4r6t8w0y2a4",
                "parent_id": _ENTRY["id"],
                "name": "mail.send",
                "status": "done",
                "started_at": "2026-01-01T12:00:00.020000Z",
                "duration_ms": 31.5,
            }
        ],
        "duration_ms": 51.5,
    }

    correlation_id: str
    data: list[Entry]
    spans: list[Span]
    duration_ms: float


class EventType(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "name": "system.user.email_verified",
        "category": "system",
        "description": "A user verified an e-mail address",
        "schema": {
            "type": "object",
            "properties": {"user_id": {"type": "string"}},
            "required": ["user_id"],
        },
    }

    name: str
    category: str
    description: str
    schema: dict[str, Any]


class FullEventType(EventType):
    """With an example of the data that the schema speaks of."""

    example: ClassVar[dict[str, Any]] = {
        **EventType.example,
        "example": {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"},
    }

    sample: dict[str, Any] = msgspec.field(name="example")


class EventTypes(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"event_types": [EventType.example]}

    event_types: list[EventType]


class Category(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "name": "agent",
        "description": "Agents and conversations with them",
        "count": 7,
    }

    name: str
    description: str
    count: int


class Categories(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"categories": [Category.example]}

    categories: list[Category]

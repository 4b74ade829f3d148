from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.kit.json_diff import Change

Kind = Literal[
    "agent",
    "credential",
    "tool",
    "embed_key",
    "service_key",
    "provider_key",
    "source",
    "webhook",
    "incoming_webhook",
    "notification_channel",
    "subscription",
    "workflow",
    "form",
    "data_table",
    "user",
    "tenant",
    "role",
]
Action = Literal["created", "changed", "published", "archived", "restored", "revoked", "deleted"]


class HistoryActor(msgspec.Struct):
    """`id` and `name` are null for the instance itself, and `name` for a user of another tenant or
    one that is deleted.
    """

    type: Literal["user", "service_key", "system"]
    id: str | None
    name: str | None


class HistoryEntryView(msgspec.Struct):
    """What one request or job did with a record. `changes` are those of its fields; of a secret
    they say only that it changed. `truncated`: some values, or the changes beyond 200, are left
    out.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "hst_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "kind": "agent",
        "record_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "record_name": "Shop assistant",
        "action": "changed",
        "actor": {
            "type": "user",
            "id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "name": "Ada Lovelace",
        },
        "changes": [{"path": "temperature", "op": "changed", "before": 0.7, "after": 0.2}],
        "truncated": False,
        "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    kind: Kind
    record_id: str
    record_name: str | None
    action: Action
    actor: HistoryActor
    changes: list[Change]
    truncated: bool
    correlation_id: Annotated[str, Meta(description="As in the event log")]
    created_at: datetime

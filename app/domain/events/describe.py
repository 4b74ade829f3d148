"""What the catalogue says of a type: its category, its JSON Schema and an example of its data."""

from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from app.domain.events.event import Event

CATEGORIES: Final = {
    "agent": "Agents and conversations with them",
    "workflow": "Workflows and their executions",
    "form": "Forms and what was submitted",
    "approval": "Decisions that somebody was asked for",
    "data_table": "Data tables and their rows",
    "system": "Users, tools, credentials, webhooks and this instance itself",
}
_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
# What a field of this name looks like; others by their type.
_SAMPLES: Final[dict[str, Any]] = {
    "agent_id": f"agt_{_TAIL}",
    "user_id": f"usr_{_TAIL}",
    "by": f"usr_{_TAIL}",
    "actor_id": f"usr_{_TAIL}",
    "decided_by": f"usr_{_TAIL}",
    "user_ids": [f"usr_{_TAIL}"],
    "tenant_id": f"ten_{_TAIL}",
    "conversation_id": f"cnv_{_TAIL}",
    "message_id": f"msg_{_TAIL}",
    "job_id": f"job_{_TAIL}",
    "credential_id": f"crd_{_TAIL}",
    "tool_id": f"tool_{_TAIL}",
    "webhook_id": f"whk_{_TAIL}",
    "incoming_webhook_id": f"inh_{_TAIL}",
    "subscription_id": f"sub_{_TAIL}",
    "event_id": f"evt_{_TAIL}",
    "form_id": f"frm_{_TAIL}",
    "submission_id": f"sbm_{_TAIL}",
    "workflow_id": f"wfl_{_TAIL}",
    "execution_id": f"wfx_{_TAIL}",
    "workflow_execution_id": f"wfx_{_TAIL}",
    "approval_id": f"apr_{_TAIL}",
    "table_id": f"tbl_{_TAIL}",
    "row_id": f"row_{_TAIL}",
    "key_id": f"pvk_{_TAIL}",
    "work_id": f"wrk_{_TAIL}",
    "ref_id": f"mal_{_TAIL}",
    "email": "ada@example.com",
    "role": "agent_developer",
    "url": "https://example.com",
    "slug": "orders",
    "name": "Orders",
    "title": "Refund of 80 EUR",
    "message": "Shall we?",
    "content": "What is the weather like?",
    "changed": ["name"],
    "events": ["agent.created"],
    "event_type": "agent.created",
    "kind": "mail.send",
    "error": "the mail server answered 451",
    "ip_address": "192.0.2.7",
    "values": {"email": "ada@example.com"},
    "payload": {"order": 4711},
    "data": {"email": "ada@example.com"},
    "note": "Sent by hand to see whether it arrives",
    "plan": "team",
    "invitation_id": f"inv_{_TAIL}",
    "session_id": f"ses_{_TAIL}",
    "device_id": f"mfa_{_TAIL}",
    "embed_key_id": f"emk_{_TAIL}",
    "replay_of": f"evt_{_TAIL}",
    "reason": "expired",
    "before": "agent_user",
    "after": "agent_developer",
    "added": ["agents:write"],
    "removed": ["agents:delete"],
    "status": "published",
    "primary_model": "local/smollm2",
    "source": "console",
    "allowed_domains": ["https://example.com"],
    "provider": "openai",
    "credential_type": "api_key",
    "tool_type": "rest_api",
    "action_type": "webhook",
    "output": {"total": 80},
    "node_id": "refund",
    "node_type": "tool",
    "code": "tool_failed",
    "comment": "Fine with me",
    "outcome": "reject",
    "size_bytes": 14,
    "depth": 9,
    "limit": 300,
    "window": 60,
    "attempts": 7,
    "version": 3,
    "duration_ms": 1240,
}


def category_of(event_type: str) -> str:
    return event_type.partition(".")[0]


@cache
def schema_of(event: type[Event]) -> dict[str, Any]:
    """Complete in itself: what it refers to comes along."""
    (top,), parts = msgspec.json.schema_components([event], ref_template="#/$defs/{name}")
    name = top["$ref"].rpartition("/")[2]
    schema = dict(parts.pop(name))
    schema["description"] = event.description
    return schema | ({"$defs": parts} if parts else {})


@cache
def example_of(event: type[Event]) -> dict[str, Any]:
    """Data that an event of this type might have."""
    given: Any = getattr(event, "example", None)
    if given is not None:
        return dict(given)
    return {field.name: _sample(field.name, field.type) for field in msgspec.structs.fields(event)}


def _sample(name: str, kind: Any) -> Any:
    options = _options(kind)
    first = options[0]
    if get_origin(first) is Literal:
        return get_args(first)[0]
    known = _SAMPLES.get(name)
    if known is not None and _fits(known, kind):
        return known
    if isinstance(first, type) and issubclass(first, msgspec.Struct):
        return {field.name: _sample(field.name, field.type) for field in _fields(first)}
    if get_origin(first) is list:
        return [_sample(name, get_args(first)[0])]
    if get_origin(first) is dict or first is dict:
        return {}
    return {bool: True, int: 1, float: 1.5, datetime: _AT.isoformat().replace("+00:00", "Z")}.get(
        first, name.replace("_", " ")
    )


def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _options(kind: Any) -> list[Any]:
    """Without what is said about a type, and without the nothing that may stand in its place."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        return [one for part in get_args(kind) if part is not NoneType for one in _options(part)]
    return [kind]

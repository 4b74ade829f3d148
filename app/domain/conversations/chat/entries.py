"""The past of a conversation, from its stored entries."""

from typing import Any

import msgspec

from app.domain.agents.llm.api import Message
from db.fast import Row

from .history import PastMessage
from .schemas import MessageAttachment

decode_attachments = msgspec.json.Decoder(list[MessageAttachment]).decode
_decode_messages = msgspec.json.Decoder(list[Message]).decode


def to_messages(rows: list[Row]) -> list[PastMessage]:
    """From entries, the newest first. Tool calls belong to the replies that they led to."""
    past: list[PastMessage] = []
    calls: list[dict[str, Any]] = []
    for row in reversed(rows):
        if row["type"] == "message":
            ids = (row["id"], row["seq"])
            attached = decode_attachments(row["data"]) if row["data"] is not None else []
            before = _decode_messages(row["before"]) if row["before"] is not None else []
            said = (row["role"], row["content"] or "")
            is_complete = row["status"] == "complete"
            past.append(PastMessage(*said, calls, *ids, attached, before, is_complete))
            calls = []
        elif row["data"] is not None:
            calls.append(msgspec.json.decode(row["data"]))
    return past

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.sources import SourceView
from app.kit.validation import NOT_BLANK, ONE_LINE

_KEY = {
    "id": "emk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Our shop",
    "key_prefix": "emb_Zk3vQ0aB",
    "allowed_domains": ["shop.example.com"],
    "created_at": "2026-01-01T12:00:00Z",
}


class CreateEmbedKey(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": _KEY["agent_id"],
        "name": "Our shop",
        "allowed_domains": ["shop.example.com"],
    }

    agent_id: str
    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
    allowed_domains: Annotated[
        list[Annotated[str, Meta(max_length=300)]],
        Meta(
            max_length=100,
            description="Hosts (shop.example.com, *.example.com), origins (https://…) or *; "
            "none means no rule",
        ),
    ] = []


class CreatedEmbedKey(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        **_KEY,
        "api_key": "emb_Zk3vQ0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2y",
    }

    id: str
    agent_id: str
    name: str
    key_prefix: str
    api_key: str
    allowed_domains: list[str]
    created_at: datetime


class EmbedKeyView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {**_KEY, "last_used_at": None}

    id: str
    agent_id: str
    name: str
    key_prefix: str
    allowed_domains: list[str]
    created_at: datetime
    last_used_at: datetime | None


class EmbedKeyList(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": [EmbedKeyView.example]}

    data: list[EmbedKeyView]


class Snippet(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "embed_code": '<script async src="https://parley.example.com/embed/widget.js" '
        'data-agent-id="agt_01k9x3m7e8c0v2q4r6t8w0y2a4" data-api-key="emb_…"></script>',
        "agent_id": _KEY["agent_id"],
        "agent_name": "Shop assistant",
    }

    embed_code: str
    agent_id: str
    agent_name: str


class PublicChatRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "session_id": "b3f0c6b2-1f0e-4a57-9c53-3f6b7d2e9a10",
        "message": "When does the shop open?",
    }

    session_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=128,
            pattern=ONE_LINE,
            description="Chosen by you and hard to guess; the same id continues its conversation",
        ),
    ]
    message: Annotated[str, Meta(min_length=1, max_length=32_000, pattern=NOT_BLANK)]


class AssistantReply(msgspec.Struct):
    id: str
    role: Literal["assistant"]
    content: str
    created_at: datetime


class PublicReply(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "session_id": PublicChatRequest.example["session_id"],
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "assistant_reply": {
            "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "role": "assistant",
            "content": "The shop opens at 9 in the morning.",
            "created_at": "2026-01-01T12:00:00Z",
        },
        "sources": [],
    }

    session_id: str
    conversation_id: str
    assistant_reply: AssistantReply
    sources: list[SourceView]

from typing import Any, ClassVar

from app.domain.area import Event


class _EmbedKeyEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "key_id": "emk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Our shop",
    }

    key_id: str
    agent_id: str
    name: str


class EmbedKeyCreated(_EmbedKeyEvent):
    type: ClassVar[str] = "system.embed_key.created"
    description: ClassVar[str] = "A key was created with which a web site can use an agent"
    example: ClassVar[dict[str, Any]] = {
        **_EmbedKeyEvent.example,
        "allowed_domains": ["https://example.com"],
    }

    allowed_domains: list[str]


class EmbedKeyUpdated(_EmbedKeyEvent):
    type: ClassVar[str] = "system.embed_key.updated"
    description: ClassVar[str] = "The rules of an embed key, or its identity secret, were changed"
    example: ClassVar[dict[str, Any]] = {
        **_EmbedKeyEvent.example,
        "changed": ["require_session_token"],
    }

    changed: list[str]


class EmbedKeyRevoked(_EmbedKeyEvent):
    type: ClassVar[str] = "system.embed_key.revoked"
    description: ClassVar[str] = "An embed key was revoked"

from typing import ClassVar

from app.domain.events.event import Event


class EmbedKeyCreated(Event):
    type: ClassVar[str] = "system.embed_key.created"
    description: ClassVar[str] = "A key was made with which a web site can use an agent"

    key_id: str
    agent_id: str
    name: str
    allowed_domains: list[str]


class EmbedKeyRevoked(Event):
    type: ClassVar[str] = "system.embed_key.revoked"
    description: ClassVar[str] = "An embed key was revoked"

    key_id: str
    agent_id: str
    name: str

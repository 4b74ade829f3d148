from typing import Annotated

from app.domain.area import Event, example


class _EmbedKeyEvent(Event):
    key_id: Annotated[str, example("emk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Our shop")]


class EmbedKeyCreated(_EmbedKeyEvent):
    """A key was created with which a web site can use an agent."""

    type = "system.embed_key.created"

    allowed_domains: Annotated[list[str], example(["https://example.com"])]


class EmbedKeyUpdated(_EmbedKeyEvent):
    """The rules of an embed key, or its identity secret, were changed."""

    type = "system.embed_key.updated"

    changed: Annotated[list[str], example(["require_session_token"])]


class EmbedKeyRevoked(_EmbedKeyEvent):
    """An embed key was revoked."""

    type = "system.embed_key.revoked"

from typing import Annotated

from app.domain.area import Event, example


class _ServiceKeyEvent(Event):
    key_id: Annotated[str, example("svk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Order import")]
    role: Annotated[str, example("agent_developer")]


class ServiceKeyCreated(_ServiceKeyEvent):
    """A key was created with which a program uses the API."""

    type = "system.service_key.created"


class ServiceKeyRevoked(_ServiceKeyEvent):
    """A service key was revoked."""

    type = "system.service_key.revoked"

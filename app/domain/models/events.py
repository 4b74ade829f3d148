from typing import ClassVar

from app.domain.events.event import Event


class ProviderKeyCreated(Event):
    type: ClassVar[str] = "system.provider_key.created"
    description: ClassVar[str] = "A key of a model provider was added"

    key_id: str
    provider: str
    name: str


class ProviderKeyDeleted(Event):
    type: ClassVar[str] = "system.provider_key.deleted"
    description: ClassVar[str] = "A key of a model provider was deleted"

    key_id: str
    provider: str
    name: str

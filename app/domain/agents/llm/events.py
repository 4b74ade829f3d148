from typing import Any, ClassVar

from app.domain.area import Event

_KEY: dict[str, Any] = {
    "key_id": "pvk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "provider": "openai",
    "name": "Orders",
}


class ProviderKeyCreated(Event):
    type: ClassVar[str] = "system.provider_key.created"
    description: ClassVar[str] = "A key of a model provider was added"
    example: ClassVar[dict[str, Any]] = _KEY

    key_id: str
    provider: str
    name: str


class ProviderKeyDeleted(Event):
    type: ClassVar[str] = "system.provider_key.deleted"
    description: ClassVar[str] = "A key of a model provider was deleted"
    example: ClassVar[dict[str, Any]] = _KEY

    key_id: str
    provider: str
    name: str

from typing import Any, ClassVar

from app.domain.area import Event


class _ProviderKeyEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "key_id": "pvk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "provider": "openai",
        "name": "Orders",
    }

    key_id: str
    provider: str
    name: str


class ProviderKeyCreated(_ProviderKeyEvent):
    type: ClassVar[str] = "system.provider_key.created"
    description: ClassVar[str] = "A key of a model provider was added"


class ProviderKeyDeleted(_ProviderKeyEvent):
    type: ClassVar[str] = "system.provider_key.deleted"
    description: ClassVar[str] = "A key of a model provider was deleted"

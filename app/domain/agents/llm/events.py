from typing import Annotated

from app.domain.area import Event, example


class _ProviderKeyEvent(Event):
    key_id: Annotated[str, example("pvk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    provider: Annotated[str, example("openai")]
    name: Annotated[str, example("Orders")]


class ProviderKeyCreated(_ProviderKeyEvent):
    """A key of a model provider was added."""

    type = "system.provider_key.created"


class ProviderKeyDeleted(_ProviderKeyEvent):
    """A key of a model provider was deleted."""

    type = "system.provider_key.deleted"

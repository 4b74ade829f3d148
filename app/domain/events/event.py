from typing import ClassVar

import msgspec


class Event(msgspec.Struct):
    """A typed payload. Never a secret: payloads are stored, shown and delivered as they are."""

    type: ClassVar[str]
    description: ClassVar[str]

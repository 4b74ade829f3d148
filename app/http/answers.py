"""Answers that many areas give."""

from typing import Any, ClassVar

import msgspec


class Done(msgspec.Struct):
    """What was done, in words."""

    example: ClassVar[dict[str, Any]] = {"message": "Done"}

    message: str

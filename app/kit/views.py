"""Responses that several areas share."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Data(msgspec.Struct, Generic[T]):
    """The shape of most answers: one thing, or a list that has no pages."""

    data: T


class Done(msgspec.Struct):
    """Confirms an action in a message for people."""

    example: ClassVar[dict[str, Any]] = {"message": "Done"}

    message: str


class TestResult(msgspec.Struct):
    """Whether another service accepts what it is sent, for example a key."""

    example: ClassVar[dict[str, Any]] = {
        "success": True,
        "message": "The address answered 200",
        "latency_ms": 38,
        "tested_at": "2026-01-01T12:00:00Z",
    }

    success: bool
    message: str
    latency_ms: int
    tested_at: datetime


def build_view(kind: Callable[..., T], row: Any, **more: Any) -> T:
    """Builds a view from the row's attributes of the same names and the fields in `more`."""
    fields: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    names = (name for name in fields if name not in more)
    return kind(**{name: getattr(row, name) for name in names}, **more)

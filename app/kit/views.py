"""Responses that several areas share."""

from collections.abc import Callable
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


def build_view(kind: Callable[..., T], row: Any, **more: Any) -> T:
    """Builds a view from the row's attributes of the same names and the fields in `more`."""
    fields: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    names = (name for name in fields if name not in more)
    return kind(**{name: getattr(row, name) for name in names}, **more)

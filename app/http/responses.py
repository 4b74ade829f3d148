"""Answers that many areas give."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T")


class Done(msgspec.Struct):
    """What was done, in words."""

    example: ClassVar[dict[str, Any]] = {"message": "Done"}

    message: str


def build_view(kind: Callable[..., T], row: Any, **more: Any) -> T:
    """A view with the row's fields of the same names."""
    fields: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    names = (name for name in fields if name not in more)
    return kind(**{name: getattr(row, name) for name in names}, **more)

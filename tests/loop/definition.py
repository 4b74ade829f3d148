"""A definition for a test: a body that creates something, and bodies that use it."""

from collections.abc import Mapping
from typing import Any

import msgspec

Ids = Mapping[str, str]


class Definition(msgspec.Struct):
    body: dict[str, Any]
    # Largest bodies for routes of what it creates, by the struct of the body.
    uses: dict[str, dict[str, Any]] = {}
    # More values of parameters.
    ids: dict[str, str] = {}

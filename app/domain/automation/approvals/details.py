"""The values that an approval shows to those who are asked: few, short, and without secrets."""

from typing import Any, Final

from app.kit.json_diff import is_secret_key
from app.kit.texts import storable
from app.net.secret_fields import MASK
from app.templating.expressions import to_text

from .schemas import Detail

MAX_DETAILS: Final = 20
MAX_NAME_CHARS: Final = 100
MAX_VALUE_CHARS: Final = 500
# Of a value that is a list or a map. What is deeper is shown as it is cut off.
_MAX_ITEMS = 20
_MAX_DEPTH = 3
_REST = "…"


def build(values: dict[str, Any]) -> list[Detail]:
    return [_build(name, value) for name, value in list(values.items())[:MAX_DETAILS]]


def _build(name: str, value: Any) -> Detail:
    text = MASK if _is_secret(name) else to_text(_mask(value))
    return Detail(_cut(" ".join(name.split()), MAX_NAME_CHARS), _cut(text, MAX_VALUE_CHARS))


def _mask(value: Any, depth: int = 0) -> Any:
    """Returns the first items of a value, with masks in the place of secrets."""
    match value:
        case dict() | list() if depth == _MAX_DEPTH:
            return _REST
        case dict():
            items = list(value.items())[:_MAX_ITEMS]
            masked = {
                key: MASK if _is_secret(key) else _mask(item, depth + 1) for key, item in items
            }
            return masked if len(value) <= _MAX_ITEMS else {**masked, _REST: _REST}
        case list():
            parts = [_mask(item, depth + 1) for item in value[:_MAX_ITEMS]]
            return parts if len(value) <= _MAX_ITEMS else [*parts, _REST]
    return value


def _is_secret(name: str) -> bool:
    """Names are written for people: "API key" is the same as "api_key"."""
    return is_secret_key("_".join(name.split()))


def _cut(text: str, limit: int) -> str:
    text = storable(text)
    return text if len(text) <= limit else text[: limit - 1] + _REST

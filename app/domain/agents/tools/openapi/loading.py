"""Parses an OpenAPI document that is JSON or YAML, within bounds."""

import datetime as dt
import json
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

MAX_DEPTH: Final = 100
# After every alias of YAML is followed.
MAX_VALUES: Final = 500_000


class Refused(Exception):
    """The message continues a sentence that starts with: The document."""


def parse(text: str) -> dict[str, Any]:
    try:
        is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
        value = json.loads(text.lstrip("\ufeff")) if is_json else _parse_yaml(text)
        plain = Plain().copy(value)
    except RecursionError:
        raise Refused(f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise Refused(f"is not valid JSON: {str(error)[:200]}") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:200]
        raise Refused(f"is neither JSON nor valid YAML: {reason}") from None
    if not isinstance(plain, dict):
        raise Refused("is not an OpenAPI document: it is not an object")
    return plain


def _parse_yaml(text: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)  # noqa: S506  # a safe loader


class Plain:
    """Copies a value as JSON has it. YAML has dates, and keys that are numbers."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def copy(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise Refused(f"has more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise Refused(f"is nested deeper than {MAX_DEPTH} levels")
        match value:
            case dict():
                return {_key(key): self.copy(item, depth + 1) for key, item in value.items()}
            case list():
                return [self.copy(item, depth + 1) for item in value]
            case str():
                # Halves of a character, which JSON can escape.
                return value.encode("utf-8", "replace").decode()
            case bool() | int() | None:
                return value
            case float():
                return value if abs(value) < float("inf") else None
            case dt.date():
                return value.isoformat()
        return None


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key).encode("utf-8", "replace").decode()

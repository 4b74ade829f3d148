"""Configs of channels: their schema, their validation, and their secrets.

A config is a dict as the API takes and shows it, or the struct of its provider. An object in a
config is a map of headers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect
from yarl import URL

from app.kit import validation
from app.kit.errors import Invalid, Problem
from app.net.egress import Guard
from app.net.guard import find_character_problem
from app.net.redaction import Redactor
from app.net.secret_fields import HEADERS, SecretFields

from .errors import InvalidConfig
from .providers.protocol import Provider, ProviderConfig, SendFailed

_FIELD = "config"
_NOT_PUBLIC = "is not a public address"
_MAX_FAILURE_CHARS = 500
_TYPES: Final[dict[type[inspect.Type], str]] = {
    inspect.StrType: "string",
    inspect.LiteralType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.ListType: "array",
    inspect.DictType: "object",
}


class _Key(NamedTuple):
    type: str
    is_required: bool
    is_secret: bool


@cache
def _keys(config: type[ProviderConfig]) -> dict[str, _Key]:
    """Returns the keys of a config by the names that the API has for them."""
    return {field.encode_name: _read_key(field) for field in msgspec.structs.fields(config)}


def _read_key(field: msgspec.structs.FieldInfo) -> _Key:
    kind, is_secret = inspect.type_info(field.type), False
    if isinstance(kind, inspect.Metadata):
        is_secret = bool((kind.extra or {}).get("secret"))
        kind = kind.type
    return _Key(_TYPES[type(kind)], field.required, is_secret)


@cache
def _secret_fields(config: type[ProviderConfig]) -> SecretFields:
    keys = _keys(config)
    names = frozenset(name for name, key in keys.items() if key.is_secret)
    maps = {name: HEADERS for name, key in keys.items() if key.type == "object"}
    return SecretFields(names.__contains__, maps)


def build_schema(provider: Provider) -> dict[str, dict[str, Any]]:
    """Returns type and necessity of each key, and `secret` where a key is one."""
    return {
        name: {"type": key.type, "required": key.is_required}
        | ({"secret": True} if key.is_secret else {})
        for name, key in _keys(provider.config).items()
    }


def validate(provider: Provider, values: dict[str, Any], guard: Guard) -> ProviderConfig:
    """Returns the config with its defaults. Raises InvalidConfig, which repeats no value."""
    with _invalid_config():
        config: ProviderConfig = validation.convert_field(provider.config, values, _FIELD)
    InvalidConfig.check(_find_problems(provider, config, guard))
    return config


def _find_problems(provider: Provider, config: ProviderConfig, guard: Guard) -> Iterator[Problem]:
    problem = provider.find_problem(config)
    if problem is not None:
        yield f"{_FIELD}.{problem[0]}", problem[1]
    for name, url in provider.urls(config).items():
        reason = _find_url_problem(url, guard)
        if reason is not None:
            yield f"{_FIELD}.{name}", reason


def _find_url_problem(url: str, guard: Guard) -> str | None:
    problem = find_character_problem(url) or guard.problem_with(url)
    if problem is not None and _NOT_PUBLIC in problem:
        # The guard's message starts with the host.
        return problem[problem.index(_NOT_PUBLIC) :]
    return problem


def mask(provider: Provider, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the config as the API shows it."""
    return _secret_fields(provider.config).mask(values)


def unmask(provider: Provider, values: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Puts the stored secrets in place of their masks. `values` may be invalid otherwise. Raises
    InvalidConfig when there is no value to keep.
    """
    with _invalid_config():
        return _secret_fields(provider.config).unmask(values, stored, _FIELD)


def check_move(
    provider: Provider,
    values: dict[str, Any],
    new_config: ProviderConfig,
    stored_config: ProviderConfig,
) -> None:
    """Raises InvalidConfig if stored secrets would go to another host: those that `values`, which
    are as the caller sent them, have masked.
    """
    if provider.destination(new_config) != provider.destination(stored_config):
        with _invalid_config():
            _secret_fields(provider.config).check_move(values, _FIELD)


def secret_texts(provider: Provider, config: ProviderConfig) -> list[str]:
    """Returns the texts that no message or log may contain. The host of a URL is none of them."""
    urls = provider.urls(config)
    secrets = _secret_fields(provider.config).list_secrets(msgspec.to_builtins(config))
    texts = [
        URL(urls[name]).raw_path_qs if name in urls else text for name, text in secrets.items()
    ]
    return [text for text in texts if text]


def describe_failure(provider: Provider, config: ProviderConfig, failure: SendFailed) -> str:
    """Returns the message without the channel's secrets, short enough for a log."""
    redactor = Redactor(secret_texts(provider, config))
    return redactor.text(failure.message, _MAX_FAILURE_CHARS)[:_MAX_FAILURE_CHARS]


@contextmanager
def _invalid_config() -> Iterator[None]:
    """Raises Invalid as InvalidConfig."""
    try:
        yield
    except Invalid as error:
        raise InvalidConfig(error.message, details=error.details) from None

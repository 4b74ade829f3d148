"""The error codes of the OpenAPI document: what each means, and which operations answer with it.

An operation lists the codes of the error classes that its handler refers to, also through the
functions that it calls, as far as their names show. A status that no such class has stands with the
code of its example.
"""

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import msgspec
from litestar.handlers import HTTPRouteHandler

from app.http import openapi_errors
from app.http.route_options import options_of
from app.kit.errors import ApiError, IdempotencyMismatch

KEY: Final = "x-error-codes"
_OWN: Final = "app."
_CONSTRUCTORS: Final = ("__init__", "__post_init__")
_MISSING: Final = "_not_found"
_MISSING_ACTION: Final = (
    "Check the id in the request. A record of another tenant and one that was deleted are answered"
    " in the same way."
)
_QUOTA: Final = "quota_exceeded"
_TEXTS: Final = Path(__file__).with_name("error_codes.json")
# What any operation with such a status may answer.
_COMMON: Final = frozenset(
    {"rate_limited", "internal_error", "unavailable", "validation_error", "payload_too_large"}
    | {"unauthorized", "forbidden", "email_not_verified", "precondition_failed"}
)


def describe() -> list[dict[str, Any]]:
    """Returns every code with its statuses, its meaning and what to do."""
    statuses: dict[str, set[int]] = {}
    for kind in openapi_errors.list_classes():
        statuses.setdefault(kind.code, set()).add(kind.status)
    return [describe_code(code, statuses[code]) for code in sorted(statuses)]


def describe_code(code: str, statuses: set[int]) -> dict[str, Any]:
    meaning, action = load_texts().get(code) or _describe_missing(code)
    return {"code": code, "statuses": sorted(statuses), "meaning": meaning, "action": action}


@cache
def load_texts() -> dict[str, tuple[str, str]]:
    """Returns the meanings and what to do, without those of codes that end in `_not_found`."""
    return msgspec.json.decode(_TEXTS.read_bytes(), type=dict[str, tuple[str, str]])


def _describe_missing(code: str) -> tuple[str, str]:
    if not code.endswith(_MISSING):
        raise LookupError(f"{_TEXTS.name} has no text for the error code {code}")
    name = code.removesuffix(_MISSING).replace("_", " ")
    return f"There is no such {name}, or the caller may not see it.", _MISSING_ACTION


def list_codes(
    handler: HTTPRouteHandler, statuses: Iterable[str], path: str
) -> dict[str, list[str]]:
    """Returns the codes that an operation may answer with, by its error statuses."""
    options = options_of(handler)
    common = set(_COMMON)
    if options.idempotent and "POST" in handler.http_methods:
        common.add(IdempotencyMismatch.code)
    if options.stores:
        common.add(_QUOTA)
    kinds = find_errors(handler) | {kind for kind in _list_shared() if kind.code in common}
    codes: dict[str, list[str]] = {}
    for status in statuses:
        own = {kind.code for kind in kinds if kind.status == int(status)}
        codes[status] = sorted(own or {openapi_errors.code_of(status, path)})
    return codes


def _list_shared() -> Iterator[type[ApiError]]:
    """Yields the classes that any area may raise, and none of those that say more."""
    for kind in openapi_errors.list_classes():
        if not kind.__module__.startswith("app.domain.") or kind.code == _QUOTA:
            yield kind


def find_errors(handler: HTTPRouteHandler) -> set[type[ApiError]]:
    """Returns the error classes that a handler or one of its dependencies refers to."""
    kinds: set[type[ApiError]] = set()
    providers = [provider.dependency for provider in handler.resolve_dependencies().values()]
    pending: list[Any] = [handler.fn, *providers]
    seen: set[FunctionType] = set()
    while pending:
        found = inspect.unwrap(pending.pop())
        # Handlers of a controller are bound to it, some others have arguments already.
        function = getattr(found, "__func__", None) or getattr(found, "func", found)
        if not isinstance(function, FunctionType) or function in seen:
            continue
        seen.add(function)
        errors, callees = _list_references(function)
        kinds |= errors
        pending += callees
    return kinds


@cache
def _list_references(
    function: FunctionType,
) -> tuple[frozenset[type[ApiError]], frozenset[FunctionType]]:
    """Returns the error classes and the functions that the code of a function names."""
    names = {*_list_names(function.__code__), *_CONSTRUCTORS}
    values = [function.__globals__[name] for name in names & function.__globals__.keys()]
    values += function.__annotations__.values()
    errors = {kind for kind in values if isinstance(kind, type) and issubclass(kind, ApiError)}
    callees = {callee for value in values for callee in _list_callees(value, names)}
    # Methods of what a function that it calls returns.
    returned = {callee.__annotations__.get("return") for callee in callees}
    callees |= {callee for value in returned for callee in _list_callees(value, names)}
    return frozenset(errors), frozenset(callees)


def _list_callees(value: Any, names: set[str]) -> Iterator[FunctionType]:
    """Yields a function of the application, or those of a module or class with one of the names."""
    if isinstance(value, FunctionType):
        owners: tuple[Any, ...] = ()
        if value.__module__.startswith(_OWN):
            yield value
    elif isinstance(value, ModuleType):
        owners = (value,) if value.__name__.startswith(_OWN) else ()
    else:
        bases = value.__mro__ if isinstance(value, type) else ()
        owners = tuple(base for base in bases if base.__module__.startswith(_OWN))
    for owner in owners:
        for name in names & owner.__dict__.keys():
            member = owner.__dict__[name]
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__module__.startswith(_OWN):
                yield function


def _list_names(code: CodeType) -> Iterator[str]:
    """Yields the names that a function and those inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_names(constant)

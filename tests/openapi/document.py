"""Reads the OpenAPI document for tests."""

from collections.abc import Iterator
from typing import Any

import msgspec
from litestar import Litestar

Document = dict[str, Any]
METHODS = {"get", "head", "post", "put", "patch", "delete"}


def list_operations(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the name, the path and the description of every operation."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield f"{method.upper()} {path}", path, operation


def resolve(document: Document, value: dict[str, Any]) -> dict[str, Any]:
    """Returns what a reference refers to, and anything else as it is."""
    if "$ref" not in value:
        return value
    _, section, kind, name = value["$ref"].split("/")
    resolved: dict[str, Any] = document[section][kind][name]
    return resolved


def list_schemas(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields everything that may be a schema, at any depth, without examples."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            if key != "example":
                yield from list_schemas(item, f"{path}/{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from list_schemas(item, f"{path}/{number}")


def structs_of(app: Litestar) -> set[type[msgspec.Struct]]:
    """Returns every struct that a handler receives or returns, with the structs inside them."""
    structs: set[type[msgspec.Struct]] = set()

    def visit(annotation: Any) -> None:
        for argument in getattr(annotation, "__args__", ()):
            visit(argument)
        kind = getattr(annotation, "__origin__", annotation)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in structs:
            structs.add(kind)
            for field in msgspec.structs.fields(kind):
                visit(field.type)

    for route in app.routes:
        for handler in getattr(route, "route_handlers", []):
            if handler.parsed_data_field is not None:
                visit(handler.parsed_data_field.annotation)
            visit(handler.parsed_return_field.annotation)
    return structs

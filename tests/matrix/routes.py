"""Routes of the OpenAPI document, with the data to call them. No route is named here, so routes of
new areas are called without new code.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import msgspec
from litestar import Litestar

from app.http.openapi import document
from tests.world import Client

# A PNG of one pixel, for every upload.
FILE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
UNKNOWN_ID = "none_00000000000000000000000000"


class Route(msgspec.Struct, frozen=True):
    method: str
    path: str
    permission: str | None
    public: bool
    body: Any
    body_ids: tuple[str, ...]
    query: tuple[str, ...]
    # Values of the parameters that a call needs.
    needed_query: tuple[tuple[str, str], ...]
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)

    def fill_path(self, values: dict[str, str]) -> str:
        return re.sub(r"{(\w+)}", lambda match: values.get(match.group(1), UNKNOWN_ID), self.path)

    async def call(
        self,
        client: Client,
        values: dict[str, str] | None = None,
        *,
        body: dict[str, Any] | None = None,
        **more: Any,
    ) -> httpx.Response:
        if self.needed_query:
            more["params"] = {**dict(self.needed_query), **more.get("params", {})}
        if self.files:
            more["files"] = {name: (name, FILE) for name in self.files}
        elif self.body is not None:
            more["json"] = {**self.body, **(body or {})}
        return await client(self.method, self.fill_path(values or {}), **more)


@cache
def list_routes(app: Litestar) -> list[Route]:
    openapi = document(app)
    schemas: dict[str, Any] = openapi["components"]["schemas"]
    return [
        _build_route(method, path, operation, schemas)
        for path, item in openapi["paths"].items()
        for method, operation in item.items()
        if method in {"get", "post", "put", "patch", "delete"}
    ]


def _build_route(
    method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> Route:
    content = operation.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = next((item["schema"] for item in content.values()), {})
    schema = _resolve_schema(schema, schemas)
    properties: dict[str, Any] = schema.get("properties", {})
    files = [
        name
        for name, kind in properties.items()
        if "binary" in {kind.get("format"), kind.get("items", {}).get("format")}
    ]
    parameters = operation.get("parameters", [])
    return Route(
        method.upper(),
        path,
        operation.get("x-permission"),
        {"access_token": []} not in operation.get("security", []),
        schema.get("example"),
        tuple(name for name in properties if name.endswith("_id")),
        tuple(item["name"] for item in parameters if item["in"] == "query"),
        tuple(
            (item["name"], item["schema"]["enum"][0])
            for item in parameters
            if item["in"] == "query" and item.get("required") and "enum" in item["schema"]
        ),
        tuple(files),
    )


def _resolve_schema(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        component: dict[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]
        return component
    return schema


def iterate_texts(value: Any) -> Iterator[str]:
    """Yields every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from iterate_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from iterate_texts(item)

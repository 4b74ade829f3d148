from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .auth_configs import AuthType, Location
from .categories import Category
from .schemas import Name, ToolView

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
_PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com/v1"}],
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "summary": "Get a pet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
            }
        }
    },
}
OperationName = Annotated[str, Meta(min_length=1, max_length=500)]


class ImportOpenApi(msgspec.Struct, kw_only=True):
    """`document` is an OpenAPI document as an object or as a text in JSON or YAML, or `url` is
    where it is. Without `operations`, or with `dry_run`, no tool is created.
    """

    example: ClassVar[dict[str, Any]] = {"document": _PETS, "operations": ["getPet"]}

    document: (
        dict[str, Any] | Annotated[str, Meta(min_length=1, max_length=MAX_DOCUMENT_BYTES)] | None
    ) = None
    url: Annotated[str, Meta(min_length=1, max_length=2000)] | None = None
    operations: Annotated[list[OperationName], Meta(min_length=1, max_length=200)] | None = None
    dry_run: bool = False
    name: (
        Annotated[Name, Meta(description="Of the tool; the document's title if omitted")] | None
    ) = None
    category: Category = "custom"
    base_url: (
        Annotated[
            str,
            Meta(min_length=1, max_length=2000, description="In place of the document's server"),
        ]
        | None
    ) = None
    credential_id: (
        Annotated[str, Meta(min_length=1, max_length=64, description="A credential of the vault")]
        | None
    ) = None


class ApiSecurity(msgspec.Struct):
    """A way in which the API authenticates its callers. `auth_type` is that of a tool which does
    so; null when tools cannot.
    """

    example: ClassVar[dict[str, Any]] = {
        "name": "key",
        "type": "apiKey",
        "auth_type": "api_key",
        "api_key_location": "header",
        "api_key_header": "X-Pets-Key",
        "description": "",
    }

    name: str
    type: str
    auth_type: AuthType | None
    api_key_location: Location | None
    api_key_header: str | None
    description: str


class ApiOperation(msgspec.Struct):
    """`id` is its name in a tool, legal and unique. `schema` describes what a run takes: `params`
    for path and query, `headers` and `body`. An operation that cannot be imported has a `reason`.
    `security` names what authenticates it.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "getPet",
        "operation_id": "getPet",
        "method": "GET",
        "path": "/pets/{id}",
        "summary": "Get a pet",
        "is_deprecated": False,
        "security": ["key"],
        "schema": {
            "properties": {
                "params": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}},
                    "required": ["id"],
                }
            },
            "required": ["params"],
        },
        "reason": None,
    }

    id: str
    operation_id: str | None
    method: str
    path: str
    summary: str
    is_deprecated: bool
    security: list[str]
    schema: dict[str, Any] | None
    reason: str | None

    @property
    def can_import(self) -> bool:
        return self.reason is None


class ImportedApi(msgspec.Struct, kw_only=True):
    """`operations` has those that were chosen, or the first 1,000 of `total`. `tool` is null unless
    one was created. `base_url` is null when the document names no server.
    """

    example: ClassVar[dict[str, Any]] = {
        "title": "Pets",
        "version": "1",
        "base_url": "https://pets.example.com/v1",
        "security": [ApiSecurity.example],
        "total": 1,
        "operations": [ApiOperation.example],
        "tool": None,
    }

    title: str
    version: str
    base_url: str | None
    security: list[ApiSecurity]
    total: int
    operations: list[ApiOperation]
    tool: ToolView | None = None

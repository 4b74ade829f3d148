from typing import Any, ClassVar

from app.domain.area import Event

_TOOL: dict[str, Any] = {
    "tool_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Orders",
    "tool_type": "rest_api",
}


class ToolCreated(Event):
    type: ClassVar[str] = "system.tool.created"
    description: ClassVar[str] = "A tool was added"
    example: ClassVar[dict[str, Any]] = _TOOL

    tool_id: str
    name: str
    tool_type: str


class ToolUpdated(Event):
    type: ClassVar[str] = "system.tool.updated"
    description: ClassVar[str] = "A tool was changed"
    example: ClassVar[dict[str, Any]] = {**_TOOL, "changed": ["name"]}

    tool_id: str
    name: str
    tool_type: str
    changed: list[str]


class ToolDeleted(Event):
    type: ClassVar[str] = "system.tool.deleted"
    description: ClassVar[str] = "A tool was deleted"
    example: ClassVar[dict[str, Any]] = _TOOL

    tool_id: str
    name: str
    tool_type: str

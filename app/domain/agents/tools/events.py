from typing import Any, ClassVar

from app.domain.area import Event


class _ToolEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "tool_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "tool_type": "rest_api",
    }

    tool_id: str
    name: str
    tool_type: str


class ToolCreated(_ToolEvent):
    type: ClassVar[str] = "system.tool.created"
    description: ClassVar[str] = "A tool was added"


class ToolUpdated(_ToolEvent):
    type: ClassVar[str] = "system.tool.updated"
    description: ClassVar[str] = "A tool was changed"
    example: ClassVar[dict[str, Any]] = {**_ToolEvent.example, "changed": ["name"]}

    changed: list[str]


class ToolDeleted(_ToolEvent):
    type: ClassVar[str] = "system.tool.deleted"
    description: ClassVar[str] = "A tool was deleted"

from typing import ClassVar

from app.domain.events.event import Event


class ToolCreated(Event):
    type: ClassVar[str] = "system.tool.created"
    description: ClassVar[str] = "A tool was added"

    tool_id: str
    name: str
    tool_type: str


class ToolUpdated(Event):
    type: ClassVar[str] = "system.tool.updated"
    description: ClassVar[str] = "A tool was changed"

    tool_id: str
    name: str
    tool_type: str
    changed: list[str]


class ToolDeleted(Event):
    type: ClassVar[str] = "system.tool.deleted"
    description: ClassVar[str] = "A tool was deleted"

    tool_id: str
    name: str
    tool_type: str

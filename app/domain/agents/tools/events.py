from typing import Annotated

from app.domain.area import Event, example


class _ToolEvent(Event):
    tool_id: Annotated[str, example("tool_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]
    tool_type: Annotated[str, example("rest_api")]


class ToolCreated(_ToolEvent):
    """A tool was added."""

    type = "system.tool.created"


class ToolUpdated(_ToolEvent):
    """A tool was changed."""

    type = "system.tool.updated"

    changed: Annotated[list[str], example(["name"])]


class ToolDeleted(_ToolEvent):
    """A tool was deleted."""

    type = "system.tool.deleted"

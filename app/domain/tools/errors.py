from app.kit.errors import ApiError, NotFound


class ToolNotFound(NotFound):
    code = "tool_not_found"


class ExecutionNotFound(NotFound):
    code = "execution_not_found"


class AttachmentNotFound(NotFound):
    """The agent does not have this tool."""

    code = "tool_not_found"


class ToolDisabled(ApiError):
    status, code = 409, "tool_disabled"

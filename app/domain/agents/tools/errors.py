from typing import Any

from app.kit.errors import Conflict, NotFound


class ToolNotFound(NotFound, code="tool_not_found"): ...


class ExecutionNotFound(NotFound, code="execution_not_found"): ...


class AttachmentNotFound(NotFound, code="tool_not_found"):
    """The agent does not have this tool."""


class ToolDisabled(Conflict, code="tool_disabled"): ...


class ToolFailed(Exception):
    """An execution without a result. `code` is an error code of the API; `message` is for people.
    It may hold a secret that a server repeats, at any length: who raises it does not cut it, since
    the redactor does not recognize a part of a secret.

    `output` is the output that the tool gave despite the failure, for example the body of an HTTP
    error response.
    """

    def __init__(self, code: str, message: str, output: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.output = output


class AuthDestinationMismatch(Exception):
    """The auth_config was stored for another destination than the one that the tool has now."""


class SchemaRejected(Exception):
    """The JSON Schema is too expensive to evaluate. The message says why."""


class StatementRejected(Exception):
    """The SQL statement is not run. The message says why."""


class McpServerRefused(Exception):
    """The MCP server answered a request with an HTTP error status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status

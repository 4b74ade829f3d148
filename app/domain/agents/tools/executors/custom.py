"""Tools of MCP servers, over streamable HTTP. The `mcp` package implements the protocol; all its
requests go through the egress.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec
from yarl import URL

from app.domain.agents.tools.configs import CustomConfig
from app.domain.agents.tools.errors import McpServerRefused, ToolFailed
from app.net.egress import Egress, EgressError, custom_headers
from app.net.redaction import Redactor

from .protocol import (
    OUTPUT_BYTES,
    Auth,
    ExecutorEnvironment,
    Task,
    egress_failure,
    record_renewed_secrets,
    require_http_auth,
)

R = TypeVar("R")

_MAX_TOOLS = 500
_MAX_PAGES = 20
_MAX_LIST_BYTES = 4 * OUTPUT_BYTES
_MAX_MESSAGE_CHARS = 2000
# The start of the package's message about a response that it cannot parse, which it quotes.
_PARSE_ERROR = "ailed to parse"


async def run(task: Task[CustomConfig], environment: ExecutorEnvironment) -> Any:
    """Returns the structured content of the result, or its content blocks where there is none."""
    if not task.config.tool:
        raise ToolFailed(
            "runtime_error", "set `tool` in the config; discover lists the server's tools"
        )

    async def call_tool(client: Any) -> Any:
        return await client.call_tool(task.config.tool, task.input)

    result = await _call_server(
        environment.egress, task.config, task.auth, task.timeout_seconds, call_tool
    )
    content = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
    if result.is_error:
        message = " ".join(block.get("text", "") for block in content).strip()
        raise ToolFailed("runtime_error", message or "the tool failed", content)
    output = content if result.structured_content is None else result.structured_content
    if len(msgspec.json.encode(output)) > OUTPUT_BYTES:
        raise ToolFailed("output_too_large", "the output is more than 1 MiB")
    return output


async def list_tools(
    egress: Egress, config: CustomConfig, auth: Auth, seconds: float
) -> list[dict[str, Any]]:
    """Returns the name, description and input schema of each tool of a server."""
    secrets: list[str] = []
    auth = record_renewed_secrets(auth, secrets)
    try:
        tools = await _call_server(egress, config, auth, seconds, _load_tools)
    except ToolFailed as error:
        message = Redactor(secrets).text(error.message, _MAX_MESSAGE_CHARS)
        raise ToolFailed(error.code, message) from error
    redacted: list[dict[str, Any]] = Redactor(secrets).value(
        [
            {
                "name": tool.name,
                "description": tool.description or "",
                "input_schema": tool.input_schema,
            }
            for tool in tools[:_MAX_TOOLS]
        ]
    )
    return redacted


async def _load_tools(client: Any) -> list[Any]:
    tools: list[Any] = []
    cursor: str | None = None
    size = 0
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        size += sum(len(tool.model_dump_json()) for tool in page.tools)
        if size > _MAX_LIST_BYTES:
            raise ToolFailed("output_too_large", "the server lists more than 4 MiB of tools")
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= _MAX_TOOLS:
            break
    return tools


async def _call_server(
    egress: Egress,
    config: CustomConfig,
    auth: Auth,
    seconds: float,
    call: Callable[[Any], Awaitable[R]],
) -> R:
    """Renews a rejected token once: a server that rejects a token has done nothing yet."""
    try:
        async with connect(egress, config.url, require_http_auth(auth), seconds) as client:
            return await call(client)
    except ToolFailed as error:
        if error.code != "auth_failed" or auth.renew is None:
            raise
    renewed = require_http_auth(await auth.renew())
    async with connect(egress, config.url, renewed, seconds) as client:
        return await call(client)


@asynccontextmanager
async def connect(egress: Egress, url: str, auth: Auth, seconds: float) -> AsyncIterator[Any]:
    """Opens a session with the server. Raises ToolFailed for every error in it."""
    # These imports take seconds and 40 MiB, so only a process that needs them loads them, and in a
    # thread.
    await asyncio.to_thread(importlib.import_module, "mcp.client.streamable_http")
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    from .mcp_transport import EgressTransport

    failures: list[ToolFailed] = []
    address = str(URL(url).update_query(auth.params)) if auth.params else url
    try:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(
                    transport=EgressTransport(egress, seconds, failures),
                    headers=_encode_headers(custom_headers(auth.headers)),
                    follow_redirects=False,
                    timeout=seconds,
                    trust_env=False,
                )
            )
            client = await stack.enter_async_context(
                Client(streamable_http_client(address, http_client=http))
            )
            # The server chooses the schema and its patterns. The output is checked against the
            # `output_schema` of the tool instead.
            client.session.validate_tool_result = _skip_validation  # type: ignore[method-assign, assignment]
            yield client
    except BaseException as error:
        if failures and isinstance(error, Exception):
            raise failures[0] from error
        failure = _find_failure(error)
        if failure is None:
            raise
        raise failure from error


async def _skip_validation(_name: str, _result: Any) -> None:
    return


def _find_failure(error: BaseException) -> ToolFailed | None:
    """Returns the failure among the errors that task groups wrap. None for a cancellation."""
    from mcp import MCPError

    errors = _list_errors(error)
    for nested in errors:
        if isinstance(nested, ToolFailed):
            return nested
        if isinstance(nested, EgressError):
            return egress_failure(nested)
        if isinstance(nested, McpServerRefused):
            code = "auth_failed" if nested.status in {401, 403} else "http_error"
            return ToolFailed(code, f"the server answered {nested.status}")
    for nested in errors:
        if isinstance(nested, MCPError):
            if _PARSE_ERROR in str(nested):
                return ToolFailed("connection_error", "the server does not speak MCP")
            return ToolFailed("runtime_error", f"the server refused: {nested}")
    if isinstance(error, Exception):
        names = ", ".join(dict.fromkeys(type(nested).__name__ for nested in errors))
        return ToolFailed("connection_error", f"no session with the server: {names}"[:300])
    return None


def _list_errors(error: BaseException) -> list[BaseException]:
    """Returns the error with the errors in its groups, its causes and its contexts."""
    errors: list[BaseException] = []
    remaining: list[BaseException | None] = [error]
    while remaining:
        nested = remaining.pop()
        if nested is None or nested in errors:
            continue
        errors.append(nested)
        if isinstance(nested, BaseExceptionGroup):
            remaining += nested.exceptions
        remaining += [nested.__cause__, nested.__context__]
    return errors


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encodes as UTF-8, since the client accepts only ASCII in texts."""
    return [(name.encode(), value.encode()) for name, value in headers.items()]

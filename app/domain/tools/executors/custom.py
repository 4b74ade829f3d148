"""Tools of MCP servers, over streamable HTTP. The protocol's own package speaks it; every byte goes
through our one way out.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import msgspec

from app.domain.tools.configs import CustomConfig
from app.domain.tools.executors.protocol import (
    OUTPUT_BYTES,
    Auth,
    Surroundings,
    Task,
    ToolFailed,
    of_the_way,
)
from app.kit.egress import Egress, EgressError, custom_headers

_MOST_TOOLS = 500
_ANSWER_BYTES = 4 * OUTPUT_BYTES


async def run(task: Task[CustomConfig], around: Surroundings) -> Any:
    if not task.config.tool:
        raise ToolFailed("runtime_error", "set `tool` in the config; discover lists what there is")
    async with connected(around.egress, task.config.url, task.auth, task.seconds) as client:
        result = await client.call_tool(task.config.tool, task.input)
    content = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
    if result.is_error:
        said = " ".join(block.get("text", "") for block in content).strip()
        raise ToolFailed("runtime_error", said[:2000] or "the tool failed", content)
    if len(msgspec.json.encode(content)) > OUTPUT_BYTES:
        raise ToolFailed("output_too_large", "gave more than 1 MiB of output")
    return content


async def discover(
    egress: Egress, config: CustomConfig, auth: Auth, seconds: float
) -> list[dict[str, Any]]:
    """The tools of a server: name, description and what they take."""
    found: list[dict[str, Any]] = []
    async with connected(egress, config.url, auth, seconds) as client:
        cursor: str | None = None
        while len(found) < _MOST_TOOLS:
            page = await client.list_tools(cursor=cursor)
            found += [
                {
                    "name": tool.name,
                    "description": tool.description or "",
                    "input_schema": tool.input_schema,
                }
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if not cursor:
                break
    return found[:_MOST_TOOLS]


@asynccontextmanager
async def connected(egress: Egress, url: str, auth: Auth, seconds: float) -> AsyncIterator[Any]:
    """A session with the server; whatever goes wrong in it is ours to tell."""
    # Together these take half a second and 40 MiB, which only some workers need.
    import httpx2  # noqa: PLC0415
    from mcp import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    transport = _transport(egress, seconds)
    try:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(
                    transport=transport,
                    headers=dict(custom_headers(auth.headers)),
                    params=auth.params or None,
                    follow_redirects=False,
                    timeout=seconds,
                    trust_env=False,
                )
            )
            yield await stack.enter_async_context(
                Client(streamable_http_client(url, http_client=http))
            )
    except BaseException as error:
        told = _reason(error)
        if told is None:
            raise
        raise told from error


def _reason(error: BaseException) -> ToolFailed | None:
    """Task groups wrap what happened; the first that says something is told."""
    from mcp import MCPError  # noqa: PLC0415

    for one in _every(error):
        if isinstance(one, ToolFailed):
            return one
        if isinstance(one, EgressError):
            return of_the_way(one)
        if isinstance(one, _Answered):
            code = "auth_failed" if one.status in {401, 403} else "http_error"
            return ToolFailed(code, f"the server answered {one.status}")
    for one in _every(error):
        if isinstance(one, MCPError):
            return ToolFailed("runtime_error", f"the server refused: {one}"[:1000])
    if isinstance(error, Exception):
        names = ", ".join(dict.fromkeys(type(one).__name__ for one in _every(error)))
        return ToolFailed("connection_error", f"no session with the server: {names}"[:300])
    return None


def _every(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or one in found:
            continue
        found.append(one)
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        left += [one.__cause__, one.__context__]
    return found


class _Answered(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


def _transport(egress: Egress, seconds: float) -> Any:
    import httpx2  # noqa: PLC0415

    class Stream(httpx2.AsyncByteStream):
        def __init__(self, stack: AsyncExitStack, response: aiohttp.ClientResponse) -> None:
            self._stack = stack
            self._response = response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            seen = 0
            async for chunk in self._response.content.iter_any():
                seen += len(chunk)
                if seen > _ANSWER_BYTES:
                    raise ToolFailed("output_too_large", "the server sends more than 4 MiB")
                yield chunk

        async def aclose(self) -> None:
            with suppress(EgressError):
                await self._stack.aclose()

    class Transport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            stack = AsyncExitStack()
            asked = egress.open(
                request.method,
                str(request.url),
                headers=_sent(request.headers),
                body=body or None,
                timeout_seconds=seconds,
            )
            response = await stack.enter_async_context(asked)
            if response.status in {401, 403} or response.status >= 500:  # noqa: PLR2004
                await stack.aclose()
                raise _Answered(response.status)
            headers = [
                (name, value)
                for name, value in response.headers.items()
                # Already undone when we read it.
                if name.lower() not in {"content-encoding", "content-length", "transfer-encoding"}
            ]
            return httpx2.Response(
                response.status, headers=headers, stream=Stream(stack, response), request=request
            )

    return Transport()


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    ours = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
    return {name: value for name, value in headers.items() if name.lower() not in ours}

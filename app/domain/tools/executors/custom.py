"""Tools of MCP servers, over streamable HTTP. The protocol's own package speaks it; every byte goes
through our one way out.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from app.domain.tools.configs import CustomConfig
from app.domain.tools.executors.protocol import (
    OUTPUT_BYTES,
    Auth,
    Surroundings,
    Task,
    ToolFailed,
    noting,
    of_the_way,
    over_http,
)
from app.kit.egress import Egress, EgressError, custom_headers
from app.kit.redaction import Redactor

R = TypeVar("R")

_MOST_TOOLS = 500
_ANSWER_BYTES = 4 * OUTPUT_BYTES
# More than is shown: what is cut off before secrets are taken out may leave half of one.
_SAID_CHARS = 20_000
# How the package begins to tell what it could not read, and goes on to quote it.
_PARSING = "ailed to parse"
_MOST_PAGES = 20
_LISTED_BYTES = 4 * OUTPUT_BYTES


async def run(task: Task[CustomConfig], around: Surroundings) -> Any:
    if not task.config.tool:
        raise ToolFailed("runtime_error", "set `tool` in the config; discover lists what there is")

    async def call(client: Any) -> Any:
        return await client.call_tool(task.config.tool, task.input)

    result = await _asked(around.egress, task.config, task.auth, task.seconds, call)
    content = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
    if result.is_error:
        said = " ".join(block.get("text", "") for block in content).strip()
        raise ToolFailed("runtime_error", said[:_SAID_CHARS] or "the tool failed", content)
    if len(msgspec.json.encode(content)) > OUTPUT_BYTES:
        raise ToolFailed("output_too_large", "gave more than 1 MiB of output")
    return content


async def discover(
    egress: Egress, config: CustomConfig, auth: Auth, seconds: float
) -> list[dict[str, Any]]:
    """The tools of a server: name, description and what they take."""
    fresh: list[str] = []
    try:
        found = await _asked(egress, config, noting(auth, fresh), seconds, _listed)
    except ToolFailed as error:
        raise ToolFailed(error.code, Redactor(fresh).text(error.message)) from error
    listed: list[dict[str, Any]] = Redactor(fresh).value(
        [
            {
                "name": tool.name,
                "description": tool.description or "",
                "input_schema": tool.input_schema,
            }
            for tool in found[:_MOST_TOOLS]
        ]
    )
    return listed


async def _listed(client: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    room = _LISTED_BYTES
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        room -= sum(len(tool.model_dump_json()) for tool in page.tools)
        if room < 0:
            raise ToolFailed("output_too_large", "the server lists more than 4 MiB of tools")
        found += page.tools
        cursor = page.next_cursor
        if not cursor or len(found) >= _MOST_TOOLS:
            break
    return found


async def _asked(
    egress: Egress,
    config: CustomConfig,
    auth: Auth,
    seconds: float,
    ask: Callable[[Any], Awaitable[R]],
) -> R:
    """A refused token is renewed once: whoever refused it has done nothing yet."""
    try:
        async with connected(egress, config.url, over_http(auth), seconds) as client:
            return await ask(client)
    except ToolFailed as error:
        if error.code != "auth_failed" or auth.renew is None:
            raise
    async with connected(egress, config.url, over_http(await auth.renew()), seconds) as client:
        return await ask(client)


@asynccontextmanager
async def connected(egress: Egress, url: str, auth: Auth, seconds: float) -> AsyncIterator[Any]:
    """A session with the server; whatever goes wrong in it is ours to tell."""
    # Together these take seconds and 40 MiB, which only some processes need; nobody waits for it.
    await asyncio.to_thread(importlib.import_module, "mcp.client.streamable_http")
    import httpx2  # noqa: PLC0415
    from mcp import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    too_much: list[ToolFailed] = []
    transport = _transport(egress, seconds, too_much)
    address = str(URL(url).update_query(auth.params)) if auth.params else url
    try:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(
                    transport=transport,
                    headers=_encoded(custom_headers(auth.headers)),
                    follow_redirects=False,
                    timeout=seconds,
                    trust_env=False,
                )
            )
            client = await stack.enter_async_context(
                Client(streamable_http_client(address, http_client=http))
            )
            # By a schema that the server chose, patterns and all, and for what is not used here.
            client.session.validate_tool_result = _unchecked  # type: ignore[method-assign, assignment]
            yield client
    except BaseException as error:
        told = too_much[0] if too_much and isinstance(error, Exception) else _reason(error)
        if told is None:
            raise
        raise told from error


async def _unchecked(_name: str, _result: Any) -> None:
    return


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
            if _PARSING in str(one):
                return ToolFailed("connection_error", "the server does not speak MCP")
            return ToolFailed("runtime_error", f"the server refused: {one}"[:_SAID_CHARS])
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


def _transport(egress: Egress, seconds: float, too_much: list[ToolFailed]) -> Any:
    """`too_much` keeps what the protocol's package would take for the end of a stream."""
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
                    too_much.append(ToolFailed("output_too_large", "the server sends over 4 MiB"))
                    raise too_much[0]
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


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """By itself the client takes no more than ASCII."""
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    ours = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
    return {name: value for name, value in headers.items() if name.lower() not in ours}

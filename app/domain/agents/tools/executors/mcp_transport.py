"""An httpx2 transport that sends the requests of the MCP package through the egress.

This module imports httpx2, so only code that talks to an MCP server imports it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress

import aiohttp
import httpx2

from app.domain.agents.tools.errors import McpServerRefused, ToolFailed
from app.net.egress import Egress, EgressError

from .protocol import OUTPUT_BYTES

_MAX_RESPONSE_BYTES = 4 * OUTPUT_BYTES
# Headers that the egress sets itself.
_CONNECTION_HEADERS = {
    "host",
    "connection",
    "content-length",
    "accept-encoding",
    "transfer-encoding",
}
# The egress has decoded the body already.
_ENCODING_HEADERS = {"content-encoding", "content-length", "transfer-encoding"}


class EgressTransport(httpx2.AsyncBaseTransport):
    """`failures` receives the failure of a response stream, which the MCP package hides: it takes
    the failure for the end of the stream.
    """

    def __init__(self, egress: Egress, seconds: float, failures: list[ToolFailed]) -> None:
        self._egress = egress
        self._seconds = seconds
        self._failures = failures

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        stack = AsyncExitStack()
        response = await stack.enter_async_context(
            self._egress.open(
                request.method,
                str(request.url),
                headers=_without(request.headers, _CONNECTION_HEADERS),
                body=body or None,
                timeout_seconds=self._seconds,
            )
        )
        if response.status in {401, 403} or response.status >= 500:  # noqa: PLR2004
            await stack.aclose()
            raise McpServerRefused(response.status)
        headers = [
            (name, value)
            for name, value in response.headers.items()
            if name.lower() not in _ENCODING_HEADERS
        ]
        stream = _ResponseStream(stack, response, self._failures)
        return httpx2.Response(response.status, headers=headers, stream=stream, request=request)


class _ResponseStream(httpx2.AsyncByteStream):
    def __init__(
        self,
        stack: AsyncExitStack,
        response: aiohttp.ClientResponse,
        failures: list[ToolFailed],
    ) -> None:
        self._stack = stack
        self._response = response
        self._failures = failures

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._response.content.iter_any():
            size += len(chunk)
            if size > _MAX_RESPONSE_BYTES:
                failure = ToolFailed("output_too_large", "the server sends over 4 MiB")
                self._failures.append(failure)
                raise self._failures[0]
            yield chunk

    async def aclose(self) -> None:
        with suppress(EgressError):
            await self._stack.aclose()


def _without(headers: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}

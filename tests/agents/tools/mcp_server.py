"""An MCP server that records the headers and queries of its requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from tests.agents.tools.asgi_server import serve_app


class McpServer:
    """A server of the `mcp` package; `rejected_tokens` are answered with 401."""

    def __init__(self, *, json_response: bool, stateless: bool) -> None:
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self.queries: list[str] = []
        self.calls: list[str] = []
        self.rejected_tokens: set[str] = set()
        self._app: ASGIApp = self._build_server().streamable_http_app(
            json_response=json_response, stateless_http=stateless
        )

    def _build_server(self) -> Any:
        from mcp.server import MCPServer  # noqa: PLC0415 - takes half a second
        from mcp.types import CallToolResult, ContentBlock, TextContent  # noqa: PLC0415 - the same

        server: MCPServer[Any] = MCPServer("Shop")

        @server.tool(description="Adds two numbers")
        def add(a: int, b: int) -> int:
            self.calls.append("add")
            return a + b

        @server.tool(structured_output=False)
        def greet(name: str = "world", more: dict[str, Any] | None = None) -> str:
            return f"Hello {name} {more or ''}".strip()

        @server.tool()
        def fail(reason: str) -> str:
            raise ValueError(reason)

        @server.tool()
        async def slow() -> str:
            self.calls.append("slow")
            await asyncio.sleep(60)
            return "late"

        @server.tool(structured_output=False)
        def much(size: int) -> str:
            return "x" * size

        @server.tool()
        def find_order(number: int, size: int = 0) -> dict[str, Any]:
            return {"number": number, "lines": [{"sku": "a-1", "note": None}], "text": "x" * size}

        @server.tool()
        def refuse(code: str) -> CallToolResult:
            content: list[ContentBlock] = [TextContent(text=f"refused: {code}")]
            structured = {"code": code}
            return CallToolResult(content=content, structured_content=structured, is_error=True)

        return server

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            self.queries.append(scope["query_string"].decode())
            if headers.get("authorization") in self.rejected_tokens:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)

    def clear(self) -> None:
        for records in (self.headers, self.queries, self.calls, self.rejected_tokens):
            records.clear()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        async with serve_app(self._handle) as url:
            self.url = f"{url}/mcp"
            yield

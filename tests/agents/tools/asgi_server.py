"""ASGI applications on a port of loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from tests.assertions import until
from tests.ports import free_port


@asynccontextmanager
async def serve_app(app: ASGIApp) -> AsyncIterator[str]:
    """Serves an application and yields its URL."""
    port = free_port()
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        interface="asgi3",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    async with run_server(config):
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def run_server(config: uvicorn.Config) -> AsyncIterator[None]:
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started or task.done())
        yield
    finally:
        server.should_exit = True
        await task

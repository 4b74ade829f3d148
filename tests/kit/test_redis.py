"""The client of the Lua script that every request runs."""

import asyncio

from app.http.limiter import SCRIPT
from app.kit.redis import LuaScriptClient


async def test_concurrent_calls_to_an_unresponsive_redis_share_one_connection() -> None:
    connections = 0
    ended = asyncio.Event()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = LuaScriptClient(f"redis://127.0.0.1:{port}", SCRIPT)
    errors = await asyncio.gather(
        *(client.run(("a",), (1,)) for _ in range(20)), return_exceptions=True
    )
    ended.set()
    client.close()
    server.close()
    await server.wait_closed()
    assert all(isinstance(error, TimeoutError) for error in errors)
    assert connections == 1

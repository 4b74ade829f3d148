"""OpenAI clients of a web process whose models are those of a scripted provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
from openai import AsyncOpenAI

from tests.agents.usage.rows import get_usage
from tests.world import Client, World

# What a provider answers, and what its client sees then.
FAILURES = (
    (400, 400, "provider_rejected"),
    (401, 409, "model_not_configured"),
    (404, 400, "provider_rejected"),
    (422, 422, "provider_rejected"),
    (429, 429, "rate_limited"),
    (500, 502, "provider_error"),
    (503, 502, "provider_error"),
)


@asynccontextmanager
async def open_client(world: World) -> AsyncIterator[AsyncOpenAI]:
    """Yields a client without a key, which calls the application without a socket."""
    transport = httpx2.ASGITransport(cast("Any", world.app), raise_app_exceptions=False)
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        AsyncOpenAI(
            base_url="http://parley.test/v1",
            api_key="none",
            max_retries=0,
            timeout=60,
            http_client=http,
        ) as client,
    ):
        yield client


async def read_usage(client: Client, model: str) -> dict[str, Any] | None:
    """Returns the sums of a model in the usage report."""
    report = await get_usage(client)
    return next((row for row in report["by_model"] if row["model"] == model), None)

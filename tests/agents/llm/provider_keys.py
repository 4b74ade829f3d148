"""Requests to /api/v1/api-keys and /api/v1/models, and providers for them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.peer import Handler, answering
from tests.world import Client

PATH = "/api/v1/api-keys"

MODELS = "/api/v1/models"

SECRET = "sk-live-0123456789-uvwxyz"


def key_body(**fields: Any) -> dict[str, Any]:
    return {"provider": "openai", "name": "Ours", "api_key": SECRET, **fields}


async def create_key(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, key_body(**fields))
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


async def list_keys(caller: Client) -> list[dict[str, Any]]:
    answer = await caller.get(PATH)
    assert answer.status_code == 200, answer.text
    keys: list[dict[str, Any]] = answer.json()["data"]
    return keys


async def find_default(caller: Client, provider: str = "openai") -> str | None:
    defaults = [
        key["id"]
        for key in await list_keys(caller)
        if key["is_default"] and key["provider"] == provider
    ]
    assert len(defaults) <= 1
    return defaults[0] if defaults else None


def invalid_fields(answer: httpx.Response) -> set[str]:
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == "validation_error"
    return set(answer.json()["error"]["details"])


@asynccontextmanager
async def serve_provider(answer: Handler) -> AsyncIterator[str]:
    async with answering(answer) as url:
        yield f"{url}/v1"

"""POST /api/v1/api-keys/:id/test."""

import asyncio
import json

import httpx
import pytest
from aiohttp import web

from app.domain.agents.llm.gateway import Models
from app.kit.ids import new_id
from tests.agents.llm.provider_keys import PATH, SECRET, create_key, serve_provider
from tests.model_server import ModelServer
from tests.ports import free_port
from tests.world import Client


async def test_a_good_key_is_a_success(admin: Client, models: ModelServer) -> None:
    key = await create_key(admin, provider="scripted", base_url=models.url)
    answer = await admin.post(f"{PATH}/{key['id']}/test")
    assert answer.status_code == 200
    result = answer.json()
    assert set(result) == {"success", "message", "latency_ms", "tested_at"}
    assert result["success"] is True
    assert result["message"] == "The provider accepted the key and lists 2 models"
    assert isinstance(result["latency_ms"], int)
    assert 0 <= result["latency_ms"] < 10_000
    assert result["tested_at"].endswith("Z")


async def test_a_wrong_key_is_no_success_and_no_error(admin: Client, models: ModelServer) -> None:
    key = await create_key(admin, provider="scripted", api_key="wrong", base_url=models.url)
    answer = await admin.post(f"{PATH}/{key['id']}/test")
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["message"] == "scripted: no such key"


async def test_the_named_key_is_tested_and_not_the_default(
    admin: Client, models: ModelServer
) -> None:
    await create_key(admin, provider="scripted", base_url=models.url)
    wrong = await create_key(admin, provider="scripted", api_key="wrong", base_url=models.url)
    assert wrong["is_default"] is False
    assert (await admin.post(f"{PATH}/{wrong['id']}/test")).json()["success"] is False


async def test_a_key_of_openai_with_a_base_url_is_tested_there(
    admin: Client, models: ModelServer
) -> None:
    key = await create_key(admin, provider="openai", base_url=models.url)
    assert (await admin.post(f"{PATH}/{key['id']}/test")).json()["success"] is True


async def test_a_test_of_a_key_is_not_replayed(admin: Client, models: ModelServer) -> None:
    key = await create_key(admin, provider="scripted", base_url=models.url)
    headers = {"idempotency-key": new_id("idem")}
    for _ in range(2):
        answer = await admin.post(f"{PATH}/{key['id']}/test", headers=headers)
        assert answer.json()["success"] is True
        assert "idempotent-replayed" not in answer.headers


async def test_an_unreachable_provider_is_no_success(admin: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    key = await create_key(admin, provider="scripted", base_url=url)
    answer = await admin.post(f"{PATH}/{key['id']}/test")
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["message"].startswith("scripted: 127.0.0.1")


async def test_a_test_times_out_after_five_seconds(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Models.list_models.__defaults__ == (5.0,)
    monkeypatch.setattr(Models.list_models, "__defaults__", (0.3,))

    async def answer(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    released = asyncio.Event()
    async with serve_provider(answer) as url:
        key = await create_key(admin, provider="scripted", base_url=url)
        result = (await admin.post(f"{PATH}/{key['id']}/test")).json()
        released.set()
    assert result["success"] is False
    assert result["message"] == "scripted: no answer within 0.3 s"
    assert 250 <= result["latency_ms"] < 4_000


async def _test_key_against(admin: Client, content: bytes, status: int = 200) -> httpx.Response:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content, status=status, content_type="application/json")

    async with serve_provider(answer) as url:
        key = await create_key(admin, provider="scripted", base_url=url)
        return await admin.post(f"{PATH}/{key['id']}/test")


async def test_a_provider_that_repeats_the_key_is_masked(admin: Client) -> None:
    body = json.dumps({"error": {"message": f"Wrong key {SECRET}"}}).encode()
    answer = await _test_key_against(admin, body, 401)
    assert answer.json()["success"] is False
    assert answer.json()["message"] == "scripted: Wrong key ***"
    assert SECRET not in answer.text


async def test_an_answer_that_is_not_a_list_of_models_is_no_success(admin: Client) -> None:
    answer = await _test_key_against(admin, b"<html>Hello</html>")
    assert answer.status_code == 200
    assert answer.json()["success"] is False


async def test_the_message_of_a_failed_test_has_no_surrounding_space(admin: Client) -> None:
    message = (await _test_key_against(admin, b"<html>Hello</html>")).json()["message"]
    assert message == message.strip()


async def test_endless_nesting_is_no_success(admin: Client) -> None:
    answer = await _test_key_against(admin, b'{"data": [], "x": ' + b"[" * 100_000)
    assert answer.status_code == 200
    assert answer.json()["success"] is False

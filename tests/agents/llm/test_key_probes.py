"""POST /api/v1/api-keys/:id/test for search engines and providers of speech or rerankers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app.domain.agents.llm import key_probes
from app.domain.agents.llm.key_probes import PROBES
from tests.agents.llm.provider_keys import PATH, SECRET, create_key
from tests.database import run_sql
from tests.peer import Handler, Peer
from tests.ports import free_port
from tests.world import Client, World

_UNREADABLE = b'{"detail": ' + b"[" * 100_000


class Provider(Peer):
    """Answers with `status` and `body`, once `released` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.body: Any = {}
        self.released = asyncio.Event()
        self.released.set()
        self.requests: list[tuple[str, str, str | None, bytes]] = []

    def routes(self) -> dict[str, Handler]:
        return {"* /{rest:.*}": self._answer}

    async def _answer(self, request: web.Request) -> web.Response:
        names = ("X-Subscription-Token", "Authorization", "xi-api-key")
        key = next((request.headers[name] for name in names if name in request.headers), None)
        path = str(request.rel_url)
        self.requests.append((request.method, path, key, await request.read()))
        await self.released.wait()
        if isinstance(self.body, bytes):
            return web.Response(body=self.body, status=self.status)
        return web.json_response(self.body, status=self.status)


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
    """The stub of all providers that have a probe."""
    server = Provider()
    await server.start()
    _move_probes(monkeypatch, server.url)
    yield server
    await server.close()


def _move_probes(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name, probe in PROBES.items():
        monkeypatch.setitem(PROBES, name, msgspec.structs.replace(probe, address=url))


async def _test_key(caller: Client, name: str) -> dict[str, Any]:
    key = await create_key(caller, provider=name)
    answer = await caller.post(f"{PATH}/{key['id']}/test")
    assert answer.status_code == 200, answer.text
    assert SECRET not in answer.text
    result: dict[str, Any] = answer.json()
    assert set(result) == {"success", "message", "latency_ms", "tested_at"}
    return result


def _expect_ranking(model: str) -> tuple[str, str, str, bytes]:
    body = f'{{"model":"{model}","query":"test","documents":["test"]}}'
    return "POST", "/v1/rerank", f"Bearer {SECRET}", body.encode()


async def test_a_valid_key_is_a_success_after_one_small_request(
    admin: Client, provider: Provider, subtests: pytest.Subtests
) -> None:
    expected = {
        "brave": ("GET", "/res/v1/web/search?q=test&count=1", SECRET, b""),
        "tavily": ("POST", "/search", f"Bearer {SECRET}", b'{"query":"test","max_results":1}'),
        "elevenlabs": ("GET", "/v2/voices?page_size=1", SECRET, b""),
        "jina": _expect_ranking("jina-reranker-v2-base-multilingual"),
        "voyage": _expect_ranking("rerank-2.5-lite"),
    }
    assert set(expected) == set(PROBES)
    for name, request in expected.items():
        with subtests.test(name=name):
            result = await _test_key(admin, name)
            assert (result["success"], "accepted the key" in result["message"]) == (True, True)
            assert provider.requests == [request]
        provider.requests.clear()


_REFUSALS: list[tuple[str, int, Any, str]] = [
    (
        "brave",
        422,
        {"type": "ErrorResponse", "error": {"detail": f"The token {SECRET} is invalid."}},
        "brave: The token *** is invalid.",
    ),
    ("tavily", 401, {"detail": {"error": "Unauthorized: invalid key"}}, "tavily: Unauthorized"),
    (
        "elevenlabs",
        401,
        {"detail": {"status": "invalid_api_key", "message": "Invalid API key"}},
        "elevenlabs: Invalid API key",
    ),
    ("elevenlabs", 403, {"detail": ["x"]}, "elevenlabs: the provider answered 403"),
    ("brave", 500, b"<html>", "brave: the provider answered 500"),
    ("tavily", 302, b"", "tavily: the provider answered 302"),
    ("tavily", 400, _UNREADABLE, "tavily: the provider answered 400"),
]


async def test_a_refused_key_is_no_success_and_the_provider_says_why(
    admin: Client, provider: Provider, subtests: pytest.Subtests
) -> None:
    for name, status, body, message in _REFUSALS:
        with subtests.test(name=name, status=status):
            provider.status, provider.body = status, body
            result = await _test_key(admin, name)
            assert result["success"] is False
            assert result["message"].startswith(message)


async def test_a_restricted_key_of_elevenlabs_is_a_success(
    admin: Client, provider: Provider
) -> None:
    """A key that may only speak cannot list voices."""
    provider.status = 401
    message = "The API key you used is missing the permission voices_read"
    provider.body = {"detail": {"status": "missing_permissions", "message": message}}
    result = await _test_key(admin, "elevenlabs")
    assert (result["success"], "restricted" in result["message"]) == (True, True)


async def test_a_provider_without_an_answer_is_no_success(
    admin: Client,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    provider.released.clear()
    monkeypatch.setattr(key_probes, "_SECONDS", 0.1)
    for name in PROBES:
        with subtests.test(name=name):
            result = await _test_key(admin, name)
            assert result["success"] is False
            assert result["message"].startswith(f"{name}: no answer within 0.")
    provider.released.set()
    _move_probes(monkeypatch, f"http://127.0.0.1:{free_port()}")
    result = await _test_key(admin, "brave")
    assert (result["success"], result["message"][:16]) == (False, "brave: 127.0.0.1")


async def test_the_request_leaves_through_egress(
    admin: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    _move_probes(monkeypatch, "http://169.254.169.254")
    result = await _test_key(admin, "tavily")
    assert (result["success"], provider.requests) == (False, [])
    assert "not a public address" in result["message"]


async def test_a_key_with_an_address_of_its_own_is_not_sent_to_the_search_engine(
    world: World, admin: Client, provider: Provider
) -> None:
    """Such keys could be stored before the engines were known."""
    key = await create_key(admin, provider="brave")
    sql = "UPDATE provider_keys SET base_url = $2 WHERE id = $1"
    await run_sql(world.services, sql, key["id"], f"{provider.url}/v1")
    await admin.post(f"{PATH}/{key['id']}/test")
    assert [path for _, path, _, _ in provider.requests] == ["/v1/models"]

"""/api/v1/api-keys and /api/v1/models: the tenants' keys of providers, and what they open."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from aiohttp import web

from app.domain.models import keys, service
from app.kit import clock, rotation
from app.kit.crypto import Keyring
from app.kit.ids import new_id
from app.services import Services
from db.models import ProviderKey
from db.session import ALL_TENANTS
from tests.model_server import ModelServer, Reply
from tests.peer import Handler, answering
from tests.ports import free_port
from tests.talk import Talker
from tests.world import Client, World

PATH = "/api/v1/api-keys"
MODELS = "/api/v1/models"
SHOWN = {"id", "provider", "name", "key_hint", "base_url", "is_default", "created_at"}
SECRET = "sk-live-0123456789-uvwxyz"


def _body(**fields: Any) -> dict[str, Any]:
    return {"provider": "openai", "name": "Ours", "api_key": SECRET, **fields}


async def _create(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, _body(**fields))
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _list(caller: Client) -> list[dict[str, Any]]:
    answer = await caller.get(PATH)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _default(caller: Client, provider: str = "openai") -> str | None:
    defaults = [
        key["id"]
        for key in await _list(caller)
        if key["is_default"] and key["provider"] == provider
    ]
    assert len(defaults) <= 1
    return defaults[0] if defaults else None


def _wrong(answer: httpx.Response) -> set[str]:
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == "validation_error"
    return set(answer.json()["error"]["details"])


@asynccontextmanager
async def _provider(answer: Handler) -> AsyncIterator[str]:
    async with answering(answer) as url:
        yield f"{url}/v1"


# Create


async def test_a_key_is_added_and_shown_by_its_last_characters(admin: Client) -> None:
    made = await _create(admin, name="Our account")
    assert set(made) == SHOWN
    assert made["id"].startswith("pvk_")
    assert made["provider"] == "openai"
    assert made["name"] == "Our account"
    assert made["key_hint"] == "…wxyz"
    assert made["base_url"] is None
    assert made["is_default"] is True
    assert made["created_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(made["created_at"])
    assert abs(age.total_seconds()) < 60


@pytest.mark.parametrize(
    ("api_key", "hint"),
    [
        ("k", "…****"),
        ("x" * 11, "…****"),
        ("01234567abcd", "…abcd"),
        ("x" * 4092 + "tail", "…tail"),
    ],
)
async def test_a_short_key_gives_nothing_of_itself_away(
    admin: Client, api_key: str, hint: str
) -> None:
    assert (await _create(admin, api_key=api_key))["key_hint"] == hint


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "together_ai", "ai21"])
async def test_a_provider_of_the_table_needs_no_address(admin: Client, provider: str) -> None:
    assert (await _create(admin, provider=provider))["provider"] == provider


@pytest.mark.parametrize("provider", ["my-own", "vllm.internal", "7b", "x" * 64])
async def test_any_other_provider_may_have_an_address(admin: Client, provider: str) -> None:
    made = await _create(admin, provider=provider, base_url="https://models.example.com/v1")
    assert made["provider"] == provider


async def test_any_other_provider_needs_an_address(admin: Client) -> None:
    answer = await admin.post(PATH, _body(provider="my-own"))
    assert _wrong(answer) == {"provider"}
    assert "base_url" in answer.json()["error"]["message"]
    assert "anthropic" in answer.json()["error"]["message"]


@pytest.mark.parametrize("base_url", [None, "https://models.example.com/v1"])
async def test_local_models_need_no_key(admin: Client, base_url: str | None) -> None:
    answer = await admin.post(PATH, _body(provider="local", base_url=base_url))
    assert _wrong(answer) == {"provider"}
    assert await _list(admin) == []


async def test_names_and_keys_may_be_as_long_as_promised(admin: Client) -> None:
    made = await _create(admin, name="ü" * 100, api_key="k" * 4096)
    assert made["name"] == "ü" * 100


async def test_fields_that_cannot_be_set_have_no_effect(admin: Client, world: World) -> None:
    elsewhere = await world.tenant()
    made = await _create(
        admin,
        id="pvk_mine",
        tenant_id=elsewhere,
        key_hint="mine",
        created_at="2000-01-01T00:00:00Z",
    )
    assert made["id"] != "pvk_mine"
    assert made["key_hint"] == "…wxyz"
    assert not made["created_at"].startswith("2000")
    assert [key["id"] for key in await _list(admin)] == [made["id"]]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"provider": ""}, "provider"),
        ({"provider": "OpenAI"}, "provider"),
        ({"provider": "open ai"}, "provider"),
        ({"provider": "open/ai"}, "provider"),
        ({"provider": ".openai"}, "provider"),
        ({"provider": "-openai"}, "provider"),
        ({"provider": "öpenai"}, "provider"),
        ({"provider": "x" * 65}, "provider"),
        ({"provider": None}, "provider"),
        ({"provider": 5}, "provider"),
        ({"name": ""}, "name"),
        ({"name": " \t"}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": None}, "name"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": " "}, "api_key"),
        ({"api_key": "with a blank"}, "api_key"),
        ({"api_key": "two\r\nX-Evil: lines"}, "api_key"),
        ({"api_key": "schlüssel"}, "api_key"),
        ({"api_key": "nul\0"}, "api_key"),
        ({"api_key": "x" * 4097}, "api_key"),
        ({"api_key": None}, "api_key"),
        ({"api_key": ["x"]}, "api_key"),
        ({"base_url": 5}, "base_url"),
        ({"base_url": ""}, "base_url"),
        ({"is_default": "yes"}, "is_default"),
        ({"is_default": 1}, "is_default"),
        ({"is_default": None}, "is_default"),
        ({"provider": "mine\n", "base_url": "https://models.example.com/v1"}, "provider"),
        ({"name": "Ours\n"}, "name"),
        ({"api_key": f"{SECRET}\n"}, "api_key"),
    ],
)
async def test_a_wrong_field_is_named(admin: Client, fields: dict[str, Any], field: str) -> None:
    assert _wrong(await admin.post(PATH, _body(**fields))) == {field}
    assert await _list(admin) == []


@pytest.mark.parametrize("field", ["provider", "name", "api_key"])
async def test_a_missing_field_is_named(admin: Client, field: str) -> None:
    body = _body()
    del body[field]
    answer = await admin.post(PATH, body)
    assert _wrong(answer) == {field}
    assert answer.json()["error"]["details"][field] == "is required"


async def test_every_wrong_field_is_named_at_once(admin: Client) -> None:
    assert _wrong(await admin.post(PATH, {"name": 5})) == {"provider", "name", "api_key"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"null"])
async def test_what_is_no_object_is_refused(admin: Client, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = await admin("POST", PATH, content=content, headers=headers)
    assert _wrong(answer) == {"body"}


async def test_the_same_idempotency_key_adds_one_key(admin: Client) -> None:
    headers = {"idempotency-key": new_id("idem")}
    first = await admin.post(PATH, _body(), headers=headers)
    again = await admin.post(PATH, _body(), headers=headers)
    other = await admin.post(PATH, _body(name="Other"), headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert again.json() == first.json()
    assert other.json()["error"]["code"] == "idempotency_mismatch"
    assert len(await _list(admin)) == 1


# Addresses


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://models.example.com/v1", "https://models.example.com/v1"),
        ("https://models.example.com/v1/", "https://models.example.com/v1"),
        ("https://models.example.com", "https://models.example.com"),
        ("HTTPS://Models.Example.COM/v1", "https://models.example.com/v1"),
        ("https://models.example.com:8443/a/b/v1", "https://models.example.com:8443/a/b/v1"),
        ("https://93.184.216.34/v1", "https://93.184.216.34/v1"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080/v1", "http://localhost:8080/v1"),
        ("https://127.0.0.1/v1", "https://127.0.0.1/v1"),
    ],
)
async def test_an_address_is_kept_in_one_form(admin: Client, given: str, kept: str) -> None:
    assert (await _create(admin, base_url=given))["base_url"] == kept


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "127.0.0.2",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "167772161",
        "0x0a000001",
        "0xa.1",
        "012.0.0.1",
        "10.1",
        "2130706434",
        "10.0.0.1.",
        "\uff11\uff10.0.0.1",
    ],
)
@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_a_private_address_is_refused_unless_the_operator_allows_it(
    admin: Client, scheme: str, host: str
) -> None:
    answer = await admin.post(PATH, _body(base_url=f"{scheme}://{host}/v1"))
    assert _wrong(answer) == {"base_url"}
    assert await _list(admin) == []


@pytest.mark.parametrize(
    "url", ["http://models.example.com/v1", "http://93.184.216.34/v1", "HTTP://models.example.com"]
)
async def test_a_key_is_not_sent_unencrypted_unless_the_operator_allows_it(
    admin: Client, url: str
) -> None:
    answer = await admin.post(PATH, _body(base_url=url))
    assert _wrong(answer) == {"base_url"}
    assert answer.json()["error"]["details"]["base_url"] == "must start with https://"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:pass-word-9@models.example.com/v1",
        "https://pass-word-9@models.example.com/v1",
        "https://:pass-word-9@models.example.com/v1",
        "https://:@models.example.com/v1",
        "https://models.example.com/v1?key=pass-word-9",
        "https://models.example.com/v1#pass-word-9",
        "https://models.example.com/v1?a=b#pass-word-9",
    ],
)
async def test_an_address_carries_nothing_but_a_place(admin: Client, url: str) -> None:
    answer = await admin.post(PATH, _body(base_url=url))
    assert _wrong(answer) == {"base_url"}
    assert "pass-word-9" not in answer.text


@pytest.mark.parametrize(
    "url",
    [
        "models.example.com/v1",
        "//models.example.com/v1",
        "/v1",
        "https://",
        "https:///v1",
        "https:models.example.com",
        "ftp://models.example.com/v1",
        "file:///etc/passwd",
        "unix:///run/model.sock",
        "javascript:alert(1)",
        "https://models.example.com:99999/v1",
        "https://models.example.com:port/v1",
        "https://[::1/v1",
        "http://",
        "not an address",
    ],
)
async def test_what_is_no_web_address_is_refused(admin: Client, url: str) -> None:
    assert _wrong(await admin.post(PATH, _body(base_url=url))) == {"base_url"}


async def test_an_address_of_many_kilobytes_is_refused(admin: Client) -> None:
    answer = await admin.post(PATH, _body(base_url="https://models.example.com/" + "x" * 500_000))
    assert _wrong(answer) == {"base_url"}


# The default


async def test_the_first_key_of_a_provider_is_its_default(admin: Client) -> None:
    first = await _create(admin, is_default=False)
    second = await _create(admin)
    other = await _create(admin, provider="anthropic")
    assert [key["is_default"] for key in (first, second, other)] == [True, False, True]
    assert await _default(admin) == first["id"]


async def test_a_new_default_takes_the_place_of_the_old_one(admin: Client) -> None:
    await _create(admin)
    await _create(admin)
    elsewhere = await _create(admin, provider="anthropic")
    new = await _create(admin, is_default=True)
    assert new["is_default"] is True
    assert await _default(admin) == new["id"]
    assert await _default(admin, "anthropic") == elsewhere["id"]


async def test_the_newest_takes_the_place_of_a_deleted_default(admin: Client) -> None:
    made = [await _create(admin, name=str(number)) for number in range(4)]
    elsewhere = await _create(admin, provider="anthropic")
    for gone, heir in ((0, 3), (3, 2), (2, 1)):
        assert await _default(admin) == made[gone]["id"]
        await admin.delete(f"{PATH}/{made[gone]['id']}")
        assert await _default(admin) == made[heir]["id"]
    await admin.delete(f"{PATH}/{made[1]['id']}")
    assert await _default(admin) is None
    assert await _default(admin, "anthropic") == elsewhere["id"]


async def test_deleting_another_key_leaves_the_default(admin: Client) -> None:
    first = await _create(admin)
    second = await _create(admin)
    await admin.delete(f"{PATH}/{second['id']}")
    assert await _default(admin) == first["id"]


async def test_after_the_last_one_the_next_key_is_the_default(admin: Client) -> None:
    first = await _create(admin)
    await admin.delete(f"{PATH}/{first['id']}")
    assert (await _create(admin))["is_default"] is True


async def test_another_tenant_s_default_is_its_own(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    first = await _create(here)
    second = await _create(there, is_default=True)
    assert (first["is_default"], second["is_default"]) == (True, True)
    await there.delete(f"{PATH}/{second['id']}")
    assert await _default(here) == first["id"]


# Two at the same moment


_HOLD = "SELECT pg_advisory_xact_lock(hashtextextended('provider_keys:' || $1, 0))"


async def _until_somebody_waits(services: Services, count: int = 1) -> None:
    waiting = """SELECT count(*) FROM pg_stat_activity
                 WHERE wait_event_type = 'Lock' AND query ILIKE '%provider_keys%'"""
    deadline = time.monotonic() + 10
    while True:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            if await (await tx.raw()).fetchval(waiting) >= count:
                return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def _at_once(
    services: Services, tenant_id: str, *requests: Coroutine[Any, Any, Any]
) -> list[int]:
    """Let all of them come as far as they may before any of them has written something."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(_HOLD, tenant_id)
        asking = [asyncio.create_task(request) for request in requests]
        await _until_somebody_waits(services, len(asking))
    return [answer.status_code for answer in await asyncio.gather(*asking)]


async def test_two_first_keys_at_the_same_moment_are_both_added(
    admin: Client, services: Services
) -> None:
    posts = [admin.post(PATH, _body()) for _ in range(2)]
    assert await _at_once(services, admin.tenant_id, *posts) == [201, 201]
    assert sorted(key["is_default"] for key in await _list(admin)) == [False, True]


async def test_two_new_defaults_at_the_same_moment_are_both_added(
    admin: Client, services: Services
) -> None:
    await _create(admin)
    posts = [admin.post(PATH, _body(is_default=True)) for _ in range(2)]
    assert await _at_once(services, admin.tenant_id, *posts) == [201, 201]
    assert sorted(key["is_default"] for key in await _list(admin)) == [False, False, True]


async def test_a_default_and_its_heir_deleted_at_the_same_moment_leave_it_to_the_next(
    admin: Client, services: Services
) -> None:
    first, next_one, heir = [await _create(admin) for _ in range(3)]
    deletes = [admin.delete(f"{PATH}/{key['id']}") for key in (first, heir)]
    assert await _at_once(services, admin.tenant_id, *deletes) == [204, 204]
    assert await _default(admin) == next_one["id"]


async def test_a_key_that_two_delete_at_the_same_moment_is_deleted_once(
    admin: Client, services: Services
) -> None:
    made, heir = [await _create(admin) for _ in range(2)]
    deletes = [admin.delete(f"{PATH}/{made['id']}") for _ in range(2)]
    assert sorted(await _at_once(services, admin.tenant_id, *deletes)) == [204, 404]
    assert await _default(admin) == heir["id"]


async def test_an_heir_whose_row_goes_at_the_same_moment_leaves_it_to_the_next(
    admin: Client, services: Services
) -> None:
    first, next_one, heir = [await _create(admin) for _ in range(3)]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM provider_keys WHERE id = $1", heir["id"])
        deleting = asyncio.create_task(admin.delete(f"{PATH}/{first['id']}"))
        await _until_somebody_waits(services)
    assert (await deleting).status_code == 204
    assert await _default(admin) == next_one["id"]


# List


async def test_a_list_is_data_by_provider_and_age(admin: Client) -> None:
    names = [("openai", "a"), ("anthropic", "b"), ("openai", "c"), ("anthropic", "d")]
    for provider, name in names:
        await _create(admin, provider=provider, name=name)
    answer = await admin.get(PATH)
    assert set(answer.json()) == {"data"}
    assert [key["name"] for key in answer.json()["data"]] == ["b", "d", "a", "c"]
    assert all(set(key) == SHOWN for key in answer.json()["data"])


async def test_a_key_is_listed_as_it_was_created(admin: Client) -> None:
    made = await _create(admin, base_url="https://models.example.com/v1")
    assert await _list(admin) == [made]


async def test_a_tenant_without_keys_has_an_empty_list(admin: Client) -> None:
    assert (await admin.get(PATH)).json() == {"data": []}


# Delete


async def test_a_deleted_key_is_gone(admin: Client) -> None:
    made = await _create(admin)
    answer = await admin.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _list(admin) == []


@pytest.mark.parametrize("key_id", ["pvk_nothing", "x", "pvk_" + "0" * 500, "..%2f"])
@pytest.mark.parametrize(("method", "tail"), [("DELETE", ""), ("POST", "/test")])
async def test_a_key_that_does_not_exist_is_404(
    admin: Client, method: str, tail: str, key_id: str
) -> None:
    answer = await admin(method, f"{PATH}/{key_id}{tail}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] in {"provider_key_not_found", "not_found"}


async def test_a_key_is_deleted_once(admin: Client) -> None:
    made = await _create(admin)
    await admin.delete(f"{PATH}/{made['id']}")
    answer = await admin.delete(f"{PATH}/{made['id']}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "provider_key_not_found"


# Test


async def test_a_good_key_is_a_success(admin: Client, models: ModelServer) -> None:
    made = await _create(admin, provider="scripted", base_url=models.url)
    answer = await admin.post(f"{PATH}/{made['id']}/test")
    assert answer.status_code == 200
    tried = answer.json()
    assert set(tried) == {"success", "message", "latency_ms", "tested_at"}
    assert tried["success"] is True
    assert tried["message"] == "The provider accepted the key and lists 2 models"
    assert isinstance(tried["latency_ms"], int)
    assert 0 <= tried["latency_ms"] < 10_000
    assert tried["tested_at"].endswith("Z")


async def test_a_wrong_key_is_no_success_and_no_error(admin: Client, models: ModelServer) -> None:
    made = await _create(admin, provider="scripted", api_key="wrong", base_url=models.url)
    answer = await admin.post(f"{PATH}/{made['id']}/test")
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["message"] == "scripted: no such key"


async def test_this_very_key_is_tried_and_not_the_default(
    admin: Client, models: ModelServer
) -> None:
    await _create(admin, provider="scripted", base_url=models.url)
    wrong = await _create(admin, provider="scripted", api_key="wrong", base_url=models.url)
    assert wrong["is_default"] is False
    assert (await admin.post(f"{PATH}/{wrong['id']}/test")).json()["success"] is False


async def test_a_key_of_openai_with_an_address_is_tried_there(
    admin: Client, models: ModelServer
) -> None:
    made = await _create(admin, provider="openai", base_url=models.url)
    assert (await admin.post(f"{PATH}/{made['id']}/test")).json()["success"] is True


async def test_trying_a_key_can_be_repeated(admin: Client, models: ModelServer) -> None:
    made = await _create(admin, provider="scripted", base_url=models.url)
    headers = {"idempotency-key": new_id("idem")}
    for _ in range(2):
        answer = await admin.post(f"{PATH}/{made['id']}/test", headers=headers)
        assert answer.json()["success"] is True
        assert "idempotent-replayed" not in answer.headers


async def test_nobody_there_is_no_success(admin: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    made = await _create(admin, provider="scripted", base_url=url)
    answer = await admin.post(f"{PATH}/{made['id']}/test")
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["message"].startswith("scripted: 127.0.0.1")


async def test_a_silent_provider_is_given_up_after_five_seconds(admin: Client) -> None:
    async def answer(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    released = asyncio.Event()
    async with _provider(answer) as url:
        made = await _create(admin, provider="scripted", base_url=url)
        tried = (await admin.post(f"{PATH}/{made['id']}/test")).json()
        released.set()
    assert tried["success"] is False
    assert tried["message"] == "scripted: no answer within 5 s"
    assert 4_900 <= tried["latency_ms"] < 9_000


async def _tried(admin: Client, content: bytes, status: int = 200) -> httpx.Response:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content, status=status, content_type="application/json")

    async with _provider(answer) as url:
        made = await _create(admin, provider="scripted", base_url=url)
        return await admin.post(f"{PATH}/{made['id']}/test")


async def test_a_provider_that_repeats_the_key_is_masked(admin: Client) -> None:
    told = json.dumps({"error": {"message": f"Wrong key {SECRET}"}}).encode()
    answer = await _tried(admin, told, 401)
    assert answer.json()["success"] is False
    assert answer.json()["message"] == "scripted: Wrong key ***"
    assert SECRET not in answer.text


async def test_what_is_no_list_of_models_is_no_success(admin: Client) -> None:
    answer = await _tried(admin, b"<html>Hello</html>")
    assert answer.status_code == 200
    assert answer.json()["success"] is False


async def test_what_went_wrong_is_told_in_a_whole_sentence(admin: Client) -> None:
    message = (await _tried(admin, b"<html>Hello</html>")).json()["message"]
    assert message == message.strip()


async def test_endless_nesting_is_no_success(admin: Client) -> None:
    answer = await _tried(admin, b'{"data": [], "x": ' + b"[" * 100_000)
    assert answer.status_code == 200
    assert answer.json()["success"] is False


# Who may

READERS = {"super_admin", "tenant_admin", "agent_developer"}
WRITERS = {"super_admin", "tenant_admin"}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]


def _check_refusal(answer: httpx.Response, role: str, permission: str) -> None:
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["code"] == "forbidden"
    assert answer.json()["error"]["details"] == {"required": permission, "your_role": role}


@pytest.mark.parametrize("path", [PATH, MODELS])
@pytest.mark.parametrize("role", ROLES)
async def test_reading_needs_a_permission(world: World, role: str, path: str) -> None:
    caller = await world.user(role)
    headers = {"x-tenant-id": caller.tenant_id} if role == "super_admin" else {}
    answer = await caller.get(path, headers=headers)
    if role in READERS:
        assert answer.status_code == 200
    else:
        _check_refusal(answer, role, "models:read")


@pytest.mark.parametrize("role", ROLES)
async def test_adding_trying_and_deleting_need_a_permission(
    world: World, models: ModelServer, role: str
) -> None:
    admin = await world.user("tenant_admin")
    caller = await world.user(role, admin.tenant_id)
    made = await _create(admin, provider="scripted", base_url=models.url)
    answers = [
        await caller.post(PATH, _body()),
        await caller.post(f"{PATH}/{made['id']}/test"),
        await caller.delete(f"{PATH}/{made['id']}"),
    ]
    if role in WRITERS:
        assert [answer.status_code for answer in answers] == [201, 200, 204]
    else:
        for answer in answers:
            _check_refusal(answer, role, "models:write")
        assert [key["id"] for key in await _list(admin)] == [made["id"]]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH),
        ("POST", PATH),
        ("DELETE", f"{PATH}/pvk_x"),
        ("POST", f"{PATH}/pvk_x/test"),
        ("GET", MODELS),
    ],
)
async def test_nobody_comes_in_without_signing_in(
    anonymous: Client, method: str, path: str
) -> None:
    answer = await anonymous(method, path)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


@pytest.mark.parametrize("path", [PATH, MODELS, "/api/v1/agents"])
async def test_a_provider_key_opens_nothing_here(
    admin: Client, anonymous: Client, path: str
) -> None:
    made = await _create(admin)
    for token in (SECRET, made["id"]):
        headers = {"authorization": f"Bearer {token}", "x-api-key": token}
        assert (await anonymous.get(path, headers=headers)).status_code == 401


@pytest.mark.parametrize("path", [f"{PATH}/pvk_x", f"{PATH}/pvk_x/test"])
async def test_other_methods_are_not_taken(admin: Client, path: str) -> None:
    answer = await admin("PUT", path, json={})
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"


# Tenants apart


async def test_another_tenant_s_keys_are_not_there(world: World, models: ModelServer) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    made = await _create(here, provider="scripted", base_url=models.url)
    assert await _list(there) == []
    for answer in (
        await there.delete(f"{PATH}/{made['id']}"),
        await there.post(f"{PATH}/{made['id']}/test"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "provider_key_not_found"
    assert (await there.get(MODELS)).json() == {"data": []}
    assert [key["id"] for key in await _list(here)] == [made["id"]]


async def test_only_super_admin_names_a_tenant(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    made = await _create(here)
    headers = {"x-tenant-id": here.tenant_id}
    listed = await there.get(PATH, headers=headers)
    assert made["id"] not in listed.text
    await there.post(PATH, _body(), headers=headers)
    assert [key["id"] for key in await _list(here)] == [made["id"]]


async def test_super_admin_manages_the_keys_of_a_tenant(
    super_admin: Client, admin: Client, models: ModelServer
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    body = _body(provider="scripted", base_url=models.url)
    made = (await super_admin.post(PATH, body, headers=headers)).json()
    assert [key["id"] for key in await _list(admin)] == [made["id"]]
    assert (await super_admin.get(PATH, headers=headers)).json()["data"] == [made]
    assert made["id"] in [key["id"] for key in await _list(super_admin)]
    listed = (await super_admin.get(MODELS, headers=headers)).json()["data"]
    assert [model["id"] for model in listed] == ["scripted/one", "scripted/two"]
    assert (await super_admin.post(f"{PATH}/{made['id']}/test")).json()["success"] is True
    assert (await super_admin.delete(f"{PATH}/{made['id']}")).status_code == 204
    assert await _list(admin) == []


async def test_super_admin_s_own_default_leaves_the_others_alone(
    super_admin: Client, admin: Client
) -> None:
    theirs = await _create(admin)
    own = await _create(super_admin, is_default=True)
    assert await _default(admin) == theirs["id"]
    await super_admin.delete(f"{PATH}/{own['id']}")
    assert await _default(admin) == theirs["id"]


async def test_what_super_admin_deletes_is_told_in_the_tenant_s_log(
    super_admin: Client, admin: Client
) -> None:
    made = await _create(admin)
    await super_admin.delete(f"{PATH}/{made['id']}")
    log = (await admin.get("/api/v1/event-log")).json()["data"]
    assert "system.provider_key.deleted" in [entry["type"] for entry in log]


# The secret


async def test_adding_and_deleting_are_told_without_the_key(admin: Client) -> None:
    made = await _create(admin, name="Our account")
    await admin.delete(f"{PATH}/{made['id']}")
    answer = await admin.get("/api/v1/event-log")
    told = {"key_id": made["id"], "provider": "openai", "name": "Our account"}
    assert [(entry["type"], entry["data"]) for entry in answer.json()["data"]] == [
        ("system.provider_key.deleted", told),
        ("system.provider_key.created", told),
    ]
    assert SECRET not in answer.text
    assert SECRET[-4:] not in answer.text


async def test_no_refusal_repeats_the_key(admin: Client) -> None:
    for fields in (
        {"provider": SECRET.upper()},
        {"name": f"{SECRET}\n{SECRET}"},
        {"api_key": f"{SECRET} {SECRET}"},
        {"base_url": f"https://{SECRET}@models.example.com"},
        {"base_url": f"https://models.example.com/?key={SECRET}"},
    ):
        answer = await admin.post(PATH, _body(**fields))
        assert answer.status_code == 422
        assert SECRET not in answer.text


async def _used(world: World, models: ModelServer, secret: str) -> Client:
    """A tenant that has added this key, tried it, and talked with it in every way."""
    admin = await world.user("tenant_admin")
    headers = {"idempotency-key": new_id("idem")}
    body = _body(provider="scripted", api_key=secret, base_url=models.url)
    made = await admin.post(PATH, body, headers=headers)
    texts = [made.text, (await admin.post(PATH, body, headers=headers)).text]
    models.script("echo", Reply(), Reply(), Reply(status=401, message=f"Wrong key {secret}"))
    agent = {"name": "A", "primary_model": "scripted/echo", "system_prompt": "x"}
    made_agent = await admin.post("/api/v1/agents", agent)
    path = f"/api/v1/agents/{made_agent.json()['id']}"
    message = {"message": "Hello"}
    for answer in (
        await admin.post(f"{PATH}/{made.json()['id']}/test"),
        await admin.get(PATH),
        await admin.get(MODELS),
        await admin.get(path),
        await admin.post(f"{path}/chat", message),
        await admin.post(f"{path}/chat/stream", message),
        await admin.post(f"{path}/chat", message),
        await admin.post(f"{path}/chat/async", message),
        await admin.get("/api/v1/event-log"),
        await admin.get(f"{path}/logs"),
    ):
        assert answer.status_code < 500 or answer.status_code == 502, answer.text
        texts.append(answer.text)
    assert models.headers[-1]["Authorization"] == f"Bearer {secret}"
    assert all(secret not in text for text in texts)
    return admin


async def test_the_key_is_in_no_answer_and_nowhere_in_the_database(
    world: World, models: ModelServer, services: Services
) -> None:
    secret = new_id("sk-secret")
    await _used(world, models, secret)
    forms = [secret, secret.encode().hex(), base64.b64encode(secret.encode()).decode()]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        tables = await raw.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert "provider_keys" in [row["tablename"] for row in tables]
        for (table,) in tables:
            for form in forms:
                query = f'SELECT count(*) FROM "{table}" t WHERE position($1 in t::text) > 0'
                assert await raw.fetchval(query, form) == 0, table


async def test_the_key_is_nowhere_in_redis(
    world: World, models: ModelServer, services: Services
) -> None:
    secret = new_id("sk-secret")
    await _used(world, models, secret)
    seen = 0
    async for key in services.redis.scan_iter(count=1000):
        match await services.redis.type(key):
            case b"string" | "string":
                value: Any = await services.redis.get(key)
            case b"hash" | "hash":
                value = await services.redis.hgetall(key)
            case b"list" | "list":
                value = await services.redis.lrange(key, 0, -1)
            case b"set" | "set":
                value = await services.redis.smembers(key)
            case b"zset" | "zset":
                value = await services.redis.zrange(key, 0, -1)
            case b"stream" | "stream":
                value = await services.redis.xrange(key)
            case b"none" | "none":
                continue
            case other:
                raise AssertionError(f"cannot look into {other!r}")
        seen += 1
        assert secret not in repr(key)
        assert secret not in repr(value)
    assert seen


async def _row(services: Services, key_id: str) -> ProviderKey:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.session()).get(ProviderKey, key_id)
    assert row is not None
    return row


async def test_the_row_holds_the_key_sealed(admin: Client, services: Services) -> None:
    first, second = await _create(admin), await _create(admin)
    sealed = [(await _row(services, made["id"])).api_key for made in (first, second)]
    assert sealed[0] != sealed[1]
    for made, raw in zip((first, second), sealed, strict=True):
        assert SECRET.encode() not in raw
        place = keys.seal_context(admin.tenant_id, made["id"])
        assert services.keyring.open(raw, place) == SECRET.encode()


async def test_a_sealed_key_does_not_open_in_another_row(
    world: World, models: ModelServer, services: Services
) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    secret = new_id("sk-secret")
    theirs = await _create(there, provider="scripted", api_key=secret, base_url=models.url)
    ours = await _create(here, provider="scripted", base_url=models.url)
    stolen = (await _row(services, theirs["id"])).api_key
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE provider_keys SET api_key = $1 WHERE id = $2", stolen, ours["id"]
        )
    answer = await here.post(f"{PATH}/{ours['id']}/test")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert secret not in answer.text


async def test_a_rotation_takes_provider_keys_along(admin: Client, services: Services) -> None:
    made = await _create(admin)
    row = await _row(services, made["id"])
    (column,) = [c for c in rotation.sealed_columns() if c.table == "provider_keys"]
    place = column.context({"id": row.id, "tenant_id": row.tenant_id})
    newer = Keyring.parse(f"{Keyring.generate('newer')},{services.settings.master_keys}")
    again = newer.rewrap(row.api_key, place)
    assert newer.open(again, keys.seal_context(admin.tenant_id, made["id"])) == SECRET.encode()


# Use


async def _spoken_with(talk: Talker) -> str:
    await talk.say("Hello")
    return talk.models.headers[-1]["Authorization"]


async def test_agents_use_the_tenant_s_default_key(talk: Talker) -> None:
    first = await _default(talk.client, "scripted")
    fields = {"provider": "scripted", "base_url": talk.models.url}
    assert await _spoken_with(talk) == "Bearer sk-scripted-0123456789"
    await _create(talk.client, api_key="second-key", **fields)
    assert await _spoken_with(talk) == "Bearer sk-scripted-0123456789"
    third = await _create(talk.client, api_key="third-key", is_default=True, **fields)
    assert await _spoken_with(talk) == "Bearer third-key"
    await talk.client.delete(f"{PATH}/{third['id']}")
    assert await _spoken_with(talk) == "Bearer second-key"
    await talk.client.delete(f"{PATH}/{await _default(talk.client, 'scripted')}")
    assert await _default(talk.client, "scripted") == first
    await talk.client.delete(f"{PATH}/{first}")
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


async def test_agents_never_use_another_tenant_s_key(
    talk: Talker, world: World, models: ModelServer
) -> None:
    other = await world.user("tenant_admin")
    body = {"name": "A", "primary_model": f"scripted/{talk.model}", "system_prompt": "x"}
    made = await other.post("/api/v1/agents", body)
    asked = len(talk.asked)
    answer = await other.post(f"/api/v1/agents/{made.json()['id']}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert len(talk.asked) == asked


# Models

FIELDS = {
    "id",
    "provider",
    "context_window",
    "input_cost_per_million",
    "output_cost_per_million",
}


async def _models(caller: Client) -> list[dict[str, Any]]:
    answer = await caller.get(MODELS)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


@asynccontextmanager
async def _listing(*names: str) -> AsyncIterator[str]:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in names]})

    async with _provider(answer) as url:
        yield url


async def test_without_a_key_nothing_is_usable(admin: Client) -> None:
    assert await _models(admin) == []


async def test_a_hosted_provider_s_models_are_those_of_the_table(admin: Client) -> None:
    await _create(admin, provider="anthropic")
    found = await _models(admin)
    names = [model["id"] for model in found]
    assert names == sorted(names)
    assert all(set(model) == FIELDS for model in found)
    assert {model["provider"] for model in found} == {"anthropic"}
    (sonnet,) = [model for model in found if model["id"] == "anthropic/claude-sonnet-4-5"]
    assert sonnet == {
        "id": "anthropic/claude-sonnet-4-5",
        "provider": "anthropic",
        "context_window": 200_000,
        "input_cost_per_million": 3.0,
        "output_cost_per_million": 15.0,
    }


async def test_an_address_s_models_are_those_it_lists(admin: Client, models: ModelServer) -> None:
    await _create(admin, provider="scripted", base_url=models.url)
    unknown = {
        "context_window": None,
        "input_cost_per_million": None,
        "output_cost_per_million": None,
    }
    assert await _models(admin) == [
        {"id": "scripted/one", "provider": "scripted", **unknown},
        {"id": "scripted/two", "provider": "scripted", **unknown},
    ]


async def test_what_is_listed_can_be_chatted_with(admin: Client, models: ModelServer) -> None:
    await _create(admin, provider="scripted", base_url=models.url)
    model = (await _models(admin))[0]["id"]
    made = await admin.post(
        "/api/v1/agents", {"name": "A", "primary_model": model, "system_prompt": "x"}
    )
    path = f"/api/v1/agents/{made.json()['id']}"
    assert (await admin.post(f"{path}/chat", {"message": "Hello"})).status_code == 200


async def test_only_the_default_key_of_a_provider_is_asked(
    admin: Client, models: ModelServer
) -> None:
    async with _listing("other") as url:
        await _create(admin, provider="scripted", base_url=models.url)
        second = await _create(admin, provider="scripted", base_url=url)
        assert [m["id"] for m in await _models(admin)] == ["scripted/one", "scripted/two"]
        first = await _default(admin, "scripted")
        await admin.delete(f"{PATH}/{first}")
        assert await _default(admin, "scripted") == second["id"]
        assert [m["id"] for m in await _models(admin)] == ["scripted/other"]


async def test_several_providers_are_listed_one_after_another(
    admin: Client, models: ModelServer
) -> None:
    await _create(admin, provider="zeta", base_url=models.url)
    await _create(admin, provider="alpha", base_url=models.url)
    assert [model["id"] for model in await _models(admin)] == [
        "alpha/one",
        "alpha/two",
        "zeta/one",
        "zeta/two",
    ]


async def test_a_provider_that_fails_does_not_hide_the_others(
    admin: Client, models: ModelServer
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    await _create(admin, provider="away", base_url=nobody)
    await _create(admin, provider="refusing", api_key="wrong", base_url=models.url)
    await _create(admin, provider="scripted", base_url=models.url)
    assert [model["id"] for model in await _models(admin)] == ["scripted/one", "scripted/two"]


async def test_a_silent_provider_does_not_hold_up_the_list(
    admin: Client, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_LIST_SECONDS", 0.2)
    released = asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with _provider(answer) as url:
        for name in ("silent-a", "silent-b", "silent-c"):
            await _create(admin, provider=name, base_url=url)
        await _create(admin, provider="scripted", base_url=models.url)
        started = time.monotonic()
        found = await _models(admin)
        released.set()
    assert [model["id"] for model in found] == ["scripted/one", "scripted/two"]
    assert time.monotonic() - started < 3


async def test_a_price_is_known_by_the_rest_of_the_name(admin: Client) -> None:
    async with _listing("gpt-4o") as url:
        await _create(admin, provider="openai", base_url=url)
        (found,) = await _models(admin)
    assert found == {
        "id": "openai/gpt-4o",
        "provider": "openai",
        "context_window": 128_000,
        "input_cost_per_million": 2.5,
        "output_cost_per_million": 10.0,
    }


async def test_a_name_that_nobody_can_ask_for_is_not_listed(admin: Client) -> None:
    async with _listing("good", "has a blank", "../files", "", "x" * 300, "a\nb", "é") as url:
        await _create(admin, provider="scripted", base_url=url)
        assert [model["id"] for model in await _models(admin)] == ["scripted/good"]


async def test_a_provider_of_endless_nesting_does_not_hide_the_others(
    admin: Client, models: ModelServer
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"data": [], "x": ' + b"[" * 100_000)

    async with _provider(answer) as url:
        await _create(admin, provider="deep", base_url=url)
        await _create(admin, provider="scripted", base_url=models.url)
        assert [model["id"] for model in await _models(admin)] == ["scripted/one", "scripted/two"]

"""Testing credentials that are shown to an HTTP server: a request, and what its answer means."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from app.domain.vault import connection_tests
from app.services import Services
from tests.peer import answering
from tests.ports import free_port
from tests.vault.making import (
    GOOD,
    PATH,
    actions,
    create,
    fetch,
    plant_secrets,
    shown,
    sql,
    told,
    trail,
    tried,
    wrong,
)
from tests.world import Client

HTTP_TYPES = ["api_key", "basic_auth", "bearer_token", "custom"]
_BASIC = base64.b64encode(b"planted-user:planted-password").decode()
SENT: dict[str, dict[str, str]] = {
    "api_key": {"X-API-Key": "planted-api-key"},
    "basic_auth": {"Authorization": f"Basic {_BASIC}"},
    "bearer_token": {"Authorization": "Bearer planted-token"},
    "custom": {"X-First": "planted-first", "second": "planted-second"},
}


class Door:
    """A server that lets in whoever shows the right headers."""

    def __init__(self, wanted: dict[str, str]) -> None:
        self.url = ""
        self.wanted = wanted
        self.seen: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append(request)
        right = all(request.headers.get(name) == value for name, value in self.wanted.items())
        return web.Response(status=200 if right else 401, text="planted-echo")


@asynccontextmanager
async def _door(wanted: dict[str, str]) -> AsyncIterator[Door]:
    door = Door(wanted)
    async with answering(door.answer) as url:
        door.url = f"{url}/me?x=1"
        yield door


@pytest.mark.parametrize("type_", HTTP_TYPES)
async def test_good_secrets_are_a_success(admin: Client, type_: str) -> None:
    async with _door(SENT[type_]) as door:
        made = await create(admin, type_, metadata={"test_url": door.url})
        result = await tried(admin, made["id"])
    assert (result["success"], result["message"]) == (True, "The address answered 200")
    assert isinstance(result["latency_ms"], int)
    assert 0 <= result["latency_ms"] < 15_000
    assert [(request.method, request.path_qs) for request in door.seen] == [("GET", "/me?x=1")]
    after = await shown(admin, made["id"])
    assert after["is_valid"] is True
    assert after["last_tested_at"] == result["tested_at"]


@pytest.mark.parametrize("type_", HTTP_TYPES)
async def test_wrong_secrets_are_no_success_and_the_credential_is_not_valid(
    admin: Client, type_: str
) -> None:
    async with _door({"X-Nobody": "has this"}) as door:
        made = await create(admin, type_, metadata={"test_url": door.url})
        result = await tried(admin, made["id"])
    assert (result["success"], result["message"]) == (False, "the address answered 401")
    after = await shown(admin, made["id"])
    assert (after["is_valid"], after["last_tested_at"]) == (False, result["tested_at"])


@pytest.mark.parametrize("type_", HTTP_TYPES)
async def test_without_an_address_there_is_nothing_to_test(admin: Client, type_: str) -> None:
    made = await create(admin, type_)
    answer = await admin.post(f"{PATH}/{made['id']}/test")
    assert set(wrong(answer)) == {"metadata.test_url"}
    after = await shown(admin, made["id"])
    assert (after["is_valid"], after["last_tested_at"]) == (True, None)


async def test_an_api_key_goes_into_the_header_that_metadata_names(admin: Client) -> None:
    async with _door({"X-Other": "planted-api-key"}) as door:
        metadata = {"test_url": door.url, "header": "X-Other"}
        made = await create(admin, "api_key", metadata=metadata)
        assert (await tried(admin, made["id"]))["success"] is True
    assert "X-API-Key" not in door.seen[0].headers


@pytest.mark.parametrize("header", ["Host", "not a header", "X-Service-Event", "Ü", ""])
async def test_a_key_that_cannot_be_sent_is_never_a_success_without_it(
    admin: Client, header: str
) -> None:
    async with _door({}) as door:
        metadata = {"test_url": door.url, "header": header}
        made = await create(admin, "api_key", metadata=metadata)
        result = await tried(admin, made["id"])
    shown_there = [request.headers.get("X-API-Key") for request in door.seen]
    assert result["success"] is (shown_there == ["planted-api-key"])
    assert "planted" not in str(result)


@pytest.mark.parametrize(
    ("type_", "secrets"),
    [
        ("bearer_token", {"token": "two\r\nX-Evil: lines"}),
        ("api_key", {"api_key": "nul\x01"}),
        ("custom", {"Content-Length": "5", "X-Good": "yes"}),
        ("custom", {"no header": "x"}),
    ],
)
async def test_secrets_that_no_header_holds_are_no_success(
    admin: Client, type_: str, secrets: dict[str, str]
) -> None:
    async with _door({}) as door:
        made = await create(admin, type_, secrets, metadata={"test_url": door.url})
        result = await tried(admin, made["id"])
    assert result["success"] is False
    assert door.seen == []


async def test_secrets_may_be_other_than_ascii(admin: Client) -> None:
    async with _door(SENT["basic_auth"]) as door:
        secrets = {"username": "jürgen", "password": "schlüssel"}
        made = await create(admin, "basic_auth", secrets, metadata={"test_url": door.url})
        assert (await tried(admin, made["id"]))["success"] is False
    sent = door.seen[0].headers["Authorization"].partition(" ")[2]
    assert base64.b64decode(sent).decode() == "jürgen:schlüssel"


@pytest.mark.parametrize(
    ("status", "success"),
    [(200, True), (204, True), (299, True), (400, False), (403, False), (404, False), (500, False)],
)
async def test_only_an_answer_of_2xx_is_a_success(
    admin: Client, status: int, *, success: bool
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        assert (await tried(admin, made["id"]))["success"] is success


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_neither_followed_nor_a_success(admin: Client, status: int) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": f"{url}/me"})
        result = await tried(admin, made["id"])
    assert seen == ["/me"]
    assert (result["success"], result["message"]) == (False, f"the address answered {status}")


async def test_a_large_answer_is_as_good_as_any(admin: Client) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1_000_000)

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        assert (await tried(admin, made["id"]))["success"] is True


async def test_nobody_there_is_no_success(admin: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    made = await create(admin, metadata={"test_url": url})
    result = await tried(admin, made["id"])
    assert result["success"] is False
    assert result["message"].startswith("no connection")


async def test_a_server_that_keeps_silent_is_given_up(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_tests, "_SECONDS", 0.3)
    released = asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        result = await tried(admin, made["id"])
        released.set()
    assert result["success"] is False
    assert "no answer within 0.3 s" in result["message"]
    assert 300 <= result["latency_ms"] < 5_000


async def test_nothing_of_an_answer_is_repeated(admin: Client) -> None:
    async with _door({"X-Nobody": "has this"}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        assert "planted" not in str(await tried(admin, made["id"]))


async def test_a_test_is_no_change_of_the_credential(admin: Client) -> None:
    async with _door({}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        await tried(admin, made["id"])
    assert (await shown(admin, made["id"]))["updated_at"] == made["updated_at"]


# Valid, not valid, and who is told


async def test_the_first_failure_is_told_and_the_others_are_not(admin: Client) -> None:
    async with _door({"X-Nobody": "has this"}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        for _ in range(3):
            await tried(admin, made["id"])
    assert await told(admin, "invalid") == [
        {
            "credential_id": made["id"],
            "name": "Ours",
            "credential_type": "bearer_token",
            "reason": "the address answered 401",
        }
    ]


async def test_a_credential_that_works_again_is_valid_again(admin: Client) -> None:
    async with _door({"X-Nobody": "has this"}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        await tried(admin, made["id"])
        door.wanted = SENT["bearer_token"]
        await tried(admin, made["id"])
        assert (await shown(admin, made["id"]))["is_valid"] is True
        door.wanted = {"X-Nobody": "has this"}
        await tried(admin, made["id"])
    assert len(await told(admin, "invalid")) == 2


@pytest.mark.parametrize("works", [True, False])
async def test_a_test_says_nothing_of_secrets_that_came_meanwhile(
    admin: Client, services: Services, *, works: bool
) -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        asked.set()
        await released.wait()
        return web.Response(status=200 if works else 401)

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        testing = asyncio.create_task(tried(admin, made["id"]))
        await asked.wait()
        await admin.put(f"{PATH}/{made['id']}/secrets", {"secrets": {"token": "new"}})
        mark = "UPDATE credentials SET is_valid = $2 WHERE id = $1"
        await sql(services, mark, made["id"], not works)
        released.set()
        await testing
    assert (await shown(admin, made["id"]))["is_valid"] is not works
    assert await told(admin, "invalid") == []


async def test_no_transaction_is_open_while_the_other_side_is_asked(
    admin: Client, services: Services
) -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        asked.set()
        await released.wait()
        return web.Response()

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        testing = asyncio.create_task(tried(admin, made["id"]))
        await asked.wait()
        idle = "SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert await fetch(services, idle) == []
        released.set()
        await testing


async def test_a_credential_that_is_deleted_meanwhile_is_no_failure(admin: Client) -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        asked.set()
        await released.wait()
        return web.Response()

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        testing = asyncio.create_task(tried(admin, made["id"]))
        await asked.wait()
        await admin.delete(f"{PATH}/{made['id']}")
        released.set()
        assert (await testing)["success"] is True
    assert await actions(admin) == ["deleted", "created"]


async def test_many_tests_at_once_are_each_written_down(admin: Client) -> None:
    async with _door({}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        results: list[Any] = await asyncio.gather(*(tried(admin, made["id"]) for _ in range(10)))
    assert all(result["success"] for result in results)
    assert [row["action"] for row in await trail(admin, made["id"])] == ["tested"] * 10 + [
        "created"
    ]


async def test_secrets_that_do_not_open_are_never_sent(admin: Client, services: Services) -> None:
    async with _door({}) as door:
        made = await create(admin, metadata={"test_url": door.url})
        other = await create(admin)
        await plant_secrets(services, admin, other["id"], GOOD["bearer_token"])
        await sql(
            services,
            "UPDATE credentials SET secrets = (SELECT secrets FROM credentials WHERE id = $2) "
            "WHERE id = $1",
            made["id"],
            other["id"],
        )
        answer = await admin.post(f"{PATH}/{made['id']}/test")
    assert answer.status_code == 500
    assert door.seen == []

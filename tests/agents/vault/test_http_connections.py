"""Connection tests of credentials that are sent in HTTP headers."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from app.domain.agents.vault import connection_tests
from app.services import Services
from tests.agents.vault.api import (
    PATH,
    get_credential,
    list_actions,
    list_audit,
    list_events,
    read_invalid_fields,
    run_connection_test,
)
from tests.agents.vault.factories import VALID_SECRETS, create_credential
from tests.agents.vault.servers import serve_response
from tests.agents.vault.sql import store_secrets
from tests.assertions import wait_until
from tests.database import fetch_rows, run_sql
from tests.peer import answering
from tests.ports import free_port
from tests.world import Client, World

HTTP_TYPES = ["api_key", "basic_auth", "bearer_token", "custom"]
_BASIC = base64.b64encode(b"planted-user:planted-password").decode()
EXPECTED_HEADERS: dict[str, dict[str, str]] = {
    "api_key": {"X-API-Key": "planted-api-key"},
    "basic_auth": {"Authorization": f"Basic {_BASIC}"},
    "bearer_token": {"Authorization": "Bearer planted-token"},
    "custom": {"X-First": "planted-first", "second": "planted-second"},
}


class HeaderServer:
    """A server that answers 200 to the expected headers and 401 to others."""

    def __init__(self, expected_headers: dict[str, str]) -> None:
        self.url = ""
        self.expected_headers = expected_headers
        self.requests: list[web.Request] = []

    async def respond(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        is_correct = all(
            request.headers.get(name) == value for name, value in self.expected_headers.items()
        )
        return web.Response(status=200 if is_correct else 401, text="planted-echo")


@asynccontextmanager
async def _run_header_server(expected_headers: dict[str, str]) -> AsyncIterator[HeaderServer]:
    server = HeaderServer(expected_headers)
    async with answering(server.respond) as url:
        server.url = f"{url}/me?x=1"
        yield server


async def test_valid_secrets_are_a_success(world: World, subtests: pytest.Subtests) -> None:
    for type_ in HTTP_TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            async with _run_header_server(EXPECTED_HEADERS[type_]) as server:
                credential = await create_credential(
                    admin, type_, metadata={"test_url": server.url}
                )
                result = await run_connection_test(admin, credential["id"])
            assert (result["success"], result["message"]) == (True, "The address answered 200")
            assert isinstance(result["latency_ms"], int)
            assert 0 <= result["latency_ms"] < 15_000
            assert [(request.method, request.path_qs) for request in server.requests] == [
                ("GET", "/me?x=1")
            ]
            updated = await get_credential(admin, credential["id"])
            assert updated["is_valid"] is True
            assert updated["last_tested_at"] == result["tested_at"]


async def test_wrong_secrets_fail_the_test_and_invalidate_the_credential(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_ in HTTP_TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            async with _run_header_server({"X-Nobody": "has this"}) as server:
                credential = await create_credential(
                    admin, type_, metadata={"test_url": server.url}
                )
                result = await run_connection_test(admin, credential["id"])
            assert (result["success"], result["message"]) == (False, "the address answered 401")
            updated = await get_credential(admin, credential["id"])
            assert (updated["is_valid"], updated["last_tested_at"]) == (False, result["tested_at"])


async def test_a_test_without_a_test_url_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_ in HTTP_TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            credential = await create_credential(admin, type_)
            answer = await admin.post(f"{PATH}/{credential['id']}/test")
            assert set(read_invalid_fields(answer)) == {"metadata.test_url"}
            updated = await get_credential(admin, credential["id"])
            assert (updated["is_valid"], updated["last_tested_at"]) == (True, None)


async def test_an_api_key_goes_into_the_header_that_metadata_names(admin: Client) -> None:
    async with _run_header_server({"X-Other": "planted-api-key"}) as server:
        metadata = {"test_url": server.url, "header": "X-Other"}
        credential = await create_credential(admin, "api_key", metadata=metadata)
        assert (await run_connection_test(admin, credential["id"]))["success"] is True
    assert "X-API-Key" not in server.requests[0].headers


async def test_an_api_key_goes_into_the_default_header_if_metadata_names_an_empty_one(
    admin: Client,
) -> None:
    async with _run_header_server(EXPECTED_HEADERS["api_key"]) as server:
        metadata = {"test_url": server.url, "header": ""}
        credential = await create_credential(admin, "api_key", metadata=metadata)
        assert (await run_connection_test(admin, credential["id"]))["success"] is True


async def test_a_key_that_cannot_be_sent_fails_the_test(
    world: World, subtests: pytest.Subtests
) -> None:
    for header in ("Host", "not a header", "X-Service-Event", "Ü"):
        admin = await world.user("tenant_admin")
        with subtests.test(header=header):
            async with _run_header_server({}) as server:
                metadata = {"test_url": server.url, "header": header}
                credential = await create_credential(admin, "api_key", metadata=metadata)
                result = await run_connection_test(admin, credential["id"])
            assert result["success"] is False
            assert "cannot be sent as a header" in result["message"]
            assert server.requests == []
            assert "planted" not in str(result)


async def test_secrets_that_fit_no_header_fail_the_test(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, str]]] = [
        ("bearer_token", {"token": "two\r\nX-Evil: lines"}),
        ("api_key", {"api_key": "nul\x01"}),
        ("custom", {"Content-Length": "5", "X-Good": "yes"}),
        ("custom", {"no header": "x"}),
    ]
    for type_, secrets in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_, secrets=secrets):
            async with _run_header_server({}) as server:
                credential = await create_credential(
                    admin, type_, secrets, metadata={"test_url": server.url}
                )
                result = await run_connection_test(admin, credential["id"])
            assert result["success"] is False
            assert server.requests == []


async def test_secrets_may_contain_other_than_ascii(admin: Client) -> None:
    async with _run_header_server(EXPECTED_HEADERS["basic_auth"]) as server:
        secrets = {"username": "jürgen", "password": "schlüssel"}
        credential = await create_credential(
            admin, "basic_auth", secrets, metadata={"test_url": server.url}
        )
        assert (await run_connection_test(admin, credential["id"]))["success"] is False
    encoded = server.requests[0].headers["Authorization"].partition(" ")[2]
    assert base64.b64decode(encoded).decode() == "jürgen:schlüssel"


async def test_only_a_response_of_2xx_is_a_success(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[int, bool]] = [
        (200, True),
        (204, True),
        (299, True),
        (400, False),
        (403, False),
        (404, False),
        (500, False),
    ]
    for status, success in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(status=status, success=success):
            async with serve_response(status) as url:
                credential = await create_credential(admin, metadata={"test_url": url})
                assert (await run_connection_test(admin, credential["id"]))["success"] is success


async def test_a_redirect_is_neither_followed_nor_a_success(
    world: World, subtests: pytest.Subtests
) -> None:
    for status in (301, 302, 303, 307, 308):
        admin = await world.user("tenant_admin")
        with subtests.test(status=status):
            paths: list[str] = []

            async def respond(request: web.Request) -> web.Response:
                paths.append(request.path)  # noqa: B023
                return web.Response(status=status, headers={"Location": "/elsewhere"})  # noqa: B023

            async with answering(respond) as url:
                credential = await create_credential(admin, metadata={"test_url": f"{url}/me"})
                result = await run_connection_test(admin, credential["id"])
            assert paths == ["/me"]
            assert (result["success"], result["message"]) == (
                False,
                f"the address answered {status}",
            )


async def test_a_large_response_is_a_success(admin: Client) -> None:
    async with serve_response(body=b"x" * 1_000_000) as url:
        credential = await create_credential(admin, metadata={"test_url": url})
        assert (await run_connection_test(admin, credential["id"]))["success"] is True


async def test_an_unreachable_server_fails_the_test(admin: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    credential = await create_credential(admin, metadata={"test_url": url})
    result = await run_connection_test(admin, credential["id"])
    assert result["success"] is False
    assert result["message"].startswith("no connection")


async def test_a_server_that_does_not_answer_ends_in_a_timeout(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_tests, "_TIMEOUT_SECONDS", 0.3)
    response_allowed = asyncio.Event()

    async def respond(_request: web.Request) -> web.Response:
        await response_allowed.wait()
        return web.Response()

    async with answering(respond) as url:
        credential = await create_credential(admin, metadata={"test_url": url})
        result = await run_connection_test(admin, credential["id"])
        response_allowed.set()
    assert result["success"] is False
    assert "no answer within 0.3 s" in result["message"]
    assert 300 <= result["latency_ms"] < 5_000


async def test_a_result_contains_nothing_of_the_response(admin: Client) -> None:
    async with _run_header_server({"X-Nobody": "has this"}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        assert "planted" not in str(await run_connection_test(admin, credential["id"]))


async def test_a_test_does_not_change_updated_at(admin: Client) -> None:
    async with _run_header_server({}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        await run_connection_test(admin, credential["id"])
    assert (await get_credential(admin, credential["id"]))["updated_at"] == credential["updated_at"]


# Validity and events


async def test_only_the_first_failure_emits_an_event(admin: Client) -> None:
    async with _run_header_server({"X-Nobody": "has this"}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        for _ in range(3):
            await run_connection_test(admin, credential["id"])
    assert await list_events(admin, "invalid") == [
        {
            "credential_id": credential["id"],
            "name": "Ours",
            "credential_type": "bearer_token",
            "reason": "the address answered 401",
        }
    ]


async def test_a_credential_that_works_again_is_valid_again(admin: Client) -> None:
    async with _run_header_server({"X-Nobody": "has this"}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        await run_connection_test(admin, credential["id"])
        server.expected_headers = EXPECTED_HEADERS["bearer_token"]
        await run_connection_test(admin, credential["id"])
        assert (await get_credential(admin, credential["id"]))["is_valid"] is True
        server.expected_headers = {"X-Nobody": "has this"}
        await run_connection_test(admin, credential["id"])
    assert len(await list_events(admin, "invalid")) == 2


@asynccontextmanager
async def _hold_test(
    admin: Client, status: int = 200
) -> AsyncIterator[tuple[str, asyncio.Task[dict[str, Any]]]]:
    """Yields a credential's id and its test, which gets its response after the block."""
    request_received, response_allowed = asyncio.Event(), asyncio.Event()

    async def respond(_request: web.Request) -> web.Response:
        request_received.set()
        await response_allowed.wait()
        return web.Response(status=status)

    async with answering(respond) as url:
        credential = await create_credential(admin, metadata={"test_url": url})
        task = asyncio.create_task(run_connection_test(admin, credential["id"]))
        await request_received.wait()
        try:
            yield credential["id"], task
        finally:
            response_allowed.set()
            await task


async def test_a_test_does_not_affect_secrets_replaced_meanwhile(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for works in (True, False):
        admin = await world.user("tenant_admin")
        with subtests.test(works=works):
            async with _hold_test(admin, 200 if works else 401) as (credential_id, _):
                await admin.put(f"{PATH}/{credential_id}/secrets", {"secrets": {"token": "new"}})
                set_validity = "UPDATE credentials SET is_valid = $2 WHERE id = $1"
                await run_sql(services, set_validity, credential_id, not works)
            assert (await get_credential(admin, credential_id))["is_valid"] is not works
            assert await list_events(admin, "invalid") == []


async def test_no_transaction_is_open_during_a_test(admin: Client, services: Services) -> None:
    idle = "SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"

    async def has_none_open() -> bool:
        return await fetch_rows(services, idle) == []

    async with _hold_test(admin):
        # Background tasks of other tests may have one open for a moment.
        await wait_until(has_none_open, 10)


async def test_deleting_a_credential_during_its_test_is_no_failure(admin: Client) -> None:
    async with _hold_test(admin) as (credential_id, task):
        await admin.delete(f"{PATH}/{credential_id}")
    assert task.result()["success"] is True
    assert await list_actions(admin) == ["deleted", "created"]


async def test_concurrent_tests_are_all_in_the_audit_log(admin: Client) -> None:
    async with _run_header_server({}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        results: list[Any] = await asyncio.gather(
            *(run_connection_test(admin, credential["id"]) for _ in range(10))
        )
    assert all(result["success"] for result in results)
    assert [row["action"] for row in await list_audit(admin, credential["id"])] == [
        "tested"
    ] * 10 + ["created"]


async def test_secrets_that_cannot_be_decrypted_are_never_sent(
    admin: Client, services: Services
) -> None:
    async with _run_header_server({}) as server:
        credential = await create_credential(admin, metadata={"test_url": server.url})
        other = await create_credential(admin)
        await store_secrets(services, admin, other["id"], VALID_SECRETS["bearer_token"])
        await run_sql(
            services,
            "UPDATE credentials SET secrets = (SELECT secrets FROM credentials WHERE id = $2) "
            "WHERE id = $1",
            credential["id"],
            other["id"],
        )
        answer = await admin.post(f"{PATH}/{credential['id']}/test")
    assert answer.status_code == 500
    assert server.requests == []

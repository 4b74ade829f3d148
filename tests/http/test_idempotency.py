"""Idempotency-Key: replayed responses, conflicts, and the scope of a key."""

import asyncio
from typing import Any, cast

import httpx
import msgspec
import pytest
from litestar import Litestar
from litestar.types import Message, Receive, Scope, Send
from sqlalchemy.pool import QueuePool

from app.domain.identity.accounts import invitations
from app.kit.ids import new_id
from app.main import create_app
from app.security import passwords
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.database import fetch_rows
from tests.stores import Stores
from tests.world import Client, World


async def _count_rows(services: Services, tenant_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count: int = await raw.fetchval(
            "SELECT count(*) FROM event_log WHERE tenant_id = $1 AND type = 'test.counted'",
            tenant_id,
        )
    return count


async def test_the_same_key_and_body_replay_the_first_answer(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "order-1"}
    first = await developer.post("/test/counted", {"a": 1}, headers=headers)
    second = await developer.post("/test/counted", {"a": 1}, headers=headers)
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
    assert await _count_rows(services, developer.tenant_id) == 1


async def test_the_same_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"idempotency-key": "order-2"}
    await developer.post("/test/counted", {"a": 1}, headers=headers)
    answer = await developer.post("/test/counted", {"a": 2}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"


async def test_a_key_belongs_to_its_user(world: World, developer: Client) -> None:
    other = await world.user("agent_developer", developer.tenant_id)
    headers = {"idempotency-key": "shared"}
    first = await developer.post("/test/counted", {}, headers=headers)
    second = await other.post("/test/counted", {}, headers=headers)
    assert first.json() != second.json()


async def test_parallel_requests_with_one_key_have_one_effect(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "race"}
    answers = await asyncio.gather(
        *(developer.post("/test/counted", {"n": 1}, headers=headers) for _ in range(8))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert await _count_rows(services, developer.tenant_id) == 1


async def test_a_failed_request_does_not_keep_its_key(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "again"}
    failed = await developer.post("/test/counted", {"fail": True}, headers=headers)
    assert failed.status_code == 500
    assert await _count_rows(services, developer.tenant_id) == 0
    retried = await developer.post("/test/counted", {"fail": False}, headers=headers)
    assert retried.status_code == 201


async def test_stored_answers_are_sealed(developer: Client, services: Services) -> None:
    headers = {"idempotency-key": "sealed"}
    answer = await developer.post("/test/counted", {}, headers=headers)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        bodies = await (await tx.raw()).fetch(
            "SELECT body FROM idempotency_keys WHERE body IS NOT NULL"
        )
    assert bodies
    assert all(answer.json()["id"].encode() not in row["body"] for row in bodies)


async def test_a_key_belongs_to_the_tenant_that_super_admin_acts_in(
    super_admin: Client, world: World
) -> None:
    body = {"email": f"{new_id('x')}@example.com", "role": "viewer"}
    results = []
    for tenant in (await world.tenant(), await world.tenant()):
        headers = {"idempotency-key": "one", "x-tenant-id": tenant}
        answer = await super_admin.post("/users/invite", body, headers=headers)
        results.append((answer.status_code, answer.json()["tenant_id"] == tenant))
    assert results == [(201, True), (201, True)]


async def test_a_failed_request_leaves_no_connection_checked_out(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "fails"}
    assert (
        await developer.post("/test/counted", {"fail": True}, headers=headers)
    ).status_code == 500
    assert (await developer.get("/auth/me")).status_code == 200
    pool = cast("QueuePool", services.db.engine.sync_engine.pool)
    assert pool.checkedout() == 0


async def test_a_failed_request_holds_nothing_when_its_error_is_sent(
    app: Litestar, services: Services, developer: Client
) -> None:
    """Neither its connection, which a slow client would keep, nor its key, since the client may try
    again at once with another body.
    """
    pool = cast("QueuePool", services.db.engine.sync_engine.pool)
    # A request of an earlier test may still be counted.
    await until(lambda: pool.checkedout() == 0)
    before, seen = await _list_open_keys(services), []

    async def observed(scope: Scope, receive: Receive, send: Send) -> None:
        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.append((pool.checkedout(), await _list_open_keys(services) - before))
            await send(message)

        await app(scope, receive, observe)

    transport = httpx.ASGITransport(cast("Any", observed))
    headers = {"authorization": f"Bearer {developer.token}", "idempotency-key": "observed"}
    async with httpx.AsyncClient(transport=transport, base_url="http://parley") as client:
        wrong = await client.post("/auth/register", json={"email": "no"}, headers=headers)
        failed = await client.post("/test/counted", json={"fail": True}, headers=headers)
    assert (wrong.status_code, failed.status_code) == (422, 500)
    assert seen == [(0, set()), (0, set())]


async def _list_open_keys(services: Services) -> set[str]:
    rows = await fetch_rows(services, "SELECT id FROM idempotency_keys WHERE status IS NULL")
    return {row["id"] for row in rows}


async def test_requests_that_wait_for_the_same_key_hold_no_connection(
    admin: Client, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request hangs; further requests with its key must not exhaust the pool."""
    is_reached, may_finish = asyncio.Event(), asyncio.Event()

    async def hang(*_args: Any) -> None:
        is_reached.set()
        await may_finish.wait()

    monkeypatch.setattr(invitations, "require_active_session", hang)
    body = {"email": f"{new_id('x')}@example.com", "role": "viewer"}
    headers = {"idempotency-key": "slow"}
    calls = [
        asyncio.create_task(admin.post("/users/invite", body, headers=headers)) for _ in range(30)
    ]
    await is_reached.wait()
    async with asyncio.timeout(5):
        assert (await developer.get("/auth/me")).status_code == 200
    may_finish.set()
    answers = await asyncio.gather(*calls)
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}


async def test_registrations_with_a_key_hold_no_connection_while_they_hash(
    developer: Client, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than there are connections wait for the hashing threads."""
    may_finish, waiting = asyncio.Event(), 0

    async def hang(_password: str) -> str:
        nonlocal waiting
        waiting += 1
        await may_finish.wait()
        return "hash"

    monkeypatch.setattr(passwords, "hash_password", hang)
    app = create_app(msgspec.structs.replace(stores.settings, pool_size=2))
    caller, reader = Client(app), Client(app, developer.token)
    calls = [asyncio.create_task(_register(caller, f"Key {number}")) for number in range(8)]
    await until(lambda: waiting == len(calls))
    async with asyncio.timeout(5):
        assert (await reader.get("/auth/me")).status_code == 200
    may_finish.set()
    assert [answer.status_code for answer in await asyncio.gather(*calls)] == [201] * len(calls)
    await app.state.services.close()


async def _register(caller: Client, key: str, email: str = "") -> httpx.Response:
    body = {
        "email": email or f"{new_id('x')}@example.com",
        "password": "Correct7Horse",
        "first_name": "Ada",
        "last_name": "Byron",
    }
    return await caller.post("/auth/register", body, headers={"idempotency-key": key})


async def test_a_registration_is_replayed_by_its_key(anonymous: Client) -> None:
    email = f"{new_id('x')}@example.com"
    first, second = [await _register(anonymous, "again", email) for _ in range(2)]
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert (await _register(anonymous, "other", email)).status_code == 409

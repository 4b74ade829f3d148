"""Listing one's own sessions, and ending one of them."""

from datetime import timedelta
from typing import Any

import pytest

from app.domain.identity.accounts.user_agents import clean_user_agent, describe_user_agent
from app.kit import clock
from app.security.sessions import SEEN_SECONDS, read_status, session_key
from app.services import Services
from db.session import Database
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.identity.accounts.api_calls import (
    begin_session,
    get_own_status,
    log_in,
    refresh_own_tokens,
    refresh_pair,
)
from tests.identity.accounts.records import read_tenant_events
from tests.stores import Stores
from tests.world import Client, World

PATH = "/auth/sessions"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


async def _list_sessions(client: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    sessions: list[dict[str, Any]] = answer.json()["data"]
    return sessions


async def _list_ids(client: Client, **params: Any) -> list[str]:
    return [session["id"] for session in await _list_sessions(client, **params)]


async def _find_other_id(client: Client) -> str:
    """Returns the session of the user that is not the client's own."""
    [session_id] = [item["id"] for item in await _list_sessions(client) if not item["is_current"]]
    return str(session_id)


async def _age_session(services: Services, session_id: str, seconds: float) -> None:
    """Makes the session look unused, also to the gate."""
    sql = "UPDATE sessions SET last_seen_at = now() - $2 * interval '1 second' WHERE id = $1"
    await run_sql(services, sql, session_id, seconds)
    await services.redis.delete(session_key(session_id))


async def test_a_session_shows_its_device_and_its_times(world: World, developer: Client) -> None:
    caller, before = world.anonymous(), clock.now()
    body = {"email": developer.email, "password": "Correct7Horse"}
    answer = await caller.post("/auth/login", body, headers={"user-agent": FIREFOX})
    signed_in = Client(world.app, answer.json()["access_token"])
    [session] = [item for item in await _list_sessions(signed_in) if item["is_current"]]
    times = {name: session.pop(name) for name in ("created_at", "last_seen_at", "expires_at")}
    assert session == {
        "id": session["id"],
        "device": "Firefox on Linux",
        "user_agent": FIREFOX,
        "ip_address": caller.address,
        "is_current": True,
    }
    assert times["created_at"] >= (before - timedelta(seconds=1)).isoformat()
    assert times["created_at"][:16] == times["last_seen_at"][:16]
    assert times["expires_at"] > times["created_at"]


async def test_only_live_sessions_of_the_caller_are_listed(
    world: World, developer: Client, services: Services
) -> None:
    ended, _expired = [await begin_session(world, developer.email) for _ in range(2)]
    await ended.post("/auth/logout")
    expired_id = await _find_other_id(developer)
    sql = "UPDATE sessions SET expires_at = now() - interval '1 second' WHERE id = $1"
    await run_sql(services, sql, expired_id)
    colleague = await world.user("tenant_admin", developer.tenant_id)
    assert await _list_ids(developer) == [developer.session_id]
    assert await _list_ids(colleague) == [colleague.session_id]
    refused(await developer.delete(f"{PATH}/{expired_id}"), 404, "session_not_found")


async def test_the_last_used_session_is_first_and_pages_do_not_overlap(
    world: World, developer: Client, services: Services
) -> None:
    await begin_session(world, developer.email)
    other_id = await _find_other_id(developer)
    await _age_session(services, developer.session_id, 100)
    assert await _list_ids(developer) == [other_id, developer.session_id]
    pages = [await _list_ids(developer, per_page=1, page=page) for page in (1, 2, 3)]
    assert pages == [[other_id], [developer.session_id], []]


async def test_an_ended_session_is_over_at_once(
    world: World, developer: Client, services: Services
) -> None:
    other = await begin_session(world, developer.email)
    other_id = await _find_other_id(developer)
    answer = await developer.delete(f"{PATH}/{other_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await get_own_status(other), await refresh_own_tokens(other)) == (401, 401)
    assert await get_own_status(developer) == 200
    assert await read_tenant_events(services, developer, "session_ended") == [
        {"user_id": developer.user_id, "session_id": other_id}
    ]
    refused(await developer.delete(f"{PATH}/{other_id}"), 404, "session_not_found")


async def test_ending_the_current_session_signs_out(developer: Client, services: Services) -> None:
    assert (await developer.delete(f"{PATH}/{developer.session_id}")).status_code == 204
    assert await get_own_status(developer) == 401
    assert await refresh_own_tokens(developer) == 401
    assert len(await read_tenant_events(services, developer, "signed_out")) == 1


async def test_nobody_ends_the_session_of_another_user(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("tenant_admin", "super_admin"):
        developer = await world.user()
        with subtests.test(role=role):
            tenant_id = developer.tenant_id if role == "tenant_admin" else None
            other = await world.user(role, tenant_id)
            answer = await other.delete(
                f"{PATH}/{developer.session_id}", headers={"x-tenant-id": developer.tenant_id}
            )
            refused(answer, 404, "session_not_found")
            assert await get_own_status(developer) == 200


async def test_a_super_admin_who_acts_in_another_tenant_sees_their_own_sessions(
    super_admin: Client, developer: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    answer = await super_admin.get(PATH, headers=headers)
    assert [item["id"] for item in answer.json()["data"]] == [super_admin.session_id]


async def test_sessions_need_a_sign_in(anonymous: Client, subtests: pytest.Subtests) -> None:
    for method in ("GET", "DELETE"):
        with subtests.test(method=method):
            path = PATH if method == "GET" else f"{PATH}/ses_1"
            assert (await anonymous(method, path)).status_code == 401


# The time of the last use


async def _find_writer(services: Services, session_id: str) -> str:
    """Returns the transaction that wrote the row last."""
    sql = "SELECT xmin::text AS writer FROM sessions WHERE id = $1"
    [row] = await fetch_rows(services, sql, session_id)
    return str(row["writer"])


async def test_a_request_stores_the_use_of_a_session_once_in_a_while(
    developer: Client, services: Services
) -> None:
    await _age_session(services, developer.session_id, SEEN_SECONDS + 1)
    [session] = await _list_sessions(developer)
    assert session["last_seen_at"] > (clock.now() - timedelta(minutes=1)).isoformat()
    writer = await _find_writer(services, developer.session_id)
    for _ in range(3):
        await services.redis.delete(session_key(developer.session_id))
        assert await get_own_status(developer) == 200
    assert await _find_writer(services, developer.session_id) == writer


async def test_a_request_does_not_wait_for_a_locked_session(
    developer: Client, services: Services
) -> None:
    await _age_session(services, developer.session_id, SEEN_SECONDS + 1)
    async with services.db.tx(developer.tenant_id) as tx:
        lock = "SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE"
        await (await tx.raw()).fetchval(lock, developer.session_id)
        status = await read_status(services.db, developer.tenant_id, developer.session_id)
    assert status is not None
    assert status.is_live


async def test_a_session_is_live_although_its_use_cannot_be_stored(
    developer: Client, services: Services, stores: Stores
) -> None:
    await _age_session(services, developer.session_id, SEEN_SECONDS + 1)
    read_only = "options=-c%20default_transaction_read_only%3Don"
    db = Database(f"{stores.settings.database_url}&{read_only}", pool_size=1)
    try:
        for _ in range(2):
            status = await read_status(db, developer.tenant_id, developer.session_id)
            assert status is not None
            assert status.is_live
    finally:
        await db.close()


async def test_a_refresh_counts_as_use(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _age_session(services, developer.session_id, 100)
    await refresh_pair(anonymous, developer.refresh_token)
    [session] = await _list_sessions(developer)
    assert session["last_seen_at"] > (clock.now() - timedelta(seconds=60)).isoformat()


# The device


_CASES: list[tuple[str | None, str]] = [
    (FIREFOX, "Firefox on Linux"),
    (
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0"
        ),
        "Edge on Windows",
    ),
    (
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/142.0.0.0 Mobile Safari/537.36"
        ),
        "Chrome on Android",
    ),
    (
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 "
            "(KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"
        ),
        "Safari on iPhone",
    ),
    (
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "
            "(KHTML, like Gecko) Version/18.6 Safari/605.1.15"
        ),
        "Safari on macOS",
    ),
    ("Mozilla/5.0 (Linux; Android 10) Chrome/142.0 EdgA/142.0", "Edge on Android"),
    ("Mozilla/5.0 (iPhone) Version/18.0 EdgiOS/142.0 Safari/604.1", "Edge on iPhone"),
    ("Mozilla/5.0 (Windows NT 10.0) Chrome/64.0 Safari/537.36 Edge/17.1", "Edge on Windows"),
    ("Edgar Tool/1.0", "Edgar Tool"),
    ("curl/8.5.0", "curl"),
    ("python-httpx/0.28.1", "python-httpx"),
    ("x" * 5000 + "/1", "Unknown device"),
    ("\x00\x1b[31m", "Unknown device"),
    ("", "Unknown device"),
    (None, "Unknown device"),
]


def test_a_user_agent_is_described(subtests: pytest.Subtests) -> None:
    for header, device in _CASES:
        with subtests.test(header=header, device=device):
            assert describe_user_agent(clean_user_agent(header)) == device


def test_a_stored_user_agent_is_printable_and_of_limited_length() -> None:
    assert clean_user_agent("a\x00b\x1b\n") == "ab"
    assert len(clean_user_agent("a" * 5000) or "") == 512
    assert clean_user_agent(" \t") is None


async def test_a_sign_in_without_a_user_agent_works(world: World, developer: Client) -> None:
    caller = world.anonymous()
    del caller.http.headers["user-agent"]
    pair = (await log_in(caller, developer.email)).json()
    sessions = await _list_sessions(Client(world.app, pair["access_token"]))
    assert ("Unknown device", None) in [(item["device"], item["user_agent"]) for item in sessions]


async def test_a_new_session_was_last_seen_when_it_began(world: World) -> None:
    client = await begin_session(world, (await world.user()).email)
    (current,) = [item for item in await _list_sessions(client) if item["is_current"]]
    assert current["last_seen_at"] == current["created_at"]

"""Attacks that cause costly work."""

import asyncio
from typing import Any

import pytest

from app.domain.accounts import invitations
from app.security import passwords
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.values import NEW_PASSWORD
from tests.world import Client, World


async def test_a_reset_with_a_unknown_token_costs_no_hash(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_password: str) -> str:
        raise AssertionError

    monkeypatch.setattr(passwords, "hash_password", never)
    answer = await anonymous.post(
        "/auth/reset-password", {"token": "made-up", "new_password": NEW_PASSWORD}
    )
    assert answer.status_code == 422


async def test_a_sign_in_beyond_the_hashing_queue_is_503(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_MAX_QUEUE_LENGTH", 0)
    answer = await anonymous.post("/auth/login", {"email": "a@example.com", "password": "x"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_a_sign_in_holds_no_connection_while_it_hashes(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = []

    async def look(_stored: str | None, _password: str) -> bool:
        connections.append(services.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        return False

    monkeypatch.setattr(passwords, "verify_password", look)
    await anonymous.post("/auth/login", {"email": developer.email, "password": "x"})
    assert connections == [0]


async def test_reading_a_picture_holds_no_connection(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET avatar_key = id, avatar_type = 'image/png' WHERE id = $1",
            developer.user_id,
        )
    connections = []

    async def look(_files: Any, _key: str) -> bytes:
        connections.append(services.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        return b""

    monkeypatch.setattr(type(services.files), "read", look)
    await anonymous.get(f"/api/v1/avatars/{developer.user_id}")
    assert connections == [0]


async def test_who_waits_for_the_same_key_holds_no_connection(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request hangs; further requests with its key must not exhaust the pool."""
    go, reached = asyncio.Event(), asyncio.Event()

    async def hang(*_args: Any) -> None:
        reached.set()
        await go.wait()

    monkeypatch.setattr(invitations, "require_active_session", hang)
    admin = await World(_get_app(developer)).user("tenant_admin")
    body = {"email": f"slow.{admin.address}@example.com", "role": "viewer"}
    key = {"idempotency-key": "slow"}
    calls = [asyncio.create_task(admin.post("/users/invite", body, headers=key)) for _ in range(30)]
    await reached.wait()
    async with asyncio.timeout(5):
        assert (await developer.get("/auth/me")).status_code == 200
    go.set()
    answers = await asyncio.gather(*calls)
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}


def _get_app(client: Client) -> Any:
    return client.http._transport.app  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Ada\r\nBcc: x@example.com", "\t", "\u0000", "a\x7f"])
async def test_a_name_is_one_line(anonymous: Client, name: str) -> None:
    body = {
        "email": "line@example.com",
        "password": NEW_PASSWORD,
        "first_name": name,
        "last_name": "B",
    }
    assert (await anonymous.post("/auth/register", body)).status_code == 422

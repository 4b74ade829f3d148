"""Attacks that cause costly work."""

from typing import Any

import pytest

from app.security import passwords
from app.services import Services
from tests.assertions import until
from tests.identity.accounts.api_calls import log_in, registration_body, reset_password
from tests.world import Client


async def test_a_reset_with_an_unknown_token_computes_no_hash(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_password: str) -> str:
        raise AssertionError

    monkeypatch.setattr(passwords, "hash_password", fail)
    assert (await reset_password(anonymous, "unknown")).status_code == 422


async def test_a_sign_in_beyond_the_hashing_queue_is_503(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_MAX_QUEUE_LENGTH", 0)
    answer = await log_in(anonymous, "a@example.com", "x")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_a_sign_in_holds_no_connection_while_it_hashes(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool: Any = services.db.engine.pool
    connections = []

    async def count_connections(_stored: str | None, _password: str) -> bool:
        # Others of this process may have one for a moment.
        await until(lambda: pool.checkedout() == 0)
        connections.append(pool.checkedout())
        return False

    monkeypatch.setattr(passwords, "verify_password", count_connections)
    await log_in(anonymous, developer.email, "x")
    assert connections == [0]


async def test_a_name_with_control_characters_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for name in ("Ada\r\nBcc: x@example.com", "\t", "\u0000", "a\x7f"):
        with subtests.test(name=name):
            answer = await anonymous.post("/auth/register", registration_body(first_name=name))
            assert answer.status_code == 422

"""Signing out."""

import asyncio

import pytest

from tests.http_clients import open_client
from tests.identity.accounts.api_calls import (
    get_me_status,
    refresh_pair,
    refresh_tokens,
    sign_in_pair,
)
from tests.server import Server
from tests.world import Client, World


async def test_a_sign_out_returns_a_message(developer: Client) -> None:
    answer = await developer.post("/auth/logout")
    assert answer.status_code == 200
    assert set(answer.json()) == {"message"}


async def test_a_sign_out_voids_the_access_token_at_once(developer: Client) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    await developer.post("/auth/logout")
    assert (await developer.get("/auth/me")).status_code == 401


async def test_a_sign_out_voids_the_refresh_token_at_once(
    anonymous: Client, developer: Client
) -> None:
    await developer.post("/auth/logout")
    assert (await refresh_tokens(anonymous, developer.refresh_token)).status_code == 401


async def test_a_sign_out_voids_every_access_token_of_the_session(
    anonymous: Client, developer: Client
) -> None:
    pair = await refresh_pair(anonymous, developer.refresh_token)
    assert await get_me_status(anonymous, pair["access_token"]) == 200
    await developer.post("/auth/logout")
    assert await get_me_status(anonymous, pair["access_token"]) == 401


async def test_a_sign_out_voids_the_access_token_in_another_process(
    developer: Client, server: Server
) -> None:
    headers = {"authorization": f"Bearer {developer.token}"}
    async with open_client(base_url=server.url, headers=headers) as http:
        before = (await http.get("/auth/me")).status_code
        await developer.post("/auth/logout")
        after = (await http.get("/auth/me")).status_code
    assert (before, after) == (200, 401)


async def test_a_sign_out_in_another_process_voids_the_access_token_in_this_one(
    developer: Client, server: Server
) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    headers = {"authorization": f"Bearer {developer.token}"}
    async with open_client(base_url=server.url, headers=headers) as http:
        await http.post("/auth/logout")
    assert (await developer.get("/auth/me")).status_code == 401


async def test_a_sign_out_voids_the_refresh_token_in_another_process(
    developer: Client, server: Server
) -> None:
    await developer.post("/auth/logout")
    async with open_client(base_url=server.url) as http:
        body = {"refresh_token": developer.refresh_token}
        answer = await http.post("/auth/refresh", json=body)
    assert answer.status_code == 401


async def test_a_session_can_sign_out_once(developer: Client) -> None:
    statuses = [(await developer.post("/auth/logout")).status_code for _ in range(2)]
    assert statuses == [200, 401]


async def test_a_sign_out_needs_a_login(anonymous: Client) -> None:
    assert (await anonymous.post("/auth/logout")).status_code == 401


async def test_a_sign_out_with_the_refresh_token_ends_no_session(
    anonymous: Client, developer: Client
) -> None:
    headers = {"authorization": f"Bearer {developer.refresh_token}"}
    await anonymous.post("/auth/logout", headers=headers)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_a_sign_out_does_not_end_other_sessions_of_the_user(
    anonymous: Client, developer: Client
) -> None:
    other = await sign_in_pair(anonymous, developer.email)
    assert (await developer.post("/auth/logout")).status_code == 200
    assert await get_me_status(anonymous, other["access_token"]) == 200


async def test_tokens_of_a_refresh_during_the_sign_out_are_void(
    world: World, subtests: pytest.Subtests
) -> None:
    for first in ("refresh", "logout"):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(first=first):
            calls = [
                refresh_tokens(anonymous, developer.refresh_token),
                developer.post("/auth/logout"),
            ]
            answers = await asyncio.gather(*(calls if first == "refresh" else reversed(calls)))
            pairs = [answer.json() for answer in answers]
            access_tokens = {pair.get("access_token", developer.token) for pair in pairs}
            assert {await get_me_status(anonymous, token or "") for token in access_tokens} == {401}

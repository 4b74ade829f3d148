"""Refresh tokens: new pairs, repeats within the grace period, and replays."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from app.kit import clock
from app.security import tokens
from app.services import Services
from tests.http_clients import open_client
from tests.identity.accounts.api_calls import (
    get_me_status,
    refresh_pair,
    refresh_tokens,
    sign_in_pair,
)
from tests.identity.accounts.records import add_seconds, read_sessions, read_tenant_events
from tests.identity.accounts.replays import ReplayedSession, replay_refresh_token
from tests.identity.accounts.values import PAIR_KEYS
from tests.server import Server
from tests.world import Client, World

# Refresh


async def test_a_refresh_token_returns_a_new_pair(anonymous: Client, developer: Client) -> None:
    answer = await refresh_tokens(anonymous, developer.refresh_token)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == PAIR_KEYS
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)


async def test_the_new_access_token_is_accepted(anonymous: Client, developer: Client) -> None:
    pair = await refresh_pair(anonymous, developer.refresh_token)
    assert await get_me_status(anonymous, pair["access_token"]) == 200


async def test_the_access_token_from_before_is_still_accepted(
    anonymous: Client, developer: Client
) -> None:
    await refresh_pair(anonymous, developer.refresh_token)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_the_new_refresh_token_returns_the_next_pair(
    anonymous: Client, developer: Client
) -> None:
    first = await refresh_pair(anonymous, developer.refresh_token)
    second = await refresh_pair(anonymous, first["refresh_token"])
    assert await get_me_status(anonymous, second["access_token"]) == 200


async def test_a_new_token_has_the_same_user_tenant_role_and_session(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tokens.TokenType] = ["access", "refresh"]
    for typ in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(typ=typ):
            old = services.tokens.verify(developer.refresh_token, "refresh")
            pair = await refresh_pair(anonymous, developer.refresh_token)
            new = services.tokens.verify(pair[f"{typ}_token"], typ)
            assert (new.sub, new.tid, new.role, new.sid) == (old.sub, old.tid, old.role, old.sid)


async def test_every_token_has_its_own_id(
    anonymous: Client, developer: Client, services: Services
) -> None:
    pair = await refresh_pair(anonymous, developer.refresh_token)
    token_ids = {
        services.tokens.verify(developer.token or "", "access").jti,
        services.tokens.verify(developer.refresh_token, "refresh").jti,
        services.tokens.verify(pair["access_token"], "access").jti,
        services.tokens.verify(pair["refresh_token"], "refresh").jti,
    }
    assert len(token_ids) == 4


async def test_the_new_refresh_token_is_no_access_token(
    anonymous: Client, developer: Client
) -> None:
    pair = await refresh_pair(anonymous, developer.refresh_token)
    assert await get_me_status(anonymous, pair["refresh_token"]) == 401


async def test_a_refresh_prolongs_the_session_to_seven_days_from_now(
    anonymous: Client, developer: Client, services: Services
) -> None:
    later = add_seconds(clock.now(), 86400)
    with clock.frozen(later):
        await refresh_pair(anonymous, developer.refresh_token)
    [(_, _, expires_at, _, _)] = await read_sessions(services, developer)
    assert expires_at == later + timedelta(days=7)


async def test_a_new_refresh_token_is_valid_for_seven_days(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        pair = await refresh_pair(anonymous, developer.refresh_token)
    with clock.frozen(add_seconds(now, 7 * 86400 - 2)):
        assert (await refresh_tokens(anonymous, pair["refresh_token"])).status_code == 200


async def test_a_refresh_works_with_an_expired_access_token(developer: Client) -> None:
    with clock.frozen(add_seconds(clock.now(), 3600)):
        answer = await refresh_tokens(developer, developer.refresh_token)
    assert answer.status_code == 200


async def test_a_refresh_opens_no_second_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await refresh_pair(anonymous, developer.refresh_token)
    assert [row[0] for row in await read_sessions(services, developer)] == [developer.session_id]


async def test_a_pair_from_a_process_whose_clock_is_ahead_is_accepted(
    anonymous: Client, developer: Client
) -> None:
    with clock.frozen(add_seconds(clock.now(), 2)):
        pair = await refresh_pair(anonymous, developer.refresh_token)
    assert await get_me_status(anonymous, pair["access_token"]) == 200


# The same refresh token again


async def test_a_repeat_within_ten_seconds_returns_the_same_pair(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[float] = [0, 1, 9.9, 10]
    for seconds in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(seconds=seconds):
            now = clock.now()
            with clock.frozen(now):
                first = await refresh_tokens(anonymous, developer.refresh_token)
            with clock.frozen(add_seconds(now, seconds)):
                second = await refresh_tokens(anonymous, developer.refresh_token)
            assert (second.status_code, second.content) == (200, first.content)


async def test_fifty_uses_at_once_return_one_pair_that_is_accepted(
    anonymous: Client, developer: Client
) -> None:
    answers = await asyncio.gather(
        *(refresh_tokens(anonymous, developer.refresh_token) for _ in range(50))
    )
    assert Counter(answer.status_code for answer in answers) == {200: 50}
    assert len({answer.content for answer in answers}) == 1
    assert await get_me_status(anonymous, answers[-1].json()["access_token"]) == 200


async def test_uses_at_once_in_two_processes_return_one_pair(
    anonymous: Client, developer: Client, server: Server
) -> None:
    body = {"refresh_token": developer.refresh_token}
    async with open_client(base_url=server.url) as http:
        answers = await asyncio.gather(
            *(refresh_tokens(anonymous, developer.refresh_token) for _ in range(10)),
            *(http.post("/auth/refresh", json=body) for _ in range(10)),
        )
    assert len({answer.content for answer in answers}) == 1


async def test_the_pair_of_a_repeat_can_be_refreshed(anonymous: Client, developer: Client) -> None:
    await refresh_pair(anonymous, developer.refresh_token)
    second = await refresh_pair(anonymous, developer.refresh_token)
    assert (await refresh_tokens(anonymous, second["refresh_token"])).status_code == 200


async def test_an_older_token_within_its_ten_seconds_returns_its_own_pair_again(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        first = await refresh_pair(anonymous, developer.refresh_token)
    with clock.frozen(add_seconds(now, -1)):
        await refresh_pair(anonymous, first["refresh_token"])
    with clock.frozen(add_seconds(now, 9)):
        assert await refresh_pair(anonymous, developer.refresh_token) == first


async def test_a_repeat_does_not_prolong_the_ten_seconds(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    for seconds in (0, 9):
        with clock.frozen(add_seconds(now, seconds)):
            await refresh_pair(anonymous, developer.refresh_token)
    with clock.frozen(add_seconds(now, 11)):
        assert (await refresh_tokens(anonymous, developer.refresh_token)).status_code == 401


async def test_a_replayed_token_is_refused(replayed_session: ReplayedSession) -> None:
    assert replayed_session.answer.status_code == 401
    assert replayed_session.answer.json()["error"]["code"] == "unauthorized"


async def test_a_replayed_token_ends_the_session(
    replayed_session: ReplayedSession, services: Services
) -> None:
    [(_, _, _, ended_at, _)] = await read_sessions(services, replayed_session.user)
    assert ended_at is not None


async def test_a_replayed_token_voids_the_access_tokens(
    anonymous: Client, replayed_session: ReplayedSession, subtests: pytest.Subtests
) -> None:
    for which in ("old", "new"):
        with subtests.test(which=which):
            token = (
                replayed_session.user.token
                if which == "old"
                else replayed_session.pair["access_token"]
            )
            assert await get_me_status(anonymous, token or "") == 401


async def test_a_replayed_token_voids_an_access_token_of_a_cached_session(
    anonymous: Client, developer: Client
) -> None:
    """The session was cached as active just before."""
    past = add_seconds(clock.now(), -60)
    with clock.frozen(past):
        pair = await refresh_pair(anonymous, developer.refresh_token)
        assert await get_me_status(anonymous, pair["access_token"]) == 200
    with clock.frozen(add_seconds(past, 11)):
        await refresh_tokens(anonymous, developer.refresh_token)
        assert await get_me_status(anonymous, pair["access_token"]) == 401


async def test_a_replayed_token_voids_the_newest_refresh_token(
    anonymous: Client, replayed_session: ReplayedSession
) -> None:
    assert (
        await refresh_tokens(anonymous, replayed_session.pair["refresh_token"])
    ).status_code == 401


async def test_a_replayed_token_is_in_the_event_log(
    anonymous: Client, replayed_session: ReplayedSession, services: Services
) -> None:
    assert await read_tenant_events(services, replayed_session.user, "session_revoked") == [
        {
            "user_id": replayed_session.user.user_id,
            "session_id": replayed_session.user.session_id,
            "ip_address": anonymous.address,
        }
    ]


async def test_a_token_replayed_several_times_emits_one_event(
    anonymous: Client, replayed_session: ReplayedSession, services: Services
) -> None:
    for _ in range(3):
        await refresh_tokens(anonymous, replayed_session.user.refresh_token)
    assert len(await read_tenant_events(services, replayed_session.user, "session_revoked")) == 1


async def test_fifty_replays_at_once_emit_one_event(
    anonymous: Client, developer: Client, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await refresh_pair(anonymous, developer.refresh_token)
    with clock.frozen(add_seconds(now, 11)):
        await asyncio.gather(
            *(refresh_tokens(anonymous, developer.refresh_token) for _ in range(50))
        )
    assert len(await read_tenant_events(services, developer, "session_revoked")) == 1


async def test_a_replayed_token_ends_no_other_session_of_the_user(
    anonymous: Client, developer: Client
) -> None:
    other = await sign_in_pair(anonymous, developer.email)
    replayed_session = await replay_refresh_token(anonymous, developer)
    assert replayed_session.answer.status_code == 401
    assert await get_me_status(anonymous, other["access_token"]) == 200


async def test_a_replayed_token_of_an_older_refresh_ends_the_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    past, token = add_seconds(clock.now(), -300), developer.refresh_token
    for number in range(3):
        with clock.frozen(add_seconds(past, number * 60)):
            token = (await refresh_pair(anonymous, token))["refresh_token"]
    assert (await refresh_tokens(anonymous, developer.refresh_token)).status_code == 401
    [(_, _, _, ended_at, _)] = await read_sessions(services, developer)
    assert ended_at is not None

"""Signing in with and without MFA, staying signed in, signing out, and what guessing costs."""

import asyncio
import base64
import json
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx
import jwt
import msgspec
import pyotp
import pytest

from app.domain.accounts import one_time_tokens
from app.domain.mfa import codes
from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords, throttle, tokens
from app.security.throttle import Rule, Subject
from app.services import Services
from db.session import ALL_TENANTS
from tests.server import Server
from tests.world import PASSWORD, Client, World

WRONG = "Wrong7Horse"
NEW_PASSWORD = "Battery9Staple"
PAIR_KEYS = {"access_token", "refresh_token", "token_type", "expires_in"}
WAITS = [15, 30, 60, 120, 240, 480, 900, 900]
Pair = dict[str, Any]


async def _login(caller: Client, email: str, password: str = PASSWORD) -> httpx.Response:
    return await caller.post("/auth/login", {"email": email, "password": password})


async def _guess(caller: Client, email: str, times: int) -> list[int]:
    return [(await _login(caller, email, WRONG)).status_code for _ in range(times)]


async def _refresh(caller: Client, token: object) -> httpx.Response:
    return await caller.post("/auth/refresh", {"refresh_token": token})


async def _me(caller: Client, token: str) -> int:
    answer = await caller.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    return answer.status_code


async def _signed_in(caller: Client, email: str) -> Pair:
    answer = await _login(caller, email)
    assert answer.status_code == 200, answer.text
    pair: Pair = answer.json()
    return pair


async def _refreshed(caller: Client, token: str) -> Pair:
    answer = await _refresh(caller, token)
    assert answer.status_code == 200, answer.text
    pair: Pair = answer.json()
    return pair


async def _fetch(services: Services, sql: str, *args: object) -> list[tuple[Any, ...]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [tuple(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def _run(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def _sessions(services: Services, user: Client) -> list[tuple[Any, ...]]:
    sql = "SELECT id, refresh_jti, expires_at, ended_at, spent FROM sessions WHERE user_id = $1"
    return await _fetch(services, sql + " ORDER BY id", user.user_id)


async def _told(services: Services, user: Client, kind: str) -> list[dict[str, Any]]:
    sql = "SELECT data::text FROM event_log WHERE tenant_id = $1 AND type = $2 ORDER BY id"
    rows = await _fetch(services, sql, user.tenant_id, f"system.user.{kind}")
    return [json.loads(text) for (text,) in rows]


async def _count_failures(services: Services, rule: Rule, name: str, times: int) -> None:
    """As if somebody had guessed wrong, without the work of hashing."""
    async with services.db.tx(ALL_TENANTS) as tx:
        for _ in range(times):
            await throttle.record_attempt(tx, [Subject(rule, name)], succeeded=False)


def _later(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)


# Guesses at one account


async def test_five_wrong_passwords_are_judged_and_the_next_must_wait(
    anonymous: Client, developer: Client
) -> None:
    assert await _guess(anonymous, developer.email, 7) == [401] * 5 + [429, 429]


@pytest.fixture
async def refusal(anonymous: Client, developer: Client) -> httpx.Response:
    """The answer to a guess three seconds after the fifth wrong one."""
    now = clock.now()
    with clock.frozen(now):
        await _guess(anonymous, developer.email, 5)
    with clock.frozen(_later(now, 3)):
        return await _login(anonymous, developer.email, WRONG)


async def test_the_429_says_in_its_details_when_to_come_back(refusal: httpx.Response) -> None:
    error = refusal.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["details"] == {"limit": 5, "window": 86400, "retry_after": 12}


async def test_the_429_says_in_its_message_when_to_come_back(refusal: httpx.Response) -> None:
    assert "12 seconds" in refusal.json()["error"]["message"]


async def test_the_429_says_in_a_header_when_to_come_back(refusal: httpx.Response) -> None:
    assert refusal.headers["retry-after"] == "12"


async def test_the_429_says_that_nothing_remains(refusal: httpx.Response) -> None:
    assert refusal.headers["x-ratelimit-remaining"] == "0"
    assert ";r=0;" in refusal.headers["ratelimit"]


async def test_the_right_password_must_wait_as_well(anonymous: Client, developer: Client) -> None:
    await _guess(anonymous, developer.email, 5)
    assert (await _login(anonymous, developer.email)).status_code == 429


async def test_the_right_password_that_came_too_early_opens_no_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    before = await _sessions(services, developer)
    await _guess(anonymous, developer.email, 5)
    await _login(anonymous, developer.email)
    assert await _sessions(services, developer) == before


async def test_after_the_wait_the_right_password_is_let_in(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _guess(anonymous, developer.email, 5)
    with clock.frozen(_later(now, 15)):
        assert (await _login(anonymous, developer.email)).status_code == 200


async def test_an_attempt_that_came_too_early_prolongs_nothing(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _guess(anonymous, developer.email, 5)
    with clock.frozen(_later(now, 14)):
        await _guess(anonymous, developer.email, 3)
    with clock.frozen(_later(now, 15)):
        assert (await _login(anonymous, developer.email, WRONG)).status_code == 401


async def test_each_failure_after_a_wait_costs_a_longer_one(
    anonymous: Client, developer: Client
) -> None:
    now, waits = clock.now(), []
    with clock.frozen(now):
        await _guess(anonymous, developer.email, 4)
    for _ in WAITS:
        with clock.frozen(now):
            assert await _guess(anonymous, developer.email, 2) == [401, 429]
            answer = await _login(anonymous, developer.email)
        waits.append(answer.json()["error"]["details"]["retry_after"])
        now = _later(now, waits[-1])
    assert waits == WAITS


async def test_an_unknown_email_is_throttled_just_the_same(
    anonymous: Client, developer: Client
) -> None:
    emails = [developer.email, f"{new_id('nobody')}@example.com"]
    with clock.frozen(clock.now()):
        answers = [[await _login(anonymous, email, WRONG) for _ in range(7)] for email in emails]
    registered, unknown = [
        [(item.status_code, item.content) for item in group] for group in answers
    ]
    assert registered == unknown


async def test_an_unknown_email_that_must_wait_gets_the_same_headers(
    anonymous: Client, developer: Client
) -> None:
    emails = [developer.email, f"{new_id('nobody')}@example.com"]
    answers = [[await _login(anonymous, email, WRONG) for _ in range(6)][-1] for email in emails]
    assert answers[0].headers.keys() == answers[1].headers.keys()


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "spaces around": lambda email: f" {email} ",
    "an i whose small letter is i": lambda email: email.replace("i", "\u0130"),
    "a sign whose small letter is k": lambda email: email.replace("k", "\u212a"),
    "a wide at sign": lambda email: email.replace("@", "\uff20"),
}


@pytest.mark.parametrize("writing", WRITINGS)
async def test_who_must_wait_is_not_let_in_however_the_email_is_written(
    anonymous: Client, developer: Client, services: Services, writing: str
) -> None:
    email = f"miki.{developer.email}"
    await _run(services, "UPDATE users SET email = $2 WHERE id = $1", developer.user_id, email)
    await _guess(anonymous, email, 5)
    assert (await _login(anonymous, WRITINGS[writing](email))).status_code in {401, 429}


@pytest.mark.parametrize("writing", WRITINGS)
async def test_no_way_of_writing_an_email_tells_whether_somebody_has_it(
    anonymous: Client, developer: Client, services: Services, writing: str
) -> None:
    registered, unknown = f"miki.{developer.email}", f"miki.{new_id('nobody')}@example.com"
    await _run(services, "UPDATE users SET email = $2 WHERE id = $1", developer.user_id, registered)
    with clock.frozen(clock.now()):
        for email in (registered, unknown):
            await _guess(anonymous, email, 5)
        answers = [
            await _login(anonymous, WRITINGS[writing](email)) for email in (registered, unknown)
        ]
    assert (answers[0].status_code, answers[0].content) == (
        answers[1].status_code,
        answers[1].content,
    )


async def test_another_address_gives_no_further_guesses(world: World, developer: Client) -> None:
    statuses = [await _guess(world.anonymous(), developer.email, 2) for _ in range(3)]
    assert statuses == [[401, 401], [401, 401], [401, 429]]


async def test_success_clears_the_accounts_count(anonymous: Client, developer: Client) -> None:
    await _guess(anonymous, developer.email, 4)
    await _signed_in(anonymous, developer.email)
    assert await _guess(anonymous, developer.email, 6) == [401] * 5 + [429]


async def test_success_after_a_wait_starts_over_with_the_shortest(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _guess(anonymous, developer.email, 5)
    with clock.frozen(_later(now, 15)):
        await _login(anonymous, developer.email)
        await _guess(anonymous, developer.email, 5)
        answer = await _login(anonymous, developer.email)
    assert answer.json()["error"]["details"]["retry_after"] == 15


async def test_another_account_at_the_same_address_is_not_affected(
    world: World, anonymous: Client, developer: Client
) -> None:
    other = await world.user()
    await _guess(anonymous, developer.email, 6)
    assert (await _login(anonymous, other.email)).status_code == 200


async def test_who_is_signed_in_stays_so_while_others_guess(
    anonymous: Client, developer: Client
) -> None:
    await _guess(anonymous, developer.email, 6)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_a_redis_that_forgets_all_forgets_no_failure(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _guess(anonymous, developer.email, 5)
    await services.redis.flushall()
    assert await _guess(anonymous, developer.email, 1) == [429]


async def test_a_second_process_knows_of_the_failures(
    anonymous: Client, developer: Client, server: Server
) -> None:
    await _guess(anonymous, developer.email, 5)
    async with httpx.AsyncClient(base_url=server.url) as http:
        body = {"email": developer.email, "password": PASSWORD}
        answer = await http.post("/auth/login", json=body)
    assert answer.status_code == 429


async def test_guesses_at_a_deactivated_user_are_throttled_too(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _run(services, "UPDATE users SET status = 'inactive' WHERE id = $1", developer.user_id)
    statuses = [(await _login(anonymous, developer.email)).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]


# Guesses from one address


async def test_fifty_wrong_passwords_over_many_accounts_stop_an_address(anonymous: Client) -> None:
    statuses = [
        (await _login(anonymous, f"{new_id('nobody')}@example.com", WRONG)).status_code
        for _ in range(51)
    ]
    assert statuses == [401] * 50 + [429]


async def test_a_stopped_address_is_told_of_its_own_limit(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
        answer = await _login(anonymous, developer.email)
    assert answer.status_code == 429
    assert answer.json()["error"]["details"] == {"limit": 50, "window": 900, "retry_after": 900}


async def test_an_account_can_be_signed_in_to_from_elsewhere_while_an_address_is_stopped(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    assert (await _login(world.anonymous(), developer.email)).status_code == 200


async def test_an_address_is_free_again_after_fifteen_minutes(
    anonymous: Client, developer: Client, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    with clock.frozen(_later(now, 900)):
        assert (await _login(anonymous, developer.email)).status_code == 200


async def test_a_success_does_not_clear_the_count_of_an_address(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 49)
    await _signed_in(anonymous, developer.email)
    assert await _guess(anonymous, developer.email, 2) == [401, 429]


async def test_a_success_does_not_count_against_an_address(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 49)
    statuses = [(await _login(anonymous, developer.email)).status_code for _ in range(2)]
    assert statuses == [200, 200]


# Many at once


async def test_of_fifty_wrong_passwords_at_once_five_are_judged(
    anonymous: Client, developer: Client
) -> None:
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(_login(anonymous, developer.email, WRONG) for _ in range(50))
        )
    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 45}


async def test_a_right_password_among_fifty_wrong_ones_at_once_gives_no_further_guesses(
    anonymous: Client, developer: Client
) -> None:
    """Let in or not, it is one attempt like the others: at most five failures are judged in a row,
    and only if it comes before the fifth does it clear those before it.
    """
    words = [WRONG] * 25 + [PASSWORD] + [WRONG] * 25
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(_login(anonymous, developer.email, word) for word in words)
        )
    let_in = answers[25].status_code == 200
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 401, 429}
    assert statuses[401] <= (4 + 5 if let_in else 5)


async def test_a_right_password_that_is_judged_after_five_wrong_ones_learns_nothing(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent before them, when nobody had to wait yet."""
    sent, guesses_counted = asyncio.Event(), asyncio.Event()
    real = passwords.verify_password

    async def slow(stored: str | None, password: str) -> bool:
        if password == PASSWORD:
            sent.set()
            await guesses_counted.wait()
        return await real(stored, password)

    monkeypatch.setattr(passwords, "verify_password", slow)
    early = asyncio.create_task(_login(anonymous, developer.email))
    await sent.wait()
    await _guess(anonymous, developer.email, 5)
    guesses_counted.set()
    assert (await early).status_code == 429


async def test_fifty_right_sign_ins_at_once_all_succeed(
    anonymous: Client, developer: Client
) -> None:
    answers = await asyncio.gather(*(_login(anonymous, developer.email) for _ in range(50)))
    assert Counter(answer.status_code for answer in answers) == {200: 50}


async def test_sign_ins_at_once_open_a_session_each(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answers = await asyncio.gather(*(_login(anonymous, developer.email) for _ in range(10)))
    pairs = [answer.json()["access_token"] for answer in answers]
    assert len({services.tokens.verify(token, "access").sid for token in pairs}) == 10


# Nothing is told by how long it takes


async def _milliseconds(caller: Client, email: str) -> float:
    started = time.perf_counter()
    assert (await _login(caller, email, WRONG)).status_code == 401
    return (time.perf_counter() - started) * 1000


def _apart(first: list[float], second: list[float]) -> float:
    return abs(statistics.median(first) - statistics.median(second))


async def test_a_wrong_password_and_an_unknown_email_take_the_same_time(world: World) -> None:
    """In turn, so that whatever else the machine does slows both; a busy one is asked for longer,
    until its medians have settled.
    """
    wrong: list[float] = []
    unknown: list[float] = []
    await _milliseconds(world.anonymous(), f"{new_id('nobody')}@example.com")
    while len(wrong) < 15 or (len(wrong) < 60 and _apart(wrong, unknown) >= 10):
        user, caller = await world.user(), world.anonymous()
        wrong.append(await _milliseconds(caller, user.email))
        unknown.append(await _milliseconds(caller, f"{new_id('nobody')}@example.com"))
    assert _apart(wrong, unknown) < 10


# A user who changes while signing in


async def test_who_was_deactivated_cannot_sign_in(
    world: World, anonymous: Client, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await admin.post(f"/users/{user.user_id}/deactivate")
    assert (await _login(anonymous, user.email)).status_code == 401


async def test_who_was_reactivated_can_sign_in_again(
    world: World, anonymous: Client, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await admin.post(f"/users/{user.user_id}/deactivate")
    await admin.post(f"/users/{user.user_id}/reactivate")
    assert (await _login(anonymous, user.email)).status_code == 200


def _in_between(
    monkeypatch: pytest.MonkeyPatch, services: Services, user: Client, sql: str, *args: object
) -> None:
    """Let something happen to the user after the password was found right, and before it counts."""
    real = passwords.verify_password

    async def verify(stored: str | None, password: str) -> bool:
        is_correct = await real(stored, password)
        await _run(services, sql, user.user_id, *args)
        return is_correct

    monkeypatch.setattr(passwords, "verify_password", verify)


CHANGES = {
    "another password": "UPDATE users SET password_hash = 'another' WHERE id = $1",
    "deactivated": "UPDATE users SET status = 'inactive' WHERE id = $1",
    "deleted": "DELETE FROM users WHERE id = $1",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_who_changes_while_signing_in_is_not_let_in(
    anonymous: Client,
    developer: Client,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    _in_between(monkeypatch, services, developer, CHANGES[change])
    answer = await _login(anonymous, developer.email)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("change", ["another password", "deactivated"])
async def test_who_changes_while_signing_in_gets_no_session(
    anonymous: Client,
    developer: Client,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    before = await _sessions(services, developer)
    _in_between(monkeypatch, services, developer, CHANGES[change])
    await _login(anonymous, developer.email)
    assert await _sessions(services, developer) == before


async def test_who_turns_mfa_on_while_signing_in_is_asked_for_a_code(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "UPDATE users SET mfa_enabled = true WHERE id = $1"
    _in_between(monkeypatch, services, developer, sql)
    assert (await _login(anonymous, developer.email)).json()["mfa_required"] is True


# Refresh


async def test_a_refresh_token_gives_a_new_pair(anonymous: Client, developer: Client) -> None:
    answer = await _refresh(anonymous, developer.refresh_token)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == PAIR_KEYS
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)


async def test_the_new_access_token_opens_the_account(anonymous: Client, developer: Client) -> None:
    pair = await _refreshed(anonymous, developer.refresh_token)
    assert await _me(anonymous, pair["access_token"]) == 200


async def test_the_access_token_from_before_still_opens_the_account(
    anonymous: Client, developer: Client
) -> None:
    await _refreshed(anonymous, developer.refresh_token)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_the_new_refresh_token_gives_the_next_pair(
    anonymous: Client, developer: Client
) -> None:
    first = await _refreshed(anonymous, developer.refresh_token)
    second = await _refreshed(anonymous, first["refresh_token"])
    assert await _me(anonymous, second["access_token"]) == 200


@pytest.mark.parametrize("typ", ["access", "refresh"])
async def test_a_new_token_says_whose_it_is_as_the_one_before_did(
    anonymous: Client, developer: Client, services: Services, typ: tokens.TokenType
) -> None:
    old = services.tokens.verify(developer.refresh_token, "refresh")
    pair = await _refreshed(anonymous, developer.refresh_token)
    new = services.tokens.verify(pair[f"{typ}_token"], typ)
    assert (new.sub, new.tid, new.role, new.sid) == (old.sub, old.tid, old.role, old.sid)


async def test_every_token_has_a_name_of_its_own(
    anonymous: Client, developer: Client, services: Services
) -> None:
    pair = await _refreshed(anonymous, developer.refresh_token)
    names = {
        services.tokens.verify(developer.token or "", "access").jti,
        services.tokens.verify(developer.refresh_token, "refresh").jti,
        services.tokens.verify(pair["access_token"], "access").jti,
        services.tokens.verify(pair["refresh_token"], "refresh").jti,
    }
    assert len(names) == 4


async def test_the_new_refresh_token_is_no_access_token(
    anonymous: Client, developer: Client
) -> None:
    pair = await _refreshed(anonymous, developer.refresh_token)
    assert await _me(anonymous, pair["refresh_token"]) == 401


async def test_a_refresh_lets_the_session_live_for_seven_more_days(
    anonymous: Client, developer: Client, services: Services
) -> None:
    later = _later(clock.now(), 86400)
    with clock.frozen(later):
        await _refreshed(anonymous, developer.refresh_token)
    [(_, _, expires_at, _, _)] = await _sessions(services, developer)
    assert expires_at == later + timedelta(days=7)


async def test_a_new_refresh_token_holds_for_seven_days(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        pair = await _refreshed(anonymous, developer.refresh_token)
    with clock.frozen(_later(now, 7 * 86400 - 2)):
        assert (await _refresh(anonymous, pair["refresh_token"])).status_code == 200


async def test_a_refresh_needs_no_living_access_token(anonymous: Client, developer: Client) -> None:
    with clock.frozen(_later(clock.now(), 3600)):
        answer = await developer.post("/auth/refresh", {"refresh_token": developer.refresh_token})
    assert answer.status_code == 200


async def test_a_refresh_opens_no_second_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _refreshed(anonymous, developer.refresh_token)
    assert [row[0] for row in await _sessions(services, developer)] == [developer.session_id]


async def test_a_pair_from_a_process_whose_clock_is_ahead_opens_the_account(
    anonymous: Client, developer: Client
) -> None:
    with clock.frozen(_later(clock.now(), 2)):
        pair = await _refreshed(anonymous, developer.refresh_token)
    assert await _me(anonymous, pair["access_token"]) == 200


# The same refresh token again


@pytest.mark.parametrize("seconds", [0, 1, 9.9, 10])
async def test_a_repeat_within_ten_seconds_gives_the_very_same_pair(
    anonymous: Client, developer: Client, seconds: float
) -> None:
    now = clock.now()
    with clock.frozen(now):
        first = await _refresh(anonymous, developer.refresh_token)
    with clock.frozen(_later(now, seconds)):
        second = await _refresh(anonymous, developer.refresh_token)
    assert (second.status_code, second.content) == (200, first.content)


async def test_fifty_uses_at_once_give_one_pair(anonymous: Client, developer: Client) -> None:
    answers = await asyncio.gather(
        *(_refresh(anonymous, developer.refresh_token) for _ in range(50))
    )
    assert Counter(answer.status_code for answer in answers) == {200: 50}
    assert len({answer.content for answer in answers}) == 1


async def test_the_pair_of_fifty_uses_at_once_opens_the_account(
    anonymous: Client, developer: Client
) -> None:
    answers = await asyncio.gather(
        *(_refresh(anonymous, developer.refresh_token) for _ in range(50))
    )
    assert await _me(anonymous, answers[-1].json()["access_token"]) == 200


async def test_uses_at_once_in_two_processes_give_one_pair(
    anonymous: Client, developer: Client, server: Server
) -> None:
    body = {"refresh_token": developer.refresh_token}
    async with httpx.AsyncClient(base_url=server.url) as http:
        answers = await asyncio.gather(
            *(_refresh(anonymous, developer.refresh_token) for _ in range(10)),
            *(http.post("/auth/refresh", json=body) for _ in range(10)),
        )
    assert len({answer.content for answer in answers}) == 1


async def test_the_pair_of_a_repeat_can_be_refreshed(anonymous: Client, developer: Client) -> None:
    await _refreshed(anonymous, developer.refresh_token)
    again = await _refreshed(anonymous, developer.refresh_token)
    assert (await _refresh(anonymous, again["refresh_token"])).status_code == 200


async def test_an_older_token_within_its_ten_seconds_gives_its_own_pair_again(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        first = await _refreshed(anonymous, developer.refresh_token)
    with clock.frozen(_later(now, -1)):
        await _refreshed(anonymous, first["refresh_token"])
    with clock.frozen(_later(now, 9)):
        assert await _refreshed(anonymous, developer.refresh_token) == first


async def test_a_repeat_does_not_prolong_the_ten_seconds(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    for seconds in (0, 9):
        with clock.frozen(_later(now, seconds)):
            await _refreshed(anonymous, developer.refresh_token)
    with clock.frozen(_later(now, 11)):
        assert (await _refresh(anonymous, developer.refresh_token)).status_code == 401


class Replayed(msgspec.Struct):
    """A session whose first refresh token came again too late, and how that was answered."""

    user: Client
    pair: Pair
    answer: httpx.Response


@pytest.fixture
async def replayed(anonymous: Client, developer: Client) -> Replayed:
    past = _later(clock.now(), -60)
    with clock.frozen(past):
        pair = await _refreshed(anonymous, developer.refresh_token)
    with clock.frozen(_later(past, 10.1)):
        answer = await _refresh(anonymous, developer.refresh_token)
    return Replayed(developer, pair, answer)


async def test_a_replayed_token_is_refused(replayed: Replayed) -> None:
    assert replayed.answer.status_code == 401
    assert replayed.answer.json()["error"]["code"] == "unauthorized"


async def test_a_replayed_token_ends_the_session(replayed: Replayed, services: Services) -> None:
    [(_, _, _, ended_at, _)] = await _sessions(services, replayed.user)
    assert ended_at is not None


@pytest.mark.parametrize("which", ["old", "new"])
async def test_a_replayed_token_kills_the_access_tokens(
    anonymous: Client, replayed: Replayed, which: str
) -> None:
    token = replayed.user.token if which == "old" else replayed.pair["access_token"]
    assert await _me(anonymous, token or "") == 401


async def test_a_replayed_token_kills_the_access_token_that_was_in_use(
    anonymous: Client, developer: Client
) -> None:
    """Although a copy of the living session was made just before."""
    past = _later(clock.now(), -60)
    with clock.frozen(past):
        pair = await _refreshed(anonymous, developer.refresh_token)
        assert await _me(anonymous, pair["access_token"]) == 200
    with clock.frozen(_later(past, 11)):
        await _refresh(anonymous, developer.refresh_token)
        assert await _me(anonymous, pair["access_token"]) == 401


async def test_a_replayed_token_kills_the_refresh_token_that_was_next(
    anonymous: Client, replayed: Replayed
) -> None:
    assert (await _refresh(anonymous, replayed.pair["refresh_token"])).status_code == 401


async def test_a_replayed_token_is_told_in_the_log(
    anonymous: Client, replayed: Replayed, services: Services
) -> None:
    assert await _told(services, replayed.user, "session_revoked") == [
        {
            "user_id": replayed.user.user_id,
            "session_id": replayed.user.session_id,
            "ip_address": anonymous.address,
        }
    ]


async def test_a_token_that_is_replayed_again_and_again_is_told_once(
    anonymous: Client, replayed: Replayed, services: Services
) -> None:
    for _ in range(3):
        await _refresh(anonymous, replayed.user.refresh_token)
    assert len(await _told(services, replayed.user, "session_revoked")) == 1


async def test_fifty_replays_at_once_are_told_once(
    anonymous: Client, developer: Client, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _refreshed(anonymous, developer.refresh_token)
    with clock.frozen(_later(now, 11)):
        await asyncio.gather(*(_refresh(anonymous, developer.refresh_token) for _ in range(50)))
    assert len(await _told(services, developer, "session_revoked")) == 1


async def test_a_replayed_token_ends_no_other_session_of_the_user(
    anonymous: Client, developer: Client
) -> None:
    other = await _signed_in(anonymous, developer.email)
    now = clock.now()
    for seconds in (0, 11):
        with clock.frozen(_later(now, seconds)):
            await _refresh(anonymous, developer.refresh_token)
    assert await _me(anonymous, other["access_token"]) == 200


async def test_a_token_from_long_ago_ends_the_session_too(
    anonymous: Client, developer: Client, services: Services
) -> None:
    past, token = _later(clock.now(), -300), developer.refresh_token
    for number in range(3):
        with clock.frozen(_later(past, number * 60)):
            token = (await _refreshed(anonymous, token))["refresh_token"]
    assert (await _refresh(anonymous, developer.refresh_token)).status_code == 401
    [(_, _, _, ended_at, _)] = await _sessions(services, developer)
    assert ended_at is not None


# Refresh tokens that give nothing

GONE = {
    "an ended session": "UPDATE sessions SET ended_at = now() WHERE user_id = $1",
    "an expired session": (
        "UPDATE sessions SET expires_at = now() - interval '1 second' WHERE user_id = $1"
    ),
    "a deleted session": "DELETE FROM sessions WHERE user_id = $1",
    "an inactive user": "UPDATE users SET status = 'inactive' WHERE id = $1",
    "a deleted user": "DELETE FROM users WHERE id = $1",
}


@pytest.mark.parametrize("removal", GONE)
async def test_the_refresh_token_of_what_is_gone_gives_nothing(
    anonymous: Client, developer: Client, services: Services, removal: str
) -> None:
    await _run(services, GONE[removal], developer.user_id)
    answer = await _refresh(anonymous, developer.refresh_token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("removal", GONE)
async def test_a_repeat_for_what_is_gone_meanwhile_gives_nothing(
    anonymous: Client, developer: Client, services: Services, removal: str
) -> None:
    """Also within the ten seconds in which it would give the same pair again."""
    await _refreshed(anonymous, developer.refresh_token)
    await _run(services, GONE[removal], developer.user_id)
    assert (await _refresh(anonymous, developer.refresh_token)).status_code == 401


async def test_a_deactivated_user_stays_signed_out_after_the_reactivation(
    world: World, anonymous: Client, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await admin.post(f"/users/{user.user_id}/deactivate")
    await admin.post(f"/users/{user.user_id}/reactivate")
    assert (await _refresh(anonymous, user.refresh_token)).status_code == 401


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Forger:
    """Knows what the real refresh token says, and the key that it is signed with."""

    def __init__(self, services: Services, user: Client) -> None:
        self.user = user
        self.kid = services.keyring.active
        self.key = services.keyring.derive(self.kid, "jwt", "")
        self.claims: dict[str, Any] = jwt.decode(
            user.refresh_token, options={"verify_signature": False}
        )

    def sign(self, key: bytes | None = None, **changes: object) -> str:
        headers = {"kid": self.kid}
        claims = {**self.claims, **changes}
        return jwt.encode(claims, key or self.key, algorithm="HS256", headers=headers)

    def unsigned(self) -> str:
        return f"{_part({'alg': 'none', 'typ': 'JWT', 'kid': self.kid})}.{_part(self.claims)}."


@pytest.fixture
async def forger(services: Services, developer: Client) -> Forger:
    return Forger(services, developer)


BAD_TOKENS: dict[str, tuple[int, Callable[[Forger], object]]] = {
    "the access token": (401, lambda f: f.user.token),
    "alg none": (401, Forger.unsigned),
    "another key": (401, lambda f: f.sign(b"x" * 32)),
    "expired": (401, lambda f: f.sign(exp=int(time.time()) - 1)),
    "no such type": (401, lambda f: f.sign(typ="mfa")),
    "another user's": (401, lambda f: f.sign(sub=new_id("usr"))),
    "another tenant's": (401, lambda f: f.sign(tid=new_id("ten"))),
    "another session's": (401, lambda f: f.sign(sid=new_id("ses"))),
    "no session": (401, lambda f: f.sign(sid=None)),
    "tampered": (401, lambda f: f.user.refresh_token[:-6] + "AAAAAA"),
    "cut short": (401, lambda f: f.user.refresh_token[:-4]),
    "with the scheme before it": (401, lambda f: f"Bearer {f.user.refresh_token}"),
    "with a space after it": (401, lambda f: f"{f.user.refresh_token} "),
    "garbage": (401, lambda _: "garbage"),
    "dots": (401, lambda _: "..."),
    "not ASCII": (401, lambda _: "t\xf6ken"),
    "long": (401, lambda _: "x" * 4096),
    "oversized": (422, lambda _: "x" * 4097),
    "oversized, of the right form": (422, lambda f: f.sign(more="x" * 4096)),
    "empty": (422, lambda _: ""),
    "null": (422, lambda _: None),
    "a number": (422, lambda _: 5),
    "a list": (422, lambda f: [f.user.refresh_token]),
    "an object": (422, lambda f: {"token": f.user.refresh_token}),
}


async def test_a_refresh_token_that_is_made_by_hand_the_right_way_is_taken(
    anonymous: Client, forger: Forger
) -> None:
    """So that the refusals below are for what is wrong with each, not for how it is made."""
    assert (await _refresh(anonymous, forger.sign())).status_code == 200


@pytest.mark.parametrize("name", BAD_TOKENS)
async def test_what_is_no_refresh_token_is_refused(
    anonymous: Client, forger: Forger, name: str
) -> None:
    status, make = BAD_TOKENS[name]
    answer = await _refresh(anonymous, make(forger))
    code = {401: "unauthorized", 422: "validation_error"}[status]
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("name", BAD_TOKENS)
async def test_what_is_no_refresh_token_changes_nothing(
    anonymous: Client, forger: Forger, services: Services, name: str
) -> None:
    before = await _sessions(services, forger.user)
    await _refresh(anonymous, BAD_TOKENS[name][1](forger))
    assert await _sessions(services, forger.user) == before


@pytest.mark.parametrize(
    "name", [name for name, (status, _) in BAD_TOKENS.items() if status == 422]
)
async def test_a_refresh_token_of_a_wrong_form_is_named(
    anonymous: Client, forger: Forger, name: str
) -> None:
    answer = await _refresh(anonymous, BAD_TOKENS[name][1](forger))
    assert set(answer.json()["error"]["details"]) == {"refresh_token"}


async def test_a_refresh_without_a_token_is_422(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/refresh", {})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"refresh_token": "is required"}


# Logout


async def test_signing_out_says_so(developer: Client) -> None:
    answer = await developer.post("/auth/logout")
    assert answer.status_code == 200
    assert set(answer.json()) == {"message"}


async def test_signing_out_kills_the_access_token_at_once(developer: Client) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    await developer.post("/auth/logout")
    assert (await developer.get("/auth/me")).status_code == 401


async def test_signing_out_kills_the_refresh_token_at_once(
    anonymous: Client, developer: Client
) -> None:
    await developer.post("/auth/logout")
    assert (await _refresh(anonymous, developer.refresh_token)).status_code == 401


async def test_signing_out_kills_every_access_token_of_the_session(
    anonymous: Client, developer: Client
) -> None:
    pair = await _refreshed(anonymous, developer.refresh_token)
    assert await _me(anonymous, pair["access_token"]) == 200
    await developer.post("/auth/logout")
    assert await _me(anonymous, pair["access_token"]) == 401


async def test_signing_out_kills_the_access_token_in_another_process(
    developer: Client, server: Server
) -> None:
    headers = {"authorization": f"Bearer {developer.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        before = (await http.get("/auth/me")).status_code
        await developer.post("/auth/logout")
        after = (await http.get("/auth/me")).status_code
    assert (before, after) == (200, 401)


async def test_signing_out_in_another_process_kills_the_access_token_here(
    developer: Client, server: Server
) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    headers = {"authorization": f"Bearer {developer.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        await http.post("/auth/logout")
    assert (await developer.get("/auth/me")).status_code == 401


async def test_signing_out_kills_the_refresh_token_in_another_process(
    developer: Client, server: Server
) -> None:
    await developer.post("/auth/logout")
    async with httpx.AsyncClient(base_url=server.url) as http:
        body = {"refresh_token": developer.refresh_token}
        answer = await http.post("/auth/refresh", json=body)
    assert answer.status_code == 401


async def test_one_can_sign_out_once(developer: Client) -> None:
    statuses = [(await developer.post("/auth/logout")).status_code for _ in range(2)]
    assert statuses == [200, 401]


async def test_who_is_not_signed_in_cannot_sign_out(anonymous: Client) -> None:
    assert (await anonymous.post("/auth/logout")).status_code == 401


async def test_the_refresh_token_signs_nobody_out(anonymous: Client, developer: Client) -> None:
    headers = {"authorization": f"Bearer {developer.refresh_token}"}
    await anonymous.post("/auth/logout", headers=headers)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_signing_out_leaves_the_users_other_sessions_alone(
    anonymous: Client, developer: Client
) -> None:
    other = await _signed_in(anonymous, developer.email)
    await developer.post("/auth/logout")
    assert await _me(anonymous, other["access_token"]) == 200


@pytest.mark.parametrize("first", ["refresh", "logout"])
async def test_a_refresh_at_the_same_time_does_not_outlive_the_sign_out(
    anonymous: Client, developer: Client, first: str
) -> None:
    calls = [_refresh(anonymous, developer.refresh_token), developer.post("/auth/logout")]
    answers = await asyncio.gather(*(calls if first == "refresh" else reversed(calls)))
    pairs = [answer.json() for answer in answers]
    access_tokens = {pair.get("access_token", developer.token) for pair in pairs}
    assert {await _me(anonymous, token or "") for token in access_tokens} == {401}


# MFA


class Guarded(msgspec.Struct):
    """A user with MFA, what their authenticator knows, and their recovery codes."""

    user: Client
    seed: str
    recovery_codes: list[str]

    def code(self) -> str:
        """What the authenticator shows now."""
        return pyotp.TOTP(self.seed).at(int(clock.epoch()))

    def wrong_code(self) -> str:
        """Six digits that it shows at no time near now."""
        near = {pyotp.TOTP(self.seed).at(int(clock.epoch()), offset) for offset in range(-3, 4)}
        return next(code for code in (f"{number:06}" for number in range(10)) if code not in near)


async def _guard(user: Client) -> Guarded:
    # A while ago, so that a code of now was not used yet.
    with clock.frozen(_later(clock.now(), -120)):
        setup = (await user.post("/api/v1/mfa/setup")).json()
        guarded = Guarded(user, setup["secret"], setup["recovery_codes"])
        answer = await user.post("/api/v1/mfa/enable", {"code": guarded.code()})
    assert answer.status_code == 200, answer.text
    return guarded


@pytest.fixture
async def guarded(world: World, admin: Client) -> Guarded:
    return await _guard(await world.user("viewer", admin.tenant_id))


async def _mfa_token(caller: Client, email: str, password: str = PASSWORD) -> str:
    answer = await _login(caller, email, password)
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["mfa_token"]
    return token


async def _verify(caller: Client, token: object, code: object) -> httpx.Response:
    return await caller.post("/auth/mfa/verify", {"mfa_token": token, "code": code})


async def _guess_code(caller: Client, guarded: Guarded, token: str, times: int) -> list[int]:
    wrong = guarded.wrong_code()
    return [(await _verify(caller, token, wrong)).status_code for _ in range(times)]


async def test_with_mfa_a_right_password_gives_a_token_for_the_second_half(
    anonymous: Client, guarded: Guarded
) -> None:
    answer = await _login(anonymous, guarded.user.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"mfa_required", "mfa_token", "message"}
    assert body["mfa_required"] is True


async def test_with_mfa_a_wrong_password_is_told_nothing_of_it(
    anonymous: Client, guarded: Guarded, developer: Client
) -> None:
    with_mfa = await _login(anonymous, guarded.user.email, WRONG)
    without = await _login(anonymous, developer.email, WRONG)
    assert (with_mfa.status_code, with_mfa.content) == (without.status_code, without.content)


async def test_the_first_half_of_a_sign_in_opens_no_session(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    before = await _sessions(services, guarded.user)
    await _mfa_token(anonymous, guarded.user.email)
    assert await _sessions(services, guarded.user) == before


async def test_the_first_half_of_a_sign_in_is_not_told_as_one(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    await _mfa_token(anonymous, guarded.user.email)
    assert await _told(services, guarded.user, "signed_in") == []


async def test_the_mfa_token_is_stored_hashed(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    sql = "SELECT token_hash FROM one_time_tokens WHERE user_id = $1 AND purpose = 'mfa'"
    assert await _fetch(services, sql, guarded.user.user_id) == [(tokens.hash_secret(token),)]


async def test_the_mfa_token_is_no_access_token(anonymous: Client, guarded: Guarded) -> None:
    assert await _me(anonymous, await _mfa_token(anonymous, guarded.user.email)) == 401


async def test_the_mfa_token_is_no_refresh_token(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    assert (await _refresh(anonymous, token)).status_code == 401


async def test_a_right_code_gives_both_tokens(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    answer = await _verify(anonymous, token, guarded.code())
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == PAIR_KEYS
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)


async def test_the_access_token_of_a_right_code_opens_the_account(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    pair = (await _verify(anonymous, token, guarded.code())).json()
    assert await _me(anonymous, pair["access_token"]) == 200


async def test_the_refresh_token_of_a_right_code_gives_a_new_pair_without_another(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    pair = (await _verify(anonymous, token, guarded.code())).json()
    assert set(await _refreshed(anonymous, pair["refresh_token"])) == PAIR_KEYS


async def test_a_sign_in_with_a_code_is_told_as_one(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _verify(anonymous, token, guarded.code())
    assert await _told(services, guarded.user, "signed_in") == [
        {"user_id": guarded.user.user_id, "ip_address": anonymous.address, "mfa": True}
    ]


async def test_a_sign_in_with_a_code_may_change_mfa(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    pair = (await _verify(anonymous, token, guarded.code())).json()
    headers = {"authorization": f"Bearer {pair['access_token']}"}
    answer = await anonymous.post("/api/v1/mfa/recovery-codes", headers=headers)
    assert answer.status_code == 200


async def test_a_wrong_code_is_401(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    answer = await _verify(anonymous, token, guarded.wrong_code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_code_of_somebody_else_is_wrong(
    world: World, anonymous: Client, guarded: Guarded
) -> None:
    other = await _guard(await world.user())
    token = await _mfa_token(anonymous, guarded.user.email)
    for code in (other.code(), other.recovery_codes[0]):
        assert (await _verify(anonymous, token, code)).status_code == 401


async def test_an_mfa_token_that_nobody_was_given_is_401(
    anonymous: Client, guarded: Guarded
) -> None:
    answer = await _verify(anonymous, tokens.new_secret(), guarded.code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("kind", ["access", "refresh", "hash"])
async def test_nothing_else_serves_as_an_mfa_token(
    anonymous: Client, guarded: Guarded, kind: str
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    others = {
        "access": guarded.user.token,
        "refresh": guarded.user.refresh_token,
        "hash": tokens.hash_secret(token),
    }
    assert (await _verify(anonymous, others[kind], guarded.code())).status_code == 401


@pytest.mark.parametrize("field", ["mfa_token", "code"])
@pytest.mark.parametrize("value", ["", None, 123456, "x" * 4097])
async def test_a_wrong_field_of_the_second_half_is_named(
    anonymous: Client, field: str, value: object
) -> None:
    body = {"mfa_token": "x", "code": "123456", field: value}
    answer = await anonymous.post("/auth/mfa/verify", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


@pytest.mark.parametrize(("seconds", "status"), [(299, 200), (300, 401)])
async def test_an_mfa_token_holds_for_five_minutes(
    anonymous: Client, guarded: Guarded, seconds: int, status: int
) -> None:
    now = clock.now()
    with clock.frozen(now):
        token = await _mfa_token(anonymous, guarded.user.email)
    with clock.frozen(_later(now, seconds)):
        assert (await _verify(anonymous, token, guarded.code())).status_code == status


async def test_an_mfa_token_holds_for_five_tries(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    statuses = await _guess_code(anonymous, guarded, token, 4)
    statuses.append((await _verify(anonymous, token, guarded.code())).status_code)
    assert statuses == [401] * 4 + [200]


async def test_an_mfa_token_holds_for_no_sixth_try(anonymous: Client, guarded: Guarded) -> None:
    """Not even after the wait that five wrong codes cost."""
    now = clock.now()
    with clock.frozen(now):
        token = await _mfa_token(anonymous, guarded.user.email)
        await _guess_code(anonymous, guarded, token, 5)
    with clock.frozen(_later(now, 60)):
        answer = await _verify(anonymous, token, guarded.code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_an_mfa_token_works_once(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _verify(anonymous, token, guarded.code())
    answer = await _verify(anonymous, token, guarded.recovery_codes[0])
    assert answer.status_code == 401


async def test_an_mfa_token_that_was_used_up_uses_up_no_recovery_code(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _verify(anonymous, token, guarded.code())
    await _verify(anonymous, token, guarded.recovery_codes[0])
    status = (await guarded.user.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_an_mfa_token_is_void_after_a_change_of_the_password(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    body = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    assert (await guarded.user.post("/auth/change-password", body)).status_code == 200
    assert (await _verify(anonymous, token, guarded.code())).status_code == 401


async def test_an_mfa_token_is_void_after_a_reset_of_the_password(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    async with services.db.tx(ALL_TENANTS) as tx:
        mailed = await one_time_tokens.create_token(
            tx, one_time_tokens.RESET_PASSWORD, guarded.user.tenant_id, guarded.user.user_id
        )
    body = {"token": mailed, "new_password": NEW_PASSWORD}
    assert (await anonymous.post("/auth/reset-password", body)).status_code == 200
    assert (await _verify(anonymous, token, guarded.code())).status_code == 401


Change = Callable[[Client, str], Awaitable[httpx.Response]]
ADMIN_CHANGES: dict[str, list[Change]] = {
    "deactivation": [lambda admin, user: admin.post(f"/users/{user}/deactivate")],
    "deactivation and reactivation": [
        lambda admin, user: admin.post(f"/users/{user}/deactivate"),
        lambda admin, user: admin.post(f"/users/{user}/reactivate"),
    ],
    "change of role": [
        lambda admin, user: admin.put(f"/users/{user}/role", {"role": "agent_user"})
    ],
    "reset of MFA": [lambda admin, user: admin.post(f"/api/v1/users/{user}/mfa/reset")],
    "deletion": [lambda admin, user: admin.delete(f"/users/{user}")],
}


@pytest.mark.parametrize("name", ADMIN_CHANGES)
async def test_an_mfa_token_is_void_after_what_an_administrator_does(
    anonymous: Client, guarded: Guarded, admin: Client, name: str
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    for change in ADMIN_CHANGES[name]:
        assert (await change(admin, guarded.user.user_id)).status_code == 200
    assert (await _verify(anonymous, token, guarded.code())).status_code == 401


async def test_the_token_of_a_user_who_is_inactive_gives_nothing(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _run(services, "UPDATE users SET status = 'inactive' WHERE id = $1", guarded.user.user_id)
    assert (await _verify(anonymous, token, guarded.code())).status_code == 401


# A code opens once


async def test_a_code_opens_once(anonymous: Client, guarded: Guarded) -> None:
    code = guarded.code()
    statuses = [
        (
            await _verify(anonymous, await _mfa_token(anonymous, guarded.user.email), code)
        ).status_code
        for _ in range(2)
    ]
    assert statuses == [200, 401]


async def test_a_recovery_code_signs_in(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    answer = await _verify(anonymous, token, guarded.recovery_codes[3])
    assert (answer.status_code, set(answer.json())) == (200, PAIR_KEYS)


async def test_a_recovery_code_signs_in_once(anonymous: Client, guarded: Guarded) -> None:
    statuses = []
    for _ in range(2):
        token = await _mfa_token(anonymous, guarded.user.email)
        statuses.append((await _verify(anonymous, token, guarded.recovery_codes[3])).status_code)
    assert statuses == [200, 401]


async def test_the_other_recovery_codes_still_sign_in(anonymous: Client, guarded: Guarded) -> None:
    for code in guarded.recovery_codes[:2]:
        token = await _mfa_token(anonymous, guarded.user.email)
        assert (await _verify(anonymous, token, code)).status_code == 200


async def _mfa_tokens(services: Services, guarded: Guarded, number: int) -> list[str]:
    """As many first halves of a sign-in, without the work of hashing."""
    user = guarded.user
    async with services.db.tx(ALL_TENANTS) as tx:
        return [
            await one_time_tokens.create_token(
                tx, one_time_tokens.MFA, user.tenant_id, user.user_id
            )
            for _ in range(number)
        ]


async def _verify_at_once(caller: Client, attempts: Sequence[tuple[str, str]]) -> Counter[int]:
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(*(_verify(caller, token, code) for token, code in attempts))
    return Counter(answer.status_code for answer in answers)


async def test_of_fifty_uses_of_a_code_at_once_one_is_let_in(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    mfa_tokens, code = await _mfa_tokens(services, guarded, 50), guarded.code()
    statuses = await _verify_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses[200] == 1
    assert set(statuses) == {200, 401, 429}


async def test_of_fifty_uses_of_a_recovery_code_at_once_one_is_let_in(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    mfa_tokens, code = await _mfa_tokens(services, guarded, 50), guarded.recovery_codes[0]
    statuses = await _verify_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses[200] == 1


async def test_of_fifty_uses_of_an_mfa_token_at_once_one_is_let_in(
    anonymous: Client, guarded: Guarded
) -> None:
    token, code = await _mfa_token(anonymous, guarded.user.email), guarded.code()
    assert await _verify_at_once(anonymous, [(token, code)] * 50) == {200: 1, 401: 49}


async def test_ten_recovery_codes_at_once_for_one_mfa_token_use_up_one(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _verify_at_once(anonymous, [(token, code) for code in guarded.recovery_codes])
    status = (await guarded.user.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 9


async def test_of_fifty_wrong_codes_at_once_five_are_judged(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    mfa_tokens, code = await _mfa_tokens(services, guarded, 50), guarded.wrong_code()
    statuses = await _verify_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses == {401: 5, 429: 45}


# Guesses at codes, apart from guesses at passwords


async def test_five_wrong_codes_over_several_mfa_tokens_make_the_next_wait(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    mfa_tokens = await _mfa_tokens(services, guarded, 6)
    statuses = [(await _guess_code(anonymous, guarded, token, 1))[0] for token in mfa_tokens]
    assert statuses == [401] * 5 + [429]


async def test_the_right_code_must_wait_as_well(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await _count_failures(services, throttle.CODE, guarded.user.user_id, 5)
        token = await _mfa_token(anonymous, guarded.user.email)
        answer = await _verify(anonymous, token, guarded.code())
    assert answer.status_code == 429
    assert answer.json()["error"]["details"] == {"limit": 5, "window": 86400, "retry_after": 15}
    assert answer.headers["retry-after"] == "15"


async def test_a_right_code_that_came_too_early_is_not_used_up(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await _count_failures(services, throttle.CODE, guarded.user.user_id, 5)
        token = await _mfa_token(anonymous, guarded.user.email)
        code = guarded.code()
        await _verify(anonymous, token, code)
    with clock.frozen(_later(now, 15)):
        assert (await _verify(anonymous, token, code)).status_code == 200


async def test_a_recovery_code_that_comes_after_five_wrong_codes_is_not_used_up(
    anonymous: Client, guarded: Guarded, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent before them, when nobody had to wait yet."""
    real = codes.find

    async def find(devices: Sequence[codes.Secret], owner: codes.Owner, code: str) -> Any:
        await _count_failures(services, throttle.CODE, guarded.user.user_id, 5)
        return await real(devices, owner, code)

    monkeypatch.setattr(codes, "find", find)
    token = await _mfa_token(anonymous, guarded.user.email)
    answer = await _verify(anonymous, token, guarded.recovery_codes[0])
    status = (await guarded.user.get("/api/v1/mfa/status")).json()
    assert (answer.status_code, status["recovery_codes_remaining"]) == (429, 10)


async def test_fifty_wrong_codes_stop_an_address(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    await _count_failures(services, throttle.CODE_ADDRESS, anonymous.address, 50)
    token = await _mfa_token(anonymous, guarded.user.email)
    assert (await _verify(anonymous, token, guarded.code())).status_code == 429


async def test_a_right_code_clears_the_count_of_codes(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    first, second = await _mfa_tokens(services, guarded, 2)
    await _guess_code(anonymous, guarded, first, 4)
    await _verify(anonymous, first, guarded.code())
    assert await _guess_code(anonymous, guarded, second, 4) == [401] * 4


async def test_a_right_password_does_not_clear_the_count_of_codes(
    anonymous: Client, guarded: Guarded
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _guess_code(anonymous, guarded, token, 4)
    token = await _mfa_token(anonymous, guarded.user.email)
    assert await _guess_code(anonymous, guarded, token, 2) == [401, 429]


async def test_a_right_code_does_not_clear_the_count_of_passwords(
    world: World, anonymous: Client, guarded: Guarded
) -> None:
    elsewhere = world.anonymous()
    token = await _mfa_token(elsewhere, guarded.user.email)
    await _guess(anonymous, guarded.user.email, 4)
    await _verify(elsewhere, token, guarded.code())
    assert await _guess(anonymous, guarded.user.email, 2) == [401, 429]


async def test_wrong_codes_make_no_password_wait(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _guess_code(anonymous, guarded, token, 5)
    assert (await _login(anonymous, guarded.user.email)).status_code == 200


async def test_wrong_passwords_make_no_code_wait(anonymous: Client, guarded: Guarded) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    assert await _guess(anonymous, guarded.user.email, 6) == [401] * 5 + [429]
    assert (await _verify(anonymous, token, guarded.code())).status_code == 200


async def test_an_address_stopped_for_passwords_may_still_send_codes(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    token = await _mfa_token(anonymous, guarded.user.email)
    await _count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    assert (await _verify(anonymous, token, guarded.code())).status_code == 200


async def test_an_address_stopped_for_codes_may_still_send_passwords(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    await _count_failures(services, throttle.CODE_ADDRESS, anonymous.address, 50)
    assert (await _login(anonymous, guarded.user.email)).status_code == 200


# What is told


async def test_signing_out_is_told_in_the_log(developer: Client, services: Services) -> None:
    await developer.post("/auth/logout")
    assert await _told(services, developer, "signed_out") == [{"user_id": developer.user_id}]


async def test_a_sign_out_that_is_refused_is_not_told(
    developer: Client, services: Services
) -> None:
    for _ in range(2):
        await developer.post("/auth/logout")
    assert len(await _told(services, developer, "signed_out")) == 1


async def test_too_many_wrong_passwords_are_told_once_per_wait(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _guess(anonymous, developer.email, 8)
    assert await _told(services, developer, "sign_in_blocked") == [
        {
            "user_id": developer.user_id,
            "ip_address": anonymous.address,
            "reason": "password",
        }
    ]


async def test_too_many_wrong_passwords_at_once_are_told_once(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await asyncio.gather(*(_login(anonymous, developer.email, WRONG) for _ in range(20)))
    assert len(await _told(services, developer, "sign_in_blocked")) == 1


async def test_too_many_wrong_codes_are_told_once_per_wait(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    for token in await _mfa_tokens(services, guarded, 2):
        await _guess_code(anonymous, guarded, token, 5)
    assert await _told(services, guarded.user, "sign_in_blocked") == [
        {
            "user_id": guarded.user.user_id,
            "ip_address": anonymous.address,
            "reason": "code",
        }
    ]


async def test_a_few_wrong_passwords_are_not_told(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _guess(anonymous, developer.email, 4)
    assert await _told(services, developer, "sign_in_blocked") == []


async def test_a_replayed_refresh_token_is_no_sign_out(
    replayed: Replayed, services: Services
) -> None:
    assert await _told(services, replayed.user, "signed_out") == []


async def _whole_story(caller: Client, guarded: Guarded, services: Services) -> list[str]:
    """All that can happen around a sign-in; the secrets that were sent or given."""
    email = guarded.user.email
    mfa_token, code = await _mfa_token(caller, email), guarded.code()
    pair = (await _verify(caller, mfa_token, code)).json()
    again = await _refreshed(caller, pair["refresh_token"])
    with clock.frozen(_later(clock.now(), 11)):
        await _refresh(caller, pair["refresh_token"])
    other, recovery = await _mfa_token(caller, email), guarded.recovery_codes[0]
    third = (await _verify(caller, other, recovery)).json()
    headers = {"authorization": f"Bearer {third['access_token']}"}
    await caller.post("/auth/logout", headers=headers)
    [last] = await _mfa_tokens(services, guarded, 1)
    await _guess_code(caller, guarded, last, 5)
    await _guess(caller, email, 6)
    pairs = [item[name] for item in (pair, again, third) for name in item if name.endswith("token")]
    return [PASSWORD, WRONG, mfa_token, other, last, code, recovery, guarded.seed, *pairs]


async def test_no_event_of_a_sign_in_carries_a_secret(
    anonymous: Client, guarded: Guarded, services: Services
) -> None:
    secrets = await _whole_story(anonymous, guarded, services)
    sql = "SELECT type, data::text FROM event_log WHERE tenant_id = $1"
    rows = await _fetch(services, sql, guarded.user.tenant_id)
    kinds = {kind.removeprefix("system.user.") for kind, _ in rows}
    assert {"signed_in", "signed_out", "sign_in_blocked", "session_revoked"} <= kinds
    assert [(kind, text) for kind, text in rows if any(secret in text for secret in secrets)] == []

"""Throttling of guessed passwords, for one account and for one network address."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime

import httpx
import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords, throttle
from app.services import Services
from tests.http_clients import open_client
from tests.identity.accounts.api_calls import log_in, sign_in_pair
from tests.identity.accounts.records import add_seconds, read_sessions, set_user
from tests.identity.accounts.throttling import count_failures, guess_passwords
from tests.identity.accounts.values import WRONG_PASSWORD
from tests.server import Server
from tests.world import PASSWORD, Client, World

WAITS = [15, 30, 60, 120, 240, 480, 900, 900]


# Guesses at one account


async def test_five_wrong_passwords_start_a_block(anonymous: Client, developer: Client) -> None:
    assert await guess_passwords(anonymous, developer.email, 7) == [401] * 5 + [429, 429]


@pytest.fixture
async def block_start(anonymous: Client, developer: Client) -> datetime:
    """The time at which five wrong passwords blocked the account of `developer`."""
    now = clock.now()
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 5)
    return now


@pytest.fixture
async def refusal(anonymous: Client, developer: Client, block_start: datetime) -> httpx.Response:
    """The response to a guess three seconds after the block started."""
    with clock.frozen(add_seconds(block_start, 3)):
        return await log_in(anonymous, developer.email, WRONG_PASSWORD)


async def test_the_details_of_a_429_have_the_seconds_to_wait(refusal: httpx.Response) -> None:
    error = refusal.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["details"] == {"limit": 5, "window": 86400, "retry_after": 12}


async def test_the_message_of_a_429_has_the_seconds_to_wait(refusal: httpx.Response) -> None:
    assert "12 seconds" in refusal.json()["error"]["message"]


async def test_the_retry_after_header_of_a_429_has_the_seconds_to_wait(
    refusal: httpx.Response,
) -> None:
    assert refusal.headers["retry-after"] == "12"


async def test_the_rate_limit_headers_of_a_429_have_nothing_remaining(
    refusal: httpx.Response,
) -> None:
    assert refusal.headers["x-ratelimit-remaining"] == "0"
    assert ";r=0;" in refusal.headers["ratelimit"]


async def test_a_block_refuses_the_right_password_too(
    anonymous: Client, developer: Client, block_start: datetime
) -> None:
    with clock.frozen(add_seconds(block_start, 14)):
        assert (await log_in(anonymous, developer.email)).status_code == 429


async def test_a_right_password_refused_by_a_block_opens_no_session(
    anonymous: Client, developer: Client, services: Services, block_start: datetime
) -> None:
    before = await read_sessions(services, developer)
    with clock.frozen(block_start):
        await log_in(anonymous, developer.email)
    assert await read_sessions(services, developer) == before


async def test_after_the_block_the_right_password_signs_in(
    anonymous: Client, developer: Client, block_start: datetime
) -> None:
    with clock.frozen(add_seconds(block_start, 15)):
        assert (await log_in(anonymous, developer.email)).status_code == 200


async def test_an_attempt_during_a_block_does_not_prolong_it(
    anonymous: Client, developer: Client, block_start: datetime
) -> None:
    with clock.frozen(add_seconds(block_start, 14)):
        await guess_passwords(anonymous, developer.email, 3)
    with clock.frozen(add_seconds(block_start, 15)):
        assert (await log_in(anonymous, developer.email, WRONG_PASSWORD)).status_code == 401


async def test_each_failure_after_a_block_starts_a_longer_one(
    anonymous: Client, developer: Client
) -> None:
    now, waits = clock.now(), []
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 4)
    for _ in WAITS:
        with clock.frozen(now):
            assert await guess_passwords(anonymous, developer.email, 2) == [401, 429]
            answer = await log_in(anonymous, developer.email)
        waits.append(answer.json()["error"]["details"]["retry_after"])
        now = add_seconds(now, waits[-1])
    assert waits == WAITS


async def test_an_unknown_email_is_throttled_with_the_same_answers(
    anonymous: Client, developer: Client
) -> None:
    emails = [developer.email, f"{new_id('nobody')}@example.com"]
    with clock.frozen(clock.now()):
        answers = [
            [await log_in(anonymous, email, WRONG_PASSWORD) for _ in range(7)] for email in emails
        ]
    registered, unknown = [
        [(answer.status_code, answer.content) for answer in group] for group in answers
    ]
    assert registered == unknown


async def test_a_blocked_unknown_email_gets_the_same_headers(
    anonymous: Client, developer: Client
) -> None:
    emails = [developer.email, f"{new_id('nobody')}@example.com"]
    answers = [
        [await log_in(anonymous, email, WRONG_PASSWORD) for _ in range(6)][-1] for email in emails
    ]
    assert answers[0].headers.keys() == answers[1].headers.keys()


EMAIL_SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "spaces around": lambda email: f" {email} ",
    "an i whose small letter is i": lambda email: email.replace("i", "\u0130"),
    "a sign whose small letter is k": lambda email: email.replace("k", "\u212a"),
    "a wide at sign": lambda email: email.replace("@", "\uff20"),
}


async def test_a_blocked_user_is_refused_for_every_spelling_of_the_email(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for spelling, respell in EMAIL_SPELLINGS.items():
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(spelling=spelling):
            email = f"miki.{developer.email}"
            await set_user(services, developer, email=email)
            await guess_passwords(anonymous, email, 5)
            assert (await log_in(anonymous, respell(email))).status_code in {
                401,
                429,
            }


async def test_no_spelling_of_an_email_reveals_whether_a_user_has_it(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for spelling, respell in EMAIL_SPELLINGS.items():
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(spelling=spelling):
            registered, unknown = f"miki.{developer.email}", f"miki.{new_id('nobody')}@example.com"
            await set_user(services, developer, email=registered)
            with clock.frozen(clock.now()):
                for email in (registered, unknown):
                    await guess_passwords(anonymous, email, 5)
                answers = [
                    await log_in(anonymous, respell(email)) for email in (registered, unknown)
                ]
            assert (answers[0].status_code, answers[0].content) == (
                answers[1].status_code,
                answers[1].content,
            )


async def test_another_address_allows_no_further_guesses(world: World, developer: Client) -> None:
    statuses = [await guess_passwords(world.anonymous(), developer.email, 2) for _ in range(3)]
    assert statuses == [[401, 401], [401, 401], [401, 429]]


async def test_a_success_clears_the_count_of_an_account(
    anonymous: Client, developer: Client
) -> None:
    await guess_passwords(anonymous, developer.email, 4)
    await sign_in_pair(anonymous, developer.email)
    assert await guess_passwords(anonymous, developer.email, 6) == [401] * 5 + [429]


async def test_after_a_success_the_next_block_is_the_shortest_again(
    anonymous: Client, developer: Client, block_start: datetime
) -> None:
    with clock.frozen(add_seconds(block_start, 15)):
        await log_in(anonymous, developer.email)
        await guess_passwords(anonymous, developer.email, 5)
        answer = await log_in(anonymous, developer.email)
    assert answer.json()["error"]["details"]["retry_after"] == 15


async def test_another_account_at_the_same_address_is_not_affected(
    world: World, anonymous: Client, developer: Client
) -> None:
    other = await world.user()
    await guess_passwords(anonymous, developer.email, 6)
    assert (await log_in(anonymous, other.email)).status_code == 200


async def test_guesses_do_not_end_the_sessions_of_the_user(
    anonymous: Client, developer: Client
) -> None:
    await guess_passwords(anonymous, developer.email, 6)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_failures_are_still_counted_after_redis_lost_its_data(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await guess_passwords(anonymous, developer.email, 5)
    await services.redis.flushall()
    assert await guess_passwords(anonymous, developer.email, 1) == [429]


async def test_failures_in_one_process_count_in_another(
    anonymous: Client, developer: Client, server: Server
) -> None:
    await guess_passwords(anonymous, developer.email, 5)
    async with open_client(base_url=server.url) as http:
        body = {"email": developer.email, "password": PASSWORD}
        answer = await http.post("/auth/login", json=body)
    assert answer.status_code == 429


async def test_guesses_at_a_deactivated_user_are_throttled_too(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await set_user(services, developer, status="inactive")
    statuses = [(await log_in(anonymous, developer.email)).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]


# Guesses from one address


async def test_fifty_wrong_passwords_over_many_accounts_block_an_address(anonymous: Client) -> None:
    statuses = [
        (await log_in(anonymous, f"{new_id('nobody')}@example.com", WRONG_PASSWORD)).status_code
        for _ in range(51)
    ]
    assert statuses == [401] * 50 + [429]


async def test_a_blocked_address_gets_its_own_limit_in_the_error(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
        answer = await log_in(anonymous, developer.email)
    assert answer.status_code == 429
    assert answer.json()["error"]["details"] == {"limit": 50, "window": 900, "retry_after": 900}


async def test_a_block_of_one_address_does_not_block_sign_ins_from_another(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    assert (await log_in(world.anonymous(), developer.email)).status_code == 200


async def test_a_block_of_an_address_ends_after_fifteen_minutes(
    anonymous: Client, developer: Client, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    with clock.frozen(add_seconds(now, 900)):
        assert (await log_in(anonymous, developer.email)).status_code == 200


async def test_a_success_does_not_clear_the_count_of_an_address(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 49)
    await sign_in_pair(anonymous, developer.email)
    assert await guess_passwords(anonymous, developer.email, 2) == [401, 429]


async def test_a_success_does_not_count_against_an_address(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 49)
    statuses = [(await log_in(anonymous, developer.email)).status_code for _ in range(2)]
    assert statuses == [200, 200]


# Many at once


async def test_of_fifty_wrong_passwords_at_once_five_are_recorded(
    anonymous: Client, developer: Client
) -> None:
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(log_in(anonymous, developer.email, WRONG_PASSWORD) for _ in range(50))
        )
    assert Counter(answer.status_code for answer in answers) == {401: 5, 429: 45}


async def test_a_right_password_among_fifty_wrong_ones_at_once_allows_no_further_guesses(
    anonymous: Client, developer: Client
) -> None:
    """At most five failures are recorded in a row. The right password clears earlier failures only
    if it comes before the fifth one.
    """
    guesses = [WRONG_PASSWORD] * 25 + [PASSWORD] + [WRONG_PASSWORD] * 25
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(log_in(anonymous, developer.email, guess) for guess in guesses)
        )
    is_signed_in = answers[25].status_code == 200
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 401, 429}
    assert statuses[401] <= (4 + 5 if is_signed_in else 5)


async def test_a_right_password_recorded_after_five_wrong_ones_is_refused(
    anonymous: Client, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request passed the first check before the wrong passwords started the block."""
    passed_check, block_started = asyncio.Event(), asyncio.Event()
    verify_password = passwords.verify_password

    async def verify_after_block(stored: str | None, password: str) -> bool:
        if password == PASSWORD:
            passed_check.set()
            await block_started.wait()
        return await verify_password(stored, password)

    monkeypatch.setattr(passwords, "verify_password", verify_after_block)
    sign_in = asyncio.create_task(log_in(anonymous, developer.email))
    await passed_check.wait()
    await guess_passwords(anonymous, developer.email, 5)
    block_started.set()
    assert (await sign_in).status_code == 429


async def test_fifty_right_sign_ins_at_once_all_succeed(
    anonymous: Client, developer: Client
) -> None:
    answers = await asyncio.gather(*(log_in(anonymous, developer.email) for _ in range(50)))
    assert Counter(answer.status_code for answer in answers) == {200: 50}


async def test_concurrent_sign_ins_open_a_session_each(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answers = await asyncio.gather(*(log_in(anonymous, developer.email) for _ in range(10)))
    access_tokens = [answer.json()["access_token"] for answer in answers]
    assert len({services.tokens.verify(token, "access").sid for token in access_tokens}) == 10

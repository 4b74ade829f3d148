"""Throttling of guessed passwords, for one account and for one network address."""

import asyncio
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords, throttle
from app.services import Services
from tests.accounts.api_calls import log_in, sign_in_pair
from tests.accounts.records import add_seconds, execute, read_sessions
from tests.accounts.throttling import count_failures, guess_passwords
from tests.accounts.values import WRONG_PASSWORD
from tests.server import Server
from tests.world import PASSWORD, Client, World

WAITS = [15, 30, 60, 120, 240, 480, 900, 900]


# Guesses at one account


async def test_five_wrong_passwords_are_recorded_and_the_next_must_wait(
    anonymous: Client, developer: Client
) -> None:
    assert await guess_passwords(anonymous, developer.email, 7) == [401] * 5 + [429, 429]


@pytest.fixture
async def refusal(anonymous: Client, developer: Client) -> httpx.Response:
    """The response to a guess three seconds after the fifth wrong one."""
    now = clock.now()
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 5)
    with clock.frozen(add_seconds(now, 3)):
        return await log_in(anonymous, developer.email, WRONG_PASSWORD)


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
    await guess_passwords(anonymous, developer.email, 5)
    assert (await log_in(anonymous, developer.email)).status_code == 429


async def test_the_right_password_that_came_too_early_opens_no_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    before = await read_sessions(services, developer)
    await guess_passwords(anonymous, developer.email, 5)
    await log_in(anonymous, developer.email)
    assert await read_sessions(services, developer) == before


async def test_after_the_wait_the_right_password_is_let_in(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 5)
    with clock.frozen(add_seconds(now, 15)):
        assert (await log_in(anonymous, developer.email)).status_code == 200


async def test_an_attempt_that_came_too_early_prolongs_nothing(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 5)
    with clock.frozen(add_seconds(now, 14)):
        await guess_passwords(anonymous, developer.email, 3)
    with clock.frozen(add_seconds(now, 15)):
        assert (await log_in(anonymous, developer.email, WRONG_PASSWORD)).status_code == 401


async def test_each_failure_after_a_wait_costs_a_longer_one(
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


async def test_an_unknown_email_is_throttled_just_the_same(
    anonymous: Client, developer: Client
) -> None:
    emails = [developer.email, f"{new_id('nobody')}@example.com"]
    with clock.frozen(clock.now()):
        answers = [
            [await log_in(anonymous, email, WRONG_PASSWORD) for _ in range(7)] for email in emails
        ]
    registered, unknown = [
        [(item.status_code, item.content) for item in group] for group in answers
    ]
    assert registered == unknown


async def test_an_unknown_email_that_must_wait_gets_the_same_headers(
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


@pytest.mark.parametrize("spelling", EMAIL_SPELLINGS)
async def test_a_blocked_user_is_refused_however_the_email_is_written(
    anonymous: Client, developer: Client, services: Services, spelling: str
) -> None:
    email = f"miki.{developer.email}"
    await execute(services, "UPDATE users SET email = $2 WHERE id = $1", developer.user_id, email)
    await guess_passwords(anonymous, email, 5)
    assert (await log_in(anonymous, EMAIL_SPELLINGS[spelling](email))).status_code in {401, 429}


@pytest.mark.parametrize("spelling", EMAIL_SPELLINGS)
async def test_no_spelling_of_an_email_reveals_whether_a_user_has_it(
    anonymous: Client, developer: Client, services: Services, spelling: str
) -> None:
    registered, unknown = f"miki.{developer.email}", f"miki.{new_id('nobody')}@example.com"
    await execute(
        services, "UPDATE users SET email = $2 WHERE id = $1", developer.user_id, registered
    )
    with clock.frozen(clock.now()):
        for email in (registered, unknown):
            await guess_passwords(anonymous, email, 5)
        answers = [
            await log_in(anonymous, EMAIL_SPELLINGS[spelling](email))
            for email in (registered, unknown)
        ]
    assert (answers[0].status_code, answers[0].content) == (
        answers[1].status_code,
        answers[1].content,
    )


async def test_another_address_gives_no_further_guesses(world: World, developer: Client) -> None:
    statuses = [await guess_passwords(world.anonymous(), developer.email, 2) for _ in range(3)]
    assert statuses == [[401, 401], [401, 401], [401, 429]]


async def test_success_clears_the_accounts_count(anonymous: Client, developer: Client) -> None:
    await guess_passwords(anonymous, developer.email, 4)
    await sign_in_pair(anonymous, developer.email)
    assert await guess_passwords(anonymous, developer.email, 6) == [401] * 5 + [429]


async def test_success_after_a_wait_starts_over_with_the_shortest(
    anonymous: Client, developer: Client
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await guess_passwords(anonymous, developer.email, 5)
    with clock.frozen(add_seconds(now, 15)):
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


async def test_who_is_signed_in_stays_so_while_others_guess(
    anonymous: Client, developer: Client
) -> None:
    await guess_passwords(anonymous, developer.email, 6)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_a_redis_that_forgets_all_forgets_no_failure(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await guess_passwords(anonymous, developer.email, 5)
    await services.redis.flushall()
    assert await guess_passwords(anonymous, developer.email, 1) == [429]


async def test_a_second_process_knows_of_the_failures(
    anonymous: Client, developer: Client, server: Server
) -> None:
    await guess_passwords(anonymous, developer.email, 5)
    async with httpx.AsyncClient(base_url=server.url) as http:
        body = {"email": developer.email, "password": PASSWORD}
        answer = await http.post("/auth/login", json=body)
    assert answer.status_code == 429


async def test_guesses_at_a_deactivated_user_are_throttled_too(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await execute(services, "UPDATE users SET status = 'inactive' WHERE id = $1", developer.user_id)
    statuses = [(await log_in(anonymous, developer.email)).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]


# Guesses from one address


async def test_fifty_wrong_passwords_over_many_accounts_stop_an_address(anonymous: Client) -> None:
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


async def test_an_account_can_be_signed_in_to_from_elsewhere_while_an_address_is_stopped(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    assert (await log_in(world.anonymous(), developer.email)).status_code == 200


async def test_an_address_is_free_again_after_fifteen_minutes(
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


async def test_a_right_password_among_fifty_wrong_ones_at_once_gives_no_further_guesses(
    anonymous: Client, developer: Client
) -> None:
    """At most five failures are recorded in a row. The right password clears earlier failures only
    if it comes before the fifth one.
    """
    words = [WRONG_PASSWORD] * 25 + [PASSWORD] + [WRONG_PASSWORD] * 25
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(log_in(anonymous, developer.email, word) for word in words)
        )
    let_in = answers[25].status_code == 200
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 401, 429}
    assert statuses[401] <= (4 + 5 if let_in else 5)


async def test_a_right_password_that_is_recorded_after_five_wrong_ones_learns_nothing(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent before the wrong ones, when there was no block yet."""
    sent, guesses_counted = asyncio.Event(), asyncio.Event()
    real = passwords.verify_password

    async def slow(stored: str | None, password: str) -> bool:
        if password == PASSWORD:
            sent.set()
            await guesses_counted.wait()
        return await real(stored, password)

    monkeypatch.setattr(passwords, "verify_password", slow)
    early = asyncio.create_task(log_in(anonymous, developer.email))
    await sent.wait()
    await guess_passwords(anonymous, developer.email, 5)
    guesses_counted.set()
    assert (await early).status_code == 429


async def test_fifty_right_sign_ins_at_once_all_succeed(
    anonymous: Client, developer: Client
) -> None:
    answers = await asyncio.gather(*(log_in(anonymous, developer.email) for _ in range(50)))
    assert Counter(answer.status_code for answer in answers) == {200: 50}


async def test_sign_ins_at_once_open_a_session_each(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answers = await asyncio.gather(*(log_in(anonymous, developer.email) for _ in range(10)))
    pairs = [answer.json()["access_token"] for answer in answers]
    assert len({services.tokens.verify(token, "access").sid for token in pairs}) == 10

"""Changing the own password."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from tests.identity.accounts.api_calls import (
    begin_session,
    change_password,
    get_login_status,
    log_in,
    refresh_own_tokens,
    request_reset,
    reset_password,
)
from tests.identity.accounts.mfa_users import enable_mfa, request_mfa_token, verify_code
from tests.identity.accounts.records import (
    read_events,
    read_mailed_tokens,
    read_mails,
    read_tenant_events,
)
from tests.identity.accounts.values import (
    COMMON_PASSWORDS,
    NEW_PASSWORD,
    WEAK_PASSWORDS,
    WRONG_PASSWORD,
)
from tests.world import PASSWORD, Client, World


async def test_a_change_returns_a_message(developer: Client) -> None:
    answer = await change_password(developer)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_after_a_change_only_the_new_password_signs_in(
    developer: Client, anonymous: Client
) -> None:
    await change_password(developer)
    statuses = [
        await get_login_status(anonymous, developer.email, password)
        for password in (NEW_PASSWORD, PASSWORD)
    ]
    assert statuses == [200, 401]


async def test_a_change_ends_the_other_sessions_at_once(world: World, developer: Client) -> None:
    others = [await begin_session(world, developer.email) for _ in range(2)]
    await change_password(developer)
    assert [(await other.get("/auth/me")).status_code for other in others] == [401, 401]


async def test_a_change_ends_the_other_sessions_after_redis_lost_its_data(
    world: World, developer: Client, services: Services
) -> None:
    other = await begin_session(world, developer.email)
    await change_password(developer)
    await services.redis.flushall()
    assert (await other.get("/auth/me")).status_code == 401


async def test_the_other_sessions_cannot_be_refreshed_after_a_change(
    world: World, developer: Client
) -> None:
    other = await begin_session(world, developer.email)
    await change_password(developer)
    assert await refresh_own_tokens(other) == 401


async def test_the_session_that_changes_the_password_stays_active(developer: Client) -> None:
    assert (await change_password(developer)).status_code == 200
    assert (await developer.get("/auth/me")).status_code == 200


async def test_the_session_that_changes_the_password_can_be_refreshed(developer: Client) -> None:
    assert (await change_password(developer)).status_code == 200
    assert await refresh_own_tokens(developer) == 200


async def test_a_change_ends_no_session_of_another_user(world: World, developer: Client) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    assert (await change_password(developer)).status_code == 200
    assert (await colleague.get("/auth/me")).status_code == 200


async def test_a_change_needs_a_login(anonymous: Client) -> None:
    assert (await change_password(anonymous)).status_code == 401


async def test_a_wrong_current_password_is_refused(developer: Client) -> None:
    answer = await change_password(developer, WRONG_PASSWORD)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"current_password"}


async def test_a_wrong_current_password_changes_nothing(
    world: World, developer: Client, anonymous: Client
) -> None:
    other = await begin_session(world, developer.email)
    await change_password(developer, WRONG_PASSWORD)
    assert (await other.get("/auth/me")).status_code == 200
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_five_wrong_current_passwords_start_a_block(developer: Client) -> None:
    answers = [await change_password(developer, WRONG_PASSWORD) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [422] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 15
    assert answers[-1].headers["retry-after"] == str(error["details"]["retry_after"])


async def test_a_block_refuses_the_right_password_too(developer: Client, anonymous: Client) -> None:
    for _ in range(5):
        await change_password(developer, WRONG_PASSWORD)
    assert (await change_password(developer)).status_code == 429
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_after_the_block_the_right_password_is_accepted(developer: Client) -> None:
    with clock.frozen(clock.now() - timedelta(seconds=15)):
        for _ in range(5):
            await change_password(developer, WRONG_PASSWORD)
    assert (await change_password(developer)).status_code == 200


async def test_guesses_of_one_session_block_another_session_of_the_user(
    world: World, developer: Client
) -> None:
    other = await begin_session(world, developer.email)
    for _ in range(5):
        await change_password(developer, WRONG_PASSWORD)
    assert (await change_password(other)).status_code == 429


async def test_of_twenty_guesses_at_once_five_are_recorded(developer: Client) -> None:
    answers = await asyncio.gather(*(change_password(developer, WRONG_PASSWORD) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [422] * 5 + [429] * 15


async def test_a_right_guess_among_many_wrong_ones_at_once_learns_nothing(
    world: World, subtests: pytest.Subtests
) -> None:
    """The same holds for a new password equal to the guess, which has another error."""
    cases: list[str | None] = [NEW_PASSWORD, None]
    for new in cases:
        developer = await world.user()
        with subtests.test(new=new):
            guesses = [*(f"Wrong{number}Horse" for number in range(30)), PASSWORD]
            answers = await asyncio.gather(
                *(change_password(developer, guess, new or guess) for guess in guesses)
            )
            assert answers[-1].status_code == 429


async def test_guesses_at_the_current_password_do_not_block_signing_in(
    developer: Client, anonymous: Client
) -> None:
    for _ in range(6):
        await change_password(developer, WRONG_PASSWORD)
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_a_right_password_clears_the_count_of_wrong_ones(developer: Client) -> None:
    for _ in range(4):
        await change_password(developer, WRONG_PASSWORD)
    await change_password(developer)
    statuses = [(await change_password(developer, WRONG_PASSWORD)).status_code for _ in range(5)]
    assert statuses == [422] * 5


async def test_the_new_password_must_differ_from_the_current_one(developer: Client) -> None:
    answer = await change_password(developer, PASSWORD, PASSWORD)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_password_with_decomposed_accents_is_the_same(developer: Client) -> None:
    composed, decomposed = "Caf\u00e9Noir7", "Cafe\u0301Noir7"
    await change_password(developer, PASSWORD, composed)
    answer = await change_password(developer, composed, decomposed)
    assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_weak_new_password_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for new in (*WEAK_PASSWORDS, *COMMON_PASSWORDS):
        with subtests.test(new=new):
            answer = await change_password(developer, PASSWORD, new)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_weak_new_password_changes_nothing(
    world: World, developer: Client, anonymous: Client
) -> None:
    other = await begin_session(world, developer.email)
    await change_password(developer, PASSWORD, "weak")
    assert (await other.get("/auth/me")).status_code == 200
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


_CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"current_password", "new_password"}),
    ({"current_password": PASSWORD}, {"new_password"}),
    ({"new_password": NEW_PASSWORD}, {"current_password"}),
    (
        {"current_password": None, "new_password": 5},
        {"current_password", "new_password"},
    ),
    ({"current_password": "x" * 1025, "new_password": NEW_PASSWORD}, {"current_password"}),
    ({"current_password": PASSWORD, "new_password": "x" * 1025}, {"new_password"}),
]


async def test_an_invalid_field_of_a_change_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for body, fields in _CASES:
        with subtests.test(body=body, fields=fields):
            answer = await developer.post("/auth/change-password", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == fields


async def test_the_password_of_another_user_cannot_be_changed(
    developer: Client, admin: Client
) -> None:
    passwords = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    for field, value in (("user_id", developer.user_id), ("email", developer.email)):
        answer = await admin.post("/auth/change-password", {**passwords, field: value})
        assert answer.status_code == 422
    assert await get_login_status(developer, developer.email, PASSWORD) == 200


async def test_super_admin_acting_in_another_tenant_changes_its_own_password(
    super_admin: Client, admin: Client, anonymous: Client
) -> None:
    answer = await change_password(super_admin, headers={"x-tenant-id": admin.tenant_id})
    assert answer.status_code == 200
    assert await get_login_status(anonymous, super_admin.email, NEW_PASSWORD) == 200


async def test_of_concurrent_changes_one_succeeds(developer: Client, anonymous: Client) -> None:
    new_passwords = [f"Battery{number}Staple" for number in range(5)]
    answers = await asyncio.gather(
        *(change_password(developer, PASSWORD, new) for new in new_passwords)
    )
    accepted = [
        new for new, answer in zip(new_passwords, answers, strict=True) if answer.status_code == 200
    ]
    working = [
        new
        for new in new_passwords
        if await get_login_status(anonymous, developer.email, new) == 200
    ]
    assert len(accepted) == 1
    assert working == accepted


async def test_a_change_voids_a_mailed_reset_link(
    developer: Client, anonymous: Client, services: Services
) -> None:
    await request_reset(anonymous, developer.email)
    (token,) = await read_mailed_tokens(services, developer.email)
    await change_password(developer)
    answer = await reset_password(anonymous, token, "Another3Word")
    assert answer.status_code == 422
    assert await get_login_status(anonymous, developer.email, NEW_PASSWORD) == 200


async def test_a_change_voids_the_mfa_token_of_a_started_sign_in(
    developer: Client, anonymous: Client
) -> None:
    codes = await enable_mfa(developer)
    old = await request_mfa_token(anonymous, developer.email)
    await change_password(developer)
    new = await request_mfa_token(anonymous, developer.email, NEW_PASSWORD)
    answers = [await verify_code(anonymous, token, codes[0]) for token in (old, new)]
    assert [answer.status_code for answer in answers] == [401, 200]


async def test_mfa_stays_on_after_a_change(developer: Client, anonymous: Client) -> None:
    await enable_mfa(developer)
    await change_password(developer)
    answer = await log_in(anonymous, developer.email, NEW_PASSWORD)
    assert answer.json()["mfa_required"] is True


async def test_a_change_is_in_the_event_log(developer: Client, services: Services) -> None:
    await change_password(developer)
    assert await read_events(services, "password_changed", developer.user_id) == [
        {"user_id": developer.user_id, "by": "change"}
    ]


async def test_a_block_for_wrong_current_passwords_is_in_the_event_log(
    developer: Client, services: Services
) -> None:
    for _ in range(6):
        await change_password(developer, WRONG_PASSWORD)
    assert await read_tenant_events(services, developer, "sign_in_blocked") == [
        {
            "user_id": developer.user_id,
            "ip_address": developer.address,
            "reason": "password",
        }
    ]


async def test_a_refused_change_emits_no_event(developer: Client, services: Services) -> None:
    await change_password(developer, WRONG_PASSWORD)
    assert await read_events(services, "password_changed", developer.user_id) == []


async def test_the_owner_gets_a_notice_of_a_change(developer: Client, services: Services) -> None:
    await change_password(developer)
    ((subject, text),) = await read_mails(services, developer.email)
    assert subject == "Your account changed"
    assert "password" in text


async def test_the_answer_to_a_change_contains_no_password(
    world: World, subtests: pytest.Subtests
) -> None:
    for current in (PASSWORD, WRONG_PASSWORD):
        developer = await world.user()
        with subtests.test(current=current):
            answer = await change_password(developer, current)
            passwords = (PASSWORD, NEW_PASSWORD, WRONG_PASSWORD)
            assert not [password for password in passwords if password in answer.text]


async def test_mails_and_events_of_a_change_contain_no_password(
    developer: Client, services: Services
) -> None:
    await change_password(developer)
    events = str(await read_events(services, "password_changed", developer.user_id))
    text = events + str(await read_mails(services, developer.email))
    assert not [password for password in (PASSWORD, NEW_PASSWORD) if password in text]

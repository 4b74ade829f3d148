"""Verification of e-mail addresses."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from tests.identity.accounts.api_calls import (
    invite,
    register,
    request_reset,
    reset_password,
    sign_in_client,
)
from tests.identity.accounts.records import read_events, read_mail_texts, read_mailed_tokens
from tests.world import Client, World

# Verifying the address


async def _register_newcomer(world: World, services: Services) -> tuple[Client, str]:
    """Returns a new, signed-in user and the mailed token."""
    account = await register(world.anonymous())
    (token,) = await read_mailed_tokens(services, account["email"], "verify-email")
    return await sign_in_client(world, account["email"]), token


async def _request_reset_token(services: Services, user: Client) -> str:
    await request_reset(user, user.email)
    (token,) = await read_mailed_tokens(services, user.email, "reset-password")
    return token


async def _is_verified(caller: Client) -> bool:
    is_verified: bool = (await caller.get("/auth/me")).json()["email_verified"]
    return is_verified


async def test_the_mailed_token_verifies_the_address(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert await _is_verified(newcomer)


async def test_a_session_of_another_user_does_not_prevent_a_verification(
    world: World, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    other = await world.user(is_verified=False)
    await other.post("/auth/verify-email", {"token": token})
    assert (await _is_verified(newcomer), await _is_verified(other)) == (True, False)


async def test_a_verification_token_works_once(
    world: World, anonymous: Client, services: Services
) -> None:
    _, token = await _register_newcomer(world, services)
    statuses = [
        (await anonymous.post("/auth/verify-email", {"token": token})).status_code for _ in range(2)
    ]
    assert statuses == [200, 422]


async def test_of_twenty_verifications_at_once_one_succeeds(
    world: World, services: Services
) -> None:
    _, token = await _register_newcomer(world, services)
    answers = await asyncio.gather(
        *(world.anonymous().post("/auth/verify-email", {"token": token}) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19


async def test_an_address_is_verified_with_one_event(
    world: World, anonymous: Client, services: Services
) -> None:
    """The same holds when two mails were sent and both links are used."""
    newcomer, _ = await _register_newcomer(world, services)
    await newcomer.post("/auth/verify-email/resend")
    user_id = (await newcomer.get("/auth/me")).json()["id"]
    for token in await read_mailed_tokens(services, newcomer.email, "verify-email"):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await read_events(services, "email_verified", user_id) == [{"user_id": user_id}]


async def test_a_verification_token_expires_after_three_days(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=3)):
        answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}
    assert not await _is_verified(newcomer)


async def test_a_verification_token_is_valid_for_nearly_three_days(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=2, hours=23)):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await _is_verified(newcomer)


async def test_an_invalid_verification_token_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"token": ""},
        {"token": " "},
        {"token": None},
        {"token": 5},
        {"token": []},
        {"token": "unknown"},
        {"token": "x" * 5000},
    ]
    for body in cases:
        with subtests.test(body=body):
            answer = await anonymous.post("/auth/verify-email", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"token"}


async def test_a_reset_token_does_not_verify_an_address(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _register_newcomer(world, services)
    token = await _request_reset_token(services, newcomer)
    answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert not await _is_verified(newcomer)


async def test_a_refused_verification_does_not_use_up_a_reset_token(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _register_newcomer(world, services)
    token = await _request_reset_token(services, newcomer)
    await anonymous.post("/auth/verify-email", {"token": token})
    assert (await reset_password(anonymous, token)).status_code == 200


async def test_an_invitation_token_does_not_verify_an_address(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    body = {"token": invitation["invitation_token"]}
    assert (await anonymous.post("/auth/verify-email", body)).status_code == 422


async def test_the_token_of_one_user_does_not_verify_another(
    world: World, anonymous: Client, services: Services
) -> None:
    _, token = await _register_newcomer(world, services)
    other, _ = await _register_newcomer(world, services)
    await anonymous.post("/auth/verify-email", {"token": token})
    assert not await _is_verified(other)


# Mailing the verification again


async def test_the_verification_is_mailed_again_to_the_callers_address(
    newcomer: Client, services: Services
) -> None:
    answer = await newcomer.post("/auth/verify-email/resend")
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert len(await read_mailed_tokens(services, newcomer.email, "verify-email")) == 1


async def test_the_token_that_was_mailed_again_verifies(
    newcomer: Client, anonymous: Client, services: Services
) -> None:
    await newcomer.post("/auth/verify-email/resend")
    (token,) = await read_mailed_tokens(services, newcomer.email, "verify-email")
    await anonymous.post("/auth/verify-email", {"token": token})
    assert await _is_verified(newcomer)


async def test_no_verification_is_mailed_to_a_verified_address(
    developer: Client, services: Services
) -> None:
    answer = await developer.post("/auth/verify-email/resend")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"
    assert await read_mail_texts(services, developer.email) == []


async def test_the_sixth_verification_mail_is_rate_limited(newcomer: Client) -> None:
    answers = [await newcomer.post("/auth/verify-email/resend") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 15 * 60
    assert answers[-1].headers["retry-after"] == str(error["details"]["retry_after"])


async def test_a_rate_limited_request_sends_no_mail(newcomer: Client, services: Services) -> None:
    for _ in range(7):
        await newcomer.post("/auth/verify-email/resend")
    assert len(await read_mail_texts(services, newcomer.email)) == 5


async def test_of_twenty_concurrent_requests_five_mails_are_sent(
    newcomer: Client, services: Services
) -> None:
    await asyncio.gather(*(newcomer.post("/auth/verify-email/resend") for _ in range(20)))
    assert len(await read_mail_texts(services, newcomer.email)) == 5


async def test_after_fifteen_minutes_the_verification_is_mailed_again(newcomer: Client) -> None:
    with clock.frozen(clock.now() - timedelta(minutes=15)):
        statuses = [
            (await newcomer.post("/auth/verify-email/resend")).status_code for _ in range(6)
        ]
    answer = await newcomer.post("/auth/verify-email/resend")
    assert (statuses[-1], answer.status_code) == (429, 200)


async def test_one_users_mails_do_not_count_for_another(world: World, newcomer: Client) -> None:
    for _ in range(5):
        await newcomer.post("/auth/verify-email/resend")
    other = await world.user("viewer", is_verified=False)
    assert (await other.post("/auth/verify-email/resend")).status_code == 200


async def test_super_admin_acting_in_another_tenant_verifies_its_own_address(
    world: World, admin: Client, services: Services
) -> None:
    super_admin = await world.user("super_admin", is_verified=False)
    headers = {"x-tenant-id": admin.tenant_id}
    await super_admin.post("/auth/verify-email/resend", headers=headers)
    assert len(await read_mail_texts(services, super_admin.email)) == 1


async def test_mailing_the_verification_again_needs_a_login(anonymous: Client) -> None:
    assert (await anonymous.post("/auth/verify-email/resend")).status_code == 401

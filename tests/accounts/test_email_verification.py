"""Verification of e-mail addresses."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from db.models import User
from db.session import ALL_TENANTS
from tests.accounts.api_calls import invite, register, sign_in_client
from tests.accounts.records import read_events, read_mail_texts, read_mailed_tokens
from tests.world import Client, World

# Verifying the address


async def _register_newcomer(world: World, services: Services) -> tuple[Client, str]:
    """Returns a new, signed-in user and the mailed token."""
    account = await register(world.anonymous())
    (token,) = await read_mailed_tokens(services, account["email"], "verify-email")
    return await sign_in_client(world, account["email"]), token


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


async def test_somebody_elses_session_does_not_stand_in_the_way_of_verifying(
    world: World, developer: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    await developer.post("/auth/verify-email", {"token": token})
    assert (await _is_verified(newcomer), await _is_verified(developer)) == (True, False)


async def test_a_verification_works_once(
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


async def test_a_verification_is_logged_once(
    world: World, anonymous: Client, services: Services
) -> None:
    """The same holds when two mails were sent and both links are used."""
    newcomer, _ = await _register_newcomer(world, services)
    await newcomer.post("/auth/verify-email/resend")
    user_id = (await newcomer.get("/auth/me")).json()["id"]
    for token in await read_mailed_tokens(services, newcomer.email, "verify-email"):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await read_events(services, "email_verified", user_id) == [{"user_id": user_id}]


async def test_a_verification_ends_after_three_days(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=3)):
        answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}
    assert not await _is_verified(newcomer)


async def test_a_verification_holds_until_the_third_day(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _register_newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=2, hours=23)):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await _is_verified(newcomer)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"token": ""},
        {"token": " "},
        {"token": None},
        {"token": 5},
        {"token": []},
        {"token": "unknown"},
        {"token": "x" * 5000},
    ],
)
async def test_what_is_no_token_verifies_nobody(anonymous: Client, body: dict[str, Any]) -> None:
    answer = await anonymous.post("/auth/verify-email", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}


async def test_the_token_to_reset_a_password_verifies_nobody(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _register_newcomer(world, services)
    await anonymous.post("/auth/forgot-password", {"email": newcomer.email})
    (token,) = await read_mailed_tokens(services, newcomer.email, "reset-password")
    answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert not await _is_verified(newcomer)


async def test_a_wrong_try_to_verify_does_not_use_up_the_token_of_another_purpose(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _register_newcomer(world, services)
    await anonymous.post("/auth/forgot-password", {"email": newcomer.email})
    (token,) = await read_mailed_tokens(services, newcomer.email, "reset-password")
    await anonymous.post("/auth/verify-email", {"token": token})
    body = {"token": token, "new_password": "Battery9Staple"}
    assert (await anonymous.post("/auth/reset-password", body)).status_code == 200


async def test_an_invitation_verifies_nobody(admin: Client, anonymous: Client) -> None:
    invitation = await invite(admin)
    body = {"token": invitation["invitation_token"]}
    assert (await anonymous.post("/auth/verify-email", body)).status_code == 422


async def test_the_token_of_one_user_verifies_no_other(
    world: World, anonymous: Client, services: Services
) -> None:
    _, token = await _register_newcomer(world, services)
    other, _ = await _register_newcomer(world, services)
    await anonymous.post("/auth/verify-email", {"token": token})
    assert not await _is_verified(other)


# Mailing the verification again


async def test_the_verification_is_mailed_again_to_ones_own_address(
    developer: Client, services: Services
) -> None:
    answer = await developer.post("/auth/verify-email/resend")
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert len(await read_mailed_tokens(services, developer.email, "verify-email")) == 1


async def test_the_token_that_was_mailed_again_verifies(
    developer: Client, anonymous: Client, services: Services
) -> None:
    await developer.post("/auth/verify-email/resend")
    (token,) = await read_mailed_tokens(services, developer.email, "verify-email")
    await anonymous.post("/auth/verify-email", {"token": token})
    assert await _is_verified(developer)


async def test_a_verified_address_is_not_verified_again(
    developer: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(User, developer.user_id)).email_verified = True
    answer = await developer.post("/auth/verify-email/resend")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"
    assert await read_mail_texts(services, developer.email) == []


async def test_after_five_mails_one_must_wait(developer: Client) -> None:
    answers = [await developer.post("/auth/verify-email/resend") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 15 * 60
    assert answers[-1].headers["retry-after"] == str(error["details"]["retry_after"])


async def test_no_mail_goes_out_while_one_must_wait(developer: Client, services: Services) -> None:
    for _ in range(7):
        await developer.post("/auth/verify-email/resend")
    assert len(await read_mail_texts(services, developer.email)) == 5


async def test_of_twenty_requests_for_a_mail_at_once_five_are_sent(
    developer: Client, services: Services
) -> None:
    await asyncio.gather(*(developer.post("/auth/verify-email/resend") for _ in range(20)))
    assert len(await read_mail_texts(services, developer.email)) == 5


async def test_after_fifteen_minutes_the_verification_is_mailed_again(developer: Client) -> None:
    with clock.frozen(clock.now() - timedelta(minutes=15)):
        statuses = [
            (await developer.post("/auth/verify-email/resend")).status_code for _ in range(6)
        ]
    answer = await developer.post("/auth/verify-email/resend")
    assert (statuses[-1], answer.status_code) == (429, 200)


async def test_one_users_mails_do_not_count_for_another(world: World, developer: Client) -> None:
    for _ in range(5):
        await developer.post("/auth/verify-email/resend")
    other = await world.user("viewer", developer.tenant_id)
    assert (await other.post("/auth/verify-email/resend")).status_code == 200


async def test_acting_in_another_tenant_super_admin_still_verifies_its_own_address(
    super_admin: Client, admin: Client, services: Services
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    await super_admin.post("/auth/verify-email/resend", headers=headers)
    assert len(await read_mail_texts(services, super_admin.email)) == 1


async def test_nobody_gets_a_verification_without_a_login(anonymous: Client) -> None:
    assert (await anonymous.post("/auth/verify-email/resend")).status_code == 401

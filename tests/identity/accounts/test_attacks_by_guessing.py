"""Attacks by guessing passwords and accounts."""

import time
from collections.abc import Callable

import pytest

from app.domain.identity.accounts import password
from tests.identity.accounts.api_calls import change_password, log_in, register, registration_body
from tests.identity.accounts.throttling import guess_passwords, skip_block_check
from tests.identity.accounts.values import WRONG_PASSWORD
from tests.world import PASSWORD, Client, World

# Guessing


async def test_a_guess_at_the_current_password_that_is_not_recorded_learns_nothing(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await change_password(developer, WRONG_PASSWORD)
    skip_block_check(monkeypatch)
    answers = [
        await change_password(developer, PASSWORD, PASSWORD),
        await change_password(developer, WRONG_PASSWORD),
    ]
    assert [answer.status_code for answer in answers] == [429, 429]


async def test_failures_are_counted_together_for_every_spelling_of_an_email(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[Callable[[str], str]] = [str.upper, lambda email: f" {email} "]
    for respell in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(respell=respell.__name__):
            await guess_passwords(anonymous, developer.email)
            assert (await log_in(anonymous, respell(developer.email))).status_code == 429


async def test_an_email_with_a_letter_that_only_looks_alike_is_another_one(
    world: World, subtests: pytest.Subtests
) -> None:
    """If the database treated it as equal, the response would reveal who has an account."""
    for letter in ("\u0130", "\u0131", "I\u0307"):
        anonymous = world.anonymous()
        with subtests.test(letter=letter):
            email = f"viki.{anonymous.address}@example.com"
            await register(anonymous, email=email)
            await guess_passwords(anonymous, email)
            assert (
                await log_in(anonymous, email.replace("viki", f"v{letter}ki"))
            ).status_code == 401


async def test_a_user_with_an_encoded_domain_can_sign_in(anonymous: Client) -> None:
    email = f"ada.{anonymous.address}@xn--exmple-cua.com"
    await register(anonymous, email=email)
    assert (await log_in(anonymous, email)).status_code == 200


async def test_a_stranger_cannot_block_a_user_at_their_usual_address(
    world: World, anonymous: Client, developer: Client
) -> None:
    await log_in(anonymous, developer.email)
    await guess_passwords(world.anonymous(), developer.email)
    assert (await log_in(anonymous, developer.email)).status_code == 200


async def test_guesses_from_a_usual_address_are_counted_too(
    anonymous: Client, developer: Client
) -> None:
    await log_in(anonymous, developer.email)
    await guess_passwords(anonymous, developer.email)
    assert (await log_in(anonymous, developer.email)).status_code == 429


async def test_strangers_at_many_addresses_are_counted_together(
    world: World, developer: Client
) -> None:
    for _ in range(5):
        await guess_passwords(world.anonymous(), developer.email, times=1)
    assert (await log_in(world.anonymous(), developer.email)).status_code == 429


async def test_a_sign_in_of_another_user_does_not_make_an_address_usual(
    world: World, anonymous: Client, developer: Client
) -> None:
    other = await world.user("viewer", developer.tenant_id)
    await log_in(anonymous, other.email)
    await guess_passwords(world.anonymous(), developer.email)
    assert (await log_in(anonymous, developer.email)).status_code == 429


# Revealing accounts


async def test_an_unknown_invitation_does_not_reveal_who_has_an_account(
    closed_instance: Client, developer: Client
) -> None:
    registered, unknown = [
        await closed_instance.post(
            "/auth/register", registration_body(email=email, invitation_token="unknown")
        )
        for email in (developer.email, "nobody@example.com")
    ]
    assert (registered.status_code, unknown.status_code) == (422, 422)
    assert registered.content == unknown.content


async def test_a_reset_request_takes_the_same_minimum_time_with_and_without_an_account(
    world: World, subtests: pytest.Subtests
) -> None:
    for owner in ("somebody", "nobody"):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(owner=owner):
            email = developer.email if owner == "somebody" else "nobody@example.com"
            started = time.perf_counter()
            await anonymous.post("/auth/forgot-password", {"email": email})
            assert time.perf_counter() - started >= password._MIN_RESPONSE_SECONDS

"""Attacks by guessing passwords and accounts."""

import time
from typing import Any

import pytest

from app.domain.accounts import password
from tests.accounts.throttling import guess_passwords, skip_block_check
from tests.accounts.values import NEW_PASSWORD, WRONG_PASSWORD
from tests.world import PASSWORD, Client, World

# Guessing


async def test_a_guess_at_the_current_password_that_is_not_recorded_learns_nothing(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"current_password": WRONG_PASSWORD, "new_password": NEW_PASSWORD}
    for _ in range(5):
        await developer.post("/auth/change-password", wrong)
    skip_block_check(monkeypatch)
    correct = {"current_password": PASSWORD, "new_password": PASSWORD}
    answers = [await developer.post("/auth/change-password", body) for body in (correct, wrong)]
    assert [answer.status_code for answer in answers] == [429, 429]


async def test_a_block_for_wrong_current_passwords_is_in_the_event_log(
    world: World, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    for _ in range(5):
        body = {"current_password": WRONG_PASSWORD, "new_password": NEW_PASSWORD}
        await user.post("/auth/change-password", body)
    query = {"event_type": "system.user.sign_in_blocked"}
    entries = (await admin.get("/api/v1/event-log", params=query)).json()["data"]
    assert [entry["data"]["user_id"] for entry in entries] == [user.user_id]


@pytest.mark.parametrize("write", [str.upper, lambda text: f" {text} "])
async def test_however_an_address_is_written_its_failures_are_counted_together(
    anonymous: Client, developer: Client, write: Any
) -> None:
    for _ in range(5):
        body = {"email": developer.email, "password": WRONG_PASSWORD}
        await anonymous.post("/auth/login", body)
    body = {"email": write(developer.email), "password": PASSWORD}
    assert (await anonymous.post("/auth/login", body)).status_code == 429


@pytest.mark.parametrize("odd", ["\u0130", "\u0131", "I\u0307"])
async def test_a_letter_that_only_looks_alike_is_another_address(
    anonymous: Client, odd: str
) -> None:
    """If the database treated it as equal, the response would reveal who has an account."""
    email = f"viki.{anonymous.address}@example.com"
    await anonymous.post(
        "/auth/register",
        {"email": email, "password": NEW_PASSWORD, "first_name": "V", "last_name": "K"},
    )
    for _ in range(5):
        await anonymous.post("/auth/login", {"email": email, "password": WRONG_PASSWORD})
    body = {"email": email.replace("viki", f"v{odd}ki"), "password": NEW_PASSWORD}
    assert (await anonymous.post("/auth/login", body)).status_code == 401


async def test_an_encoded_domain_signs_in_as_it_registered(anonymous: Client) -> None:
    email = f"ada.{anonymous.address}@xn--exmple-cua.com"
    body = {"email": email, "password": NEW_PASSWORD, "first_name": "A", "last_name": "B"}
    await anonymous.post("/auth/register", body)
    answer = await anonymous.post("/auth/login", {"email": email, "password": NEW_PASSWORD})
    assert answer.status_code == 200


async def test_a_stranger_does_not_lock_out_who_signs_in_from_their_usual_address(
    world: World, anonymous: Client, developer: Client
) -> None:
    login = {"email": developer.email, "password": PASSWORD}
    await anonymous.post("/auth/login", login)
    await guess_passwords(world.anonymous(), developer.email)
    assert (await anonymous.post("/auth/login", login)).status_code == 200


async def test_guesses_from_a_usual_address_are_counted_too(
    anonymous: Client, developer: Client
) -> None:
    login = {"email": developer.email, "password": PASSWORD}
    await anonymous.post("/auth/login", login)
    await guess_passwords(anonymous, developer.email)
    assert (await anonymous.post("/auth/login", login)).status_code == 429


async def test_strangers_at_many_addresses_are_counted_together(
    world: World, anonymous: Client, developer: Client
) -> None:
    for _ in range(5):
        await guess_passwords(world.anonymous(), developer.email, times=1)
    login = {"email": developer.email, "password": PASSWORD}
    assert (await world.anonymous().post("/auth/login", login)).status_code == 429


async def test_a_sign_in_of_somebody_else_makes_an_address_usual_for_nobody(
    world: World, anonymous: Client, developer: Client
) -> None:
    other = await world.user("viewer", developer.tenant_id)
    await anonymous.post("/auth/login", {"email": other.email, "password": PASSWORD})
    await guess_passwords(world.anonymous(), developer.email)
    login = {"email": developer.email, "password": PASSWORD}
    assert (await anonymous.post("/auth/login", login)).status_code == 429


# Revealing accounts


async def test_an_unknown_invitation_does_not_reveal_who_has_an_account(
    closed_instance: Client, developer: Client
) -> None:
    body = {
        "password": NEW_PASSWORD,
        "first_name": "A",
        "last_name": "B",
        "invitation_token": "made-up",
    }
    registered, unknown = [
        await closed_instance.post("/auth/register", {**body, "email": email})
        for email in (developer.email, "nobody@example.com")
    ]
    assert registered.content == unknown.content


@pytest.mark.parametrize("owner", ["somebody", "nobody"])
async def test_asking_for_a_reset_takes_the_same_time_for_everybody(
    anonymous: Client, developer: Client, owner: str
) -> None:
    email = developer.email if owner == "somebody" else "nobody@example.com"
    started = time.perf_counter()
    await anonymous.post("/auth/forgot-password", {"email": email})
    assert time.perf_counter() - started >= password._MIN_RESPONSE_SECONDS

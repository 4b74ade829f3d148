"""Requesting a mail to reset a password."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from tests.identity.accounts.api_calls import get_login_status, request_reset
from tests.identity.accounts.records import (
    contains_secret,
    fetch_rows,
    read_events,
    read_mailed_tokens,
    read_mails,
    set_user,
)
from tests.world import PASSWORD, Client, World


async def test_the_answer_is_the_same_for_every_address(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "nobody@example.com",
        "nobody",
        "",
        " ",
        "@",
        "a b@c",
        "x" * 254,
        "'; --",
        "%",
    ]
    for email in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(email=email):
            registered = await request_reset(anonymous, developer.email)
            other = await request_reset(anonymous, email)
            assert (registered.status_code, set(registered.json())) == (200, {"message"})
            assert (other.status_code, other.content) == (
                registered.status_code,
                registered.content,
            )
            assert other.headers.keys() == registered.headers.keys()


async def test_the_answer_is_the_same_for_an_inactive_user(
    anonymous: Client, developer: Client, services: Services
) -> None:
    registered = await request_reset(anonymous, developer.email)
    await set_user(services, developer, status="inactive")
    inactive = await request_reset(anonymous, developer.email)
    assert (inactive.status_code, inactive.content) == (registered.status_code, registered.content)


async def test_a_user_gets_a_mail_with_a_link_for_any_case_of_the_email(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [str.lower, str.upper, str.title]
    for change in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(change=change):
            await request_reset(anonymous, change(developer.email))
            ((_, text),) = await read_mails(services, developer.email)
            link = rf"^{re.escape(services.settings.public_url)}/reset-password\?token=[\w-]{{43}}$"
            assert re.search(link, text, re.MULTILINE)


async def test_an_unknown_address_gets_no_mail(anonymous: Client, services: Services) -> None:
    await request_reset(anonymous, "unknown.to.all@example.com")
    assert await read_mails(services, "unknown.to.all@example.com") == []


async def test_an_inactive_user_gets_no_mail(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await set_user(services, developer, status="inactive")
    await request_reset(anonymous, developer.email)
    assert await read_mails(services, developer.email) == []


async def test_a_pattern_that_matches_an_address_gets_no_mail(
    anonymous: Client, developer: Client, services: Services
) -> None:
    for pattern in ("%", developer.email.replace("user", "%"), developer.email[:-1] + "_"):
        await request_reset(anonymous, pattern)
    assert await read_mails(services, developer.email) == []


async def test_a_request_changes_neither_password_nor_session(
    anonymous: Client, developer: Client
) -> None:
    await request_reset(anonymous, developer.email)
    assert (await developer.get("/auth/me")).status_code == 200
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_a_request_is_in_the_event_log(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await request_reset(anonymous, developer.email)
    assert await read_events(services, "password_reset_requested", developer.user_id) == [
        {"user_id": developer.user_id}
    ]


async def test_at_most_five_mails_go_to_an_address(
    world: World, developer: Client, services: Services
) -> None:
    """The limit holds for every caller and every spelling of the address."""
    for change in (str.lower, str.upper, str.title) * 3:
        await request_reset(world.anonymous(), change(developer.email))
    assert len(await read_mails(services, developer.email)) == 5


async def test_of_twenty_concurrent_requests_five_mails_are_sent(
    world: World, developer: Client, services: Services
) -> None:
    await asyncio.gather(*(request_reset(world.anonymous(), developer.email) for _ in range(20)))
    assert len(await read_mails(services, developer.email)) == 5


async def test_the_answer_does_not_reveal_that_no_more_mails_are_sent(
    anonymous: Client, developer: Client
) -> None:
    answers = [await request_reset(anonymous, developer.email) for _ in range(7)]
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (200, answers[0].content)
    }


async def test_after_fifteen_minutes_a_mail_is_sent_again(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now() - timedelta(minutes=15)):
        for _ in range(6):
            await request_reset(anonymous, developer.email)
    await request_reset(anonymous, developer.email)
    assert len(await read_mails(services, developer.email)) == 6


async def test_mails_to_one_user_do_not_count_for_another(
    anonymous: Client, developer: Client, admin: Client, services: Services
) -> None:
    for _ in range(6):
        await request_reset(anonymous, developer.email)
    await request_reset(anonymous, admin.email)
    assert len(await read_mails(services, admin.email)) == 1


async def test_requests_do_not_block_signing_in(anonymous: Client, developer: Client) -> None:
    for _ in range(7):
        await request_reset(anonymous, developer.email)
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_an_invalid_email_field_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"email": None}, {"email": 5}, {"email": "x" * 255}]
    for body in cases:
        with subtests.test(body=body):
            answer = await anonymous.post("/auth/forgot-password", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"email"}


async def test_the_token_of_a_link_is_not_stored_in_plain_text(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for table in ("one_time_tokens", "mail_messages", "work", "event_log"):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(table=table):
            await request_reset(anonymous, developer.email)
            (token,) = await read_mailed_tokens(services, developer.email)
            rows = await fetch_rows(services, f"SELECT * FROM {table}")
            assert rows
            assert not [row for row in rows if contains_secret(row, token)]

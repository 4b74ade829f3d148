"""Mails and posts that wait for the end of quiet hours."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.messaging.notifications import dispatching
from tests.database import run_sql
from tests.messaging.notifications.center.api import list_titles, set_preferences
from tests.messaging.notifications.center.post_office import PostOffice

# Far ahead, so that what waits for the end of the window is not due for the database.
NIGHT = datetime(2035, 5, 1, 23, 30, tzinfo=UTC)
NOON = datetime(2035, 5, 1, 12, 0, tzinfo=UTC)
END = datetime(2035, 5, 2, 7, 0, tzinfo=UTC)
QUIET: dict[str, Any] = {"quiet_hours": {"start": "22:00", "end": "07:00"}}


async def test_a_mail_waits_for_the_end_of_the_window(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    user = await office.user(email=True, **QUIET)
    async with office.at(NIGHT):
        await office.accept(user, title="Import failed")
    assert await list_titles(user) == ["Import failed"]
    assert [(row["kind"], row["run_at"]) for row in await office.load_held()] == [
        ("notifications.send", END)
    ]
    assert office.providers.calls == []
    await office.release()
    assert [mail["subject"] for mail in office.channel_mails()] == ["Import failed"]


async def test_a_mail_of_the_instance_waits_for_the_end_of_the_window(office: PostOffice) -> None:
    quiet, other = await office.user(email=True, **QUIET), await office.user(email=True)
    async with office.at(NIGHT):
        await office.accept(quiet, other)
    assert len(await office.own_mails(other)) == 1
    assert await office.own_mails(quiet) == []
    assert [(row["kind"], row["run_at"]) for row in await office.load_held()] == [
        ("mail.send", END)
    ]
    await office.release()
    assert len(await office.own_mails(quiet)) == 1


async def test_a_mail_outside_of_the_window_goes_out_at_once(office: PostOffice) -> None:
    user = await office.user(email=True, **QUIET)
    async with office.at(NOON):
        await office.accept(user)
    assert len(await office.own_mails(user)) == 1


async def test_the_window_is_in_the_time_zone_of_the_user(office: PostOffice) -> None:
    """12:00 in UTC is 22:00 in Brisbane, and 07:00 there is 21:00 in UTC."""
    user = await office.user(email=True, **QUIET)
    sql = "UPDATE users SET timezone = 'Australia/Brisbane' WHERE id = $1"
    await run_sql(office.services, sql, user.user_id)
    async with office.at(NOON):
        await office.accept(user)
    assert [row["run_at"] for row in await office.load_held()] == [NOON.replace(hour=21)]


async def test_a_post_waits_while_all_of_its_users_have_quiet_hours(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    users = [await office.user(team_chat=True, **QUIET) for _ in range(2)]
    async with office.at(NIGHT):
        await office.accept(*users)
    assert [row["run_at"] for row in await office.load_held()] == [END]
    assert office.posts() == []
    await office.release()
    assert len(office.posts()) == 1


async def test_a_post_goes_out_at_once_for_a_user_without_quiet_hours(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    quiet = await office.user(team_chat=True, **QUIET)
    other = await office.user(team_chat=True)
    async with office.at(NIGHT):
        await office.accept(quiet, other)
    assert len(office.posts()) == 1
    assert await office.load_held() == []


async def test_what_is_urgent_is_never_held_back(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    cases: dict[str, dict[str, Any]] = {
        "quiet": QUIET,
        "digest": {"digest": "hourly"},
    }
    for (name, held_back), type_name in itertools.product(
        cases.items(), ("approval_requested", "security")
    ):
        office = await office.reopen()
        with subtests.test(name=name, type_name=type_name):
            await office.create_channel("slack_webhook")
            user = await office.user()
            on = {"email": True, "team_chat": True}
            await set_preferences(user, **{type_name: on | held_back})
            async with office.at(NIGHT):
                await office.accept(user, type=type_name)
            assert len(await office.own_mails(user)) == len(office.posts()) == 1
            assert await office.load_held() == []


async def test_a_post_that_waits_goes_out_at_once_for_a_user_of_a_later_batch(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "BATCH", 1)
    await office.create_channel("slack_webhook")
    quiet = await office.user(team_chat=True, **QUIET)
    other = await office.user(team_chat=True)
    assert quiet.user_id < other.user_id
    async with office.at(NIGHT):
        await office.accept(quiet, other)
    assert len(office.posts()) == 1
    assert await office.load_held() == []

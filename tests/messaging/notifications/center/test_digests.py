"""Messages that a user gets together, every hour or every day."""

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.messaging.notifications.digests import MAX_ITEMS
from app.domain.messaging.notifications.messages import MAX_MESSAGE_CHARS
from tests.database import Row, fetch_rows, run_sql
from tests.messaging.notifications.center.api import list_titles, set_preferences
from tests.messaging.notifications.center.post_office import PostOffice, html_of, text_of
from tests.world import Client

# Far ahead, so that a digest is not due for the database.
START = datetime(2035, 5, 1, 12, 10, tzinfo=UTC)
HOUR = datetime(2035, 5, 1, 13, 0, tzinfo=UTC)
TITLES = ["Import failed", "Export failed", "Sync failed"]
_ADD_ITEMS = """
WITH message AS (
    INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients,
                                       occasion, source, correlation_id)
    SELECT $1, 'ntm_' || substr($2, 5) || n, 'message', 'Item ' || n, repeat('x', $4::int), '{}',
           '{}', 'ntm_' || substr($2, 5) || n, 'x', 'corr'
    FROM generate_series(2, $3::int) n RETURNING id
)
INSERT INTO notification_digest_items (tenant_id, digest_id, message_id)
SELECT $1, $2, id FROM message
"""


async def _collect(office: PostOffice, user: Client, *titles: str) -> None:
    """Accepts messages, some minutes after each other within one hour."""
    for number, title in enumerate(titles):
        async with office.at(START + timedelta(minutes=5 * number)):
            await office.accept(user, title=title)


async def _load_digests(office: PostOffice) -> list[Row]:
    sql = """
    SELECT id, due_at, channel_type, sent_at IS NOT NULL AS is_sent FROM notification_digests
    WHERE tenant_id = $1 ORDER BY id
    """
    return await fetch_rows(office.services, sql, office.tenant_id)


async def _add_items(office: PostOffice, count: int, chars: int = 10) -> None:
    """Fills the only digest of the tenant up to so many items."""
    (digest,) = await _load_digests(office)
    ids = (office.tenant_id, digest["id"])
    await run_sql(office.services, _ADD_ITEMS, *ids, count, chars)


async def test_messages_of_an_hour_are_one_mail_with_all_titles(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, *TITLES)
    assert await list_titles(user) == TITLES[::-1]
    (digest,) = await _load_digests(office)
    assert (digest["due_at"], digest["channel_type"]) == (HOUR, "email")
    assert digest["is_sent"] is False
    assert [(row["kind"], row["run_at"]) for row in await office.load_held()] == [
        ("notifications.digest", HOUR)
    ]
    assert office.providers.calls == []
    await office.release()
    (mail,) = office.channel_mails()
    assert mail["subject"].startswith("3 notifications: ")
    for content in mail["content"]:
        assert [title for title in TITLES if title not in content["value"]] == []
    assert (await _load_digests(office))[0]["is_sent"] is True
    # The digest is about messages that the center shows already.
    assert len(await list_titles(user)) == 3


async def test_messages_of_an_hour_are_one_mail_of_the_instance(office: PostOffice) -> None:
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, *TITLES)
    await office.release()
    (mail,) = await office.own_mails(user)
    assert mail["subject"].startswith("3 notifications: ")
    for text in (text_of(mail), html_of(mail)):
        assert [title for title in TITLES if title not in text] == []


async def test_messages_of_an_hour_are_one_post(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    user = await office.user(team_chat=True, digest="hourly")
    await _collect(office, user, *TITLES)
    assert office.posts() == []
    await office.release()
    (post,) = office.posts()
    assert [title for title in TITLES if title not in post] == []


async def test_a_daily_digest_is_due_at_eight_in_the_time_zone_of_the_user(
    office: PostOffice,
) -> None:
    user = await office.user(email=True, digest="daily")
    sql = "UPDATE users SET timezone = 'Asia/Tokyo' WHERE id = $1"
    await run_sql(office.services, sql, user.user_id)
    await _collect(office, user, *TITLES)
    assert [row["due_at"] for row in await _load_digests(office)] == [
        START.replace(hour=23, minute=0)
    ]


async def test_a_digest_that_is_due_in_quiet_hours_waits_for_their_end(office: PostOffice) -> None:
    quiet = {"start": "12:30", "end": "15:00"}
    user = await office.user(email=True, digest="hourly", quiet_hours=quiet)
    await _collect(office, user, *TITLES)
    assert [row["due_at"] for row in await _load_digests(office)] == [HOUR.replace(hour=15)]


async def test_types_and_ways_have_digests_of_their_own(office: PostOffice) -> None:
    user = await office.user(email=True, team_chat=True, digest="hourly")
    await set_preferences(user, workflow_failed={"email": True, "digest": "hourly"})
    async with office.at(START):
        await office.accept(user)
        await office.accept(user, type="workflow_failed")
    assert len(await _load_digests(office)) == 3


async def test_a_message_after_the_digest_was_sent_goes_into_a_new_one(office: PostOffice) -> None:
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, "First", "Second")
    await office.release()
    await _collect(office, user, "Third")
    first, second = await _load_digests(office)
    assert (first["is_sent"], second["is_sent"]) == (True, False)
    assert first["due_at"] == second["due_at"]
    await office.release()
    one, another = await office.own_mails(user)
    assert ("First" in text_of(one), "Third" in text_of(one)) == (True, False)
    assert ("First" in text_of(another), "Third" in text_of(another)) == (False, True)
    assert "notifications:" not in another["subject"]


async def test_a_digest_that_runs_twice_is_sent_once(office: PostOffice) -> None:
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, *TITLES)
    await office.release()
    assert await office.run_again("notifications.digest") == 1
    assert len(await office.own_mails(user)) == 1


async def test_the_digest_of_a_user_who_is_gone_sends_nothing(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    cases: dict[str, str] = {
        "deleted": "DELETE FROM users WHERE id = $1",
        "inactive": "UPDATE users SET status = 'inactive' WHERE id = $1",
    }
    for name, sql in cases.items():
        office = await office.reopen()
        with subtests.test(name):
            await office.create_channel("sendgrid")
            user = await office.user(email=True, digest="hourly")
            await _collect(office, user, *TITLES)
            await run_sql(office.services, sql, user.user_id)
            await office.release()
            assert (office.providers.calls, await office.own_mails(user)) == ([], [])
            (work,) = await fetch_rows(
                office.services,
                "SELECT state FROM work WHERE tenant_id = $1 AND kind = 'notifications.digest'",
                office.tenant_id,
            )
            assert work["state"] == "done"


async def test_a_digest_of_too_many_items_says_how_many_more_there_are(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, "Item 1")
    await _add_items(office, MAX_ITEMS + 30)
    await office.release()
    (mail,) = office.channel_mails()
    assert mail["subject"].startswith("130 notifications: ")
    for content in mail["content"]:
        assert "and 30 more" in content["value"]
        assert content["value"].count("Item ") == MAX_ITEMS


async def test_a_digest_of_the_instance_says_how_many_more_there_are(office: PostOffice) -> None:
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, "Item 1")
    await _add_items(office, MAX_ITEMS + 30)
    await office.release()
    (mail,) = await office.own_mails(user)
    for text in (text_of(mail), html_of(mail)):
        assert "and 30 more" in text
        assert text.count("Item ") == MAX_ITEMS


async def test_a_digest_of_long_messages_counts_those_that_do_not_fit(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, "Item 1")
    await _add_items(office, MAX_ITEMS, chars=MAX_MESSAGE_CHARS)
    await office.release()
    (mail,) = office.channel_mails()
    for content in mail["content"]:
        listed = content["value"].count("Item ")
        assert listed >= 20
        assert f"and {MAX_ITEMS - listed} more" in content["value"]


async def test_a_second_dispatch_after_the_digest_collects_nothing_again(
    office: PostOffice,
) -> None:
    """As after a crash of the worker, in the next hour."""
    user = await office.user(email=True, digest="hourly")
    await _collect(office, user, "First")
    await office.release()
    async with office.at(HOUR + timedelta(minutes=1)):
        assert await office.run_again("notifications.dispatch") == 1
    assert len(await _load_digests(office)) == 1
    assert len(await office.own_mails(user)) == 1

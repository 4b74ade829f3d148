"""What happens to pending messages when their channel is deleted, and when a channel fails."""

from datetime import timedelta
from typing import Any

import pytest

from app.domain.messaging.notifications import failover, messages, outgoing, sealed_configs
from app.domain.messaging.notifications.area import AREA
from app.domain.messaging.notifications.jobs import CHANNELS
from app.domain.messaging.notifications.message_queries import SEND
from app.domain.messaging.notifications.messages import NewMessage
from app.domain.messaging.notifications.outgoing import Outgoing
from app.domain.messaging.notifications.sending import SendRequest
from app.domain.messaging.notifications.types import Recipients
from app.kit import clock
from app.services import Services
from tests.database import fetch_rows, run_sql
from tests.world import Client
from workers.runner import Runner

PATH = "/api/v1/notification-channels"


async def _create_channel(client: Client, name: str) -> str:
    config = {"api_key": "sk-1", "from": "parley@example.com"}
    body = {"name": name, "type": "email", "provider": "resend", "config": config}
    channel_id: str = (await client.post(PATH, body)).json()["id"]
    return channel_id


async def _add_deliveries(
    services: Services,
    client: Client,
    channel_id: str,
    recipients: Recipients | None = None,
    user_id: str | None = None,
) -> None:
    """A mail that is due later, so that no worker takes it."""
    new = NewMessage(
        type="message",
        title="Hello",
        message="There",
        recipients=recipients or Recipients(role="viewer"),
    )
    run_at = clock.now() + timedelta(hours=3)
    async with services.db.tx(client.tenant_id) as tx:
        message = await messages.accept_undispatched(tx, client.tenant_id, new)
        delivery = Outgoing(channel_id, "ann@example.com", run_at, user_id)
        await outgoing.add_deliveries(tx, message, [delivery])


async def _run_pending(services: Services, client: Client) -> None:
    """Makes the deliveries due and runs them."""
    rows = await run_sql(
        services,
        "UPDATE work SET run_at = now() WHERE tenant_id = $1 AND kind = $2 AND state = 'pending'"
        " RETURNING id",
        client.tenant_id,
        SEND.name,
    )
    runner = Runner(services, {SEND.name: CHANNELS.run})
    for row in rows:
        await runner.run(row["id"])


async def _load(services: Services, client: Client) -> list[Any]:
    return await fetch_rows(
        services,
        "SELECT d.channel_id, d.recipient, w.state, d.status"
        " FROM work w JOIN notification_deliveries d ON d.work_id = w.id"
        " WHERE w.tenant_id = $1 AND w.kind = 'notifications.send' ORDER BY w.id",
        client.tenant_id,
    )


async def test_a_deleted_channel_is_not_found_and_its_config_is_gone(
    developer: Client, services: Services
) -> None:
    channel_id = await _create_channel(developer, "Gone")
    assert (await developer.delete(f"{PATH}/{channel_id}")).status_code == 204
    for path in ("", "/logs", "/stats"):
        answer = await developer.get(f"{PATH}/{channel_id}{path}")
        assert answer.json()["error"]["code"] == "channel_not_found"
    assert (await developer.delete(f"{PATH}/{channel_id}")).status_code == 404
    assert (await developer.get(PATH)).json()["total"] == 0
    (row,) = await fetch_rows(
        services, "SELECT config FROM notification_channels WHERE id = $1", channel_id
    )
    ids = (developer.tenant_id, channel_id)
    assert sealed_configs.open_values(services.keyring, *ids, row["config"]) == {}


async def test_pending_messages_to_users_go_through_the_next_channel(
    developer: Client, services: Services
) -> None:
    first, second = [await _create_channel(developer, name) for name in ("First", "Second")]
    await _add_deliveries(services, developer, first)
    assert (await developer.delete(f"{PATH}/{first}")).status_code == 204
    await _run_pending(services, developer)
    rows = await _load(services, developer)
    assert [(row["channel_id"], row["state"], row["status"]) for row in rows] == [
        (first, "done", "failed"),
        (second, "pending", "pending"),
    ]
    assert rows[1]["recipient"] == rows[0]["recipient"]


async def test_without_another_channel_they_go_through_the_own_mail_server(
    developer: Client, admin: Client, services: Services
) -> None:
    channel_id = await _create_channel(developer, "Only")
    inactive = await _create_channel(developer, "Inactive")
    await developer.put(f"{PATH}/{inactive}", {"active": False})
    await _create_channel(admin, "Foreign")
    await _add_deliveries(services, developer, channel_id)
    assert (await developer.delete(f"{PATH}/{channel_id}")).status_code == 204
    await _run_pending(services, developer)
    assert [row["state"] for row in await _load(services, developer)] == ["done"]
    mails = await fetch_rows(
        services, "SELECT recipient FROM mail_messages WHERE tenant_id = $1", developer.tenant_id
    )
    assert [row["recipient"] for row in mails] == ["ann@example.com"]


async def test_a_message_that_names_the_channel_goes_nowhere_else(
    developer: Client, services: Services
) -> None:
    first, _ = [await _create_channel(developer, name) for name in ("First", "Second")]
    await _add_deliveries(services, developer, first, Recipients(channel_id=first))
    assert (await developer.delete(f"{PATH}/{first}")).status_code == 204
    await _run_pending(services, developer)
    assert [row["state"] for row in await _load(services, developer)] == ["dead"]


async def test_a_mail_to_a_user_who_left_is_not_sent(developer: Client, services: Services) -> None:
    channel_id = await _create_channel(developer, "Only")
    await _add_deliveries(services, developer, channel_id, user_id="usr_deleted")
    await _run_pending(services, developer)
    (row,) = await _load(services, developer)
    assert (row["state"], row["status"]) == ("cancelled", "failed")
    log = (await developer.get(f"{PATH}/{channel_id}/logs")).json()["data"]
    assert [entry["error_code"] for entry in log] == ["recipient_inactive"]


async def test_deleted_channels_are_cleaned_up(developer: Client, services: Services) -> None:
    channel_id = await _create_channel(developer, "Old")
    await _add_deliveries(services, developer, channel_id)
    await developer.delete(f"{PATH}/{channel_id}")
    await run_sql(
        services,
        "UPDATE notification_channels SET deleted_at = now() - interval '4 days' WHERE id = $1",
        channel_id,
    )
    (rule,) = [rule for rule in AREA.retention if rule.table == "notification_channels"]
    await run_sql(services, rule.sql)
    assert await _load(services, developer) == []


_USERS, _NAMED = False, True
_FAILOVERS: list[tuple[str, bool, str, str, bool]] = [
    ("email", _USERS, "ann@example.com", "provider_error", True),
    ("email", _USERS, "ann@example.com", "channel_inactive", True),
    ("email", _USERS, "ann@example.com", "recipient_inactive", False),
    ("email", _NAMED, "ann@example.com", "provider_error", True),
    ("email", _NAMED, "ann@example.com", "channel_inactive", False),
    ("email", _NAMED, "", "invalid_config", False),
    ("sms", _NAMED, "+447700900000", "delivery_failed", True),
    ("team_chat", _USERS, "#general", "provider_error", True),
    ("team_chat", _NAMED, "#private", "provider_error", False),
    ("webhook", _NAMED, "https://example.com", "delivery_failed", False),
]


def test_another_channel_replaces_one_only_where_it_reaches_the_same_people(
    subtests: pytest.Subtests,
) -> None:
    for channel_type, is_named, recipient, code, expected in _FAILOVERS:
        with subtests.test(
            channel_type=channel_type,
            is_named=is_named,
            recipient=recipient,
            code=code,
            expected=expected,
        ):
            values = dict.fromkeys(SendRequest.__struct_fields__)
            values |= {"channel_type": channel_type, "is_named": is_named, "recipient": recipient}
            request = SendRequest(**values)  # type: ignore[arg-type]
            assert failover.may_be_replaced(request, code) is expected

"""What happens to pending sends when their channel is deleted."""

from datetime import datetime, timedelta
from typing import Any

from app.domain.notifications import messages, outgoing
from app.domain.notifications.messages import NewMessage
from app.domain.notifications.outgoing import Outgoing
from app.domain.notifications.recipients import Recipients
from app.kit import clock
from app.services import Services
from tests.database import fetch_rows
from tests.world import Client

PATH = "/api/v1/notification-channels"


async def _create_channel(client: Client, name: str) -> str:
    config = {"api_key": "sk-1", "from": "parley@example.com"}
    body = {"name": name, "type": "email", "provider": "resend", "config": config}
    channel_id: str = (await client.post(PATH, body)).json()["id"]
    return channel_id


async def _add_deliveries(
    services: Services, client: Client, channel_id: str, run_at: datetime, count: int
) -> None:
    """Sends that are due later, so that no worker takes them."""
    new = NewMessage(
        type="message", title="Hello", message="There", recipients=Recipients(role="viewer")
    )
    async with services.db.tx(client.tenant_id) as tx:
        message = await messages.accept_undispatched(tx, client.tenant_id, new)
        deliveries = [
            Outgoing(channel_id, f"user{number}@example.com", run_at) for number in range(count)
        ]
        await outgoing.add_deliveries(tx, message, deliveries)


async def _load(services: Services, client: Client) -> list[Any]:
    return await fetch_rows(
        services,
        "SELECT d.channel_id, d.recipient, w.state, w.run_at, w.lane"
        " FROM work w LEFT JOIN notification_deliveries d ON d.work_id = w.id"
        " WHERE w.tenant_id = $1 AND w.kind = 'notifications.send' ORDER BY d.recipient",
        client.tenant_id,
    )


async def test_pending_sends_of_a_deleted_channel_go_to_the_next_one_at_their_time(
    developer: Client, services: Services
) -> None:
    first, second = [await _create_channel(developer, name) for name in ("First", "Second")]
    run_at = clock.now() + timedelta(hours=3)
    await _add_deliveries(services, developer, first, run_at, 3)
    assert (await developer.delete(f"{PATH}/{first}")).status_code == 204
    rows = await _load(services, developer)
    pending = [row for row in rows if row["state"] == "pending"]
    assert [row["recipient"] for row in pending] == [
        f"user{number}@example.com" for number in range(3)
    ]
    assert {(row["channel_id"], row["lane"], row["run_at"]) for row in pending} == {
        (second, second, run_at)
    }
    assert [row["state"] for row in rows if row["lane"] == first] == ["cancelled"] * 3


async def test_without_another_channel_they_are_cancelled(
    developer: Client, services: Services
) -> None:
    channel_id = await _create_channel(developer, "Only")
    await _add_deliveries(services, developer, channel_id, clock.now() + timedelta(hours=3), 2)
    assert (await developer.delete(f"{PATH}/{channel_id}")).status_code == 204
    assert [row["state"] for row in await _load(services, developer)] == ["cancelled"] * 2


async def test_an_inactive_channel_or_one_of_another_tenant_does_not_replace_it(
    developer: Client, admin: Client, services: Services
) -> None:
    channel_id = await _create_channel(developer, "Only")
    inactive = await _create_channel(developer, "Inactive")
    await developer.put(f"{PATH}/{inactive}", {"active": False})
    await _create_channel(admin, "Foreign")
    await _add_deliveries(services, developer, channel_id, clock.now() + timedelta(hours=3), 1)
    assert (await developer.delete(f"{PATH}/{channel_id}")).status_code == 204
    assert [row["state"] for row in await _load(services, developer)] == ["cancelled"]

"""The log of a channel, figures about channels, and spans of deliveries in a trace."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.kit.ids import new_id
from tests.assertions import wait_until
from tests.database import run_sql
from tests.messaging.notifications.factories import PATH, create_channel, list_log, update_channel
from tests.messaging.notifications.sender import ChannelSender
from tests.platform.events.api import read_trace
from tests.platform.events.responses import read_field_errors, read_json
from tests.world import Client

pytestmark = pytest.mark.usefixtures("slow_retries")

_NOTHING = {
    "total_sent": 0,
    "delivered": 0,
    "failed": 0,
    "success_rate": 0.0,
    "avg_delivery_time_ms": 0.0,
}
_ADD_DAY = """
INSERT INTO notification_channel_days (tenant_id, channel_id, day, delivered, failed, total_ms)
SELECT tenant_id, id, (now() AT TIME ZONE 'UTC')::date - $2::int, $3, $4, $5
FROM notification_channels WHERE id = $1
"""


async def _read(client: Client, path: str, **params: Any) -> dict[str, Any]:
    figures: dict[str, Any] = read_json(await client.get(f"{PATH}{path}", params=params))
    return figures


async def _add_day(sender: ChannelSender, channel_id: str, age: int, *counts: int) -> None:
    """Adds what a channel delivered, failed and took in milliseconds on a day."""
    await run_sql(sender.services, _ADD_DAY, channel_id, age, *counts)


def _figures(delivered: int, failed: int, milliseconds: float) -> dict[str, Any]:
    total = delivered + failed
    return {
        "total_sent": total,
        "delivered": delivered,
        "failed": failed,
        "success_rate": round(100 * delivered / total, 2),
        "avg_delivery_time_ms": milliseconds,
    }


# The log


async def _send_each(sender: ChannelSender, channel_id: str, *statuses: int) -> None:
    """Sends a message for each status that the provider answers with, one after another."""
    for number, status in enumerate(statuses, 1):
        sender.script(status)
        await sender.send(channel_id, title=f"Message {number}")
        await sender.wait_for_finished(channel_id, number)


async def test_the_log_is_paged_and_filtered(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    await _send_each(sender, channel_id, 200, 400, 200, 400, 200)
    page = await _read(sender.client, f"/{channel_id}/logs", page=2, per_page=2)
    assert {name: page[name] for name in ("total", "page", "per_page")} == {
        "total": 5,
        "page": 2,
        "per_page": 2,
    }
    assert [entry["subject"] for entry in page["data"]] == ["Message 3", "Message 2"]
    for status, subjects in (
        ("delivered", ["Message 5", "Message 3", "Message 1"]),
        ("failed", ["Message 4", "Message 2"]),
        ("pending", []),
    ):
        found = await _read(sender.client, f"/{channel_id}/logs", status=status)
        assert [entry["subject"] for entry in found["data"]] == subjects
        assert found["total"] == len(subjects)


async def test_the_log_is_filtered_by_time(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    await _send_each(sender, channel_id, 200, 200)
    later, earlier = await list_log(sender.client, channel_id)
    assert await list_log(sender.client, channel_id, **{"from": later["created_at"]}) == [later]
    assert await list_log(sender.client, channel_id, to=earlier["created_at"]) == [earlier]


async def test_a_wrong_filter_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    channel = await create_channel(developer, "in_app")
    for path, name in ((f"/{channel['id']}/logs", "status"), ("/stats/breakdown", "period")):
        with subtests.test(path=path):
            answer = await developer.get(f"{PATH}{path}", params={name: "pigeon"})
            assert set(read_field_errors(answer)) == {name}


async def test_a_channel_shows_its_own_attempts_alone(sender: ChannelSender) -> None:
    first, second = await sender.create("sendgrid"), await sender.create("resend")
    await sender.send(first)
    await sender.wait_for(first, "delivered")
    assert await list_log(sender.client, second) == []


# Figures


async def test_a_channel_counts_its_deliveries_not_their_attempts(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    assert await _read(sender.client, f"/{channel_id}/stats") == _NOTHING
    await _send_each(sender, channel_id, 200, 400, 200)
    sender.script(500, 200)
    await sender.send(channel_id)
    await sender.wait_for_retry(channel_id, 2)
    await sender.wait_for_finished(channel_id, 4)
    entries = await list_log(sender.client, channel_id, status="delivered")
    average = round(sum(entry["delivery_time_ms"] for entry in entries) / 3, 1)
    assert await _read(sender.client, f"/{channel_id}/stats") == _figures(3, 1, average)


async def test_a_pending_retry_counts_nothing(sender: ChannelSender) -> None:
    sender.script(500)
    channel_id = await sender.create()
    await sender.send(channel_id)
    await sender.wait_for(channel_id, "failed", "pending")
    assert await _read(sender.client, f"/{channel_id}/stats") == _NOTHING


async def test_all_figures_add_up_the_channels_of_the_tenant(
    sender: ChannelSender, admin: Client
) -> None:
    first, second = await sender.create("sendgrid"), await sender.create("vonage")
    await update_channel(sender.client, second, active=False)
    await _add_day(sender, first, 0, 2, 1, 500)
    await _add_day(sender, first, 200, 1, 0, 100)
    await _add_day(sender, second, 1, 3, 2, 900)
    assert await _read(sender.client, "/stats") == {
        **_figures(6, 3, 250.0),
        "channels": 2,
        "active_channels": 1,
    }
    assert await _read(admin, "/stats") == {**_NOTHING, "channels": 0, "active_channels": 0}


async def test_a_breakdown_has_types_providers_and_days_of_its_period(
    sender: ChannelSender, admin: Client
) -> None:
    mail, other_mail = await sender.create("sendgrid"), await sender.create("resend")
    text = await sender.create("vonage")
    await _add_day(sender, mail, 0, 2, 0, 200)
    await _add_day(sender, other_mail, 6, 1, 1, 400)
    await _add_day(sender, text, 7, 0, 3, 0)
    await _add_day(sender, text, 40, 1, 0, 10)
    today = datetime.now(UTC).date()
    week = await _read(sender.client, "/stats/breakdown", period="7d")
    assert week == {
        "period": "7d",
        "by_type": [{**_figures(3, 1, 200.0), "type": "email"}],
        "by_provider": [
            {**_figures(1, 1, 400.0), "provider": "resend"},
            {**_figures(2, 0, 100.0), "provider": "sendgrid"},
        ],
        "by_day": [
            {**_figures(1, 1, 400.0), "date": str(today - timedelta(days=6))},
            {**_figures(2, 0, 100.0), "date": str(today)},
        ],
    }
    month = await _read(sender.client, "/stats/breakdown")
    assert month["period"] == "30d"
    assert [item["type"] for item in month["by_type"]] == ["email", "sms"]
    assert len(month["by_day"]) == 3
    quarter = await _read(sender.client, "/stats/breakdown", period="90d")
    assert len(quarter["by_day"]) == 4
    empty = await _read(admin, "/stats/breakdown", period="7d")
    assert [empty[name] for name in ("by_type", "by_provider", "by_day")] == [[], [], []]


async def test_sends_of_today_are_in_the_breakdown(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    await _send_each(sender, channel_id, 200, 400)
    breakdown = await _read(sender.client, "/stats/breakdown", period="7d")
    (day,) = breakdown["by_day"]
    assert (day["delivered"], day["failed"], day["success_rate"]) == (1, 1, 50.0)


# Spans


async def _wait_for_spans(client: Client, correlation_id: str, count: int) -> list[dict[str, Any]]:
    async def find() -> list[dict[str, Any]] | None:
        trace = await read_trace(client, correlation_id)
        spans = [span for span in trace["spans"] if span["kind"] == "notification"]
        is_finished = all(span["status"] != "pending" for span in spans)
        return spans if len(spans) == count and is_finished else None

    spans = await wait_until(find, 10)
    assert spans is not None
    return spans


async def test_a_trace_shows_each_delivery_of_a_message(sender: ChannelSender) -> None:
    sender.script(403, path="/v3/mail/send")
    await sender.create("sendgrid", name="First")
    await sender.create("resend", name="Second")
    client, correlation_id = sender.client, new_id("cor")
    preferences = {"preferences": {"message": {"email": True}}}
    assert (await client.put("/api/v1/notifications/preferences", preferences)).is_success
    body = {"user_ids": [client.user_id], "type": "message", "title": "Hi", "message": "You"}
    headers = {"X-Correlation-ID": correlation_id}
    read_json(await client.post("/api/v1/notifications", body, headers=headers), 202)
    spans = await _wait_for_spans(client, correlation_id, 2)
    assert [(span["name"], span["status"]) for span in spans] == [
        ("Hi through First", "failed"),
        ("Hi through Second", "delivered"),
    ]

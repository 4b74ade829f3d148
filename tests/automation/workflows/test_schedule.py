"""Schedules: the times of cron, and that each due time starts a workflow once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import container
from app.domain.automation.workflows import schedule
from app.domain.automation.workflows.schemas import Schedule
from app.services import Services
from tests.automation.workflows.factories import PATH, create_workflow, publish, read, transform
from tests.database import run_sql
from tests.stores import Stores
from tests.world import Client

A = transform("a", "{{ input.scheduled_at }}")
EVERY_MINUTE = {"cron": "* * * * *", "timezone": "UTC"}

# Cron, time zone, the time before, and the next times, in UTC.
_TIMES: list[tuple[str, str, str, list[str]]] = [
    ("* * * * *", "UTC", "2026-03-01T10:00:30", ["2026-03-01T10:01", "2026-03-01T10:02"]),
    ("* * * * *", "UTC", "2026-03-01T10:00:00", ["2026-03-01T10:01"]),
    ("*/15 9-10 * * *", "UTC", "2026-03-01T10:40", ["2026-03-01T10:45", "2026-03-02T09:00"]),
    ("0 8 * * 1-5", "UTC", "2026-03-06T08:00", ["2026-03-09T08:00", "2026-03-10T08:00"]),
    ("0 8 * * mon", "UTC", "2026-03-06T08:00", ["2026-03-09T08:00"]),
    ("0 0 29 2 *", "UTC", "2026-03-01T00:00", ["2028-02-29T00:00"]),
    ("0 0 L * *", "UTC", "2026-02-01T00:00", ["2026-02-28T00:00", "2026-03-31T00:00"]),
    ("0 8 * * *", "Asia/Tokyo", "2026-03-01T00:00", ["2026-03-01T23:00"]),
    ("0 8 * * *", "America/New_York", "2026-01-10T00:00", ["2026-01-10T13:00"]),
    ("30 5 * * *", "Asia/Kathmandu", "2026-01-10T00:00", ["2026-01-10T23:45"]),
    # The clock goes forward in Berlin on 29 March 2026 from 2:00 to 3:00.
    ("0 8 * * *", "Europe/Berlin", "2026-03-28T06:59", ["2026-03-28T07:00", "2026-03-29T06:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("0 * * * *", "Europe/Berlin", "2026-03-29T00:00", ["2026-03-29T01:00", "2026-03-29T02:00"]),
    # It goes back there on 25 October 2026 from 3:00 to 2:00.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("0 8 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T07:00"]),
    ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
    # And in Lord Howe, by half an hour.
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00", ["2026-10-03T15:30"]),
]


def test_the_next_times_of_a_schedule(subtests: pytest.Subtests) -> None:
    for cron, zone, before, expected in _TIMES:
        with subtests.test(cron=cron, zone=zone, before=before):
            moment, found = datetime.fromisoformat(before).replace(tzinfo=UTC), []
            for _ in expected:
                after = schedule.find_next(Schedule(cron, zone), moment)
                assert after is not None
                assert after > moment
                moment = after
                found.append(moment.strftime("%Y-%m-%dT%H:%M"))
            assert found == expected


async def _create_scheduled(client: Client, **trigger: Any) -> str:
    workflow = await create_workflow(client, [A], trigger={**EVERY_MINUTE, **trigger})
    await publish(client, workflow["id"])
    return str(workflow["id"])


async def _get(client: Client, workflow_id: str) -> dict[str, Any]:
    data: dict[str, Any] = (await client.get(f"{PATH}/{workflow_id}")).json()["data"]
    return data


async def _list_executions(client: Client, workflow_id: str) -> list[dict[str, Any]]:
    params = {"trigger": "schedule", "sort": "created_at"}
    answer = await client.get(f"{PATH}/{workflow_id}/executions", params=params)
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def _make_due(services: Services, workflow_id: str, ago: timedelta) -> datetime:
    moment = datetime.now(UTC).replace(second=0, microsecond=0) - ago
    sql = "UPDATE workflows SET next_run_at = $2 WHERE id = $1"
    await run_sql(services, sql, workflow_id, moment)
    return moment


async def test_only_a_published_schedule_has_a_next_time(developer: Client) -> None:
    workflow = await create_workflow(developer, [A], trigger={"cron": "0 8 * * *"})
    path = f"{PATH}/{workflow['id']}"
    assert workflow["trigger"] == {"cron": "0 8 * * *", "timezone": "UTC"}
    assert workflow["next_run_at"] is None
    published = await publish(developer, workflow["id"])
    next_run = datetime.fromisoformat(published["next_run_at"])
    assert (next_run.hour, next_run.minute) == (8, 0)
    assert timedelta() < next_run - datetime.now(UTC) <= timedelta(days=1)
    changed = await developer.put(path, {"trigger": {"cron": "30 9 * * *"}})
    assert datetime.fromisoformat(changed.json()["data"]["next_run_at"]).minute == 30
    assert changed.json()["data"]["version"] == 1
    withdrawn = (await developer.post(f"{path}/unpublish")).json()["data"]
    assert withdrawn["next_run_at"] is None
    assert (await publish(developer, workflow["id"]))["next_run_at"] is not None
    removed = (await developer.put(path, {"trigger": None})).json()["data"]
    assert (removed["trigger"], removed["next_run_at"]) == (None, None)


async def test_a_due_time_starts_the_workflow_and_sets_the_next(
    developer: Client, services: Services
) -> None:
    workflow_id = await _create_scheduled(developer)
    due_at = await _make_due(services, workflow_id, timedelta())
    await schedule.start_due(services)
    (summary,) = await _list_executions(developer, workflow_id)
    assert summary["trigger"] == {"type": "schedule", "id": workflow_id}
    assert summary["started_by"] is None
    record = await read(developer, summary["id"])
    assert datetime.fromisoformat(record["input"]["scheduled_at"]) == due_at
    next_run = datetime.fromisoformat((await _get(developer, workflow_id))["next_run_at"])
    assert timedelta() < next_run - due_at <= timedelta(minutes=2)


async def test_missed_minutes_run_once(developer: Client, services: Services) -> None:
    workflow_id = await _create_scheduled(developer)
    await _make_due(services, workflow_id, timedelta(hours=1))
    for _ in range(3):
        await schedule.start_due(services)
    assert len(await _list_executions(developer, workflow_id)) == 1
    next_run = datetime.fromisoformat((await _get(developer, workflow_id))["next_run_at"])
    assert next_run > datetime.now(UTC)


async def test_two_workers_start_each_due_time_once(
    developer: Client, services: Services, stores: Stores
) -> None:
    ids = [await _create_scheduled(developer) for _ in range(5)]
    for workflow_id in ids:
        await _make_due(services, workflow_id, timedelta(minutes=3))
    other = container.build(stores.settings)
    try:
        tasks = [schedule.start_due(part) for part in (services, other) for _ in range(2)]
        await asyncio.gather(*tasks)
    finally:
        await other.close()
    counts = [len(await _list_executions(developer, workflow_id)) for workflow_id in ids]
    assert counts == [1] * 5


async def test_the_same_time_starts_a_workflow_once(developer: Client, services: Services) -> None:
    """Even when its row comes from an older backup."""
    workflow_id = await _create_scheduled(developer)
    moment = await _make_due(services, workflow_id, timedelta(minutes=30))
    for _ in range(2):
        sql = "UPDATE workflows SET next_run_at = $2 WHERE id = $1"
        await run_sql(services, sql, workflow_id, moment)
        await schedule.start_due(services)
    assert len(await _list_executions(developer, workflow_id)) == 1


async def test_what_is_not_published_or_deleted_is_not_started(
    developer: Client, services: Services
) -> None:
    draft, deleted = [await _create_scheduled(developer) for _ in range(2)]
    await developer.post(f"{PATH}/{draft}/unpublish")
    await developer.delete(f"{PATH}/{deleted}")
    for workflow_id in (draft, deleted):
        await _make_due(services, workflow_id, timedelta(minutes=1))
    await schedule.start_due(services)
    assert await _list_executions(developer, draft) == []
    sql = "UPDATE workflows SET next_run_at = NULL WHERE id = $1"
    await run_sql(services, sql, deleted)

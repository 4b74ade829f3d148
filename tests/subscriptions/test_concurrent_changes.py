"""Subscriptions that are changed or deleted while events are handed out."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from app.domain.deliveries import service
from app.domain.subscriptions import queries
from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.events.database import fetch_rows, load_events, load_work, wait_until, wait_until_idle
from tests.events.factories import create_agent, create_agent_and_wait
from tests.subscriptions.factories import (
    PATH,
    create_webhook_for,
    load_deliveries,
    read_subscription,
    subscribe_url,
)
from tests.world import Client

URL = "https://example.com/hook"
CHANGES: dict[str, dict[str, Any] | None] = {
    "deleted": None,
    "another action": {"action_type": "workflow", "action_config": {"workflow_id": "wfl_1"}},
    "another address": {"action_config": {"url": f"{URL}/other"}},
    "switched off": {"active": False},
}
_WAITING = """
SELECT 1 AS one FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'
"""

each = pytest.mark.parametrize("way", CHANGES)


def _ask(client: Client, made: dict[str, Any], way: str) -> Coroutine[Any, Any, httpx.Response]:
    path, body = f"{PATH}/{made['id']}", CHANGES[way]
    return client.delete(path) if body is None else client.put(path, body)


@each
async def test_a_change_waits_for_an_event_that_is_being_handed_out(
    developer: Client, services: Services, way: str
) -> None:
    """Whoever hands out has the address first and counts last; neither gives way in vain."""
    made = await subscribe_url(developer, URL)
    own = "SELECT id FROM webhooks WHERE subscription_id = $1"
    ids = [row["id"] for row in await fetch_rows(services, own, made["id"])]
    async with services.db.tx(developer.tenant_id) as tx:
        await service.endpoints_for(tx, developer.tenant_id, "system.test", ids)
        asked = asyncio.create_task(_ask(developer, made, way))
        await wait_until(lambda: _waits(services, asked))
        await queries.count_triggers(tx, developer.tenant_id, [made["id"]])
    assert (await asked).status_code == (204 if way == "deleted" else 200)
    if way != "deleted":
        assert (await read_subscription(developer, made["id"]))["trigger_count"] == 1


async def _waits(services: Services, asked: asyncio.Task[httpx.Response]) -> bool:
    return asked.done() or bool(await fetch_rows(services, _WAITING))


@each
async def test_nobody_is_refused_and_nothing_is_left_undone(
    developer: Client, receiver: Receiver, services: Services, courier: object, way: str
) -> None:
    for _ in range(5):
        made = [await subscribe_url(developer, f"{receiver.url}/200") for _ in range(3)]
        events = [asyncio.create_task(create_agent(developer)) for _ in range(6)]
        answers = await asyncio.gather(*(_ask(developer, one, way) for one in made))
        assert {one.status_code for one in answers} == {204 if way == "deleted" else 200}
        await asyncio.gather(*events)
        await wait_until_idle(services, developer.tenant_id)
        for one in made:
            await developer.delete(f"{PATH}/{one['id']}")
    handed = await load_work(services, developer.tenant_id, "events.fan_out")
    assert {row["state"] for row in handed} <= {"done"}


async def test_who_deletes_what_somebody_else_just_deleted_finds_nothing(
    developer: Client, services: Services
) -> None:
    made = await subscribe_url(developer, URL)
    answers = await asyncio.gather(*(_ask(developer, made, "deleted") for _ in range(5)))
    assert Counter(one.status_code for one in answers) == {204: 1, 404: 4}
    assert len(await load_events(services, developer.tenant_id, "system.subscription.deleted")) == 1


async def test_who_deletes_a_webhook_that_somebody_else_just_deleted_finds_nothing(
    developer: Client, services: Services
) -> None:
    for _ in range(3):
        path = f"/api/v1/webhooks/{await create_webhook_for(developer, URL)}"
        answers = await asyncio.gather(*(developer.delete(path) for _ in range(5)))
        assert Counter(one.status_code for one in answers) == {204: 1, 404: 4}
    assert len(await load_events(services, developer.tenant_id, "system.webhook.deleted")) == 3


async def test_two_changes_at_once_are_both_kept(developer: Client) -> None:
    made = await subscribe_url(developer, URL)
    first, second = {"filters": {"name": "Ada"}}, {"active": False}
    path = f"{PATH}/{made['id']}"
    await asyncio.gather(developer.put(path, first), developer.put(path, second))
    after = await read_subscription(developer, made["id"])
    assert (after["filters"], after["active"]) == ({"name": "Ada"}, False)


async def test_a_change_that_is_refused_stops_no_delivery(
    developer: Client, receiver: Receiver, services: Services, courier: object
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/500")
    await create_agent_and_wait(services, developer)
    body = {"action_type": "workflow", "action_config": {"workflow": "wfl_1"}}
    answer = await developer.put(f"{PATH}/{made['id']}", body)
    refused(answer, 422, "validation_error")
    (work,) = await load_work(services, developer.tenant_id, "webhooks.deliver")
    assert work["state"] == "pending"
    assert [row["status"] for row in await load_deliveries(services, developer)] == ["pending"]

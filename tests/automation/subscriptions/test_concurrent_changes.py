"""Subscriptions that are updated or deleted during fan-out."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from app.domain.automation.subscriptions import queries
from app.domain.messaging.deliveries import service
from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.subscriptions.factories import (
    PATH,
    create_webhook_for,
    load_deliveries,
    read_subscription,
    subscribe_url,
)
from tests.database import fetch_rows
from tests.lengths import rounds
from tests.messaging.deliveries.receiver import Receiver
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.factories import create_agent, create_agent_and_wait
from tests.world import Client, World
from workers.main import WorkerProcess

URL = "https://example.com/hook"
CHANGES: dict[str, dict[str, Any] | None] = {
    "deleted": None,
    "another action": {
        "action_type": "notification",
        "action_config": {"role": "viewer", "title": "Look", "message": "An agent"},
    },
    "another address": {"action_config": {"url": f"{URL}/other"}},
    "switched off": {"active": False},
}
_WAITING_FOR_LOCK = """
SELECT 1 AS one FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'
"""


def _send_change(
    client: Client, subscription: dict[str, Any], change: str
) -> Coroutine[Any, Any, httpx.Response]:
    path, body = f"{PATH}/{subscription['id']}", CHANGES[change]
    return client.delete(path) if body is None else client.put(path, body)


async def test_an_update_waits_for_a_fan_out_in_progress(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    """Fan-out locks the address first and the subscription last; neither deadlocks."""
    for change in CHANGES:
        with subtests.test(change=change):
            developer = await world.user()
            subscription = await subscribe_url(developer, URL)
            sql = "SELECT id FROM webhooks WHERE subscription_id = $1"
            ids = [row["id"] for row in await fetch_rows(services, sql, subscription["id"])]
            async with services.db.tx(developer.tenant_id) as tx:
                await service.endpoints_for(tx, developer.tenant_id, "system.test", ids)
                task = asyncio.create_task(_send_change(developer, subscription, change))
                await wait_until(lambda: fetch_rows(services, _WAITING_FOR_LOCK))
                assert not task.done()
                await queries.count_triggers(tx, developer.tenant_id, [subscription["id"]])
            assert (await task).status_code == (204 if change == "deleted" else 200)
            if change != "deleted":
                assert (await read_subscription(developer, subscription["id"]))[
                    "trigger_count"
                ] == 1


async def test_updates_during_fan_out_all_succeed(
    world: World,
    receiver: Receiver,
    services: Services,
    courier: WorkerProcess,
    subtests: pytest.Subtests,
) -> None:
    for change in CHANGES:
        with subtests.test(change=change):
            developer = await world.user()
            receiver.reset()
            for _ in range(rounds(1, 5)):
                subscriptions = [
                    await subscribe_url(developer, f"{receiver.url}/200") for _ in range(3)
                ]
                events = [asyncio.create_task(create_agent(developer)) for _ in range(6)]
                answers = await asyncio.gather(
                    *(
                        _send_change(developer, subscription, change)
                        for subscription in subscriptions
                    )
                )
                assert {answer.status_code for answer in answers} == {
                    204 if change == "deleted" else 200
                }
                await asyncio.gather(*events)
                await wait_until_idle(services, developer.tenant_id)
                for subscription in subscriptions:
                    await developer.delete(f"{PATH}/{subscription['id']}")
            fan_outs = await load_work(services, developer.tenant_id, "events.fan_out")
            assert {row["state"] for row in fan_outs} == {"done"}


async def test_only_one_of_several_concurrent_deletes_succeeds(
    developer: Client, services: Services
) -> None:
    subscription = await subscribe_url(developer, URL)
    answers = await asyncio.gather(
        *(_send_change(developer, subscription, "deleted") for _ in range(5))
    )
    assert Counter(answer.status_code for answer in answers) == {204: 1, 404: 4}
    assert len(await load_events(services, developer.tenant_id, "system.subscription.deleted")) == 1


async def test_only_one_of_several_concurrent_webhook_deletes_succeeds(
    developer: Client, services: Services
) -> None:
    for _ in range(3):
        path = f"/api/v1/webhooks/{await create_webhook_for(developer, URL)}"
        answers = await asyncio.gather(*(developer.delete(path) for _ in range(5)))
        assert Counter(answer.status_code for answer in answers) == {204: 1, 404: 4}
    assert len(await load_events(services, developer.tenant_id, "system.webhook.deleted")) == 3


async def test_two_concurrent_updates_are_both_stored(developer: Client) -> None:
    subscription = await subscribe_url(developer, URL)
    first, second = {"filters": {"name": "Ada"}}, {"active": False}
    path = f"{PATH}/{subscription['id']}"
    await asyncio.gather(developer.put(path, first), developer.put(path, second))
    stored = await read_subscription(developer, subscription["id"])
    assert (stored["filters"], stored["active"]) == ({"name": "Ada"}, False)


async def test_a_refused_update_cancels_no_delivery(
    developer: Client, receiver: Receiver, services: Services, courier: WorkerProcess
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/500")
    await create_agent_and_wait(services, developer)
    body = {"action_type": "workflow", "action_config": {"workflow": "wfl_1"}}
    answer = await developer.put(f"{PATH}/{subscription['id']}", body)
    refused(answer, 422, "validation_error")
    (work,) = await load_work(services, developer.tenant_id, "webhooks.deliver")
    assert work["state"] == "pending"
    assert [row["status"] for row in await load_deliveries(services, developer)] == ["pending"]

"""Actions of subscriptions: which events trigger them, how often, and how they fail."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from app.domain.automation.subscriptions import fan_out
from app.domain.platform.events.service import emit_dead
from app.kit import clock
from app.services import Services
from tests.automation.subscriptions.factories import (
    create_draft,
    create_subscription,
    create_webhook_for,
    find_draft,
    load_deliveries,
    read_subscription,
    read_trigger_counts,
    subscribe_url,
    subscribe_webhook,
    update_subscription,
)
from tests.database import Row, run_sql
from tests.lengths import rounds
from tests.messaging.deliveries.receiver import Receiver
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.factories import create_agent, create_agent_and_wait
from tests.world import Client
from workers.runner import Runner

pytestmark = pytest.mark.usefixtures("courier")


async def _load_actions(services: Services, client: Client) -> list[Row]:
    return await load_work(services, client.tenant_id, "events.act")


async def _read_counters(
    client: Client, subscription: dict[str, Any]
) -> tuple[int, datetime | None]:
    stored = await read_subscription(client, subscription["id"])
    last = stored["last_triggered_at"]
    return stored["trigger_count"], datetime.fromisoformat(last) if last else None


# Actions that cannot run


async def test_the_action_of_a_workflow_that_is_not_published_is_dead_with_a_reason(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    (event,) = await load_events(services, developer.tenant_id, "agent.created")
    (action,) = await _load_actions(services, developer)
    assert (action["state"], action["attempt"], action["ref_id"]) == ("dead", 1, subscription["id"])
    assert action["last_error"] == (
        "The workflow Draft is not published; publish it, so that triggers can start it"
    )
    assert action["cause_event_id"] == event["id"]


async def test_the_action_of_a_deleted_workflow_is_dead_with_a_reason(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_draft(developer)
    await create_subscription(developer, action_config={"workflow_id": workflow_id})
    assert (await developer.delete(f"/api/v1/workflows/{workflow_id}")).status_code == 204
    await create_agent_and_wait(services, developer)
    (action,) = await _load_actions(services, developer)
    assert (action["state"], action["attempt"]) == ("dead", 1)
    assert action["last_error"] == f"There is no workflow {workflow_id}"


async def test_a_dead_action_emits_an_event(developer: Client, services: Services) -> None:
    await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    (event,) = await load_events(services, developer.tenant_id, "agent.created")
    (action,) = await _load_actions(services, developer)
    (dead,) = await load_events(services, developer.tenant_id, "system.work.dead")
    assert dead["parent_id"] == event["id"]
    assert dead["correlation_id"] == event["correlation_id"]
    assert dead["data"] == {
        "work_id": action["id"],
        "kind": "events.act",
        "ref_id": action["ref_id"],
        "attempts": 1,
        "error": action["last_error"],
    }


async def test_an_action_for_a_deleted_webhook_is_dead_with_a_reason(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    subscription = await subscribe_webhook(developer, webhook_id)
    assert (await developer.delete(f"/api/v1/webhooks/{webhook_id}")).status_code == 204
    await create_agent_and_wait(services, developer)
    (action,) = await _load_actions(services, developer)
    assert (action["state"], action["ref_id"]) == ("dead", subscription["id"])
    assert action["last_error"] == ("the webhook that this subscription names no longer exists")
    (dead,) = await load_events(services, developer.tenant_id, "system.work.dead")
    assert dead["data"]["error"] == action["last_error"]
    assert receiver.requests == []


async def test_an_action_whose_subscription_was_deleted_is_done(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    await developer.delete(f"/api/v1/event-subscriptions/{subscription['id']}")
    (action,) = await _load_actions(services, developer)
    await _run_again(services, action["id"])
    (action,) = await _load_actions(services, developer)
    assert (action["state"], action["last_error"]) == ("done", None)


async def test_a_dead_action_does_not_affect_other_actions(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    await create_subscription(developer)
    await subscribe_url(developer, f"{receiver.url}/200")
    await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    await create_agent_and_wait(services, developer)
    assert len(receiver.requests) == 2
    statuses = [row["status"] for row in await load_deliveries(services, developer)]
    assert statuses == ["delivered"] * 2


# Matching events


async def test_only_events_of_its_type_trigger_a_subscription(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200", event_type="agent.deleted")
    agent_id = await create_agent_and_wait(services, developer)
    assert receiver.requests == []
    await developer.delete(f"/api/v1/agents/{agent_id}")
    await wait_until_idle(services, developer.tenant_id)
    assert [request.json["type"] for request in receiver.requests] == ["agent.deleted"]
    assert await read_trigger_counts(developer, [subscription]) == [1]


async def test_an_inactive_subscription_does_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscriptions = [
        await subscribe_url(developer, f"{receiver.url}/200", active=False),
        await create_subscription(developer, active=False),
    ]
    await create_agent_and_wait(services, developer)
    assert await load_work(services, developer.tenant_id) == []
    assert receiver.requests == []
    for subscription in subscriptions:
        assert await _read_counters(developer, subscription) == (0, None)


async def test_an_event_that_does_not_match_the_filters_does_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    filters = {"name": {"in": ["Ada", "Eve"]}, "status": "draft"}
    subscriptions = [
        await subscribe_url(developer, f"{receiver.url}/200", filters=filters),
        await create_subscription(developer, filters=filters),
    ]
    await create_agent_and_wait(services, developer, "Bob")
    kinds = {row["kind"] for row in await load_work(services, developer.tenant_id)}
    assert kinds == {"events.fan_out"}
    for subscription in subscriptions:
        assert await _read_counters(developer, subscription) == (0, None)
    await create_agent_and_wait(services, developer, "Eve")
    assert [request.json["data"]["name"] for request in receiver.requests] == ["Eve"]
    assert await read_trigger_counts(developer, subscriptions) == [1, 1]


async def test_filters_compare_with_the_stored_data(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    name = 'Ünïcode 🙂 "quoted" \\ and more'
    await subscribe_url(developer, f"{receiver.url}/200", filters={"name": name})
    await create_agent_and_wait(services, developer, name)
    assert [request.json["data"]["name"] for request in receiver.requests] == [name]


async def test_an_event_of_another_tenant_triggers_nothing(
    developer: Client, admin: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, admin)
    assert receiver.requests == []
    assert await _read_counters(developer, subscription) == (0, None)


async def test_an_update_applies_to_the_next_event(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    await update_subscription(developer, subscription["id"], filters={"name": "Nobody"})
    await create_agent_and_wait(services, developer)
    await update_subscription(
        developer, subscription["id"], filters=None, event_type="agent.updated"
    )
    await create_agent_and_wait(services, developer)
    assert len(receiver.requests) == 1


# Trigger counts


async def test_each_event_updates_the_count_and_the_time(
    developer: Client, services: Services
) -> None:
    subscription, before = await create_subscription(developer), clock.now()
    await create_agent_and_wait(services, developer)
    count, last = await _read_counters(developer, subscription)
    assert count == 1
    assert last is not None
    assert before <= last <= clock.now()
    await create_agent_and_wait(services, developer)
    count, later = await _read_counters(developer, subscription)
    assert (count, later is not None and later > last) == (2, True)


async def test_being_triggered_does_not_update_the_subscription(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    stored = await read_subscription(developer, subscription["id"])
    assert stored["updated_at"] == subscription["updated_at"]
    assert await load_events(services, developer.tenant_id, "system.subscription.updated") == []


async def test_events_at_once_are_all_counted(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    count = rounds(10, 50)
    subscriptions = [
        await create_subscription(developer),
        await subscribe_url(developer, f"{receiver.url}/200"),
    ]
    await asyncio.gather(*(create_agent(developer, f"Agent {number}") for number in range(count)))
    await wait_until_idle(services, developer.tenant_id)
    assert await read_trigger_counts(developer, subscriptions) == [count, count]
    assert len({request.json["id"] for request in receiver.requests}) == count
    assert len(receiver.requests) == count
    assert [row["state"] for row in await _load_actions(services, developer)] == ["dead"] * count


async def test_updates_during_events_lose_no_count(developer: Client, services: Services) -> None:
    subscription, workflow_id = await create_subscription(developer), await find_draft(developer)

    async def update_repeatedly() -> None:
        for number in range(5):
            config = {"workflow_id": workflow_id, "input": {"number": number}}
            await update_subscription(developer, subscription["id"], action_config=config)

    await asyncio.gather(update_repeatedly(), *(create_agent(developer) for _ in range(10)))
    await wait_until_idle(services, developer.tenant_id)
    assert await read_trigger_counts(developer, [subscription]) == [10]


# Work that runs twice


async def _run_again(services: Services, work_id: str) -> None:
    """Runs work again, as after a worker that died before it recorded the outcome."""
    await run_sql(
        services,
        "UPDATE work SET state = 'pending', finished_at = NULL, last_error = NULL, attempt = 0, "
        "dispatched_at = now() WHERE id = $1",
        work_id,
    )
    await Runner(services, on_any_dead=emit_dead).run(work_id)


async def test_fanning_out_an_event_twice_adds_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    await create_subscription(developer)
    await subscribe_url(developer, f"{receiver.url}/200")
    await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    await create_agent_and_wait(services, developer)
    before = (
        {row["id"] for row in await load_work(services, developer.tenant_id)},
        await load_deliveries(services, developer),
    )
    (job,) = await load_work(services, developer.tenant_id, "events.fan_out")
    await _run_again(services, job["id"])
    await wait_until_idle(services, developer.tenant_id)
    assert before == (
        {row["id"] for row in await load_work(services, developer.tenant_id)},
        await load_deliveries(services, developer),
    )
    assert len(receiver.requests) == 2
    assert len(await load_events(services, developer.tenant_id, "system.work.dead")) == 1


async def test_a_job_that_several_workers_run_counts_once(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    (job,) = await load_work(services, developer.tenant_id, "events.fan_out")
    await asyncio.gather(
        *(Runner(services, on_any_dead=emit_dead).run(job["id"]) for _ in range(5))
    )
    assert await read_trigger_counts(developer, [subscription]) == [1]


async def test_a_deleted_event_is_not_fanned_out(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    await create_agent_and_wait(services, developer)
    subscription = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    (job,) = await load_work(services, developer.tenant_id, "events.fan_out")
    await run_sql(services, "DELETE FROM deliveries WHERE tenant_id = $1", developer.tenant_id)
    await run_sql(services, "DELETE FROM event_log WHERE tenant_id = $1", developer.tenant_id)
    await _run_again(services, job["id"])
    assert await load_deliveries(services, developer) == []
    assert await read_trigger_counts(developer, [subscription]) == [1]


async def test_more_subscriptions_than_an_event_wakes_at_once_are_all_triggered(
    developer: Client, services: Services
) -> None:
    count = rounds(2 * fan_out._MAX_WOKEN, 300)
    subscriptions = [await create_subscription(developer) for _ in range(3)]
    await run_sql(
        services,
        "INSERT INTO event_subscriptions (id, tenant_id, event_type, action_type, action_config, "
        "active, trigger_count, created_at, updated_at) "
        "SELECT 'sub_many' || n || $2, $1, event_type, action_type, action_config, active, 0, "
        "now(), now() FROM event_subscriptions, generate_series(1, $3::int) n WHERE id = $2",
        developer.tenant_id,
        subscriptions[0]["id"],
        count,
    )
    await create_agent_and_wait(services, developer)
    assert len(await _load_actions(services, developer)) == count + 3
    assert await read_trigger_counts(developer, subscriptions) == [1, 1, 1]

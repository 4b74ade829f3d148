"""A tenant has a bounded number of pending executions: beyond it requests are refused, and triggers
are refused or try again.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.domain.automation.workflows import queries, schedule, starting
from app.kit import trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import list_payloads
from tests.automation.incoming.factories import create_webhook, send_payload
from tests.automation.subscriptions.factories import create_subscription
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    create_published,
    create_workflow,
    publish,
    start,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.database import fetch_rows, run_sql
from tests.platform.events.database import load_work
from tests.platform.events.factories import create_agent
from tests.world import Client, World

# Of these tests; a tenant may have thousands.
MAX_PENDING = 50
# One runs, so that none of the others is started.
_FILL = """
INSERT INTO workflow_executions (tenant_id, id, workflow_id, version, status, input, trigger_type,
                                 correlation_id, started_at)
SELECT $1, $2 || lpad(n::text, 5, '0'), $2, 1, CASE n WHEN 0 THEN 'running' ELSE 'pending' END,
       '{}', 'event', 'cor', CASE n WHEN 0 THEN now() - interval '1 hour' END
FROM generate_series(0, $3::int) n
"""
_FREE_ONE = """
UPDATE workflow_executions SET status = 'cancelled', finished_at = now()
WHERE id = (SELECT min(id) FROM workflow_executions WHERE tenant_id = $1 AND status = 'pending')
"""
_COUNT = """
SELECT count(*) AS count FROM workflow_executions WHERE tenant_id = $1 AND workflow_id = $2
"""


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = queries._IS_QUEUE_FULL.replace(str(queries.MAX_PENDING - 1), str(MAX_PENDING - 1))
    assert sql != queries._IS_QUEUE_FULL
    monkeypatch.setattr(queries, "_IS_QUEUE_FULL", sql)
    monkeypatch.setattr(queries, "MAX_PENDING", MAX_PENDING)


@pytest.fixture
async def owner(world: World, services: Services) -> AsyncIterator[Client]:
    owner = await world.user("agent_developer", await world.tenant("free"))
    yield owner
    sql = "DELETE FROM workflow_executions WHERE tenant_id = $1"
    await run_sql(services, sql, owner.tenant_id)


async def _fill(services: Services, owner: Client) -> None:
    """Makes as many executions pending as a tenant may have."""
    workflow_id = await create_published(owner, [transform("a", 1)])
    await run_sql(services, _FILL, owner.tenant_id, workflow_id, MAX_PENDING)


async def _free_one(services: Services, owner: Client) -> None:
    await run_sql(services, _FREE_ONE, owner.tenant_id)


async def _count(services: Services, owner: Client, workflow_id: str) -> int:
    [row] = await fetch_rows(services, _COUNT, owner.tenant_id, workflow_id)
    return int(row["count"])


def _check_refusal(answer: httpx.Response) -> None:
    error = refused(answer, 429, "too_many_pending_executions")
    assert error["details"]["limit"] == MAX_PENDING
    assert answer.headers["Retry-After"] == str(error["details"]["retry_after"])


async def _accept(services: Services, owner: Client, workflow_id: str, **fields: Any) -> str:
    trace.begin(Trace(new_id("cor"), tenant_id=owner.tenant_id))
    new = starting.NewExecution(
        tenant_id=owner.tenant_id,
        workflow_id=workflow_id,
        input={},
        trigger_type="event",
        **fields,
    )
    async with services.db.tx(owner.tenant_id) as tx:
        return await starting.accept(tx, services, new)


async def test_requests_beyond_the_bound_are_refused_until_one_has_started(
    owner: Client, services: Services
) -> None:
    workflow_id = await create_published(owner, [transform("a", 1)])
    ended = await start(owner, workflow_id)
    await owner.post(f"{EXECUTIONS}/{ended}/cancel")
    await _fill(services, owner)
    _check_refusal(await owner.post(f"{PATH}/{workflow_id}/execute", {}))
    _check_refusal(await owner.post(f"{EXECUTIONS}/{ended}/retry"))
    assert await _count(services, owner, workflow_id) == 1
    await _free_one(services, owner)
    assert (await owner.post(f"{EXECUTIONS}/{ended}/retry")).status_code == 202
    _check_refusal(await owner.post(f"{PATH}/{workflow_id}/execute", {}))
    await _free_one(services, owner)
    await start(owner, workflow_id)


async def test_another_tenant_is_not_affected(
    owner: Client, developer: Client, services: Services
) -> None:
    await _fill(services, owner)
    await start(developer, await create_published(developer, [transform("a", 1)]))


async def test_a_full_queue_returns_the_execution_that_the_same_occasion_started(
    owner: Client, services: Services
) -> None:
    workflow_id = await create_published(owner, [transform("a", 1)])
    key = new_id("key")
    execution_id = await _accept(services, owner, workflow_id, dedupe_key=key)
    await _fill(services, owner)
    assert await _accept(services, owner, workflow_id, dedupe_key=key) == execution_id


async def test_a_full_queue_fails_a_node_that_calls_a_workflow(
    owner: Client, services: Services
) -> None:
    child = await create_published(owner, [transform("a", 1)])
    retry = {"max_attempts": 2, "delay_seconds": 60}
    call = {"id": "call", "type": "workflow", "config": {"workflow_id": child}, "retry": retry}
    execution_id = await start(owner, (await create_workflow(owner, [call]))["id"])
    await _fill(services, owner)
    hand = Hand(services, owner.tenant_id)
    await hand.run_due()
    node = await _read_node(owner, execution_id)
    assert (node["status"], node["attempt"]) == ("pending", 1)
    assert node["error"]["code"] == "too_many_pending_executions"
    await hand.make_due(timers=False)
    await hand.run_due()
    record = (await owner.get(f"{EXECUTIONS}/{execution_id}")).json()["data"]
    assert record["status"] == "failed"
    assert record["error"]["code"] == "too_many_pending_executions"
    assert await _count(services, owner, child) == 0


async def test_a_full_queue_returns_the_execution_that_a_node_has_called(
    owner: Client, services: Services
) -> None:
    workflow_id = await create_published(owner, [transform("a", 1)])
    caller = {"caller_id": "wfn_none:1", "dedupe_key": "wfn_none:1", "depth": 1}
    execution_id = await _accept(services, owner, workflow_id, **caller)
    await _fill(services, owner)
    assert await _accept(services, owner, workflow_id, **caller) == execution_id


async def _read_node(owner: Client, execution_id: str) -> dict[str, Any]:
    record = (await owner.get(f"{EXECUTIONS}/{execution_id}")).json()["data"]
    node: dict[str, Any] = record["nodes"][0]
    return node


async def test_a_full_queue_refuses_a_payload_before_it_is_acknowledged(
    owner: Client, anonymous: Client, services: Services
) -> None:
    workflow_id = await create_published(owner, [transform("a", 1)])
    webhook = await create_webhook(owner, workflow_id=workflow_id)
    await _fill(services, owner)
    _check_refusal(await send_payload(anonymous, webhook, {"order": 1}))
    assert await list_payloads(owner, webhook) == []
    await _free_one(services, owner)
    assert (await send_payload(anonymous, webhook, {"order": 1})).status_code == 202
    assert await _count(services, owner, workflow_id) == 1


async def test_a_full_queue_lets_the_action_of_an_event_try_again(
    owner: Client, services: Services
) -> None:
    workflow_id = await create_published(owner, [transform("a", 1)])
    config = {"workflow_id": workflow_id}
    await create_subscription(owner, action_config=config)
    await _fill(services, owner)
    await create_agent(owner)
    runner = Hand(services, owner.tenant_id).runner
    for work in await load_work(services, owner.tenant_id, "events.fan_out"):
        await runner.run(work["id"])
    (action,) = await load_work(services, owner.tenant_id, "events.act")
    await runner.run(action["id"])
    (action,) = await load_work(services, owner.tenant_id, "events.act")
    assert action["state"] == "pending"
    assert action["last_error"].startswith(f"{MAX_PENDING} executions")
    await _free_one(services, owner)
    await run_sql(services, "UPDATE work SET run_at = now() WHERE id = $1", action["id"])
    await runner.run(action["id"])
    assert await _count(services, owner, workflow_id) == 1


async def test_a_full_queue_postpones_a_schedule(owner: Client, services: Services) -> None:
    """It does not wait for its next time, which may be a year away."""
    trigger = {"cron": "0 0 1 1 *", "timezone": "UTC"}
    workflow = await create_workflow(owner, [transform("a", 1)], trigger=trigger)
    await publish(owner, workflow["id"])
    await _fill(services, owner)
    sql = "UPDATE workflows SET next_run_at = now() WHERE id = $1"
    await run_sql(services, sql, workflow["id"])
    await schedule.start_due(services)
    assert await _count(services, owner, workflow["id"]) == 0
    view = (await owner.get(f"{PATH}/{workflow['id']}")).json()["data"]
    wait = datetime.fromisoformat(view["next_run_at"]) - datetime.now(UTC)
    assert timedelta() < wait <= timedelta(minutes=1)
    await _free_one(services, owner)
    await run_sql(services, sql, workflow["id"])
    await schedule.start_due(services)
    assert await _count(services, owner, workflow["id"]) == 1
    view = (await owner.get(f"{PATH}/{workflow['id']}")).json()["data"]
    assert view["next_run_at"].endswith("-01-01T00:00:00Z")

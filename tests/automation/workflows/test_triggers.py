"""Events start workflows by subscriptions."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.domain.platform.events.service import emit_dead
from app.kit.ids import new_id
from app.services import Services
from app.templating.expressions import Expressions
from tests.assertions import wait_until
from tests.automation.subscriptions.factories import create_subscription, read_subscription
from tests.automation.workflows.factories import (
    EXECUTIONS,
    create_published,
    transform,
    wait_for_status,
)
from tests.database import run_sql
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.factories import create_agent, create_agent_and_wait
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client
from workers.main import WorkerProcess
from workers.runner import Runner

pytestmark = pytest.mark.usefixtures("dispatcher")


@pytest.fixture(scope="module")
async def dispatcher(services: Services, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that fans out events and runs workflows."""
    queues = ("workflows", "default", "deliveries")
    expressions = services.get(Expressions)
    async with run_worker(stores.settings, *queues, slots=6, expressions=expressions) as process:
        yield process


async def _list_executions(client: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await client.get(EXECUTIONS, params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def _subscribe(client: Client, workflow_id: str, **fields: Any) -> dict[str, Any]:
    config = {"workflow_id": workflow_id, **fields.pop("config", {})}
    return await create_subscription(client, action_config=config, **fields)


async def test_an_event_starts_the_workflow_with_templates_in_its_input(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("only", "{{ input.name }}")])
    config = {
        "input": {
            "name": "{{ event.data.name }}!",
            "all": ["{{ event.data }}", 7],
            "event": "is replaced",
        }
    }
    subscription = await _subscribe(developer, workflow_id, config=config)
    agent_id = await create_agent_and_wait(services, developer, "Ada")
    (summary,) = await _list_executions(developer, trigger="event")
    record = await wait_for_status(developer, summary["id"], "completed")
    (event,) = await load_events(services, developer.tenant_id, "agent.created")
    assert record["output"] == "Ada!"
    assert record["trigger"] == {"type": "event", "id": subscription["id"]}
    assert record["input"]["all"] == [event["data"], 7]
    assert record["input"]["event"] == {
        "id": event["id"],
        "type": "agent.created",
        "data": event["data"],
    }
    assert event["data"]["agent_id"] == agent_id
    (started,) = await load_events(services, developer.tenant_id, "workflow.execution.started")
    assert started["parent_id"] == event["id"]
    assert started["correlation_id"] == event["correlation_id"]


async def test_an_action_that_runs_twice_starts_the_workflow_once(
    developer: Client, services: Services
) -> None:
    """As after a worker that died before it recorded the outcome."""
    workflow_id = await create_published(developer, [transform("only", 1)])
    await _subscribe(developer, workflow_id)
    await create_agent_and_wait(services, developer)
    (action,) = await load_work(services, developer.tenant_id, "events.act")
    assert action["state"] == "done"
    await run_sql(
        services,
        "UPDATE work SET state = 'pending', finished_at = NULL, attempt = 0, dispatched_at = now()"
        " WHERE id = $1",
        action["id"],
    )
    await Runner(services, on_any_dead=emit_dead).run(action["id"])
    (action,) = await load_work(services, developer.tenant_id, "events.act")
    assert action["state"] == "done"
    assert len(await _list_executions(developer)) == 1


async def test_each_subscription_starts_its_own_execution(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("only", 1)])
    subscriptions = [await _subscribe(developer, workflow_id) for _ in range(2)]
    await create_agent_and_wait(services, developer)
    executions = await _list_executions(developer)
    assert {item["trigger"]["id"] for item in executions} == {
        subscription["id"] for subscription in subscriptions
    }


async def test_a_workflow_that_its_own_end_starts_again_is_stopped(
    developer: Client, services: Services
) -> None:
    """Each execution is two causes further: its start, and its end."""
    workflow_id = await create_published(developer, [transform("only", 1)])
    event_type = "workflow.execution.completed"
    subscription = await _subscribe(developer, workflow_id, event_type=event_type)
    await _subscribe(developer, workflow_id)
    correlation_id = new_id("cor")
    await create_agent(developer, **{"X-Correlation-ID": correlation_id})
    name = "system.event.chain_stopped"
    (stopped,) = await wait_until(lambda: load_events(services, developer.tenant_id, name))
    await wait_until_idle(services, developer.tenant_id)
    assert stopped["data"]["event_type"] == event_type
    assert stopped["correlation_id"] == correlation_id
    executions = await _list_executions(developer)
    count = (await read_subscription(developer, subscription["id"]))["trigger_count"]
    assert len(executions) == count + 1
    # The events that start them have the depths 0, 2, 4, 6 and 8.
    assert len(executions) == 5
    assert {item["status"] for item in executions} == {"completed"}


async def test_the_action_starts_the_version_that_is_published(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("only", 1)])
    await _subscribe(developer, workflow_id)
    body = {"nodes": [transform("only", 2)]}
    assert (await developer.put(f"/api/v1/workflows/{workflow_id}", body)).status_code == 200
    await create_agent_and_wait(services, developer)
    (execution,) = await _list_executions(developer)
    assert execution["version"] == 1

"""Usage counts each execution once, when it is started."""

import pytest

from app.domain.agents.usage import service as usage
from app.services import Services
from tests.agents.usage.rows import get_usage
from tests.automation.workflows.factories import EXECUTIONS, create_workflow, read, start, transform
from tests.automation.workflows.manual_worker import Hand
from tests.world import Client, World


@pytest.fixture
async def owner(world: World) -> Client:
    """One execution runs at a time."""
    return await world.user("agent_developer", await world.tenant("free"))


async def _count(client: Client) -> int:
    count: int = (await get_usage(client))["totals"]["workflow_executions"]
    return count


async def _post(client: Client, execution_id: str, action: str) -> None:
    answer = await client.post(f"{EXECUTIONS}/{execution_id}/{action}")
    assert answer.status_code in {200, 202}, answer.text


async def test_an_execution_that_is_retried_counts_once(owner: Client, services: Services) -> None:
    workflow = await create_workflow(owner, [transform("bad", "{{ 1 / 0 }}")])
    execution_id = await start(owner, workflow["id"])
    hand = Hand(services, owner.tenant_id)
    assert await _count(owner) == 1
    for _ in range(2):
        await hand.run_due()
        assert (await read(owner, execution_id))["status"] == "failed"
        assert await _count(owner) == 1
        # What is rolled up leaves no trace of the execution.
        await usage.roll_up(services)
        await _post(owner, execution_id, "retry")
    assert await _count(owner) == 1


async def test_an_execution_that_is_cancelled_before_its_start_counts_once_it_is_retried(
    owner: Client, services: Services
) -> None:
    workflow = await create_workflow(owner, [transform("a", 1)])
    _, pending = [await start(owner, workflow["id"]) for _ in range(2)]
    await _post(owner, pending, "cancel")
    assert await _count(owner) == 1
    await Hand(services, owner.tenant_id).run_due()
    assert await _count(owner) == 1
    await _post(owner, pending, "retry")
    assert await _count(owner) == 2

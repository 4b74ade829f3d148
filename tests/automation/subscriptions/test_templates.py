"""Templates of actions: other processes check and render them, within limits of time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.services import Services
from tests.automation.subscriptions.factories import PATH, create_draft, create_subscription
from tests.platform.events.database import load_work, wait_until_idle
from tests.world import Client

pytestmark = pytest.mark.usefixtures("courier")

# Each template alone is within the time.
_SLOW = "{% for i in range(99999) %}{{ event.data.a }}{{ event.data.b }}{% endfor %}"


@asynccontextmanager
async def _measure_steps() -> AsyncIterator[list[float]]:
    """Yields a list that has the longest step of the event loop afterwards, in seconds of the
    processor.
    """
    longest = [0.0]

    async def watch() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest[0] = max(longest[0], time.thread_time() - before)
            await asyncio.sleep(0.001)

    task = asyncio.create_task(watch())
    try:
        yield longest
    finally:
        task.cancel()


async def _emit(client: Client, data: dict[str, Any]) -> None:
    body = {"event_type": "agent.created", "data": data}
    assert (await client.post("/api/v1/events/test", body)).status_code == 202


async def test_an_action_beyond_its_time_is_dead_and_holds_up_nobody(
    developer: Client, services: Services
) -> None:
    config = {"workflow_id": await create_draft(developer), "input": {"texts": [_SLOW] * 162}}
    await create_subscription(developer, action_config=config)
    async with _measure_steps() as longest:
        await _emit(developer, {"name": "Ada"})
        await wait_until_idle(services, developer.tenant_id)
    (action,) = await load_work(services, developer.tenant_id, "events.act")
    assert (action["state"], action["attempt"]) == ("dead", 1)
    assert action["last_error"] == "the expression takes longer than 1 s"
    assert longest[0] < 0.25


async def test_a_problem_of_an_action_names_its_place(
    developer: Client, services: Services
) -> None:
    texts = ["{{ event.type }}", "{{ 1 / event.data.count }}"]
    config = {"workflow_id": await create_draft(developer), "input": {"texts": texts}}
    await create_subscription(developer, action_config=config)
    await _emit(developer, {"count": 0})
    await wait_until_idle(services, developer.tenant_id)
    (action,) = await load_work(services, developer.tenant_id, "events.act")
    assert (action["state"], action["attempt"]) == ("dead", 1)
    assert action["last_error"] == "texts.1: a division by zero"


async def test_a_subscription_is_refused_with_the_line_of_each_problem(developer: Client) -> None:
    config = {
        "title": "{{ event.data.a }}",
        "message": "Dear all,\n{{ input.a }}",
        "role": "tenant_admin",
    }
    body = {"event_type": "agent.created", "action_type": "notification", "action_config": config}
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {
        "action_config.message": "line 2: the name 'input' is unknown; known names: event"
    }


async def test_many_templates_are_checked_without_holding_up_others(developer: Client) -> None:
    workflow_id = await create_draft(developer)
    for count, status in ((500, 201), (501, 422)):
        texts = [f"{{{{ event.data.a{number} | upper }}}}" for number in range(count)]
        config = {"workflow_id": workflow_id, "input": {"texts": texts}}
        body = {"event_type": "agent.created", "action_type": "workflow", "action_config": config}
        async with _measure_steps() as longest:
            answer = await developer.post(PATH, body)
        assert answer.status_code == status, answer.text
        assert longest[0] < 0.15
    assert answer.json()["error"]["details"] == {
        "action_config.input": "has more than 500 templates"
    }

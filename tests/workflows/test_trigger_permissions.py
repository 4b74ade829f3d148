"""Who may start a workflow, and by which way."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.asking import refused
from tests.incoming.api import PATH as INCOMING
from tests.roles.api_calls import VIEWER_GRANTS, set_permissions
from tests.workflows.factories import create_published, transform
from tests.world import Client, World

Grant = Callable[..., Awaitable[None]]


@pytest.fixture
async def caller(developer: Client, world: World) -> Client:
    return await world.user("viewer", tenant_id=developer.tenant_id)


@pytest.fixture
async def grant(super_admin: Client) -> AsyncIterator[Grant]:
    """Replaces the permissions of the caller."""

    async def replace(*permissions: str) -> None:
        await set_permissions(super_admin, "viewer", *permissions)

    yield replace
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)


async def test_an_incoming_webhook_of_a_workflow_needs_the_permission_to_run_it(
    developer: Client, caller: Client, grant: Grant
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    await grant("webhooks:read", "webhooks:write")
    body = {"name": "Orders", "workflow_id": workflow_id}
    answer = await caller.post(INCOMING, body)
    error = refused(answer, 403, "forbidden")
    assert error["details"]["required"] == "workflows:execute"
    created = (await caller.post(INCOMING, {"name": "Orders"})).json()
    path = f"{INCOMING}/{created['id']}"
    refused(await caller.put(path, {"workflow_id": workflow_id}), 403, "forbidden")
    await grant("webhooks:read", "webhooks:write", "workflows:execute")
    assert (await caller.post(INCOMING, body)).status_code == 201


async def test_a_subscription_that_runs_a_workflow_needs_the_permission_to_run_it(
    developer: Client, caller: Client, grant: Grant
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    await grant("events:read", "events:write")
    body = {
        "event_type": "system.test",
        "action_type": "workflow",
        "action_config": {"workflow_id": workflow_id},
    }
    refused(await caller.post("/api/v1/event-subscriptions", body), 403, "forbidden")
    await grant("events:read", "events:write", "workflows:execute")
    assert (await caller.post("/api/v1/event-subscriptions", body)).status_code == 201

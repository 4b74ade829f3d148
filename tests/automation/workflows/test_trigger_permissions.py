"""Who may start a workflow, and by which way."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.assertions import refused
from tests.automation.incoming.api import PATH as INCOMING
from tests.automation.workflows.factories import PATH, create_published, transform
from tests.identity.roles.api_calls import VIEWER_GRANTS, set_permissions
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


async def test_a_schedule_needs_the_permission_to_run_the_workflow(
    developer: Client, caller: Client, grant: Grant
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    await grant("workflows:read", "workflows:write")
    path, trigger = f"{PATH}/{workflow_id}", {"cron": "0 8 * * *", "timezone": "UTC"}
    refused(await caller.put(path, {"trigger": trigger}), 403, "forbidden")
    assert (await caller.put(path, {"name": "Renamed"})).status_code == 200
    await grant("workflows:read", "workflows:write", "workflows:execute")
    assert (await caller.put(path, {"trigger": trigger})).status_code == 200


async def test_only_who_may_change_a_workflow_runs_another_version_than_the_published_one(
    developer: Client, caller: Client, grant: Grant, subtests: pytest.Subtests
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    path = f"{PATH}/{workflow_id}"
    body = {"nodes": [transform("a", 2)], "edges": []}
    assert (await developer.put(path, body)).status_code == 200
    assert (await developer.post(f"{path}/publish")).status_code == 200
    await grant("workflows:read", "workflows:execute")
    for options in ({}, {"dry_run": True}):
        with subtests.test(options=options):
            old = {"version": 1, "input": {}, **options}
            error = refused(await caller.post(f"{path}/execute", old), 403, "forbidden")
            assert error["details"]["required"] == "workflows:write"
            published = {**old, "version": 2}
            assert (await caller.post(f"{path}/execute", published)).status_code in {200, 202}
    await grant("workflows:read", "workflows:execute", "workflows:write")
    assert (await caller.post(f"{path}/execute", {"version": 1})).status_code == 202


async def test_publishing_needs_the_permissions_of_the_nodes(
    developer: Client, caller: Client, grant: Grant
) -> None:
    config = {"title": "Go on?", "user_ids": [developer.user_id]}
    nodes = [{"id": "ask", "type": "approval", "config": config}]
    node = {
        "id": "tell",
        "type": "notification",
        "config": {"user_ids": [developer.user_id], "title": "Hi", "message": "Hello"},
    }
    answer = await developer.post(PATH, {"name": "Tell", "nodes": [*nodes, node], "edges": []})
    assert answer.status_code == 201, answer.text
    path = f"{PATH}/{answer.json()['data']['id']}/publish"
    await grant("workflows:read", "workflows:write", "workflows:execute")
    refused(await caller.post(path), 403, "forbidden")
    await grant("workflows:read", "workflows:write", "workflows:execute", "notifications:write")
    assert (await caller.post(path)).status_code == 200

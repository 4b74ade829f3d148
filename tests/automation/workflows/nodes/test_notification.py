"""Nodes that notify users, a role or a channel."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.workflows.factories import PATH, create_workflow, run
from tests.automation.workflows.nodes.single_node import build_node, fail_single, run_single
from tests.database import fetch_rows
from tests.messaging.notifications.center.api import list_notifications
from tests.messaging.notifications.factories import create_channel
from tests.world import Client, World
from workers.main import WorkerProcess

_TEXTS = {"title": "Order {{ input.order }}", "message": "Of {{ input.name }}"}
_INPUT = {"order": 7, "name": "Zoe"}


async def _wait_for_messages(client: Client, number: int) -> list[dict[str, Any]]:
    async def find() -> list[dict[str, Any]] | None:
        found = [item for item in await list_notifications(client) if item["type"] == "message"]
        return found if len(found) >= number else None

    found = await wait_until(find)
    assert found is not None
    assert len(found) == number
    return found


async def test_users_and_roles_get_what_the_node_renders(
    world: World, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    author = await world.user("tenant_admin")
    viewer = await world.user("viewer", author.tenant_id)
    other = await world.user("agent_user", author.tenant_id)
    with subtests.test("users by a template"):
        values = {**_INPUT, "users": [viewer.user_id]}
        config = {**_TEXTS, "user_ids": "{{ input.users }}"}
        node = await run_single(author, "notification", config, values)
        assert node["output"]["message_id"]
        (message,) = await _wait_for_messages(viewer, 1)
        assert (message["title"], message["message"]) == ("Order 7", "Of Zoe")
        assert message["data"]["node_id"] == "one"
    with subtests.test("a role, each run for itself"):
        config = {"title": "Same", "message": "Same", "role": "agent_user"}
        workflow = await create_workflow(author, [build_node("notification", config)])
        for _ in range(2):
            assert (await run(author, workflow["id"]))["status"] == "completed"
        await _wait_for_messages(other, 2)
    assert len(await _wait_for_messages(viewer, 1)) == 1


async def test_a_long_title_is_cut(world: World, worker: WorkerProcess) -> None:
    author = await world.user("tenant_admin")
    config = {"title": "{{ input.title }}", "message": "x", "user_ids": [author.user_id]}
    await run_single(author, "notification", config, {"title": "é" * 300})
    (message,) = await _wait_for_messages(author, 1)
    assert message["title"] == "é" * 200


async def test_a_channel_gets_the_message(
    admin: Client, worker: WorkerProcess, services: Services
) -> None:
    channel = await create_channel(admin, "in_app")
    config = {**_TEXTS, "channel_id": channel["id"]}
    node = await run_single(admin, "notification", config, _INPUT)
    sql = "SELECT recipients->>'channel_id' AS channel_id FROM notification_messages WHERE id = $1"
    rows = await fetch_rows(services, sql, node["output"]["message_id"])
    assert rows == [{"channel_id": channel["id"]}]
    nodes = [build_node("notification", config)]
    workflow = await create_workflow(admin, nodes)
    answer = await admin.delete(f"/api/v1/notification-channels/{channel['id']}")
    assert answer.status_code == 204, answer.text
    record = await run(admin, workflow["id"], **_INPUT)
    assert (record["status"], record["error"]["code"]) == ("failed", "channel_not_found")


async def test_an_unknown_user_fails_the_node(
    world: World, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    author, stranger = await world.user("tenant_admin"), await world.user("viewer")
    config = {**_TEXTS, "user_ids": ["{{ input.user }}"]}
    for user, code in (
        ("usr_nobody", "validation_error"),
        (stranger.user_id, "validation_error"),
        (7, "invalid_config"),
    ):
        with subtests.test(str(user)):
            values = {**_INPUT, "user": user}
            assert await fail_single(author, "notification", config, values) == code
    assert await list_notifications(stranger) == []


async def test_recipients_are_checked_when_a_workflow_is_saved(
    world: World, subtests: pytest.Subtests
) -> None:
    author, stranger = await world.user("tenant_admin"), await world.user("viewer")
    foreign = await create_channel(await world.user("tenant_admin"), "in_app")
    cases: list[dict[str, Any]] = [
        {},
        {"role": "king"},
        {"role": "viewer", "user_ids": [author.user_id]},
        {"user_ids": [stranger.user_id]},
        {"user_ids": []},
        {"channel_id": foreign["id"]},
        {"channel_id": "{{ input.channel }}"},
    ]
    for config in cases:
        with subtests.test(str(config)):
            nodes = [build_node("notification", {**_TEXTS, **config})]
            answer = await author.post(PATH, {"name": "Orders", "nodes": nodes})
            refused(answer, 422, "validation_error")

"""A tenant that has used up its quota stores nothing more; it can sign in, chat and delete."""

from typing import Any

import pytest
from litestar import Litestar

from app.domain.automation.workflows import schedule
from app.http.route_options import list_handlers, options_of
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import list_payloads
from tests.automation.incoming.factories import create_webhook, send_payload
from tests.automation.subscriptions.factories import create_subscription
from tests.automation.workflows.factories import (
    EXECUTIONS,
    create_published,
    create_workflow,
    start,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.database import fetch_rows
from tests.forms.api import TEXT, create_form, list_submissions, send
from tests.platform.events.database import load_work
from tests.platform.events.factories import create_agent
from tests.platform.files.api import MEGABYTE
from tests.platform.storage.counting import add_up, set_file_bytes
from tests.scripted_agents import Talker, talker
from tests.world import PASSWORD, Client, World

_LIMITS = {"requests_per_minute": 1_000_000, "storage_mb": 1}


@pytest.fixture
async def owner(world: World) -> Client:
    return await world.user("tenant_admin", await world.tenant("enterprise", _LIMITS))


def _list_storing_routes(app: Litestar) -> list[tuple[str, str]]:
    return sorted(
        (method, path) for method, path, handler in list_handlers(app) if options_of(handler).stores
    )


async def test_every_route_that_stores_is_refused(
    owner: Client, services: Services, subtests: pytest.Subtests
) -> None:
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    routes = _list_storing_routes(owner.http._transport.app)  # type: ignore[attr-defined]
    assert len(routes) > 20
    for method, path in routes:
        with subtests.test(route=f"{method} {path}"):
            refused(await owner(method, path, json={}), 413, "quota_exceeded")


async def test_the_refusal_names_what_takes_most_and_how_to_delete_it(
    owner: Client, services: Services
) -> None:
    await set_file_bytes(services, owner.tenant_id, 600_000)
    change = "INSERT INTO storage_changes (tenant_id, kind, bytes) VALUES ($1, $2, $3)"
    for kind, count in (("conversations", 400_000), ("events", 60_000), ("tables", 1)):
        await fetch_rows(services, change, owner.tenant_id, kind, count)
    await add_up(services, owner.tenant_id)
    error = refused(await owner.post("/api/v1/agents", {}), 413, "quota_exceeded")
    assert error["message"].startswith("The storage quota of 1 MB is used up")
    first, second = error["message"].index("/files/"), error["message"].index("/conversations/")
    assert first < second
    assert "tables" not in error["message"]
    details = error["details"]
    assert details["limit_bytes"] == MEGABYTE
    assert details["used_bytes"] == sum(details["by_kind"].values()) == 1_060_001
    shown = (await owner.get("/api/v1/usage")).json()["limits"]["storage"]
    assert (shown["used_bytes"], shown["remaining_bytes"]) == (1_060_001, 0)
    assert shown["by_kind"] == details["by_kind"]


async def test_visitors_and_senders_are_refused_and_nothing_is_stored(
    owner: Client, world: World, services: Services
) -> None:
    form, webhook, visitor = (
        await create_form(owner, TEXT),
        await create_webhook(owner),
        world.anonymous(),
    )
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    answers = (
        await send(visitor, form, {"name": "Ann"}),
        await send_payload(visitor, webhook, {"order": 1}),
    )
    for answer in answers:
        error = refused(answer, 413, "quota_exceeded")
        # What the tenant stores is nobody else's business.
        assert "details" not in error
        assert "MB" not in error["message"]
    assert await list_submissions(owner, form) == []
    assert await list_payloads(owner, webhook) == []


async def test_triggers_start_no_workflow(owner: Client, services: Services) -> None:
    node = {"id": "a", "type": "transform", "config": {"output": "x"}}
    body: dict[str, Any] = {"name": "Nightly", "nodes": [node], "edges": []}
    body["trigger"] = {"cron": "* * * * *"}
    workflow = (await owner.post("/api/v1/workflows", body)).json()["data"]
    assert (await owner.post(f"/api/v1/workflows/{workflow['id']}/publish")).status_code == 200
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    due = "UPDATE workflows SET next_run_at = now() - interval '1 second' WHERE id = $1"
    await fetch_rows(services, due, workflow["id"])
    while await _is_due(services, workflow["id"]):
        await schedule.start_due(services)
    listed = await owner.get(f"/api/v1/workflows/{workflow['id']}/executions")
    assert listed.json()["data"] == []


async def test_nodes_and_events_start_no_workflow(owner: Client, services: Services) -> None:
    child = await create_published(owner, [transform("a", 1)])
    call = {"id": "call", "type": "workflow", "config": {"workflow_id": child}}
    execution_id = await start(owner, (await create_workflow(owner, [call]))["id"])
    await create_subscription(owner, action_config={"workflow_id": child})
    await create_agent(owner)
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    hand = Hand(services, owner.tenant_id)
    await hand.run_due()
    for kind in ("events.fan_out", "events.act"):
        for work in await load_work(services, owner.tenant_id, kind):
            await hand.run(work["id"])
    record = (await owner.get(f"{EXECUTIONS}/{execution_id}")).json()["data"]
    assert (record["status"], record["error"]["code"]) == ("failed", "quota_exceeded")
    (action,) = await load_work(services, owner.tenant_id, "events.act")
    assert action["state"] == "pending"
    assert action["last_error"].startswith("The storage quota of 1 MB is used up")
    listed = await owner.get(f"/api/v1/workflows/{child}/executions")
    assert listed.json()["data"] == []


async def _is_due(services: Services, workflow_id: str) -> bool:
    sql = "SELECT 1 FROM workflows WHERE id = $1 AND next_run_at < now()"
    return bool(await fetch_rows(services, sql, workflow_id))


async def test_chat_sign_in_and_deletion_still_work(
    owner: Client, world: World, services: Services, models: Any
) -> None:
    friend: Talker = await talker(world, models, client=owner)
    await set_file_bytes(services, owner.tenant_id, 2 * MEGABYTE)
    reply = await friend.say("Hello")
    assert reply["message"]
    login = {"email": owner.email, "password": PASSWORD}
    assert (await world.anonymous().post("/auth/login", login)).status_code == 200
    assert (await owner.get("/api/v1/agents")).status_code == 200
    conversation = f"/api/v1/conversations/{reply['conversation_id']}"
    assert (await owner.delete(conversation)).status_code == 204
    assert (await owner.delete(friend.path)).status_code == 204


async def test_an_accepted_request_is_answered_again(owner: Client, services: Services) -> None:
    """Its client does not know whether the first one was accepted."""
    key = {"Idempotency-Key": new_id("key")}
    body = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    first = await owner.post("/api/v1/agents", body, headers=key)
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    again = await owner.post("/api/v1/agents", body, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())


async def test_space_that_is_freed_can_be_used(owner: Client, services: Services) -> None:
    body = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    await set_file_bytes(services, owner.tenant_id, MEGABYTE)
    refused(await owner.post("/api/v1/agents", body), 413, "quota_exceeded")
    await fetch_rows(
        services, "UPDATE storage_usage SET used_bytes = 0 WHERE tenant_id = $1", owner.tenant_id
    )
    assert (await owner.post("/api/v1/agents", body)).status_code == 201

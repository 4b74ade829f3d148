"""Updating and deleting incoming webhooks, and the events of both."""

import asyncio

import pytest

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import (
    GITHUB,
    MASKED_GITHUB,
    SECRET,
    build_slug,
    create_webhook,
    send_payload,
    submit_payload,
)
from tests.automation.incoming.sql import LOCK_WAITERS, wait_for_rows
from tests.automation.subscriptions.factories import create_draft
from tests.database import fetch_rows
from tests.world import Client, World

# Update and delete


async def test_one_field_is_changed_and_the_others_stay(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, object]] = [
        ("name", "Returns"),
        ("active", False),
        ("workflow_id", None),
        ("verification", MASKED_GITHUB),
    ]
    for field, value in cases:
        with subtests.test(field=field, value=value):
            developer = await world.user()
            workflow_id = await create_draft(developer)
            webhook = await create_webhook(developer, workflow_id=workflow_id, verification=GITHUB)
            answer = await developer.put(f"{PATH}/{webhook['id']}", {field: value})
            assert answer.status_code == 200
            assert {**answer.json(), "updated_at": None} == {
                **webhook,
                field: value,
                "updated_at": None,
            }


async def test_another_workflow_must_be_one_of_the_tenant(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer, workflow_id=await create_draft(developer))
    path, other_id = f"{PATH}/{webhook['id']}", await create_draft(developer)
    for workflow_id in ("wfl_nothing", await create_draft(admin)):
        with subtests.test(workflow_id=workflow_id):
            answer = await developer.put(path, {"workflow_id": workflow_id})
            error = refused(answer, 422, "validation_error")
            assert error["details"] == {"workflow_id": "this workflow does not exist"}
    answer = await developer.put(path, {"workflow_id": other_id})
    assert (answer.status_code, answer.json()["workflow_id"]) == (200, other_id)


async def test_a_changed_slug_replaces_the_old_address(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    updated = (
        await developer.put(f"{PATH}/{webhook['id']}", {"slug": build_slug(developer)})
    ).json()
    assert updated["url"].endswith(f"/webhooks/in/{build_slug(developer)}")
    assert (await send_payload(anonymous, webhook)).status_code == 404
    assert (await send_payload(anonymous, updated)).status_code == 202


async def test_a_slug_of_another_tenant_cannot_be_used(developer: Client, admin: Client) -> None:
    webhook = await create_webhook(developer)
    other = await create_webhook(admin, slug=build_slug(admin))
    answer = await developer.put(f"{PATH}/{webhook['id']}", {"slug": other["slug"]})
    refused(answer, 409, "conflict")
    assert (await developer.get(f"{PATH}/{webhook['id']}")).json() == webhook


async def test_an_unchanged_slug_may_be_sent_back(developer: Client) -> None:
    webhook = await create_webhook(developer)
    answer = await developer.put(f"{PATH}/{webhook['id']}", webhook)
    assert answer.status_code == 200
    assert answer.json() == webhook


async def test_a_required_field_cannot_be_null(world: World, subtests: pytest.Subtests) -> None:
    for field in ("name", "slug", "active"):
        with subtests.test(field=field):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await developer.put(f"{PATH}/{webhook['id']}", {field: None})
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_deleting_deletes_the_log(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    await submit_payload(anonymous, webhook)
    answer = await developer.delete(f"{PATH}/{webhook['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in (f"{PATH}/{webhook['id']}", f"{PATH}/{webhook['id']}/events"):
        refused(await developer.get(path), 404, "incoming_webhook_not_found")
    refused(await developer.delete(f"{PATH}/{webhook['id']}"), 404, "incoming_webhook_not_found")
    sql = "SELECT 1 FROM incoming_payloads WHERE webhook_id = $1"
    assert await fetch_rows(services, sql, webhook["id"]) == []
    assert (await send_payload(anonymous, webhook)).status_code == 404


# Events


async def test_events_of_a_webhook_contain_no_secret(developer: Client) -> None:
    webhook = await create_webhook(developer, verification=GITHUB)
    path = f"{PATH}/{webhook['id']}"
    changes = {"name": "Returns", "verification": {**GITHUB, "secret": SECRET + "2"}}
    await developer.put(path, changes)
    await developer.put(path, {"name": "Returns"})
    await developer.delete(path)
    events = {}
    for action in ("created", "updated", "deleted"):
        (event,) = await list_events(developer, f"system.incoming_webhook.{action}")
        events[action] = event["data"]
    base = {"incoming_webhook_id": webhook["id"]}
    assert events == {
        "created": {**base, "name": "Orders"},
        "updated": {**base, "name": "Returns", "changed": ["name", "verification"]},
        "deleted": {**base, "name": "Returns"},
    }


async def test_deleting_deletes_the_events_with_its_payloads(
    developer: Client, anonymous: Client
) -> None:
    webhook, other = await create_webhook(developer), await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, {"order": 1})
    other_id = await submit_payload(anonymous, other, {"order": 2})
    await developer.delete(f"{PATH}/{webhook['id']}")
    assert [item["id"] for item in await list_payloads(developer, other)] == [other_id]
    assert [item["id"] for item in await list_events(developer, RECEIVED)] == [other_id]
    refused(await developer.get(f"/api/v1/event-log/{event_id}"), 404, "event_not_found")
    assert len(await list_events(developer, "system.incoming_webhook.deleted")) == 1


_INSERT_PAYLOAD = """
WITH event AS (
    INSERT INTO event_log (tenant_id, id, type, correlation_id, data)
    VALUES ($1, $2, 'system.incoming_webhook.received', 'cor_late', '{}'))
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip)
VALUES ($1, $2, $3, '{}', '{}', '')
"""


async def test_a_payload_received_during_a_delete_is_deleted(
    developer: Client, services: Services
) -> None:
    webhook, event_id = await create_webhook(developer), new_id("evt")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            _INSERT_PAYLOAD, developer.tenant_id, event_id, webhook["id"]
        )
        deletion = asyncio.create_task(developer.delete(f"{PATH}/{webhook['id']}"))
        await wait_for_rows(services, LOCK_WAITERS, "%incoming_webhooks%")
    assert (await deletion).status_code == 204
    refused(await developer.get(f"/api/v1/event-log/{event_id}"), 404, "event_not_found")

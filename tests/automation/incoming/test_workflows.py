"""Payloads start the workflow of their webhook."""

from typing import Any

import msgspec
import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import PATH, list_payloads, read_field_error
from tests.automation.incoming.factories import FORM, create_webhook, submit_payload
from tests.automation.incoming.sql import list_bodies
from tests.automation.subscriptions.factories import create_draft
from tests.automation.workflows.factories import create_published, publish, read, transform
from tests.world import Client, World

_LARGE = {"text": "x" * 200_000}
_DEEP: Any = msgspec.json.decode("[" * 64 + "]" * 64)


async def _create_workflow(client: Client) -> str:
    return await create_published(client, [transform("only", "{{ input.payload }}")])


async def _find_execution(
    client: Client, webhook: dict[str, Any], event_id: str
) -> dict[str, Any] | None:
    """Returns the execution that the payload started."""
    path = f"{PATH}/{webhook['id']}/events/{event_id}"
    execution_id = (await client.get(path)).json()["workflow_execution_id"]
    return await read(client, execution_id) if execution_id else None


async def test_a_payload_starts_the_workflow_and_its_record_names_the_execution(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer, workflow_id=await _create_workflow(developer))
    event_id = await submit_payload(anonymous, webhook, {"order": 1})
    execution = await _find_execution(developer, webhook, event_id)
    assert execution is not None
    assert execution["input"] == {"payload": {"order": 1}, "event_id": event_id}
    assert execution["trigger"] == {"type": "webhook", "id": webhook["id"]}
    assert (execution["workflow_id"], execution["started_by"]) == (webhook["workflow_id"], None)
    event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
    assert execution["correlation_id"] == event["correlation_id"]
    (payload,) = await list_payloads(developer, webhook)
    assert payload["workflow_execution_id"] == execution["id"]


_PAYLOADS: list[tuple[bytes, str, object]] = [
    (b"a=1&b=two", FORM, {"a": "1", "b": "two"}),
    (b"[1, null]", "application/json", [1, None]),
    (msgspec.json.encode(_LARGE), "application/json", _LARGE),
    (msgspec.json.encode(_DEEP), "application/json", _DEEP),
    (b'{"a":"x\\u0000y"}', "application/json", {"a": "xy"}),
    (msgspec.json.encode({**_LARGE, "a": "x\0y"}), "application/json", {**_LARGE, "a": "xy"}),
]


async def test_the_input_has_the_payload_as_it_was_decoded(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for body, content_type, payload in _PAYLOADS:
        with subtests.test(body=body, content_type=content_type, payload=payload):
            developer = await world.user()
            webhook = await create_webhook(developer, workflow_id=await _create_workflow(developer))
            event_id = await submit_payload(anonymous, webhook, body, content_type=content_type)
            execution = await _find_execution(developer, webhook, event_id)
            assert execution is not None
            assert execution["input"]["payload"] == payload


async def test_a_replay_starts_the_workflow_again(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer, workflow_id=await _create_workflow(developer))
    first = await submit_payload(anonymous, webhook, {"order": 1})
    answer = await developer.post(f"{PATH}/{webhook['id']}/events/{first}/replay")
    replay_id = answer.json()["event_id"]
    executions = [await _find_execution(developer, webhook, name) for name in (first, replay_id)]
    assert executions[0] is not None
    assert executions[1] is not None
    assert executions[0]["id"] != executions[1]["id"]
    assert executions[1]["input"] == {"payload": {"order": 1}, "event_id": replay_id}


async def test_a_workflow_that_cannot_start_loses_no_payload(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """The payload can be replayed once the workflow is published."""
    webhook = await create_webhook(developer, workflow_id=await create_draft(developer))
    event_id = await submit_payload(anonymous, webhook, {"order": 1})
    assert await _find_execution(developer, webhook, event_id) is None
    await publish(developer, webhook["workflow_id"])
    answer = await developer.post(f"{PATH}/{webhook['id']}/events/{event_id}/replay")
    assert await _find_execution(developer, webhook, answer.json()["event_id"]) is not None
    await developer.delete(f"/api/v1/workflows/{webhook['workflow_id']}")
    await submit_payload(anonymous, webhook, {"order": 2})
    assert len(await list_bodies(services, webhook)) == 3


async def test_without_a_workflow_nothing_starts(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook)
    assert await _find_execution(developer, webhook, event_id) is None


async def test_an_unknown_workflow_is_refused(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    for workflow_id in ("wfl_nothing", await create_draft(admin)):
        with subtests.test(workflow_id=workflow_id):
            body = {"name": "Orders", "workflow_id": workflow_id}
            message = await read_field_error(developer, "workflow_id", body)
            assert message == "this workflow does not exist"
    deleted_id = await create_draft(developer)
    await developer.delete(f"/api/v1/workflows/{deleted_id}")
    answer = await developer.post(PATH, {"name": "Orders", "workflow_id": deleted_id})
    refused(answer, 422, "validation_error")

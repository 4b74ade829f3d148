"""What a subscription may hold, and the secret of its own address."""

from typing import Any

from tests.asking import refused
from tests.subscriptions.making import PATH, WORKFLOW, subscribe, to_url
from tests.webhooks.receiver import Receiver
from tests.world import Client
from workers.main import WorkerProcess


async def test_filters_are_bounded_in_size(developer: Client) -> None:
    body = {**WORKFLOW, "filters": {"name": {"in": ["x" * 100] * 100}}}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"filters"}


async def test_what_a_workflow_is_given_is_bounded_in_size(developer: Client) -> None:
    config = {"workflow_id": "wfl_1", "input": {"text": "x" * 70_000}}
    answer = await developer.post(PATH, {**WORKFLOW, "action_config": config})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"action_config.input"}


async def test_the_secret_of_an_own_address_can_be_rotated(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await to_url(developer, f"{receiver.url}/200", event_type="system.test")
    answer = await developer.post(f"{PATH}/{made['id']}/rotate-secret")
    assert answer.status_code == 200, answer.text
    rotated: dict[str, Any] = answer.json()
    assert rotated["secret"] != made["secret"]
    assert {**rotated, "secret": made["secret"]} == made
    await developer.post("/api/v1/events/test", {"event_type": "system.test"})
    (got,) = await receiver.wait_for(1)
    assert "X-Service-Signature-Previous" in got.headers
    shown = await developer.get(f"{PATH}/{made['id']}")
    assert "secret" not in shown.json()


async def test_without_an_own_address_there_is_no_secret_to_rotate(developer: Client) -> None:
    made = await subscribe(developer)
    answer = await developer.post(f"{PATH}/{made['id']}/rotate-secret")
    refused(answer, 404, "webhook_not_found")

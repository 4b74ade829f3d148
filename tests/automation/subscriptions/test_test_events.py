"""POST /api/v1/events/test: test events are fanned out like real ones."""

from typing import Any

import pytest

from app.areas import AREAS
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import (
    build_nested,
    create_draft,
    create_subscription,
    create_webhook_for,
    load_deliveries,
    read_trigger_counts,
    subscribe_url,
    subscribe_webhook,
)
from tests.messaging.deliveries.receiver import Receiver
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.responses import read_field_errors
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

PATH = "/api/v1/events/test"
KIB_64 = 64 * 1024


async def _emit(client: Client, event_type: str = "agent.created", **fields: Any) -> dict[str, Any]:
    answer = await client.post(PATH, {"event_type": event_type, **fields})
    assert answer.status_code == 202, answer.text
    result: dict[str, Any] = answer.json()
    assert set(result) == {"event_id", "correlation_id", "matched"}
    return result


async def test_a_test_event_is_marked_in_the_log(developer: Client, services: Services) -> None:
    result = await _emit(developer, data={"name": "Ada", "n": [1, None, {"ü": "🙂"}]})
    entry = (await developer.get(f"/api/v1/event-log/{result['event_id']}")).json()
    assert entry.pop("created_at")
    assert entry.pop("actor")["id"] == developer.user_id
    assert entry == {
        "id": result["event_id"],
        "type": "agent.created",
        "correlation_id": result["correlation_id"],
        "parent_id": None,
        "data": {"name": "Ada", "n": [1, None, {"ü": "🙂"}]},
        "test": True,
    }


async def test_other_events_are_not_marked(developer: Client) -> None:
    await create_subscription(developer)
    entry, _ = (await developer.get("/api/v1/event-log")).json()["data"]
    assert "test" not in entry


async def test_the_default_data_is_the_types_example(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for event_type in AREAS.event_types:
        with subtests.test(event_type=event_type):
            result = await _emit(developer, event_type)
            (row,) = await load_events(services, developer.tenant_id, event_type)
            assert (row["id"], row["test"]) == (result["event_id"], True)
            assert row["data"] == AREAS.event_types[event_type].example()


async def test_data_may_be_empty_and_null_is_the_example(
    developer: Client, services: Services
) -> None:
    await _emit(developer, data={})
    await _emit(developer, data=None)
    events = await load_events(services, developer.tenant_id)
    assert [row["data"] for row in events] == [{}, AREAS.event_types["agent.created"].example()]


async def test_a_test_event_has_the_correlation_id_of_its_request(developer: Client) -> None:
    chain = new_id("cor")
    answer = await developer.post(
        PATH, {"event_type": "system.test"}, headers={"X-Correlation-ID": chain}
    )
    assert answer.json()["correlation_id"] == chain
    trace = await developer.get(f"/api/v1/event-log/trace/{chain}")
    assert [entry["type"] for entry in trace.json()["data"]] == ["system.test"]


async def test_matched_counts_active_subscriptions_whose_filters_match(
    developer: Client, admin: Client, receiver: Receiver
) -> None:
    await create_subscription(developer, filters={"name": "Ada"})
    await create_subscription(developer, filters={"name": {"exists": True}})
    await create_subscription(developer, filters={"name": "Eve"})
    await create_subscription(developer, active=False)
    await create_subscription(developer, event_type="agent.deleted")
    await create_subscription(admin)
    await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    assert (await _emit(developer, data={"name": "Ada"}))["matched"] == 2
    assert (await _emit(developer, data={}))["matched"] == 0
    assert (await _emit(developer, "agent.updated"))["matched"] == 0


async def test_matched_equals_the_triggered_subscriptions(
    developer: Client, services: Services
) -> None:
    subscriptions = [
        await create_subscription(developer, filters={"name": name}) for name in ("Ada", "Eve")
    ]
    result = await _emit(developer, data={"name": "Ada"})
    await wait_until_idle(services, developer.tenant_id)
    counts = await read_trigger_counts(developer, subscriptions)
    assert (result["matched"], counts) == (1, [1, 0])


async def test_subscriptions_and_webhooks_get_a_request_marked_as_a_test(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    await subscribe_url(developer, f"{receiver.url}/200/own")
    await create_webhook_for(developer, f"{receiver.url}/200/hook", "agent.created")
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200/named", "system.test")
    await subscribe_webhook(developer, webhook_id)
    result = await _emit(developer, data={"name": "Ada"})
    await wait_until_idle(services, developer.tenant_id)
    assert {request.path for request in receiver.requests} == {
        "/200/own",
        "/200/hook",
        "/200/named",
    }
    for request in receiver.requests:
        assert (request.json["id"], request.json["data"]) == (result["event_id"], {"name": "Ada"})
        assert request.json["correlation_id"] == result["correlation_id"]
        assert request.headers["X-Service-Test"] == "true"


async def test_a_test_event_triggers_actions(developer: Client, services: Services) -> None:
    subscription = await create_subscription(developer)
    result = await _emit(developer)
    await wait_until_idle(services, developer.tenant_id)
    (action,) = await load_work(services, developer.tenant_id, "events.act")
    assert (action["ref_id"], action["cause_event_id"]) == (subscription["id"], result["event_id"])
    (dead,) = await load_events(services, developer.tenant_id, "system.work.dead")
    assert (dead["parent_id"], dead["test"]) == (result["event_id"], False)


async def test_a_test_that_could_not_be_delivered_waits_for_its_next_attempt(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/500")
    await _emit(developer)
    await wait_until_idle(services, developer.tenant_id)
    path = f"/api/v1/event-subscriptions/{subscription['id']}/executions"
    (delivery,) = (await developer.get(path)).json()["data"]
    assert (delivery["status"], delivery["attempt"]) == ("pending", 1)
    assert delivery["next_attempt_at"] is not None
    assert delivery["finished_at"] is None
    (work,) = await load_work(services, developer.tenant_id, "webhooks.deliver")
    assert work["state"] == "pending"


async def test_a_test_event_without_subscriptions_adds_no_work(
    developer: Client, services: Services
) -> None:
    await _emit(developer)
    assert await load_work(services, developer.tenant_id) == []
    assert await load_deliveries(services, developer) == []


async def test_another_tenant_does_not_get_the_test_event(
    developer: Client, admin: Client, receiver: Receiver, services: Services
) -> None:
    await subscribe_url(admin, f"{receiver.url}/200")
    result = await _emit(developer)
    await wait_until_idle(services, developer.tenant_id)
    assert receiver.requests == []
    path = f"/api/v1/event-log/{result['event_id']}"
    refused(await admin.get(path), 404, "event_not_found")


async def test_super_admin_emits_in_the_tenant_that_is_named(
    super_admin: Client, developer: Client, services: Services
) -> None:
    headers = {"X-Tenant-ID": developer.tenant_id}
    answer = await super_admin.post(PATH, {"event_type": "system.test"}, headers=headers)
    assert answer.status_code == 202
    (row,) = await load_events(services, developer.tenant_id)
    assert row["id"] == answer.json()["event_id"]


async def test_the_same_idempotency_key_emits_once(developer: Client, services: Services) -> None:
    key = {"Idempotency-Key": new_id("key")}
    body = {"event_type": "system.test"}
    answers = [await developer.post(PATH, body, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await load_events(services, developer.tenant_id)) == 1


# Validation


_INVALID_BODIES: list[tuple[Any, str]] = [
    ({}, "event_type"),
    ({"event_type": None}, "event_type"),
    ({"event_type": 7}, "event_type"),
    ({"event_type": ""}, "event_type"),
    ({"event_type": "agent.exploded"}, "event_type"),
    ({"event_type": "Agent.Created"}, "event_type"),
    ({"event_type": "x" * 101}, "event_type"),
    ({"event_type": "system.test", "data": []}, "data"),
    ({"event_type": "system.test", "data": "text"}, "data"),
    ({"event_type": "system.test", "data": 7}, "data"),
    ([], "body"),
]


async def test_a_wrong_field_is_named_and_nothing_is_emitted(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            assert set(read_field_errors(await developer.post(PATH, body))) == {field}
    assert await load_events(services, developer.tenant_id) == []


async def test_data_may_be_nested_thirty_two_deep(world: World, subtests: pytest.Subtests) -> None:
    for levels, status in [(31, 202), (33, 422), (500, 422)]:
        with subtests.test(levels=levels):
            developer = await world.user()
            body = {"event_type": "system.test", "data": build_nested(levels)}
            answer = await developer.post(PATH, body)
            assert answer.status_code == status
            if status == 422:
                assert set(read_field_errors(answer)) == {"data"}


async def test_data_nested_too_deeply_to_decode_is_refused(developer: Client) -> None:
    deep = b'{"event_type": "system.test", "data": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001
    answer = await developer("POST", PATH, content=deep)
    assert answer.status_code == 422


async def test_data_may_be_sixty_four_kibibytes(developer: Client) -> None:
    length = KIB_64 - len('{"a":""}')
    largest = {"event_type": "system.test", "data": {"a": "x" * length}}
    assert (await developer.post(PATH, largest)).status_code == 202
    too_large = {"event_type": "system.test", "data": {"a": "x" * (length + 1)}}
    assert set(read_field_errors(await developer.post(PATH, too_large))) == {"data"}


_UNUSUAL_DATA: list[dict[str, Any]] = [
    {"n": 2**63},
    {"n": -(2**70)},
    {"n": 5e-324},
    {"text": "\u2028\u202e\x7f\x01"},
    {"": ""},
    {"a.b": 1},
    {"x" * 1000: 1},
]


async def test_unusual_data_is_delivered_unchanged(
    world: World, receiver: Receiver, services: Services, subtests: pytest.Subtests
) -> None:
    for data in _UNUSUAL_DATA:
        with subtests.test(data=data):
            developer = await world.user()
            receiver.reset()
            await subscribe_url(developer, f"{receiver.url}/200")
            await _emit(developer, data=data)
            await wait_until_idle(services, developer.tenant_id)
            (request,) = receiver.requests
            assert request.json["data"] == data
            assert (await load_events(services, developer.tenant_id, "agent.created"))[0][
                "data"
            ] == data


async def test_a_large_number_is_delivered_unchanged(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200", filters={"n": 1e22})
    assert (await _emit(developer, data={"n": 1e22}))["matched"] == 1
    await wait_until_idle(services, developer.tenant_id)
    assert [float(request.json["data"]["n"]) for request in receiver.requests] == [1e22]
    assert await read_trigger_counts(developer, [subscription]) == [1]


async def test_a_role_without_permission_gets_403(world: World, subtests: pytest.Subtests) -> None:
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            error = refused(
                await (await world.user(role)).post(PATH, {"event_type": "system.test"}),
                403,
                "forbidden",
            )
            assert error["details"] == {"required": "events:write", "your_role": role}


async def test_an_input_that_its_templates_make_too_large_ends_the_action(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_draft(developer)
    for template in ("{{ event.data }}", "Note: {{ event.data.note }}"):
        config = {"workflow_id": workflow_id, "input": {"notes": [template] * 20}}
        await create_subscription(developer, action_config=config)
    await _emit(developer, data={"note": "x" * 60_000})
    await wait_until_idle(services, developer.tenant_id)
    actions = await load_work(services, developer.tenant_id, "events.act")
    reason = "notes.17: the result is larger than 1 MiB"
    assert [(row["state"], row["last_error"]) for row in actions] == [("dead", reason)] * 2

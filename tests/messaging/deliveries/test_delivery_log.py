"""/api/v1/webhooks/:id/executions: the list of deliveries, and one in full."""

from functools import partial

import pytest

from app.domain.platform.events import service as events
from app.domain.platform.events.events import SystemTest
from tests.assertions import refused, wait_until
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.sender import EVENT, CreateSender, Sender
from tests.messaging.webhooks.factories import DELIVERY_KEYS, PATH
from tests.world import World

ATTEMPT_KEYS = {
    "attempt",
    "url",
    "status",
    "response_code",
    "response_time_ms",
    "response_body",
    "error",
    "created_at",
}


async def _deliver_events(
    sender: Sender, receiver: Receiver, count: int = 1
) -> tuple[str, list[str]]:
    """Creates a webhook with so many deliveries; returns its id and those of the events."""
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    event_ids = await sender.emit_events(count)
    await sender.wait_until_finished(webhook_id, count)
    return webhook_id, event_ids


async def _deliver_with_each_status(sender: Sender, receiver: Receiver) -> dict[str, str]:
    """Returns the ids of a webhook, and of an event for each status of its delivery."""
    receiver.scripts["mixed"] = [200, 410, 500]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/mixed")
    ids = {"webhook": webhook_id}
    for status in ("delivered", "failed", "pending"):
        await sender.update_webhook(webhook_id, active=True)
        (ids[status],) = await sender.emit_events()
        is_attempted = partial(
            sender.count_deliveries, webhook_id, f"attempt = 1 AND event_id = '{ids[status]}'"
        )
        await wait_until(is_attempted)
    return ids


# The list


async def test_the_list_has_the_flat_envelope(sender: Sender, receiver: Receiver) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    answer = await sender.client.get(f"{PATH}/{webhook_id}/executions")
    assert set(answer.json()) == {"data", "total", "page", "per_page"}
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [1, 1, 20]
    assert set(answer.json()["data"][0]) == DELIVERY_KEYS


async def test_no_delivery_is_an_empty_list(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    answer = await sender.client.get(f"{PATH}/{webhook_id}/executions")
    assert answer.json() == {"data": [], "total": 0, "page": 1, "per_page": 20}


async def test_an_entry_names_its_event(sender: Sender, receiver: Receiver) -> None:
    webhook_id, (event_id,) = await _deliver_events(sender, receiver)
    (entry,) = await sender.list_deliveries(webhook_id)
    assert entry["id"].startswith("dlv_")
    assert (entry["event_id"], entry["event_type"]) == (event_id, EVENT)
    assert (entry["status"], entry["response_code"], entry["attempt"]) == ("delivered", 200, 1)
    assert isinstance(entry["response_time_ms"], int)
    event = (await sender.client.get(f"/api/v1/event-log/{event_id}")).json()
    assert entry["correlation_id"] == event["correlation_id"]
    assert event["created_at"] <= entry["created_at"] <= entry["finished_at"]


async def test_a_delivery_before_its_first_attempt_is_pending(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/first")
    await sender.emit_events()
    await receiver.wait_for(1)
    (entry,) = await sender.list_deliveries(webhook_id)
    assert (entry["status"], entry["attempt"]) == ("pending", 0)
    assert [entry[name] for name in ("response_code", "response_time_ms", "error")] == [None] * 3
    delivery = await sender.read_delivery(webhook_id, entry["id"])
    assert delivery["attempts"] == []


async def test_the_newest_come_first_and_pages_hold_each_once(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    event_ids = []
    for number in range(1, 6):
        event_ids += await sender.emit_events()
        await sender.wait_until_finished(webhook_id, number)
    pages = [
        [
            entry["event_id"]
            for entry in await sender.list_deliveries(webhook_id, page=page, per_page=2)
        ]
        for page in (1, 2, 3, 4)
    ]
    assert pages == [event_ids[:2:-1], event_ids[2:0:-1], event_ids[:1], []]


async def test_the_total_counts_all_pages(sender: Sender, receiver: Receiver) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver, 5)
    params = {"page": 2, "per_page": 2}
    answer = await sender.client.get(f"{PATH}/{webhook_id}/executions", params=params)
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [5, 2, 2]


async def test_the_list_can_be_filtered_by_status(sender: Sender, receiver: Receiver) -> None:
    ids = await _deliver_with_each_status(sender, receiver)
    for status in ("delivered", "failed", "pending"):
        deliveries = await sender.list_deliveries(ids["webhook"], status=status)
        assert [(delivery["event_id"], delivery["status"]) for delivery in deliveries] == [
            (ids[status], status)
        ]


async def test_the_total_counts_what_the_filters_match(sender: Sender, receiver: Receiver) -> None:
    ids = await _deliver_with_each_status(sender, receiver)
    path = f"{PATH}/{ids['webhook']}/executions"
    assert (await sender.client.get(path, params={"status": "failed"})).json()["total"] == 1


_TIME_FILTERS: list[tuple[dict[str, str], list[int]]] = [
    ({"from": "2030-05-01T12:00:00Z"}, [2, 1]),
    ({"from": "2030-05-01T12:00:00.000001Z"}, [2]),
    ({"to": "2030-05-01T12:00:00Z"}, [1, 0]),
    ({"from": "2030-05-01T14:00:00+02:00", "to": "2030-05-01T12:00:00"}, [1]),
    ({"from": "2030-05-02", "to": "2030-05-03"}, []),
    ({"from": "2030-05-01T13:00:00Z", "to": "2030-05-01T11:00:00Z"}, []),
    ({"from": "2030-05-01T12:00:00Z", "status": "failed"}, []),
]


async def test_the_list_can_be_filtered_by_time(
    create_sender: CreateSender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for params, expected in _TIME_FILTERS:
        with subtests.test(params=params):
            sender = await create_sender()
            receiver.reset()
            webhook_id, event_ids = await _deliver_events(sender, receiver, 3)
            for hour, event_id in zip((11, 12, 13), event_ids, strict=True):
                await sender.run_sql(
                    "UPDATE deliveries SET created_at = $2::text::timestamptz WHERE event_id = $1",
                    event_id,
                    f"2030-05-01 {hour}:00:00+00",
                )
            deliveries = await sender.list_deliveries(webhook_id, **params)
            assert [delivery["event_id"] for delivery in deliveries] == [
                event_ids[index] for index in expected
            ]


_INVALID_PARAMETERS: list[tuple[str, str]] = [
    ("page", "0"),
    ("page", "-1"),
    ("page", "x"),
    ("page", "99999999999999999999"),
    ("per_page", "0"),
    ("per_page", "101"),
    ("per_page", ""),
    ("status", "done"),
    ("status", "DELIVERED"),
    ("status", ""),
    ("from", "yesterday"),
    ("from", "2030-02-30"),
    ("to", ""),
    ("to", "0001-01-01T00:00:00+14:00"),
]


async def test_a_wrong_parameter_is_named(
    sender: Sender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    for name, value in _INVALID_PARAMETERS:
        with subtests.test(name=name, value=value):
            answer = await sender.client.get(
                f"{PATH}/{webhook_id}/executions", params={name: value}
            )
            error = refused(answer, 422, "validation_error")
            assert set(error["details"]) == {name}


# One delivery


async def test_a_full_delivery_has_the_listed_fields_and_more(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    (entry,) = await sender.list_deliveries(webhook_id)
    delivery = await sender.read_delivery(webhook_id, entry["id"])
    assert set(delivery) == DELIVERY_KEYS | {"request", "attempts"}
    assert {name: delivery[name] for name in DELIVERY_KEYS} == entry
    assert set(delivery["attempts"][0]) == ATTEMPT_KEYS


async def test_the_request_is_shown_as_it_was_sent(sender: Sender, receiver: Receiver) -> None:
    headers = {"X-Team": "sales", "Authorization": "Bearer hush-hush"}
    delivery = await sender.send_event(f"{receiver.url}/200", headers=headers)
    (request,) = receiver.requests
    assert set(delivery["request"]) == {"url", "headers", "body"}
    assert delivery["request"]["url"] == f"{receiver.url}/200"
    assert delivery["request"]["body"] == request.body.decode()
    shown_headers = delivery["request"]["headers"]
    assert (shown_headers["X-Team"], shown_headers["Authorization"]) == ("sales", "********")
    for name in shown_headers.keys() - {"Authorization"}:
        assert request.headers[name] == shown_headers[name]
    assert "hush-hush" not in str(delivery)
    (secret,) = sender.secrets.values()
    assert secret not in str(delivery)


async def test_a_long_request_body_is_cut_at_16_kib(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    tenant_id = sender.client.tenant_id
    async with sender.services.db.tx(tenant_id) as tx:
        await events.emit(tx, SystemTest("ü" * 50_000), tenant_id=tenant_id)
    delivery = await sender.wait_for_attempt(webhook_id)
    sent_body = receiver.requests[0].body
    shown_body = delivery["request"]["body"].encode()
    assert len(sent_body) > 100_000
    assert sent_body.startswith(shown_body)
    assert 16 * 1024 - 1 <= len(shown_body) <= 16 * 1024


# Permissions and tenants


async def test_other_tenants_find_nothing(sender: Sender, receiver: Receiver, world: World) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    (entry,) = await sender.list_deliveries(webhook_id)
    other = await world.user("tenant_admin")
    path = f"{PATH}/{webhook_id}/executions"
    refused(await other.get(path), 404, "webhook_not_found")
    refused(await other.get(f"{path}/{entry['id']}"), 404, "webhook_not_found")
    refused(await other.post(f"{path}/{entry['id']}/redeliver"), 404, "webhook_not_found")
    assert len(receiver.requests) == 1


async def test_a_delivery_is_found_under_its_own_webhook_only(
    sender: Sender, receiver: Receiver, world: World
) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    neighbour = Sender(await world.user(), sender.services, sender.process)
    (entry,) = await sender.list_deliveries(webhook_id)
    for owner in (sender, neighbour):
        client, other_id = owner.client, await owner.create_webhook(f"{receiver.url}/200/other")
        path = f"{PATH}/{other_id}/executions/{entry['id']}"
        refused(await client.get(path), 404, "delivery_not_found")
        refused(await client.post(f"{path}/redeliver"), 404, "delivery_not_found")


async def test_an_unknown_delivery_is_404(
    create_sender: CreateSender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for delivery_id in ("dlv_nothing", "x" * 500, "dlv'%20or%201=1", "ü"):
        with subtests.test(delivery_id=delivery_id):
            sender = await create_sender()
            receiver.reset()
            webhook_id = await sender.create_webhook(f"{receiver.url}/200")
            path = f"{PATH}/{webhook_id}/executions/{delivery_id}"
            assert (await sender.client.get(path)).status_code == 404
            assert (await sender.client.post(f"{path}/redeliver")).status_code == 404


async def test_an_id_with_a_nul_character_is_refused(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    path = f"{PATH}/{webhook_id}/executions/%00"
    refused(await sender.client.get(path), 422, "validation_error")
    refused(await sender.client.post(f"{path}/redeliver"), 422, "validation_error")


async def test_an_unknown_webhook_is_404(sender: Sender) -> None:
    path = f"{PATH}/whk_nothing/executions"
    refused(await sender.client.get(path), 404, "webhook_not_found")
    refused(await sender.client.get(f"{path}/dlv_nothing"), 404, "webhook_not_found")
    refused(await sender.client.post(f"{path}/dlv_nothing/redeliver"), 404, "webhook_not_found")


async def test_a_role_without_permission_gets_403(
    create_sender: CreateSender, receiver: Receiver, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            sender = await create_sender()
            receiver.reset()
            webhook_id, _ = await _deliver_events(sender, receiver)
            (entry,) = await sender.list_deliveries(webhook_id)
            colleague = await world.user(role, sender.client.tenant_id)
            path = f"{PATH}/{webhook_id}/executions"
            refused(await colleague.get(path), 403, "forbidden")
            refused(await colleague.get(f"{path}/{entry['id']}"), 403, "forbidden")
            refused(await colleague.post(f"{path}/{entry['id']}/redeliver"), 403, "forbidden")


async def test_an_anonymous_caller_gets_401(
    sender: Sender, receiver: Receiver, world: World
) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    answer = await world.anonymous().get(f"{PATH}/{webhook_id}/executions")
    refused(answer, 401, "unauthorized")


async def test_super_admin_reads_and_redelivers_for_any_tenant(
    sender: Sender, receiver: Receiver, world: World
) -> None:
    webhook_id, _ = await _deliver_events(sender, receiver)
    (entry,) = await sender.list_deliveries(webhook_id)
    operator = Sender(await world.user("super_admin"), sender.services, sender.process)
    assert await operator.read_delivery(webhook_id, entry["id"]) == await sender.read_delivery(
        webhook_id, entry["id"]
    )
    await operator.redeliver(webhook_id, entry["id"])
    assert (await sender.wait_for_attempt(webhook_id, 2))["status"] == "delivered"


async def test_each_webhook_has_its_own_delivery_of_an_event(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_ids = [
        await sender.create_webhook(f"{receiver.url}/200/{name}") for name in ("a", "b", "c")
    ]
    (event_id,) = await sender.emit_events()
    for webhook_id in webhook_ids:
        await sender.wait_until_finished(webhook_id)
        (entry,) = await sender.list_deliveries(webhook_id)
        assert entry["event_id"] == event_id
    assert {request.json["id"] for request in receiver.requests} == {event_id}
    assert len(receiver.requests) == 3

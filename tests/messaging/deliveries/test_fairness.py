"""Hanging endpoints and long backlogs do not delay other endpoints or tenants."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from app.domain.messaging.deliveries import api, requests
from app.domain.messaging.deliveries.area import COURIER as WEBHOOKS
from app.domain.messaging.deliveries.queries import DELIVER
from app.domain.platform.events import service as events
from app.domain.platform.events.service import emit_dead
from app.jobs import background
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.ledger import WorkRow
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.lengths import rounds
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.sender import EVENT, Sender
from tests.messaging.webhooks.factories import PATH
from tests.world import World
from workers import lane_scanner
from workers.courier import Courier
from workers.main import WorkerProcess
from workers.runner import Runner


@pytest.fixture
async def neighbour(world: World, services: Services, courier: WorkerProcess) -> Sender:
    """A sender of another tenant."""
    return Sender(await world.user(), services, courier)


async def _create_hanging_webhook(
    sender: Sender, receiver: Receiver, name: str, count: int = 20
) -> str:
    """Creates a hanging endpoint with the most concurrent requests, and more deliveries due."""
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/{name}")
    await sender.emit_events(count)
    await receiver.wait_for(WEBHOOKS.per_lane, f"/slow/{name}")
    return webhook_id


# Other endpoints and tenants


async def test_an_endpoint_that_hangs_holds_up_no_other_of_its_tenant_or_another(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    hanging_id = await _create_hanging_webhook(sender, receiver, "one", 30)
    for other in (sender, neighbour):
        other_id = await other.create_webhook(f"{receiver.url}/200")
        await other.emit_events(20)
        await other.wait_until_finished(other_id, 20)
    assert await sender.count_deliveries(hanging_id, "status = 'pending'") == 50


async def test_a_long_backlog_does_not_hold_up_a_retry(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    receiver.scripts["retried"] = [500, 200]
    other_id = await neighbour.create_webhook(f"{receiver.url}/script/retried")
    await neighbour.emit_events()
    await neighbour.wait_for_attempt(other_id)
    hanging_id = await _create_hanging_webhook(sender, receiver, "backlog", rounds(40, 300))
    await sender.run_sql(
        "UPDATE work SET run_at = run_at - interval '1 day' WHERE lane = $1", hanging_id
    )
    await neighbour.advance_schedule(other_id, 61)
    assert (await neighbour.wait_for_attempt(other_id, 2))["status"] == "delivered"


async def test_many_hanging_endpoints_of_a_tenant_leave_capacity_for_others(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    count = rounds(WEBHOOKS.per_tenant // WEBHOOKS.per_lane + 1, 50)
    events_per_webhook = WEBHOOKS.per_lane
    urls = [f"{receiver.url}/slow/many-{number}" for number in range(count)]
    webhook_ids = [await sender.create_webhook(url) for url in urls]
    await sender.emit_events(events_per_webhook)
    await receiver.wait_for(WEBHOOKS.per_tenant)
    other_id = await neighbour.create_webhook(f"{receiver.url}/200")
    await neighbour.emit_events(20)
    await neighbour.wait_until_finished(other_id, 20)
    assert sum(receiver.max_concurrent.values()) == WEBHOOKS.per_tenant
    receiver.may_respond.set()
    for webhook_id in webhook_ids:
        await sender.wait_until_finished(webhook_id, events_per_webhook)


_LOCK_WORK = "SELECT 1 FROM work WHERE lane = $1 FOR UPDATE"


async def test_an_outcome_that_waits_for_a_lock_delays_no_other(
    sender: Sender, neighbour: Sender, receiver: Receiver, services: Services
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/locked")
    await sender.emit_events()
    await receiver.wait_for(1, "/slow/locked")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(_LOCK_WORK, webhook_id)
        receiver.may_respond.set()
        other_id = await neighbour.create_webhook(f"{receiver.url}/200")
        await neighbour.emit_events()
        await neighbour.wait_until_finished(other_id)
        assert await sender.count_deliveries(webhook_id, "status = 'pending'") == 1
    await sender.wait_until_finished(webhook_id)
    assert await sender.count_deliveries(webhook_id, "status = 'delivered'") == 1
    assert len(receiver.requests_to("/slow/locked")) == 1


# One endpoint


async def test_concurrent_requests_are_limited_and_an_endpoint_that_recovers_gets_each_event_once(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _create_hanging_webhook(sender, receiver, "few", 35)
    sender.wake_courier()
    other_id = await sender.create_webhook(f"{receiver.url}/200")
    await sender.emit_events(5)
    await sender.wait_until_finished(other_id, 5)
    assert receiver.max_concurrent["few"] == WEBHOOKS.per_lane
    receiver.may_respond.set()
    await sender.wait_until_finished(webhook_id, 40)
    assert receiver.max_concurrent["few"] == WEBHOOKS.per_lane
    assert await sender.count_deliveries(webhook_id, "status = 'delivered' AND attempt = 1") == 40
    counts = Counter(request.json["id"] for request in receiver.requests_to("/slow/few"))
    assert set(counts.values()) == {1}
    assert len(counts) == 40


@pytest.fixture
def no_scans(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The courier scans for work only when it is woken."""
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    sender.wake_courier()
    yield
    monkeypatch.undo()
    sender.wake_courier()


async def test_a_burst_to_one_endpoint_does_not_wait_for_a_scan(
    sender: Sender, receiver: Receiver, no_scans: None
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    await sender.emit_events(40)
    await sender.wait_until_finished(webhook_id, 40)
    assert len(receiver.requests) == 40


async def _redeliver_all_to(sender: Sender, receiver: Receiver, path: str, count: int) -> str:
    """Delivers events to a webhook, moves it to a path, and redelivers all of them."""
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    await sender.emit_events(count)
    await sender.wait_until_finished(webhook_id, count)
    await sender.update_webhook(webhook_id, url=receiver.url + path)
    for entry in await sender.list_deliveries(webhook_id, per_page=100):
        await sender.redeliver(webhook_id, entry["id"])
    return webhook_id


async def test_redeliveries_have_the_same_limit(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    webhook_id = await _redeliver_all_to(sender, receiver, "/slow/redelivered", 15)
    other_id = await neighbour.create_webhook(f"{receiver.url}/200/other")
    await neighbour.emit_events(5)
    await neighbour.wait_until_finished(other_id, 5)
    await receiver.wait_for(WEBHOOKS.per_lane, "/slow/redelivered")
    assert receiver.max_concurrent["redelivered"] == WEBHOOKS.per_lane
    receiver.may_respond.set()
    await sender.wait_until_finished(webhook_id, 15)


# An update changes `xmin` and `ctid`, a lock changes `xmax`.
_VERSIONS = """
SELECT array_agg((id, ctid, xmin, xmax)::text ORDER BY id) FROM work
WHERE lane = $1 AND state = 'pending'
"""


async def test_deliveries_beyond_the_limits_are_not_touched(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    webhook_id = await _redeliver_all_to(sender, receiver, "/slow/untouched", 15)
    await receiver.wait_for(WEBHOOKS.per_lane, "/slow/untouched")
    before = await sender.fetch_value(_VERSIONS, webhook_id)
    assert len(before) == 15 - WEBHOOKS.per_lane
    # The courier scans for the deliveries of others meanwhile.
    other_id = await neighbour.create_webhook(f"{receiver.url}/200/other")
    for count in (5, 10):
        await neighbour.emit_events(5)
        sender.wake_courier()
        await neighbour.wait_until_finished(other_id, count)
    assert await sender.fetch_value(_VERSIONS, webhook_id) == before
    receiver.may_respond.set()
    await sender.wait_until_finished(webhook_id, 15)


async def test_test_events_to_a_hanging_endpoint_do_not_hold_up_others(
    sender: Sender, neighbour: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/tried")
    path, body = f"{PATH}/{webhook_id}/test", {"event_type": EVENT}
    tasks = [asyncio.create_task(sender.client.post(path, body)) for _ in range(15)]
    await receiver.wait_for(WEBHOOKS.per_lane, "/slow/tried")
    other_id = await neighbour.create_webhook(f"{receiver.url}/200")
    await neighbour.emit_events(5)
    await neighbour.wait_until_finished(other_id, 5)
    assert receiver.max_concurrent["tried"] == WEBHOOKS.per_lane
    receiver.may_respond.set()
    answers = await asyncio.gather(*tasks)
    assert {answer.json()["status"] for answer in answers} == {"delivered"}


# Encoding the body


async def test_a_body_is_encoded_once_for_all_endpoints(
    sender: Sender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    encode_body = requests.encode_body

    def encode_and_count(row: Row) -> bytes:
        counts[row["event_id"]] += 1
        return encode_body(row)

    monkeypatch.setattr(api, "encode_body", encode_and_count)
    monkeypatch.setattr(requests, "encode_body", encode_and_count)
    for number in range(12):
        await sender.create_webhook(f"{receiver.url}/200/{number}")
    (event_id,) = await sender.emit_events()
    await receiver.wait_for(12)
    # The fan-out encodes it, and a concurrent scan of the courier may do so again.
    assert 1 <= counts[event_id] <= 2
    assert len({request.body for request in receiver.requests}) == 1


async def test_requests_of_one_event_share_one_body(sender: Sender, receiver: Receiver) -> None:
    tenant_id = sender.client.tenant_id
    webhook_ids = [await sender.create_webhook(f"{receiver.url}/200/{n}") for n in range(12)]
    tx = sender.services.db.begin(tenant_id)
    try:
        event = await events.emit_test(tx, EVENT, {}, tenant_id=tenant_id, is_routed=False)
        ids = {webhook_id: new_id("dlv") for webhook_id in webhook_ids}
        deliveries = await api.create(tx, tenant_id, event, ids, max_attempts=7)
        by_id = await requests.load(tx, [delivery.delivery_id for delivery in deliveries])
    finally:
        await tx.rollback()
    assert len(by_id) == 12
    assert len({id(request.body) for request in by_id.values()}) == 1


# Stopping the courier

_LEASE = """
UPDATE work SET state = 'leased', attempt = 1, lease_token = 'lea_' || id,
                lease_until = now() + interval '1 hour'
WHERE lane = $1
RETURNING id, tenant_id, kind, ref_id, attempt, max_attempts, lease_token, correlation_id,
          cause_event_id, lane
"""


async def _lease_deliveries(sender: Sender, webhook_id: str, count: int) -> list[WorkRow]:
    """Creates deliveries and returns their leases, which no worker has."""
    tenant_id = sender.client.tenant_id
    async with sender.services.db.tx(tenant_id) as tx:
        for _ in range(count):
            event = await events.emit_test(tx, EVENT, {}, tenant_id=tenant_id, is_routed=False)
            ids = {webhook_id: new_id("dlv")}
            await api.create(tx, tenant_id, event, ids, max_attempts=7)
        return [WorkRow(**row) for row in await (await tx.raw()).fetch(_LEASE, webhook_id)]


async def test_a_stopping_courier_returns_its_leases_without_an_attempt(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/stopped")
    rows = await _lease_deliveries(sender, webhook_id, 25)
    runner = Runner(sender.services, on_any_dead=emit_dead)
    stopping_courier = Courier(sender.services, runner, DELIVER.name, WEBHOOKS)
    await stopping_courier._start_rows(rows[:10], {})
    await receiver.wait_for(10)
    stop = asyncio.create_task(runner.drain(0.1))
    await until(lambda: not runner.accepting)
    await stopping_courier._start_rows(rows[10:], {})
    await stop
    # The end of the process waits for this too.
    await background.drain()
    sql = "SELECT count(*) FROM work WHERE lease_token = 'lea_' || id AND lane = $1"
    assert await sender.fetch_value(sql, webhook_id) == 0
    receiver.may_respond.set()
    await sender.wait_until_finished(webhook_id, 25)
    assert await sender.count_deliveries(webhook_id, "status = 'delivered' AND attempt = 1") == 25
    sql = "SELECT array_agg(DISTINCT attempt) FROM work WHERE lane = $1"
    assert await sender.fetch_value(sql, webhook_id) == [1]


async def test_claimed_rows_do_not_exceed_the_limit_of_their_tenant(
    sender: Sender, receiver: Receiver
) -> None:
    """A fan-out may reserve the tenant's slots while a scan waits for Postgres."""
    webhook_ids = [await sender.create_webhook(f"{receiver.url}/200/{n}") for n in range(3)]
    rows = [
        row for webhook_id in webhook_ids for row in await _lease_deliveries(sender, webhook_id, 1)
    ]
    runner = Runner(sender.services, on_any_dead=emit_dead)
    courier, tenant_id = (
        Courier(sender.services, runner, DELIVER.name, WEBHOOKS),
        sender.client.tenant_id,
    )
    lanes = [f"lane-{number}" for number in range(WEBHOOKS.per_tenant - 1)]
    assert len(courier.reserve(tenant_id, lanes)) == WEBHOOKS.per_tenant - 1
    await courier._start_rows(rows, {})
    assert courier._tenants[tenant_id] == WEBHOOKS.per_tenant
    courier.release(tenant_id, lanes)
    for webhook_id in webhook_ids:
        await sender.wait_until_finished(webhook_id, 1)


async def test_a_tenant_gets_the_slots_that_others_free(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of a tenant is half of the free slots."""
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    runner = Runner(sender.services, on_any_dead=emit_dead)
    courier = Courier(sender.services, runner, DELIVER.name, WEBHOOKS)
    tasks: list[asyncio.Task[None]] = [asyncio.create_task(asyncio.sleep(0)) for _ in range(400)]
    courier._tasks.update(tasks)
    courier._tenants.update({"busy": 60, "other": 340})
    courier._lanes.update({f"lane-{number}": 1 for number in range(400)})
    await courier.scan()
    scans = []
    for number in range(22):
        courier._on_task_done(f"lane-{number}", "other", tasks[number])
        scans.append(courier._scan_at < time.monotonic() + 300)
    assert courier.capacity().per_tenant == 61
    assert scans == [False] * 21 + [True]


def test_the_limits_leave_capacity_for_others() -> None:
    assert WEBHOOKS.per_lane * 2 <= WEBHOOKS.per_tenant
    assert WEBHOOKS.per_tenant * 2 <= WEBHOOKS.total
    assert WEBHOOKS.total >= lane_scanner._BATCH

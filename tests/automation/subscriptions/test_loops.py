"""Chains of causes end: a loop stops after eight events, and an event records it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from app.domain.automation.subscriptions import fan_out
from app.domain.platform.events.queries import MAX_DEPTH
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import wait_until
from tests.automation.subscriptions.factories import (
    create_subscription,
    create_webhook_for,
    load_deliveries,
    read_trigger_counts,
    subscribe_url,
)
from tests.database import Row
from tests.messaging.deliveries.receiver import Receiver
from tests.peer import answering
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.factories import create_agent, create_agent_and_wait
from tests.server import Server
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

RECEIVED = "system.incoming_webhook.received"
STOPPED = "system.event.chain_stopped"


def _is_one_chain(log: list[Row]) -> bool:
    """True when each event was caused by the one before it."""
    parents = [row["parent_id"] for row in log]
    ids: list[str | None] = [row["id"] for row in log]
    has_one_id = len({row["correlation_id"] for row in log}) == 1
    return parents == [None, *ids[:-1]] and has_one_id


async def _load_chain(services: Services, client: Client, correlation_id: str) -> list[Row]:
    log = await load_events(services, client.tenant_id)
    return [row for row in log if row["correlation_id"] == correlation_id]


# Dead work whose event causes more dead work


async def _run_chain(
    client: Client, receiver: Receiver, services: Services
) -> tuple[str, list[int]]:
    """Runs a chain of events that cause each other; returns its correlation id, and how often it
    triggered the subscription to the first event and both subscriptions to the others.
    """
    subscriptions = [
        await create_subscription(client),
        await create_subscription(client, event_type="system.work.dead"),
        await subscribe_url(client, f"{receiver.url}/200", event_type="system.work.dead"),
    ]
    chain = new_id("cor")
    await create_agent(client, **{"X-Correlation-ID": chain})
    await wait_until_idle(services, client.tenant_id)
    return chain, await read_trigger_counts(client, subscriptions)


async def test_a_chain_goes_on_for_eight_causes_and_stops_at_the_ninth(
    developer: Client, receiver: Receiver, services: Services, subtests: pytest.Subtests
) -> None:
    correlation_id, trigger_counts = await _run_chain(developer, receiver, services)
    log = await _load_chain(services, developer, correlation_id)
    assert [row["type"] for row in log] == ["agent.created", *["system.work.dead"] * 9, STOPPED]
    assert [row["depth"] for row in log] == list(range(11))
    assert _is_one_chain(log)
    assert MAX_DEPTH == 8
    with subtests.test("one event records the stop"):
        (stopped,) = [row for row in log if row["type"] == STOPPED]
        assert stopped["data"] == {
            "event_id": log[9]["id"],
            "event_type": "system.work.dead",
            "depth": 9,
            "reason": "too_long",
        }
        assert stopped["parent_id"] == log[9]["id"]
    with subtests.test("events after the limit are not fanned out"):
        await _check_fan_out(developer, receiver, services, log)
    with subtests.test("the trigger count excludes stopped events"):
        assert trigger_counts == [1, 8, 8]
    with subtests.test("the trace shows the whole chain"):
        await _check_trace(developer, correlation_id)
    with subtests.test("the next chain is counted separately"):
        await create_agent_and_wait(services, developer)
        stops = await load_events(services, developer.tenant_id, STOPPED)
        assert len({row["correlation_id"] for row in stops}) == len(stops) == 2


async def _check_fan_out(
    client: Client, receiver: Receiver, services: Services, log: list[Row]
) -> None:
    delivered_ids = {row["id"] for row in log[1:9]}
    assert {request.json["id"] for request in receiver.requests} == delivered_ids
    assert len(receiver.requests) == 8
    actions = await load_work(services, client.tenant_id, "events.act")
    assert [row["cause_event_id"] for row in actions] == [row["id"] for row in log[:9]]
    fan_outs = await load_work(services, client.tenant_id, "events.fan_out")
    assert {row["cause_event_id"] for row in fan_outs} == {row["id"] for row in log[:10]}
    assert {row["state"] for row in fan_outs} == {"done"}


async def _check_trace(client: Client, correlation_id: str) -> None:
    answer = await client.get(f"/api/v1/event-log/trace/{correlation_id}")
    entries = answer.json()["data"]
    assert [entry["type"] for entry in entries][-1] == STOPPED
    assert len(entries) == 11
    parents = [entry["parent_id"] for entry in entries]
    assert parents == [None, *(entry["id"] for entry in entries[:-1])]


async def test_a_chain_that_begins_with_a_test_stops_as_well(
    developer: Client, services: Services
) -> None:
    await create_subscription(developer, event_type="system.work.dead")
    body = {"event_type": "system.work.dead"}
    result = (await developer.post("/api/v1/events/test", body)).json()
    await wait_until_idle(services, developer.tenant_id)
    log = await _load_chain(services, developer, result["correlation_id"])
    assert [row["type"] for row in log] == ["system.work.dead"] * 10 + [STOPPED]
    assert [row["test"] for row in log] == [True] + [False] * 10


async def test_a_short_chain_is_not_stopped(developer: Client, services: Services) -> None:
    await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    assert await load_events(services, developer.tenant_id, STOPPED) == []


async def test_a_chain_with_too_much_work_stops_with_one_event(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event causes three more, which exceeds the limit before depth eight."""
    monkeypatch.setattr(fan_out, "MAX_DERIVED_WORK", 12)
    for _ in range(3):
        await create_subscription(developer, event_type="system.work.dead")
    await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    actions = await load_work(services, developer.tenant_id, "events.act")
    assert 12 <= len(actions) < 80
    stopped = await load_events(services, developer.tenant_id, STOPPED)
    assert [row["data"]["reason"] for row in stopped] == ["too_wide"]
    await create_agent_and_wait(services, developer)
    assert len(await load_events(services, developer.tenant_id, STOPPED)) == 2


# Deliveries to our own incoming webhooks


@asynccontextmanager
async def _run_forwarder(world: World, path: str) -> AsyncIterator[str]:
    """Runs a server that forwards each request with its headers to a path of ours."""
    caller = world.anonymous()

    async def forward(request: web.Request) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        answer = await caller("POST", path, content=await request.read(), headers=headers)
        return web.Response(status=answer.status_code)

    async with answering(forward) as url:
        yield url


async def _create_incoming(client: Client) -> str:
    answer = await client.post("/api/v1/incoming-webhooks", {"name": "In"})
    slug: str = answer.json()["slug"]
    return f"/webhooks/in/{slug}"


async def _send_payload(
    client: Client, anonymous: Client, services: Services, path: str
) -> list[Row]:
    """Sends a payload to an incoming webhook; returns the events that it causes."""
    chain = new_id("cor")
    answer = await anonymous.post(path, {"n": 1}, headers={"X-Correlation-ID": chain})
    assert answer.status_code == 202, answer.text
    await wait_until_idle(services, client.tenant_id)
    return await _load_chain(services, client, chain)


async def test_a_forwarded_delivery_continues_its_chain_and_stops(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for target in ("webhook", "subscription"):
        with subtests.test(target=target):
            developer = await world.user()
            path = await _create_incoming(developer)
            async with _run_forwarder(world, path) as url:
                if target == "webhook":
                    await create_webhook_for(developer, f"{url}/", RECEIVED)
                else:
                    await subscribe_url(developer, f"{url}/", event_type=RECEIVED)
                log = await _send_payload(developer, anonymous, services, path)
            assert [row["type"] for row in log] == [RECEIVED] * 10 + [STOPPED]
            assert _is_one_chain(log)
            deliveries = await load_deliveries(services, developer)
            assert [row["event_id"] for row in deliveries] == [row["id"] for row in log[:9]]
            assert {row["status"] for row in deliveries} == {"delivered"}


async def test_a_webhook_to_our_own_incoming_webhook_stops(
    server: Server, developer: Client, anonymous: Client, services: Services
) -> None:
    path = await _create_incoming(developer)
    await create_webhook_for(developer, f"{server.url}{path}", RECEIVED)
    log = await _send_payload(developer, anonymous, services, path)
    assert [row["type"] for row in log] == [RECEIVED] * 10 + [STOPPED]
    assert _is_one_chain(log)
    assert len(await load_deliveries(services, developer)) == 9


async def test_two_addresses_that_send_to_each_other_stop(
    world: World, developer: Client, anonymous: Client, services: Services
) -> None:
    first, second = await _create_incoming(developer), await _create_incoming(developer)
    slugs = [path.rpartition("/")[2] for path in (first, second)]
    async with (
        _run_forwarder(world, first) as first_url,
        _run_forwarder(world, second) as second_url,
    ):
        incoming = (await developer.get("/api/v1/incoming-webhooks")).json()["data"]
        ids = {row["slug"]: row["id"] for row in incoming}
        for slug, url in zip(slugs, (second_url, first_url), strict=True):
            filters = {"incoming_webhook_id": ids[slug]}
            await subscribe_url(developer, f"{url}/", event_type=RECEIVED, filters=filters)
        log = await _send_payload(developer, anonymous, services, first)
    assert [row["data"].get("incoming_webhook_id") for row in log] == [
        *[ids[slugs[0]], ids[slugs[1]]] * 5,
        None,
    ]
    assert _is_one_chain(log)


async def test_a_loop_through_another_tenant_stops_and_each_sees_only_its_own(
    world: World, developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    own_path, other_path = await _create_incoming(developer), await _create_incoming(admin)
    async with (
        _run_forwarder(world, own_path) as own_url,
        _run_forwarder(world, other_path) as other_url,
    ):
        await create_webhook_for(developer, f"{other_url}/", RECEIVED)
        await create_webhook_for(admin, f"{own_url}/", RECEIVED)
        assert (await anonymous.post(own_path, {"n": 1})).status_code == 202
        await wait_until(lambda: load_events(services, admin.tenant_id, STOPPED))
        await wait_until_idle(services, developer.tenant_id)
        await wait_until_idle(services, admin.tenant_id)
    depths = [
        [row["depth"] for row in await load_events(services, client.tenant_id, RECEIVED)]
        for client in (developer, admin)
    ]
    assert depths == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    for client in (developer, admin):
        events = await load_events(services, client.tenant_id, RECEIVED)
        assert {row["parent_id"] for row in events} == {None}
        assert len({row["correlation_id"] for row in events}) == 5


async def test_an_unknown_event_id_is_ignored(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for event_id in ("evt_nothing", "", "x" * 5000, "ünï"):
        with subtests.test(event_id=event_id):
            developer = await world.user()
            row = await _receive_with_event_id(developer, anonymous, services, event_id)
            assert (row["parent_id"], row["depth"]) == (None, 0)


async def test_of_another_tenants_event_only_the_depth_is_used(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    await create_agent(admin)
    (other_event,) = await load_events(services, admin.tenant_id)
    row = await _receive_with_event_id(developer, anonymous, services, other_event["id"])
    assert (row["parent_id"], row["depth"]) == (None, 1)
    assert row["correlation_id"] != other_event["correlation_id"]


async def _receive_with_event_id(
    client: Client, anonymous: Client, services: Services, event_id: str
) -> Row:
    """Sends a payload with an event id in its headers; returns the event it causes."""
    headers = {b"X-Service-Event-Id": event_id.encode()}
    answer = await anonymous.post(await _create_incoming(client), {"n": 1}, headers=headers)
    assert answer.status_code == 202, answer.text
    (row,) = await load_events(services, client.tenant_id, RECEIVED)
    assert row["correlation_id"] == answer.headers["X-Correlation-ID"]
    return row

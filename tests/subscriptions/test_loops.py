"""Chains of causes end: what would go round for ever stops after eight, and says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from app.domain.events.service import MAX_DEPTH
from app.domain.subscriptions import fan_out
from app.kit.ids import new_id
from app.services import Services
from tests.deliveries.receiver import Receiver
from tests.events.database import Row, load_events, load_work, wait_until, wait_until_idle
from tests.events.factories import create_agent, create_agent_and_wait
from tests.peer import answering
from tests.server import Server
from tests.subscriptions.factories import (
    create_subscription,
    create_webhook_for,
    load_deliveries,
    read_subscription,
    subscribe_url,
)
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

RECEIVED = "system.incoming_webhook.received"
STOPPED = "system.event.chain_stopped"


def _is_one_chain(log: list[Row]) -> bool:
    """Each was caused by the one before it."""
    parents = [row["parent_id"] for row in log]
    ids: list[str | None] = [row["id"] for row in log]
    one_id = len({row["correlation_id"] for row in log}) == 1
    return parents == [None, *ids[:-1]] and one_id


async def _chain(services: Services, client: Client, correlation_id: str) -> list[Row]:
    log = await load_events(services, client.tenant_id)
    return [row for row in log if row["correlation_id"] == correlation_id]


# Work that dies of telling that work died


@pytest.fixture
async def tail(developer: Client, receiver: Receiver, services: Services) -> str:
    """A chain that bites its tail; gives its correlation id."""
    await create_subscription(developer, event_type="system.work.dead")
    await subscribe_url(developer, f"{receiver.url}/200", event_type="system.work.dead")
    await create_subscription(developer)
    chain = new_id("cor")
    await create_agent(developer, **{"X-Correlation-ID": chain})
    await wait_until_idle(services, developer.tenant_id)
    return chain


async def test_a_chain_goes_on_for_eight_causes_and_stops_at_the_ninth(
    developer: Client, services: Services, tail: str
) -> None:
    log = await _chain(services, developer, tail)
    assert [row["type"] for row in log] == ["agent.created", *["system.work.dead"] * 9, STOPPED]
    assert [row["depth"] for row in log] == list(range(11))
    assert _is_one_chain(log)
    assert MAX_DEPTH == 8


async def test_it_is_told_once_that_a_chain_was_stopped(
    developer: Client, services: Services, tail: str
) -> None:
    log = await _chain(services, developer, tail)
    (stopped,) = [row for row in log if row["type"] == STOPPED]
    assert stopped["data"] == {
        "event_id": log[9]["id"],
        "event_type": "system.work.dead",
        "depth": 9,
        "reason": "too_long",
    }
    assert stopped["parent_id"] == log[9]["id"]


async def test_nothing_is_done_about_what_comes_after(
    developer: Client, receiver: Receiver, services: Services, tail: str
) -> None:
    log = await _chain(services, developer, tail)
    handled = {row["id"] for row in log[1:9]}
    assert {got.json["id"] for got in receiver.requests} == handled
    assert len(receiver.requests) == 8
    acts = await load_work(services, developer.tenant_id, "events.act")
    assert [row["cause_event_id"] for row in acts] == [row["id"] for row in log[:9]]
    handed = await load_work(services, developer.tenant_id, "events.fan_out")
    assert {row["cause_event_id"] for row in handed} == {row["id"] for row in log[:10]}
    assert {row["state"] for row in handed} == {"done"}


async def test_only_what_was_done_is_counted(developer: Client, services: Services) -> None:
    made = await create_subscription(developer, event_type="system.work.dead")
    first = await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    assert (await read_subscription(developer, made["id"]))["trigger_count"] == 8
    assert (await read_subscription(developer, first["id"]))["trigger_count"] == 1


async def test_the_trace_shows_the_whole_chain(developer: Client, tail: str) -> None:
    answer = await developer.get(f"/api/v1/event-log/trace/{tail}")
    entries = answer.json()["data"]
    assert [entry["type"] for entry in entries][-1] == STOPPED
    assert len(entries) == 11
    assert [one["parent_id"] for one in entries] == [None, *(one["id"] for one in entries[:-1])]


async def test_the_next_chain_begins_anew(developer: Client, services: Services, tail: str) -> None:
    await create_agent_and_wait(services, developer)
    stopped = await load_events(services, developer.tenant_id, STOPPED)
    assert len(stopped) == 2
    assert len({row["correlation_id"] for row in stopped}) == 2


async def test_a_chain_that_begins_with_a_test_stops_as_well(
    developer: Client, services: Services
) -> None:
    await create_subscription(developer, event_type="system.work.dead")
    body = {"event_type": "system.work.dead"}
    told = (await developer.post("/api/v1/events/test", body)).json()
    await wait_until_idle(services, developer.tenant_id)
    log = await _chain(services, developer, told["correlation_id"])
    assert [row["type"] for row in log] == ["system.work.dead"] * 10 + [STOPPED]
    assert [row["test"] for row in log] == [True] + [False] * 10


async def test_a_short_chain_is_not_told_as_stopped(developer: Client, services: Services) -> None:
    await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    assert await load_events(services, developer.tenant_id, STOPPED) == []


async def test_a_chain_that_grows_wide_stops_and_that_is_told_once(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three for each one: an avalanche long before it is eight deep."""
    monkeypatch.setattr(fan_out, "MAX_DERIVED_WORK", 30)
    for _ in range(3):
        await create_subscription(developer, event_type="system.work.dead")
    await create_subscription(developer)
    await create_agent_and_wait(services, developer)
    acts = await load_work(services, developer.tenant_id, "events.act")
    assert 30 <= len(acts) < 200
    stopped = await load_events(services, developer.tenant_id, STOPPED)
    assert [row["data"]["reason"] for row in stopped] == ["too_wide"]
    await create_agent_and_wait(services, developer)
    assert len(await load_events(services, developer.tenant_id, STOPPED)) == 2


# Deliveries that come back in


@asynccontextmanager
async def _forwarder(world: World, path: str) -> AsyncIterator[str]:
    """Somebody else's server, which passes on what it gets, headers and all."""
    caller = world.anonymous()

    async def forward(request: web.Request) -> web.Response:
        kept = {name: value for name, value in request.headers.items() if name != "Host"}
        answer = await caller("POST", path, content=await request.read(), headers=kept)
        return web.Response(status=answer.status_code)

    async with answering(forward) as url:
        yield url


async def _incoming(client: Client) -> str:
    answer = await client.post("/api/v1/incoming-webhooks", {"name": "In"})
    slug: str = answer.json()["slug"]
    return f"/webhooks/in/{slug}"


async def _round(client: Client, anonymous: Client, services: Services, path: str) -> list[Row]:
    """Something comes in from outside, and then goes round; gives the chain."""
    chain = new_id("cor")
    answer = await anonymous.post(path, {"n": 1}, headers={"X-Correlation-ID": chain})
    assert answer.status_code == 202, answer.text
    await wait_until_idle(services, client.tenant_id)
    return await _chain(services, client, chain)


@pytest.mark.parametrize("way", ["webhook", "subscription"])
async def test_a_delivery_that_is_forwarded_to_us_is_of_its_chain_and_stops(
    world: World, developer: Client, anonymous: Client, services: Services, way: str
) -> None:
    path = await _incoming(developer)
    async with _forwarder(world, path) as url:
        if way == "webhook":
            await create_webhook_for(developer, f"{url}/", RECEIVED)
        else:
            await subscribe_url(developer, f"{url}/", event_type=RECEIVED)
        log = await _round(developer, anonymous, services, path)
    assert [row["type"] for row in log] == [RECEIVED] * 10 + [STOPPED]
    assert _is_one_chain(log)
    sent = await load_deliveries(services, developer)
    assert [row["event_id"] for row in sent] == [row["id"] for row in log[:9]]
    assert {row["status"] for row in sent} == {"delivered"}


async def test_a_webhook_that_leads_straight_back_to_us_stops(
    server: Server, developer: Client, anonymous: Client, services: Services
) -> None:
    path = await _incoming(developer)
    await create_webhook_for(developer, f"{server.url}{path}", RECEIVED)
    log = await _round(developer, anonymous, services, path)
    assert [row["type"] for row in log] == [RECEIVED] * 10 + [STOPPED]
    assert _is_one_chain(log)
    assert len(await load_deliveries(services, developer)) == 9


async def test_two_addresses_that_send_to_each_other_stop(
    world: World, developer: Client, anonymous: Client, services: Services
) -> None:
    first, second = await _incoming(developer), await _incoming(developer)
    slugs = [path.rpartition("/")[2] for path in (first, second)]
    async with _forwarder(world, first) as to_first, _forwarder(world, second) as to_second:
        found = (await developer.get("/api/v1/incoming-webhooks")).json()["data"]
        ids = {one["slug"]: one["id"] for one in found}
        for slug, url in zip(slugs, (to_second, to_first), strict=True):
            filters = {"incoming_webhook_id": ids[slug]}
            await subscribe_url(developer, f"{url}/", event_type=RECEIVED, filters=filters)
        log = await _round(developer, anonymous, services, first)
    assert [row["data"].get("incoming_webhook_id") for row in log] == [
        *[ids[slugs[0]], ids[slugs[1]]] * 5,
        None,
    ]
    assert _is_one_chain(log)


async def test_a_loop_through_another_tenant_stops_and_each_sees_only_its_own(
    world: World, developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    mine, theirs = await _incoming(developer), await _incoming(admin)
    async with _forwarder(world, mine) as to_me, _forwarder(world, theirs) as to_them:
        await create_webhook_for(developer, f"{to_them}/", RECEIVED)
        await create_webhook_for(admin, f"{to_me}/", RECEIVED)
        assert (await anonymous.post(mine, {"n": 1})).status_code == 202
        await wait_until(lambda: load_events(services, admin.tenant_id, STOPPED))
        await wait_until_idle(services, developer.tenant_id)
        await wait_until_idle(services, admin.tenant_id)
    depths = [
        [row["depth"] for row in await load_events(services, client.tenant_id, RECEIVED)]
        for client in (developer, admin)
    ]
    assert depths == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    for client in (developer, admin):
        found = await load_events(services, client.tenant_id, RECEIVED)
        assert {row["parent_id"] for row in found} == {None}
        assert len({row["correlation_id"] for row in found}) == 5


@pytest.mark.parametrize("known", ["evt_nothing", "", "x" * 5000, "ünï"], ids=lambda text: text[:9])
async def test_an_event_that_nobody_knows_is_not_followed(
    developer: Client, anonymous: Client, services: Services, known: str
) -> None:
    row = await _received(developer, anonymous, services, known)
    assert (row["parent_id"], row["depth"]) == (None, 0)


async def test_an_event_of_another_tenant_lends_nothing_but_its_depth(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    await create_agent(admin)
    (theirs,) = await load_events(services, admin.tenant_id)
    row = await _received(developer, anonymous, services, theirs["id"])
    assert (row["parent_id"], row["depth"]) == (None, 1)
    assert row["correlation_id"] != theirs["correlation_id"]


async def _received(client: Client, anonymous: Client, services: Services, known: str) -> Row:
    """What came in with the id of an event in its headers."""
    given = {b"X-Service-Event-Id": known.encode()}
    answer = await anonymous.post(await _incoming(client), {"n": 1}, headers=given)
    assert answer.status_code == 202, answer.text
    (row,) = await load_events(services, client.tenant_id, RECEIVED)
    assert row["correlation_id"] == answer.headers["X-Correlation-ID"]
    return row

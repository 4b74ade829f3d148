"""The log of what an incoming webhook received, and a payload that is taken once more."""

import asyncio
from typing import Any

import httpx
import pytest

from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.incoming.factories import (
    FORM,
    GITHUB,
    PATH,
    RECEIVED,
    bodies,
    events_of,
    log_of,
    opened,
    query,
    received,
    send,
)
from tests.world import Client
from workers.main import WorkerProcess


async def _replay(caller: Client, door: dict[str, Any], event_id: str) -> httpx.Response:
    return await caller.post(f"{PATH}/{door['id']}/events/{event_id}/replay")


async def _replayed(caller: Client, door: dict[str, Any], event_id: str) -> str:
    answer = await _replay(caller, door, event_id)
    assert answer.status_code == 202, answer.text
    assert set(answer.json()) == {"received", "event_id"}
    again: str = answer.json()["event_id"]
    return again


# The log


async def test_the_log_is_empty_before_anything_came(developer: Client) -> None:
    door = await opened(developer)
    answer = await developer.get(f"{PATH}/{door['id']}/events")
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_the_newest_come_first_and_each_once(developer: Client, anonymous: Client) -> None:
    door = await opened(developer)
    ids = [await received(anonymous, door, b"%d" % number) for number in range(5)]
    pages = [
        [one["id"] for one in await log_of(developer, door, page=page, per_page=2)]
        for page in (1, 2, 3, 4)
    ]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1], []]
    answer = await developer.get(f"{PATH}/{door['id']}/events", params={"page": 2, "per_page": 2})
    pagination = {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}
    assert answer.json()["pagination"] == pagination


async def test_payloads_of_one_moment_are_in_the_order_of_their_ids(
    developer: Client, anonymous: Client, services: Services
) -> None:
    door = await opened(developer)
    ids = [await received(anonymous, door, b"%d" % number) for number in range(4)]
    sql = "UPDATE incoming_payloads SET created_at = '2030-01-01' WHERE webhook_id = $1 RETURNING 1"
    await query(services, sql, door["id"])
    assert [one["id"] for one in await log_of(developer, door)] == sorted(ids, reverse=True)


async def test_each_webhook_has_a_log_of_its_own(developer: Client, anonymous: Client) -> None:
    one, other = await opened(developer), await opened(developer)
    event_id = await received(anonymous, one)
    assert [record["id"] for record in await log_of(developer, one)] == [event_id]
    assert await log_of(developer, other) == []


@pytest.mark.parametrize(("name", "value"), [("page", 0), ("per_page", 101), ("per_page", "x")])
async def test_a_page_out_of_bounds_is_named(developer: Client, name: str, value: object) -> None:
    door = await opened(developer)
    answer = await developer.get(f"{PATH}/{door['id']}/events", params={name: str(value)})
    assert set(refused(answer, 422, "validation_error")["details"]) == {name}


async def test_the_log_of_an_inactive_webhook_can_be_read(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    await received(anonymous, door)
    await developer.put(f"{PATH}/{door['id']}", {"active": False})
    assert len(await log_of(developer, door)) == 1


async def test_one_payload_can_be_read_alone(developer: Client, anonymous: Client) -> None:
    door = await opened(developer)
    event_id = await received(anonymous, door, {"order": 1})
    answer = await developer.get(f"{PATH}/{door['id']}/events/{event_id}")
    assert answer.status_code == 200
    assert [answer.json()] == await log_of(developer, door)


async def test_a_payload_is_read_only_where_it_came_in(
    developer: Client, admin: Client, anonymous: Client
) -> None:
    mine, other, theirs = [await opened(one) for one in (developer, developer, admin)]
    event_id = await received(anonymous, theirs)
    for door, sought in ((mine, event_id), (other, "evt_nothing"), (mine, "%20")):
        answer = await developer.get(f"{PATH}/{door['id']}/events/{sought}")
        refused(answer, 404, "payload_not_found")
    answer = await developer.get(f"{PATH}/{theirs['id']}/events/{event_id}")
    refused(answer, 404, "incoming_webhook_not_found")


async def test_super_admin_reads_the_log_of_any_tenant(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    await received(anonymous, door)
    assert await log_of(super_admin, door) == await log_of(developer, door)


_MANY = """
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip, created_at)
SELECT $1::text, 'evt_many_' || $2::text || n, $2::text, '{}', '{}', '', '1999-01-01'::timestamptz
FROM generate_series(1, $3::int) n
"""


async def test_of_very_many_payloads_the_total_is_an_estimate_and_says_so(
    developer: Client, admin: Client, services: Services
) -> None:
    doors = [(one, await opened(one)) for one in (developer, admin)]
    for owner, door in doors:
        await query(services, f"{_MANY} RETURNING 1", owner.tenant_id, door["id"], 8_000)
    await query(services, "ANALYZE incoming_payloads")
    owner, door = doors[0]
    answer = await owner.get(f"{PATH}/{door['id']}/events", params={"per_page": 1})
    pagination = answer.json()["pagination"]
    assert pagination["estimated"] is True
    assert 6_400 < pagination["total"] == pagination["total_pages"] < 10_000
    for _, one in doors:
        await query(services, "DELETE FROM incoming_webhooks WHERE id = $1 RETURNING 1", one["id"])


# Once more


async def test_a_replay_is_a_new_record_of_the_same_bytes(
    developer: Client, anonymous: Client, services: Services
) -> None:
    door = await opened(developer)
    first = await received(anonymous, door, b' {"a" : "x\\u0000" } ', x_shop="Kiel")
    again = await _replayed(developer, door, first)
    newer, older = await log_of(developer, door)
    assert (newer["id"], newer["replay_of"]) == (again, first)
    assert (older["id"], older["replay_of"]) == (first, None)
    for name in ("payload", "headers", "source_ip", "workflow_execution_id"):
        assert newer[name] == older[name]
    assert await bodies(services, door) == [b' {"a" : "x\\u0000" } '] * 2


async def test_a_replay_is_told_in_an_event_of_its_own(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    first = await received(anonymous, door, {"order": 1})
    again = await _replayed(developer, door, first)
    newer, older = await events_of(developer, RECEIVED)
    assert (newer["id"], older["id"]) == (again, first)
    assert newer["data"] == {**older["data"], "replay_of": first}


async def test_a_replay_of_a_replay_names_what_was_replayed(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    first = await received(anonymous, door)
    second = await _replayed(developer, door, first)
    await _replayed(developer, door, second)
    assert [one["replay_of"] for one in await log_of(developer, door)] == [second, first, None]


async def test_a_form_is_replayed_as_a_form(developer: Client, anonymous: Client) -> None:
    door = await opened(developer)
    first = await received(anonymous, door, b"a=1&b=%20", content_type=FORM)
    await _replayed(developer, door, first)
    assert [one["payload"] for one in await log_of(developer, door)] == [{"a": "1", "b": " "}] * 2


async def test_a_replay_needs_no_signature(developer: Client, anonymous: Client) -> None:
    door = await opened(developer)
    first = await received(anonymous, door)
    await developer.put(f"{PATH}/{door['id']}", {"verification": GITHUB, "active": False})
    await _replayed(developer, door, first)


async def test_a_replay_sets_everything_going_again(
    developer: Client,
    anonymous: Client,
    services: Services,
    receiver: Receiver,
    courier: WorkerProcess,
) -> None:
    hook = {"url": f"{receiver.url}/200", "events": [RECEIVED]}
    assert (await developer.post("/api/v1/webhooks", hook)).status_code == 201
    door = await opened(developer, workflow_id="wfl_1")
    first = await received(anonymous, door, {"order": 1})
    again = await _replayed(developer, door, first)
    got = await receiver.wait_for(2)
    assert {one.json["id"] for one in got} == {first, again}
    sql = "SELECT cause_event_id FROM work WHERE kind = 'events.act' AND ref_id = $1"
    assert {row["cause_event_id"] for row in await query(services, sql, door["id"])} == {
        first,
        again,
    }


async def test_the_same_key_replays_once(
    developer: Client, anonymous: Client, services: Services
) -> None:
    door = await opened(developer)
    first = await received(anonymous, door)
    path = f"{PATH}/{door['id']}/events/{first}/replay"
    answers = [await developer.post(path, headers={"idempotency-key": first}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await bodies(services, door)) == 2


async def test_an_unknown_payload_is_404(developer: Client) -> None:
    door = await opened(developer)
    refused(await _replay(developer, door, "evt_nothing"), 404, "payload_not_found")


async def test_an_event_that_is_no_payload_is_404(developer: Client) -> None:
    door = await opened(developer)
    (created,) = await events_of(developer, "system.incoming_webhook.created")
    refused(await _replay(developer, door, created["id"]), 404, "payload_not_found")


async def test_a_payload_of_another_webhook_is_404(
    developer: Client, anonymous: Client, services: Services
) -> None:
    one, other = await opened(developer), await opened(developer)
    event_id = await received(anonymous, one)
    refused(await _replay(developer, other, event_id), 404, "payload_not_found")
    assert await bodies(services, other) == []


async def test_another_tenants_payload_is_404_at_ones_own_webhook_and_at_theirs(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    mine, theirs = await opened(developer), await opened(admin)
    event_id = await received(anonymous, theirs)
    refused(await _replay(developer, mine, event_id), 404, "payload_not_found")
    refused(await _replay(developer, theirs, event_id), 404, "incoming_webhook_not_found")
    assert len(await bodies(services, theirs)) == 1


async def test_what_super_admin_replays_stays_with_its_tenant(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    again = await _replayed(super_admin, door, await received(anonymous, door))
    assert (await developer.get(f"/api/v1/event-log/{again}")).status_code == 200


async def test_nobody_replays_without_signing_in(developer: Client, anonymous: Client) -> None:
    door = await opened(developer)
    event_id = await received(anonymous, door)
    refused(await _replay(anonymous, door, event_id), 401, "unauthorized")


async def test_replays_at_once_are_all_recorded(
    developer: Client, anonymous: Client, services: Services
) -> None:
    door = await opened(developer)
    first = await received(anonymous, door, b"[1]")
    await asyncio.gather(*(_replayed(developer, door, first) for _ in range(8)))
    assert await bodies(services, door) == [b"[1]"] * 9


async def test_a_payload_that_was_refused_is_nowhere_in_the_log(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer, verification=GITHUB)
    assert (await send(anonymous, door)).status_code == 401
    assert await log_of(developer, door) == []

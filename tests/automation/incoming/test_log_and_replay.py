"""The log of received payloads, and replays."""

import asyncio
from typing import Any

import httpx
import pytest

from app.areas import AREAS
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import (
    FORM,
    GITHUB,
    create_webhook,
    send_payload,
    submit_payload,
)
from tests.automation.incoming.sql import list_bodies
from tests.automation.subscriptions.factories import create_webhook_for
from tests.database import fetch_rows, run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.world import Client, World
from workers.main import WorkerProcess


async def _request_replay(caller: Client, webhook: dict[str, Any], event_id: str) -> httpx.Response:
    return await caller.post(f"{PATH}/{webhook['id']}/events/{event_id}/replay")


async def _replay_payload(caller: Client, webhook: dict[str, Any], event_id: str) -> str:
    answer = await _request_replay(caller, webhook, event_id)
    assert answer.status_code == 202, answer.text
    assert set(answer.json()) == {"received", "event_id"}
    replay_id: str = answer.json()["event_id"]
    return replay_id


# Log


async def test_the_log_of_a_new_webhook_is_empty(developer: Client) -> None:
    webhook = await create_webhook(developer)
    answer = await developer.get(f"{PATH}/{webhook['id']}/events")
    assert answer.json() == {
        "data": [],
        "pagination": {"page": 1, "per_page": 20, "total": 0, "total_pages": 0},
    }


async def test_the_newest_payloads_come_first_and_each_once(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    ids = [await submit_payload(anonymous, webhook, b"%d" % number) for number in range(5)]
    pages = [
        [item["id"] for item in await list_payloads(developer, webhook, page=page, per_page=2)]
        for page in (1, 2, 3, 4)
    ]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1], []]
    answer = await developer.get(
        f"{PATH}/{webhook['id']}/events", params={"page": 2, "per_page": 2}
    )
    pagination = {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}
    assert answer.json()["pagination"] == pagination


async def test_payloads_of_the_same_time_are_ordered_by_id(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    ids = [await submit_payload(anonymous, webhook, b"%d" % number) for number in range(4)]
    sql = "UPDATE incoming_payloads SET created_at = '2030-01-01' WHERE webhook_id = $1"
    await run_sql(services, sql, webhook["id"])
    assert [item["id"] for item in await list_payloads(developer, webhook)] == sorted(
        ids, reverse=True
    )


async def test_each_webhook_has_a_log_of_its_own(developer: Client, anonymous: Client) -> None:
    webhook, other = await create_webhook(developer), await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook)
    assert [record["id"] for record in await list_payloads(developer, webhook)] == [event_id]
    assert await list_payloads(developer, other) == []


async def test_a_page_out_of_bounds_is_named(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, object]] = [("page", 0), ("per_page", 101), ("per_page", "x")]
    for name, value in cases:
        with subtests.test(name=name, value=value):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await developer.get(
                f"{PATH}/{webhook['id']}/events", params={name: str(value)}
            )
            assert set(refused(answer, 422, "validation_error")["details"]) == {name}


async def test_the_log_of_an_inactive_webhook_can_be_read(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    await submit_payload(anonymous, webhook)
    await developer.put(f"{PATH}/{webhook['id']}", {"active": False})
    assert len(await list_payloads(developer, webhook)) == 1


async def test_a_single_payload_can_be_read(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, {"order": 1})
    answer = await developer.get(f"{PATH}/{webhook['id']}/events/{event_id}")
    assert answer.status_code == 200
    assert [answer.json()] == await list_payloads(developer, webhook)


async def test_a_payload_is_found_only_at_its_own_webhook(
    developer: Client, admin: Client, anonymous: Client
) -> None:
    webhook, other, foreign = [
        await create_webhook(caller) for caller in (developer, developer, admin)
    ]
    other_id = await submit_payload(anonymous, other)
    foreign_id = await submit_payload(anonymous, foreign)
    for payload_id in (other_id, foreign_id, "evt_nothing", "%20"):
        answer = await developer.get(f"{PATH}/{webhook['id']}/events/{payload_id}")
        refused(answer, 404, "payload_not_found")
    answer = await developer.get(f"{PATH}/{foreign['id']}/events/{foreign_id}")
    refused(answer, 404, "incoming_webhook_not_found")


async def test_super_admin_reads_the_log_of_any_tenant(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    await submit_payload(anonymous, webhook)
    assert await list_payloads(super_admin, webhook) == await list_payloads(developer, webhook)


_INSERT_MANY = """
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip, created_at)
SELECT $1::text, 'evt_many_' || $2::text || n, $2::text, '{}', '{}', '', '1999-01-01'::timestamptz
FROM generate_series(1, $3::int) n
"""


async def test_the_total_of_very_many_payloads_is_marked_as_estimated(
    developer: Client, admin: Client, services: Services
) -> None:
    webhooks = [(caller, await create_webhook(caller)) for caller in (developer, admin)]
    for owner, webhook in webhooks:
        await run_sql(services, _INSERT_MANY, owner.tenant_id, webhook["id"], 8_000)
    await run_sql(services, "ANALYZE incoming_payloads")
    owner, webhook = webhooks[0]
    answer = await owner.get(f"{PATH}/{webhook['id']}/events", params={"per_page": 1})
    pagination = answer.json()["pagination"]
    assert pagination["estimated"] is True
    assert 6_400 < pagination["total"] == pagination["total_pages"] < 10_000
    for owner, webhook in webhooks:
        assert (await owner.delete(f"{PATH}/{webhook['id']}")).status_code == 204


# Replay


async def test_a_replay_is_a_new_record_of_the_same_bytes(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook, b' {"a" : "x\\u0000" } ', x_shop="Kiel")
    replay_id = await _replay_payload(developer, webhook, first)
    newer, older = await list_payloads(developer, webhook)
    assert (newer["id"], newer["replay_of"]) == (replay_id, first)
    assert (older["id"], older["replay_of"]) == (first, None)
    for name in ("payload", "headers", "source_ip", "workflow_execution_id"):
        assert newer[name] == older[name]
    assert await list_bodies(services, webhook) == [b' {"a" : "x\\u0000" } '] * 2


async def test_a_replay_emits_an_event_of_its_own(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook, {"order": 1})
    replay_id = await _replay_payload(developer, webhook, first)
    newer, older = await list_events(developer, RECEIVED)
    assert (newer["id"], older["id"]) == (replay_id, first)
    assert newer["data"] == {**older["data"], "replay_of": first}


async def test_a_replay_of_a_replay_names_the_replayed_payload(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook)
    second = await _replay_payload(developer, webhook, first)
    await _replay_payload(developer, webhook, second)
    assert [item["replay_of"] for item in await list_payloads(developer, webhook)] == [
        second,
        first,
        None,
    ]


async def test_a_form_is_replayed_as_a_form(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook, b"a=1&b=%20", content_type=FORM)
    await _replay_payload(developer, webhook, first)
    assert [item["payload"] for item in await list_payloads(developer, webhook)] == [
        {"a": "1", "b": " "}
    ] * 2


async def test_a_replay_needs_no_signature(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook)
    await developer.put(f"{PATH}/{webhook['id']}", {"verification": GITHUB, "active": False})
    await _replay_payload(developer, webhook, first)


async def test_a_replay_is_delivered_again(
    developer: Client, anonymous: Client, receiver: Receiver, courier: WorkerProcess
) -> None:
    await create_webhook_for(developer, f"{receiver.url}/200", RECEIVED)
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook, {"order": 1})
    replay_id = await _replay_payload(developer, webhook, first)
    deliveries = await receiver.wait_for(2)
    assert {delivery.json["id"] for delivery in deliveries} == {first, replay_id}


async def test_the_same_idempotency_key_replays_once(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook)
    path = f"{PATH}/{webhook['id']}/events/{first}/replay"
    answers = [await developer.post(path, headers={"idempotency-key": first}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await list_bodies(services, webhook)) == 2


async def test_an_unknown_payload_cannot_be_replayed(developer: Client) -> None:
    webhook = await create_webhook(developer)
    refused(await _request_replay(developer, webhook, "evt_nothing"), 404, "payload_not_found")


async def test_an_event_that_is_no_payload_cannot_be_replayed(developer: Client) -> None:
    webhook = await create_webhook(developer)
    (event,) = await list_events(developer, "system.incoming_webhook.created")
    refused(await _request_replay(developer, webhook, event["id"]), 404, "payload_not_found")


async def test_a_payload_of_another_webhook_cannot_be_replayed(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook, other = await create_webhook(developer), await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook)
    refused(await _request_replay(developer, other, event_id), 404, "payload_not_found")
    assert await list_bodies(services, other) == []


async def test_a_payload_of_another_tenant_cannot_be_replayed(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    own, foreign = await create_webhook(developer), await create_webhook(admin)
    event_id = await submit_payload(anonymous, foreign)
    refused(await _request_replay(developer, own, event_id), 404, "payload_not_found")
    refused(await _request_replay(developer, foreign, event_id), 404, "incoming_webhook_not_found")
    assert len(await list_bodies(services, foreign)) == 1


async def test_a_replay_by_super_admin_belongs_to_the_tenant(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    replay_id = await _replay_payload(
        super_admin, webhook, await submit_payload(anonymous, webhook)
    )
    assert (await developer.get(f"/api/v1/event-log/{replay_id}")).status_code == 200


async def test_a_replay_without_signing_in_is_401(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook)
    refused(await _request_replay(anonymous, webhook, event_id), 401, "unauthorized")


async def test_replays_at_once_are_all_recorded(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    first = await submit_payload(anonymous, webhook, b"[1]")
    await asyncio.gather(*(_replay_payload(developer, webhook, first) for _ in range(8)))
    assert await list_bodies(services, webhook) == [b"[1]"] * 9


async def test_a_refused_payload_is_not_in_the_log(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer, verification=GITHUB)
    assert (await send_payload(anonymous, webhook)).status_code == 401
    assert await list_payloads(developer, webhook) == []


# Retention

_MAKE_OLDER = "UPDATE {table} SET created_at = created_at - interval '91 days' WHERE id = $1"
_ADD_WORK = """
INSERT INTO work (id, kind, cause_event_id, run_at, max_attempts, correlation_id)
VALUES ($1, 'events.act', $2, now() + interval '1 day', 5, 'cor')
"""


async def test_a_payload_is_kept_until_the_work_that_it_caused_is_finished(
    developer: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(developer, webhook)
    for table in ("incoming_payloads", "event_log"):
        await run_sql(services, _MAKE_OLDER.format(table=table), event_id)
    work_id = f"wrk_{event_id}"
    await run_sql(services, _ADD_WORK, work_id, event_id)
    for state, count in (("pending", 1), ("done", 0)):
        await run_sql(services, "UPDATE work SET state = $2 WHERE id = $1", work_id, state)
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            await retention.delete_expired(await tx.raw(), AREAS.retention)
        for table in ("incoming_payloads", "event_log"):
            sql = f"SELECT id FROM {table} WHERE id = $1"
            assert len(await fetch_rows(services, sql, event_id)) == count

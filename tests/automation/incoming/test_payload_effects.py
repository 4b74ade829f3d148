"""Received payloads: headers, deliveries, rate limits and failures."""

import asyncio
from typing import Any, cast

import httpx
import msgspec
import pytest

from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import FORM, create_webhook, send_payload, submit_payload
from tests.automation.incoming.sql import LOCK_WAITERS, list_bodies, wait_for_rows
from tests.automation.subscriptions.factories import create_webhook_for, subscribe_url
from tests.database import fetch_rows
from tests.messaging.deliveries.receiver import Receiver
from tests.platform.events.database import wait_until_idle
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess

# Headers and source address


_SECRET_HEADERS: list[str] = [
    "authorization",
    "Authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "apikey",
    "api_key",
    "x-auth-token",
    "x-gitlab-token",
    "x-csrf-token",
    "x-client-secret",
    "x-session-id",
    "x-password",
    "x-amz-security-token",
]


async def test_a_header_with_a_secret_is_not_stored(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for name in _SECRET_HEADERS:
        with subtests.test(name=name):
            developer = await world.user()
            webhook = await create_webhook(developer)
            await anonymous.http.post(
                f"/webhooks/in/{webhook['slug']}",
                content=b"{}",
                headers={name: "Hunter2!", "x-shop": "Kiel", "x-signature": "of this body"},
            )
            sql = "SELECT headers::text FROM incoming_payloads WHERE webhook_id = $1"
            (row,) = await fetch_rows(services, sql, webhook["id"])
            assert "Hunter2!" not in row["headers"]
            stored = (await list_payloads(developer, webhook))[0]["headers"]
            assert (stored["x-shop"], stored["x-signature"]) == ("Kiel", "of this body")


async def test_headers_of_any_bytes_are_stored_as_text(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    answer = await send_payload(
        anonymous, webhook, x_odd=b"\xff\xfe\xc3\xbc \x7f", x_long="y" * 9000, x_empty=""
    )
    assert answer.status_code == 202
    headers = (await list_payloads(developer, webhook))[0]["headers"]
    assert headers["x-odd"] == "ÿþÃ¼ \x7f"
    assert headers["x-long"] == "y" * 4096
    assert headers["x-empty"] == ""


async def test_a_form_with_very_many_headers_can_still_be_read(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    extra_headers = [(f"x-{number}", "1") for number in range(300)]
    answer = await anonymous.http.post(
        f"/webhooks/in/{webhook['slug']}",
        content=b"a=1",
        headers=[*extra_headers, ("content-type", FORM)],
    )
    assert answer.status_code == 202
    (record,) = await list_payloads(developer, webhook)
    assert record["payload"] == {"a": "1"}
    assert len(record["headers"]) <= 100


async def test_a_forwarded_address_is_used_from_a_trusted_proxy_only(
    stores: Stores, developer: Client
) -> None:
    webhook = await create_webhook(developer)
    settings = msgspec.structs.replace(stores.settings, trusted_proxies=("10.0.0.0/8",))
    for app_settings, expected in ((stores.settings, None), (settings, "203.0.113.9")):
        app = create_app(app_settings)
        sender = Client(app)
        await submit_payload(sender, webhook, x_forwarded_for="198.51.100.7, 203.0.113.9")
        assert (await list_payloads(developer, webhook))[0]["source_ip"] == (
            expected or sender.address
        )
        await app.state.services.close()


async def test_the_source_ip_is_stored_exactly(developer: Client, world: World) -> None:
    webhook = await create_webhook(developer)
    transport = httpx.ASGITransport(
        cast("Any", world.app), raise_app_exceptions=False, client=("2001:db8:1:2:3:4:5:6", 4000)
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://parley.test") as http:
        await http.post(f"/webhooks/in/{webhook['slug']}", json={})
    (payload,) = await list_payloads(developer, webhook)
    assert payload["source_ip"] == "2001:db8:1:2:3:4:5:6"


# Deliveries and subscriptions


async def test_a_webhook_for_the_event_gets_a_delivery(
    developer: Client, anonymous: Client, receiver: Receiver, courier: WorkerProcess
) -> None:
    await create_webhook_for(developer, f"{receiver.url}/200", RECEIVED)
    event_id = await submit_payload(anonymous, await create_webhook(developer), {"order": 4711})
    (delivery,) = await receiver.wait_for(1)
    assert (delivery.json["id"], delivery.json["type"]) == (event_id, RECEIVED)
    assert delivery.json["data"]["payload"] == {"order": 4711}


async def test_a_subscription_filters_by_the_payload(
    developer: Client,
    anonymous: Client,
    services: Services,
    receiver: Receiver,
    courier: WorkerProcess,
) -> None:
    filters = {"payload.kind": "paid"}
    url = f"{receiver.url}/200"
    await subscribe_url(developer, url, event_type=RECEIVED, filters=filters)
    webhook = await create_webhook(developer)
    await submit_payload(anonymous, webhook, {"kind": "open"})
    event_id = await submit_payload(anonymous, webhook, {"kind": "paid"})
    await wait_until_idle(services, developer.tenant_id)
    assert [request.json["id"] for request in receiver.requests] == [event_id]


async def test_a_correlation_id_of_the_sender_is_stored(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, x_correlation_id="order:4711")
    event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
    assert event["correlation_id"] == "order:4711"


async def test_an_event_of_another_tenant_is_not_a_cause(
    developer: Client, admin: Client, anonymous: Client
) -> None:
    foreign_id = await submit_payload(anonymous, await create_webhook(admin))
    event_id = await submit_payload(
        anonymous, await create_webhook(developer), x_service_event_id=foreign_id
    )
    event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
    assert event["parent_id"] is None


# Rate limits, access tokens and failures


async def _create_limited_user(world: World, **limits: int) -> Client:
    return await world.user("agent_developer", await world.tenant("enterprise", limits))


async def test_all_senders_of_a_tenant_share_its_limit(world: World, services: Services) -> None:
    owner = await _create_limited_user(world, requests_per_minute=10, burst_multiplier=1)
    webhook = await create_webhook(owner)
    answers = [await send_payload(world.anonymous(), webhook) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [202] * 5 + [429]
    error = refused(answers[-1], 429, "rate_limited")
    assert (error["details"]["limit"], error["details"]["window"]) == (10, 60)
    assert int(answers[-1].headers["retry-after"]) == error["details"]["retry_after"] >= 1
    assert answers[-1].headers["x-ratelimit-remaining"] == "0"
    assert len(await list_bodies(services, webhook)) == 5
    assert (await owner.get(PATH)).status_code == 200


async def test_the_limit_of_a_tenant_does_not_affect_others(
    world: World, developer: Client, anonymous: Client
) -> None:
    owner = await _create_limited_user(world, requests_per_minute=2, burst_multiplier=1)
    webhook, other = await create_webhook(owner), await create_webhook(developer)
    assert [(await send_payload(anonymous, webhook)).status_code for _ in range(2)] == [202, 429]
    await submit_payload(anonymous, other)


async def test_an_access_token_has_no_effect(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for token in ("own", "foreign", "super", "expired", "emb_nothing"):
        with subtests.test(token=token):
            developer = await world.user()
            callers = {
                "own": developer,
                "foreign": await world.user("viewer"),
                "super": await world.user("super_admin"),
            }
            bearer = (callers[token].token if token in callers else None) or token
            webhook = await create_webhook(developer)
            headers = {"authorization": f"Bearer {bearer}", "x_tenant_id": "ten_nothing"}
            if token == "super":
                del headers["x_tenant_id"]
            event_id = await submit_payload(world.anonymous(), webhook, **headers)
            (row,) = await fetch_rows(
                services, "SELECT tenant_id FROM event_log WHERE id = $1", event_id
            )
            assert row["tenant_id"] == developer.tenant_id
            assert bearer not in str(await list_payloads(developer, webhook))


_TERMINATE_WAITERS = f"SELECT pg_terminate_backend(pid) FROM ({LOCK_WAITERS}) w"


async def test_a_transaction_that_is_killed_stores_nothing(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("LOCK TABLE incoming_payloads IN EXCLUSIVE MODE")
        request = asyncio.create_task(send_payload(anonymous, webhook, {"order": 1}))
        await wait_for_rows(services, _TERMINATE_WAITERS, "%INSERT INTO incoming_payloads%")
        answer = await request
    refused(answer, 503, "unavailable")
    assert await list_bodies(services, webhook) == []
    assert await list_events(developer, RECEIVED) == []
    await submit_payload(anonymous, webhook, {"order": 1})


async def test_a_payload_for_a_webhook_deleted_meanwhile_gets_404(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM incoming_webhooks WHERE id = $1", webhook["id"])
        request = asyncio.create_task(send_payload(anonymous, webhook))
        await wait_for_rows(services, LOCK_WAITERS, "%incoming_%")
    refused(await request, 404, "incoming_webhook_not_found")
    assert await list_events(developer, RECEIVED) == []


async def test_many_senders_at_once_are_all_stored(
    developer: Client, world: World, services: Services
) -> None:
    webhook, sender = await create_webhook(developer), world.anonymous()
    ids = await asyncio.gather(*(submit_payload(sender, webhook, b"%d" % n) for n in range(60)))
    rows = await fetch_rows(
        services, "SELECT id, body FROM incoming_payloads WHERE webhook_id = $1", webhook["id"]
    )
    assert {row["id"]: row["body"] for row in rows} == {
        event_id: b"%d" % n for n, event_id in enumerate(ids)
    }

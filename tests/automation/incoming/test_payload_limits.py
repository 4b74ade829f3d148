"""Limits of payloads: long bodies and rate limits."""

import pytest

from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.incoming import signers
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import (
    GITHUB,
    SECRET,
    create_webhook,
    send_payload,
    submit_payload,
)
from tests.platform.events.database import load_events
from tests.world import Client, World

# Expensive to decode for its size.
LONG_BODY = b"[" + b",".join([b"[]"] * 300_000) + b"]"


async def test_a_long_payload_is_listed_without_its_content(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, LONG_BODY)
    (record,) = await list_payloads(developer, webhook)
    assert (record["id"], record["payload"], record["size_bytes"]) == (
        event_id,
        None,
        len(LONG_BODY),
    )
    (event,) = await list_events(developer, RECEIVED)
    assert event["data"]["payload"] is None


async def test_a_single_payload_is_returned_whole(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, LONG_BODY)
    answer = await developer.get(f"{PATH}/{webhook['id']}/events/{event_id}")
    assert answer.status_code == 200
    assert LONG_BODY in answer.content
    assert answer.json()["size_bytes"] == len(LONG_BODY)


async def test_a_long_payload_must_be_valid_json(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [LONG_BODY[:-1], b'"' + b"\xff" * 40_000 + b'"']
    for body in cases:
        with subtests.test(body=body):
            developer = await world.user()
            webhook = await create_webhook(developer)
            error = refused(await send_payload(anonymous, webhook, body), 422, "validation_error")
            assert set(error["details"]) == {"body"}
            assert await list_payloads(developer, webhook) == []


async def test_unsigned_payloads_do_not_use_the_tenant_s_limit(world: World) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    webhook = await create_webhook(owner, verification=GITHUB)
    for _ in range(80):
        refused(await send_payload(world.anonymous(), webhook), 401, "unauthorized")
    signed = signers.github(SECRET, b"{}", signers.NOW)
    answer = await send_payload(world.anonymous(), webhook, b"{}", **signed)
    assert answer.status_code == 202, answer.text


async def test_a_rate_limit_of_senders_emits_an_event(world: World, services: Services) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    webhook = await create_webhook(owner)
    codes = [(await send_payload(world.anonymous(), webhook)).status_code for _ in range(80)]
    assert 429 in codes

    (event,) = await wait_until(
        lambda: load_events(services, owner.tenant_id, "system.rate_limit.exceeded")
    )
    assert event["data"]["user_id"] is None

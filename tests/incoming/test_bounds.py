"""What strangers may send is bounded in what it costs everybody else."""

from datetime import UTC, datetime
from typing import Any, cast

import httpx
import pytest

from app.services import Services
from tests.asking import refused
from tests.events.database import load_events, wait_until
from tests.incoming import signers
from tests.incoming.factories import (
    GITHUB,
    PATH,
    RECEIVED,
    SECRET,
    events_of,
    opened,
    received,
    send,
)
from tests.incoming.factories import log_of as payloads_of
from tests.world import Client, World

# Much to take apart for what it weighs.
LONG = b"[" + b",".join([b"[]"] * 300_000) + b"]"


async def test_a_long_payload_is_listed_without_its_content(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    event_id = await received(anonymous, door, LONG)
    (listed,) = await payloads_of(developer, door)
    assert (listed["id"], listed["payload"], listed["size_bytes"]) == (event_id, None, len(LONG))
    (event,) = await events_of(developer, RECEIVED)
    assert event["data"]["payload"] is None


async def test_a_long_payload_is_whole_in_its_own_record(
    developer: Client, anonymous: Client
) -> None:
    door = await opened(developer)
    event_id = await received(anonymous, door, LONG)
    answer = await developer.get(f"{PATH}/{door['id']}/events/{event_id}")
    assert answer.status_code == 200
    assert LONG in answer.content
    assert answer.json()["size_bytes"] == len(LONG)


@pytest.mark.parametrize("body", [LONG[:-1], b'"' + b"\xff" * 40_000 + b'"'])
async def test_a_long_payload_must_be_json_all_the_same(
    developer: Client, anonymous: Client, body: bytes
) -> None:
    door = await opened(developer)
    error = refused(await send(anonymous, door, body), 422, "validation_error")
    assert set(error["details"]) == {"body"}
    assert await payloads_of(developer, door) == []


async def test_a_payload_of_another_webhook_is_not_found(
    developer: Client, anonymous: Client
) -> None:
    door, other = await opened(developer), await opened(developer)
    event_id = await received(anonymous, door)
    answer = await developer.get(f"{PATH}/{other['id']}/events/{event_id}")
    refused(answer, 404, "payload_not_found")


async def test_what_is_not_signed_uses_up_nothing_of_the_tenant(world: World) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    door = await opened(owner, verification=GITHUB)
    for _ in range(80):
        refused(await send(world.anonymous(), door), 401, "unauthorized")
    signed = signers.github(SECRET, b"{}", signers.NOW)
    answer = await send(world.anonymous(), door, b"{}", **signed)
    assert answer.status_code == 202, answer.text


async def test_a_tenant_is_told_when_its_senders_are_refused(
    world: World, services: Services
) -> None:
    owner = await world.user("tenant_admin", await world.tenant("free"))
    door = await opened(owner)
    codes = [(await send(world.anonymous(), door)).status_code for _ in range(80)]
    assert 429 in codes

    async def told() -> Any:
        return await load_events(services, owner.tenant_id, "system.rate_limit.exceeded")

    (event,) = await wait_until(told)
    assert event["data"]["user_id"] is None


async def test_where_it_came_from_is_told_exactly(developer: Client, world: World) -> None:
    door = await opened(developer)
    transport = httpx.ASGITransport(
        cast("Any", world.app), raise_app_exceptions=False, client=("2001:db8:1:2:3:4:5:6", 4000)
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://parley.test") as http:
        await http.post(f"/webhooks/in/{door['slug']}", json={})
    (payload,) = await payloads_of(developer, door)
    assert payload["source_ip"] == "2001:db8:1:2:3:4:5:6"


async def test_headers_under_their_older_names_are_read_as_well(
    developer: Client, anonymous: Client
) -> None:
    given = {"scheme": "standard_webhooks", "secret": signers.SECRET}
    door = await opened(developer, verification=given)
    signed = signers.standard(signers.SECRET, b"{}", datetime.now(UTC))
    older = {name.lower().replace("webhook-", "svix-"): value for name, value in signed.items()}
    answer = await send(anonymous, door, b"{}", **older)
    assert answer.status_code == 202, answer.text

"""POST /webhooks/in/:slug: payload and event are stored before the response."""

import json
import re
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import FORM, create_webhook, send_payload, submit_payload
from tests.automation.incoming.sql import list_bodies
from tests.database import fetch_rows
from tests.world import Client, World

MIB = 1024 * 1024
NESTED = b"[" * 60 + b"]" * 60

# Response and stored row


async def test_a_payload_is_accepted_without_authentication(
    developer: Client, anonymous: Client
) -> None:
    answer = await send_payload(anonymous, await create_webhook(developer), {"order": 4711})
    assert answer.status_code == 202
    assert set(answer.json()) == {"received", "event_id"}
    assert answer.json()["received"] is True
    assert re.fullmatch(r"evt_[0-9a-z]{26}", answer.json()["event_id"])


async def test_row_and_event_are_stored_before_the_response(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, b' {"order" : 4711 } ')
    (row,) = await fetch_rows(services, "SELECT * FROM incoming_payloads WHERE id = $1", event_id)
    assert (row["tenant_id"], row["webhook_id"]) == (developer.tenant_id, webhook["id"])
    assert row["body"] == b' {"order" : 4711 } '
    event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
    assert event["type"] == RECEIVED
    assert event["data"] == {
        "incoming_webhook_id": webhook["id"],
        "name": "Orders",
        "size_bytes": 19,
        "payload": {"order": 4711},
        "replay_of": None,
    }


async def test_the_record_of_a_payload_has_these_fields(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_webhook(developer)
    event_id = await submit_payload(anonymous, webhook, {"order": 4711}, x_shop="Kiel")
    (record,) = await list_payloads(developer, webhook)
    headers, created_at = record.pop("headers"), record.pop("created_at")
    assert record == {
        "id": event_id,
        "payload": {"order": 4711},
        "size_bytes": 14,
        "source_ip": anonymous.address,
        "workflow_execution_id": None,
        "replay_of": None,
    }
    assert (headers["content-type"], headers["x-shop"]) == ("application/json", "Kiel")
    assert created_at.endswith("Z")


async def test_the_same_payload_twice_is_two_records(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    assert len({await submit_payload(anonymous, webhook, b"1") for _ in range(2)}) == 2
    assert await list_bodies(services, webhook) == [b"1", b"1"]


async def test_the_same_idempotency_key_stores_one_record(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    ids = {await submit_payload(anonymous, webhook, b"1", idempotency_key="k1") for _ in range(2)}
    assert len(ids) == 1
    assert await list_bodies(services, webhook) == [b"1"]
    answer = await send_payload(anonymous, webhook, b"2", idempotency_key="k1")
    refused(answer, 422, "idempotency_mismatch")


async def test_idempotency_keys_are_separate_per_sender_and_webhook(
    developer: Client, world: World, anonymous: Client
) -> None:
    webhooks = [await create_webhook(developer) for _ in range(2)]
    ids = [
        await submit_payload(anonymous, webhook, b"1", idempotency_key="k1") for webhook in webhooks
    ]
    ids.append(await submit_payload(world.anonymous(), webhooks[0], b"1", idempotency_key="k1"))
    assert len(set(ids)) == 3


# Bodies


_PAYLOADS: list[tuple[bytes, Any]] = [
    (b"{}", {}),
    (b"[]", []),
    (b'[1, "two", null, [true]]', [1, "two", None, [True]]),
    (b"null", None),
    (b"true", True),
    (b"0", 0),
    (b"-1.5e3", -1500.0),
    (b'"text"', "text"),
    (b'""', ""),
    (b"\t\r\n {} \n", {}),
    ('{"ключ": "注文 🎉"}'.encode(), {"ключ": "注文 🎉"}),
    (b'"\\ud83c\\udf89 \\u00fc"', "🎉 ü"),
    (b'{"a": "x\\u0000y", "k\\u0000": 1}', {"a": "xy", "k": 1}),
    (b'{"a": 1, "a": 2}', {"a": 2}),
    (b"123456789012345678901234567890", 123456789012345678901234567890),
    (b"1e22", 1e22),
    (b'{"": {"": []}}', {"": {"": []}}),
    (b'"\\u001b[31m\\u0007\\u2028\\ufffe"', "\x1b[31m\x07\u2028\ufffe"),
    (b'{"__proto__": {"constructor": 1}}', {"__proto__": {"constructor": 1}}),
    (NESTED, json.loads(NESTED)),
]


async def test_any_json_is_accepted(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for body, expected in _PAYLOADS:
        with subtests.test(body=body):
            developer = await world.user()
            webhook = await create_webhook(developer)
            event_id = await submit_payload(anonymous, webhook, body)
            assert await list_bodies(services, webhook) == [body]
            (record,) = await list_payloads(developer, webhook)
            event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
            assert record["payload"] == event["data"]["payload"] == expected


_INVALID_BODIES: list[bytes] = [
    b"",
    b" ",
    b"{",
    b"}",
    b"nul",
    b"{'a': 1}",
    b"[1,]",
    b'{"a": 1} {"b": 2}',
    b"NaN",
    b"\xff\xfe",
    b'"\xff"',
    b'"\\ud800"',
    b"\x00",
    b'"raw \x00 zero"',
    b"<xml/>",
    b"a=1&b=2",
    b"1e999",
    b"[" * 100 + b"]" * 100,
    b"[" * 100_000,
    b'{"a":' * 200 + b"1" + b"}" * 200,
]


async def test_invalid_json_is_refused_and_not_stored(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer)
    for body in _INVALID_BODIES:
        with subtests.test(body=body):
            error = refused(await send_payload(anonymous, webhook, body), 422, "validation_error")
            assert set(error["details"]) == {"body"}
    assert await list_bodies(services, webhook) == []
    assert await list_events(developer, RECEIVED) == []


async def test_json_is_accepted_with_any_content_type(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for media_type in ("", "text/plain", "application/octet-stream", "x", ";;;"):
        with subtests.test(media_type=media_type):
            developer = await world.user()
            webhook = await create_webhook(developer)
            await submit_payload(anonymous, webhook, b'{"a": 1}', content_type=media_type)
            assert (await list_payloads(developer, webhook))[0]["payload"] == {"a": 1}


_FORMS: list[tuple[bytes, Any]] = [
    (b"a=1&b=two+words&c=%C3%BC", {"a": "1", "b": "two words", "c": "ü"}),
    (b"", {}),
    (b"a=&b", {"a": "", "b": ""}),
    (b"a=1&a=2", {"a": "2"}),
    (b"payload=%7B%22x%22%3A1%7D", {"payload": '{"x":1}'}),
    (b"a=%FF%ED%A0%80", {"a": "\ufffd\ufffd\ufffd\ufffd"}),
    (b"a=x%00y&%00=1", {"a": "xy", "": "1"}),
]


async def test_a_form_is_stored_as_its_fields(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for body, expected in _FORMS:
        for media_type in (FORM, f"{FORM}; charset=utf-8", FORM.upper()):
            with subtests.test(body=body, media_type=media_type):
                developer = await world.user()
                webhook = await create_webhook(developer)
                event_id = await submit_payload(anonymous, webhook, body, content_type=media_type)
                assert await list_bodies(services, webhook) == [body]
                assert (await list_payloads(developer, webhook))[0]["payload"] == expected
                event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
                assert event["data"]["payload"] == expected


async def test_a_form_that_cannot_be_read_is_refused(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [b"a=\xff", b"&".join(b"a%d=1" % n for n in range(2000))]
    for body in cases:
        with subtests.test(body=body):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await send_payload(anonymous, webhook, body, content_type=FORM)
            assert set(refused(answer, 422, "validation_error")["details"]) == {"body"}
            assert await list_bodies(services, webhook) == []


# Sizes


async def test_a_payload_of_one_mebibyte_is_accepted(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    body = b'"' + b"x" * (MIB - 2) + b'"'
    event_id = await submit_payload(anonymous, webhook, body)
    assert await list_bodies(services, webhook) == [body]
    record = (await developer.get(f"{PATH}/{webhook['id']}/events/{event_id}")).json()
    assert record["payload"] == "x" * (MIB - 2)
    event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
    assert (event["data"]["size_bytes"], event["data"]["payload"]) == (MIB, None)


async def test_a_larger_payload_is_refused(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for size in (MIB + 1, 4 * MIB):
        with subtests.test(size=size):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await send_payload(anonymous, webhook, b'"' + b"x" * (size - 2) + b'"')
            refused(answer, 413, "payload_too_large")
            assert await list_bodies(services, webhook) == []


async def test_a_larger_payload_without_a_content_length_is_refused(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)

    async def stream() -> Any:
        for _ in range(17):
            yield b" " * (MIB // 16)

    answer = await anonymous.http.post(f"/webhooks/in/{webhook['slug']}", content=stream())
    refused(answer, 413, "payload_too_large")
    assert await list_bodies(services, webhook) == []


async def test_event_and_list_contain_the_payload_up_to_32_kib(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for size, included in [(32 * 1024, True), (32 * 1024 + 1, False)]:
        with subtests.test(size=size, included=included):
            developer = await world.user()
            webhook = await create_webhook(developer)
            event_id = await submit_payload(anonymous, webhook, b'"' + b"x" * (size - 2) + b'"')
            event = (await developer.get(f"/api/v1/event-log/{event_id}")).json()
            assert event["data"]["payload"] == ("x" * (size - 2) if included else None)
            (record,) = await list_payloads(developer, webhook)
            assert (record["payload"], record["size_bytes"]) == (event["data"]["payload"], size)


# Addresses


async def test_an_unknown_slug_is_404(anonymous: Client, subtests: pytest.Subtests) -> None:
    for slug in ("nothing-here", "NOTHING", "%C3%BC", "a'%20OR%201=1", "%FF"):
        with subtests.test(slug=slug):
            answer = await anonymous.http.post(f"/webhooks/in/{slug}", content=b"{}")
            refused(answer, 404, "incoming_webhook_not_found")


async def test_an_inactive_webhook_is_404_until_it_is_active_again(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer, active=False)
    refused(await send_payload(anonymous, webhook), 404, "incoming_webhook_not_found")
    assert await list_bodies(services, webhook) == []
    await developer.put(f"{PATH}/{webhook['id']}", {"active": True})
    await submit_payload(anonymous, webhook)


async def test_a_slug_matches_exactly(developer: Client, anonymous: Client) -> None:
    webhook = await create_webhook(developer)
    for slug in (
        webhook["slug"].upper(),
        webhook["slug"] + "%20",
        webhook["slug"] + "x",
        webhook["slug"][:-1],
    ):
        answer = await anonymous.http.post(f"/webhooks/in/{slug}", content=b"{}")
        assert answer.status_code == 404


async def test_another_method_is_405(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        with subtests.test(method=method):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await anonymous(method, f"/webhooks/in/{webhook['slug']}")
            refused(answer, 405, "method_not_allowed")
            assert "POST" in answer.headers["allow"]

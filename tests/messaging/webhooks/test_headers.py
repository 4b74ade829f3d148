"""Custom headers of webhooks: which are sent, refused and masked."""

from typing import Any

import pytest

from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.services import Services
from tests.assertions import refused
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.webhooks.factories import (
    BODY,
    PATH,
    create_webhook,
    list_events,
    read_delivery,
    read_webhook,
    rotate_secret,
    send_test_event,
    unseal_keys,
    update_webhook,
    write_keys,
)
from tests.platform.events.factories import create_agent
from tests.world import Client, World
from workers.main import WorkerProcess

MASK = "********"
RESERVED_NAMES = [
    "Host",
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Transfer-Encoding",
    "Connection",
    "X-Service-Signature",
    "X-Service-Signature-Previous",
    "X-Service-Timestamp",
    "X-Service-Event-Id",
    "X-Service-Event-Type",
    "X-Service-Retry-Count",
    "X-Service-Test",
    "X-Service-Anything",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-id",
    "svix-timestamp",
    "svix-signature",
]
SECRET_NAMES = [
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "X-Api-Key",
    "apikey",
    "X-Auth-Token",
    "X-Gitlab-Token",
    "X-Shared-Secret",
    "X-Password",
    "X-Credential",
    "X-Session-Id",
    "X-Auth",
    "X-Authentication",
    "X-Functions-Key",
    "Ocp-Apim-Subscription-Key",
    "X-Key",
    "X-Jwt",
    "X-Signature",
]
PLAIN_NAMES = [
    "X-Team",
    "User-Agent",
    "Accept",
    "X-Author",
    "X-Keyboard",
    "X-Monkey",
    "Idempotency-Key",
]


def _spell_in_cases(name: str) -> list[str]:
    swapped = "".join(c.upper() if i % 2 else c.lower() for i, c in enumerate(name))
    return [name, name.lower(), name.upper(), swapped]


# Sent headers


async def test_custom_headers_are_sent_with_an_event(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    expected = {"X-Team": "sales", "Authorization": "Bearer abc", "X-Empty": "", "X-Name": "Zoë"}
    await create_webhook(developer, url=f"{receiver.url}/200", headers=expected)
    await create_agent(developer)
    (request,) = await receiver.wait_for(1)
    assert {name: request.headers[name] for name in expected} == expected


async def test_a_user_agent_may_be_replaced(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    plain = await create_webhook(developer, url=f"{receiver.url}/200/plain")
    own = await create_webhook(
        developer, url=f"{receiver.url}/200/own", headers={"user-agent": "Ours/2"}
    )
    for webhook in (plain, own):
        await send_test_event(developer, webhook["id"])
    assert receiver.requests_to("/200/plain")[0].headers["User-Agent"].startswith("Parley")
    assert receiver.requests_to("/200/own")[0].headers.getall("User-Agent") == ["Ours/2"]


async def test_removed_headers_are_not_sent(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(
        developer, url=f"{receiver.url}/200", headers={"X-Team": "a", "X-Region": "b"}
    )
    await update_webhook(developer, webhook["id"], headers={"X-Region": "c"})
    await send_test_event(developer, webhook["id"])
    (request,) = await receiver.wait_for(1)
    assert "X-Team" not in request.headers
    assert request.headers["X-Region"] == "c"


# Refused headers


async def test_reserved_headers_are_refused_in_any_case(
    developer: Client, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer)
    for name in RESERVED_NAMES:
        with subtests.test(name=name):
            for spelling in _spell_in_cases(name):
                body = {"headers": {"X-Team": "a", spelling: "evil"}}
                for answer in (
                    await developer.post(PATH, {**BODY, **body}),
                    await developer.put(f"{PATH}/{webhook['id']}", body),
                ):
                    error = refused(answer, 422, "validation_error")
                    assert list(error["details"]) == [f"headers.{spelling}"]
                    assert spelling in error["message"]


BAD_NAMES = ["", " ", "X Team", "X-Team ", " X-Team", "X-Team:", "X\tTeam", "X-Té", "(X)", "X/Y"]
BAD_VALUES = [
    "a\r\nX-Service-Test: true",
    "a\nb",
    "a\rb",
    "\r\n",
    "a\x0bb",
    "a\x0cb",
    "a\x1bb",
    "a\x7fb",
    " a",
    "a ",
    "a\t",
    "a\u2028b",
    "☕",
]


async def test_an_invalid_header_name_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for name in (*BAD_NAMES, "X-A\r\nX-B", "X-A\n", "X-A: b\r\nHost"):
        with subtests.test(name=name):
            answer = await developer.post(PATH, {**BODY, "headers": {name: "a"}})
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == [f"headers.{name}"]


async def test_an_invalid_header_value_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for value in BAD_VALUES:
        with subtests.test(value=value):
            answer = await developer.post(PATH, {**BODY, "headers": {"X-Team": value}})
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == ["headers.X-Team"]


async def test_nul_is_refused(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, str]] = [{"X-Team": "a\0b"}, {"X-\0Team": "a"}]
    for headers in cases:
        with subtests.test(headers=headers):
            developer = await world.user()
            refused(
                await developer.post(PATH, {**BODY, "headers": headers}), 422, "validation_error"
            )


async def test_the_value_of_a_refused_header_is_not_repeated(developer: Client) -> None:
    headers = {"Authorization": "planted\nvalue", "Host": "planted-too"}
    answer = await developer.post(PATH, {**BODY, "headers": headers})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"headers.Authorization", "headers.Host"}
    assert "planted" not in answer.text


async def test_the_total_size_of_headers_is_limited(developer: Client) -> None:
    headers = {f"X-{number}": "a" * 1000 for number in range(9)}
    answer = await developer.post(PATH, {**BODY, "headers": headers})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"headers"}


# Headers written into the sealed keys without the API


async def test_reserved_headers_in_the_database_are_not_sent(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    spellings = [spelling for name in RESERVED_NAMES for spelling in _spell_in_cases(name)]
    forged = dict.fromkeys(spellings, "evil") | {"X-Team": "a"}
    await write_keys(
        services, developer, webhook["id"], EndpointKeys(webhook["secret"], headers=forged)
    )
    delivery = await send_test_event(developer, webhook["id"])
    (request,) = await receiver.wait_for(1)
    assert delivery["status"] == "delivered"
    assert [name for name, value in request.headers.items() if value == "evil"] == []
    assert [name for name in RESERVED_NAMES if len(request.headers.getall(name, [])) > 1] == []
    assert request.headers["X-Team"] == "a"
    assert request.json["type"] == "system.test"


async def test_multi_line_headers_in_the_database_are_not_sent(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    forged = {"X-Fine": "a"}
    for number, value in enumerate(["a\r\nX-Evil: b", "a\nb", "a\rb", "a\0b"]):
        forged |= {f"X-Team-{number}": value, f"X-A-{number}: b\r\nX-Evil: {value}": "a"}
    await write_keys(
        services, developer, webhook["id"], EndpointKeys(webhook["secret"], headers=forged)
    )
    delivery = await send_test_event(developer, webhook["id"])
    (request,) = await receiver.wait_for(1)
    assert delivery["status"] == "delivered"
    assert request.headers["X-Fine"] == "a"
    assert [name for name in request.headers if name.startswith(("X-Evil", "X-Team", "X-A-"))] == []


# Masked headers


async def test_secret_headers_are_masked_in_every_response(
    world: World, courier: WorkerProcess, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    value = "planted-header-value"
    for names in (SECRET_NAMES, ["authorization"]):
        with subtests.test(names=names):
            receiver.reset()
            developer = await world.user()
            headers = dict.fromkeys(names, value) | {"X-Team": "a"}
            masked = dict.fromkeys(names, MASK) | {"X-Team": "a"}
            webhook = await create_webhook(developer, url=f"{receiver.url}/200", headers=headers)
            updated = await update_webhook(developer, webhook["id"], description="Other")
            rotated = await rotate_secret(developer, webhook["id"])
            stored = await read_webhook(developer, webhook["id"])
            (listed_webhook,) = (await developer.get(PATH)).json()["data"]
            views = [webhook, updated, rotated, stored, listed_webhook]
            assert [view["headers"] for view in views] == [masked] * len(views)
            delivery = await send_test_event(developer, webhook["id"])
            detail = await read_delivery(developer, webhook["id"], delivery["id"])
            assert {key: detail["request"]["headers"][key] for key in masked} == masked
            log = (await developer.get("/api/v1/event-log")).text
            assert value not in str([*views, delivery, detail]) + log
            assert {name: receiver.requests[0].headers[name] for name in headers} == headers


async def test_other_headers_are_shown(developer: Client) -> None:
    headers = dict.fromkeys(PLAIN_NAMES, "plain")
    assert (await create_webhook(developer, headers=headers))["headers"] == headers


async def test_a_mask_keeps_the_stored_value(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    headers = {"Authorization": "Bearer stored", "X-Team": "a"}
    webhook = await create_webhook(developer, url=f"{receiver.url}/200", headers=headers)
    updated = await update_webhook(
        developer, webhook["id"], headers={**webhook["headers"], "X-Team": "b", "X-More": "c"}
    )
    expected = {"Authorization": "Bearer stored", "X-Team": "b", "X-More": "c"}
    assert updated["headers"] == {**expected, "Authorization": MASK}
    assert (await unseal_keys(services, developer, webhook["id"])).headers == expected
    await send_test_event(developer, webhook["id"])
    assert receiver.requests[0].headers["Authorization"] == "Bearer stored"


async def test_a_mask_for_all_headers_changes_nothing(developer: Client) -> None:
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, webhook["id"], headers=webhook["headers"])
    assert await list_events(developer, "system.webhook.updated") == []


async def test_a_mask_matches_the_name_in_any_case(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, webhook["id"], headers={"AUTHORIZATION": MASK})
    stored = (await unseal_keys(services, developer, webhook["id"])).headers
    assert stored == {"AUTHORIZATION": "Bearer stored"}


async def test_a_new_value_replaces_a_masked_one(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer old"})
    updated = await update_webhook(
        developer, webhook["id"], headers={"Authorization": "Bearer new"}
    )
    assert updated["headers"] == {"Authorization": MASK}
    stored = (await unseal_keys(services, developer, webhook["id"])).headers
    assert stored == {"Authorization": "Bearer new"}


async def test_a_masked_header_left_out_is_removed(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str] | None] = [{}, None, {"X-Team": "a"}]
    for headers in cases:
        with subtests.test(headers=headers):
            developer = await world.user()
            webhook = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
            await update_webhook(developer, webhook["id"], headers=headers)
            assert (await unseal_keys(services, developer, webhook["id"])).headers == (
                headers or {}
            )


async def test_a_mask_with_nothing_stored_is_refused(developer: Client, admin: Client) -> None:
    await create_webhook(admin, headers={"X-Api-Key": "of another tenant"})
    masked: dict[str, Any] = {"headers": {"X-Api-Key": MASK}}
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    for answer in (
        await developer.post(PATH, {**BODY, **masked}),
        await developer.put(f"{PATH}/{webhook['id']}", masked),
    ):
        error = refused(answer, 422, "validation_error")
        assert list(error["details"]) == ["headers.X-Api-Key"]


# Moves to another host


OTHER_HOSTS = ["https://elsewhere.test/hook", "https://example.com:8443/hook"]


async def test_a_masked_header_does_not_move_to_another_host(
    world: World, subtests: pytest.Subtests
) -> None:
    cases_1: list[dict[str, Any]] = [{}, {"headers": {"authorization": MASK, "X-Team": "a"}}]
    for url in OTHER_HOSTS:
        for headers in cases_1:
            with subtests.test(url=url, headers=headers):
                developer = await world.user()
                stored = {"Authorization": "Bearer stored", "X-Team": "a"}
                webhook = await create_webhook(developer, headers=stored)
                answer = await developer.put(f"{PATH}/{webhook['id']}", {"url": url, **headers})
                (error_field,) = refused(answer, 422, "validation_error")["details"]
                assert error_field.lower() == "headers.authorization"
                assert (await read_webhook(developer, webhook["id"]))["url"] == webhook["url"]


async def test_a_webhook_can_move_to_another_host_with_new_headers(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str] | None] = [
        {"Authorization": "Bearer new"},
        {"X-Team": "a"},
        {},
        None,
    ]
    for headers in cases:
        with subtests.test(headers=headers):
            developer = await world.user()
            webhook = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
            await update_webhook(developer, webhook["id"], url=OTHER_HOSTS[0], headers=headers)
            assert (await unseal_keys(services, developer, webhook["id"])).headers == (
                headers or {}
            )


async def test_a_masked_header_stays_if_only_the_path_changes(
    developer: Client, services: Services
) -> None:
    headers = {"Authorization": "Bearer stored"}
    webhook = await create_webhook(developer, headers=headers)
    await update_webhook(developer, webhook["id"], url="https://EXAMPLE.com:443/other?q=1")
    assert (await unseal_keys(services, developer, webhook["id"])).headers == headers


async def test_headers_without_secrets_move_to_another_host(developer: Client) -> None:
    webhook = await create_webhook(developer, headers={"X-Team": "a"})
    assert (await update_webhook(developer, webhook["id"], url=OTHER_HOSTS[0]))["headers"] == {
        "X-Team": "a"
    }

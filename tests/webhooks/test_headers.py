"""Headers that somebody wants sent along: what is sent, what is refused, and what is shown."""

from typing import Any

import pytest

from app.domain.deliveries.endpoint_keys import EndpointKeys
from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.events.factories import create_agent
from tests.webhooks.factories import (
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
from tests.world import Client
from workers.main import WorkerProcess

MASK = "********"
OURS = [
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
    "authorization",
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


def _cases(name: str) -> list[str]:
    swapped = "".join(c.upper() if i % 2 else c.lower() for i, c in enumerate(name))
    return [name, name.lower(), name.upper(), swapped]


# Sent


async def test_custom_headers_are_sent_with_an_event(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    wanted = {"X-Team": "sales", "Authorization": "Bearer abc", "X-Empty": "", "X-Name": "Zoë"}
    await create_webhook(developer, url=f"{receiver.url}/200", headers=wanted)
    await create_agent(developer)
    (got,) = await receiver.wait_for(1)
    assert {name: got.headers[name] for name in wanted} == wanted


async def test_a_user_agent_may_be_replaced(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    plain = await create_webhook(developer, url=f"{receiver.url}/200/plain")
    own = await create_webhook(
        developer, url=f"{receiver.url}/200/own", headers={"user-agent": "Ours/2"}
    )
    for made in (plain, own):
        await send_test_event(developer, made["id"])
    assert receiver.requests_to("/200/plain")[0].headers["User-Agent"].startswith("Parley")
    assert receiver.requests_to("/200/own")[0].headers.getall("User-Agent") == ["Ours/2"]


async def test_removed_headers_are_sent_no_more(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(
        developer, url=f"{receiver.url}/200", headers={"X-Team": "a", "X-Region": "b"}
    )
    await update_webhook(developer, made["id"], headers={"X-Region": "c"})
    await send_test_event(developer, made["id"])
    (got,) = await receiver.wait_for(1)
    assert "X-Team" not in got.headers
    assert got.headers["X-Region"] == "c"


# Refused


@pytest.mark.parametrize("name", OURS)
async def test_no_header_of_ours_is_taken_in_any_letters(developer: Client, name: str) -> None:
    made = await create_webhook(developer)
    for spelled in _cases(name):
        body = {"headers": {"X-Team": "a", spelled: "evil"}}
        for answer in (
            await developer.post(PATH, {**BODY, **body}),
            await developer.put(f"{PATH}/{made['id']}", body),
        ):
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == [f"headers.{spelled}"]
            assert spelled in error["message"]


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


@pytest.mark.parametrize("name", [*BAD_NAMES, "X-A\r\nX-B", "X-A\n", "X-A: b\r\nHost"])
async def test_what_is_no_name_is_refused(developer: Client, name: str) -> None:
    answer = await developer.post(PATH, {**BODY, "headers": {name: "a"}})
    error = refused(answer, 422, "validation_error")
    assert list(error["details"]) == [f"headers.{name}"]


@pytest.mark.parametrize("value", BAD_VALUES)
async def test_what_does_not_fit_in_a_line_is_refused(developer: Client, value: str) -> None:
    answer = await developer.post(PATH, {**BODY, "headers": {"X-Team": value}})
    error = refused(answer, 422, "validation_error")
    assert list(error["details"]) == ["headers.X-Team"]


@pytest.mark.parametrize("headers", [{"X-Team": "a\0b"}, {"X-\0Team": "a"}])
async def test_nul_is_refused(developer: Client, headers: dict[str, str]) -> None:
    refused(await developer.post(PATH, {**BODY, "headers": headers}), 422, "validation_error")


async def test_the_value_of_a_refused_header_is_not_repeated(developer: Client) -> None:
    headers = {"Authorization": "planted\nvalue", "Host": "planted-too"}
    answer = await developer.post(PATH, {**BODY, "headers": headers})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"headers.Authorization", "headers.Host"}
    assert "planted" not in answer.text


async def test_headers_are_bounded_together(developer: Client) -> None:
    headers = {f"X-{number}": "a" * 1000 for number in range(9)}
    body = {"url": "https://example.com", "events": ["system.test"], "headers": headers}
    answer = await developer.post("/api/v1/webhooks", body)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"headers"}


# Past the API: written by hand into what is sealed


@pytest.mark.parametrize("name", OURS)
async def test_a_header_of_ours_in_the_database_is_not_sent(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver, name: str
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    forged = dict.fromkeys(_cases(name), "evil") | {"X-Team": "a"}
    await write_keys(services, developer, made["id"], EndpointKeys(made["secret"], headers=forged))
    delivery = await send_test_event(developer, made["id"])
    (got,) = await receiver.wait_for(1)
    assert delivery["status"] == "delivered"
    assert "evil" not in got.headers.getall(name, [])
    assert len(got.headers.getall(name, [])) <= 1
    assert got.headers["X-Team"] == "a"
    assert got.json["type"] == "system.test"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: b", "a\nb", "a\rb", "a\0b"])
async def test_a_value_of_two_lines_in_the_database_is_not_sent(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver, value: str
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    forged = {"X-Team": value, f"X-A: b\r\nX-Evil: {value}": "a", "X-Fine": "a"}
    await write_keys(services, developer, made["id"], EndpointKeys(made["secret"], headers=forged))
    delivery = await send_test_event(developer, made["id"])
    (got,) = await receiver.wait_for(1)
    assert delivery["status"] == "delivered"
    assert got.headers["X-Fine"] == "a"
    assert not {"X-Evil", "X-Team", "X-A"} & set(got.headers)


# Shown


@pytest.mark.parametrize("name", SECRET_NAMES)
async def test_what_opens_something_is_masked_in_every_answer(
    developer: Client, courier: WorkerProcess, receiver: Receiver, name: str
) -> None:
    value = "planted-header-value"
    sent = {name: value, "X-Team": "a"}
    shown = {name: MASK, "X-Team": "a"}
    made = await create_webhook(developer, url=f"{receiver.url}/200", headers=sent)
    changed = await update_webhook(developer, made["id"], description="Other")
    renewed = await rotate_secret(developer, made["id"])
    found = await read_webhook(developer, made["id"])
    (listed,) = (await developer.get(PATH)).json()["data"]
    for one in (made, changed, renewed, found, listed):
        assert one["headers"] == shown
    delivery = await send_test_event(developer, made["id"])
    detail = await read_delivery(developer, made["id"], delivery["id"])
    assert {key: detail["request"]["headers"][key] for key in shown} == shown
    log = (await developer.get("/api/v1/event-log")).text
    assert value not in str([made, changed, renewed, found, listed, delivery, detail]) + log
    assert receiver.requests[0].headers[name] == value


@pytest.mark.parametrize("name", PLAIN_NAMES)
async def test_what_opens_nothing_is_shown(developer: Client, name: str) -> None:
    made = await create_webhook(developer, headers={name: "plain"})
    assert made["headers"] == {name: "plain"}


async def test_a_mask_sent_back_keeps_what_is_stored(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    sent = {"Authorization": "Bearer stored", "X-Team": "a"}
    made = await create_webhook(developer, url=f"{receiver.url}/200", headers=sent)
    changed = await update_webhook(
        developer, made["id"], headers={**made["headers"], "X-Team": "b", "X-More": "c"}
    )
    kept = {"Authorization": "Bearer stored", "X-Team": "b", "X-More": "c"}
    assert changed["headers"] == {**kept, "Authorization": MASK}
    assert (await unseal_keys(services, developer, made["id"])).headers == kept
    await send_test_event(developer, made["id"])
    assert receiver.requests[0].headers["Authorization"] == "Bearer stored"


async def test_a_mask_for_all_headers_changes_nothing(developer: Client) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, made["id"], headers=made["headers"])
    assert await list_events(developer, "system.webhook.updated") == []


async def test_a_mask_is_taken_whatever_the_letters_of_the_name(
    developer: Client, services: Services
) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, made["id"], headers={"AUTHORIZATION": MASK})
    kept = (await unseal_keys(services, developer, made["id"])).headers
    assert kept == {"AUTHORIZATION": "Bearer stored"}


async def test_a_new_value_replaces_a_masked_one(developer: Client, services: Services) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer old"})
    changed = await update_webhook(developer, made["id"], headers={"Authorization": "Bearer new"})
    assert changed["headers"] == {"Authorization": MASK}
    kept = (await unseal_keys(services, developer, made["id"])).headers
    assert kept == {"Authorization": "Bearer new"}


@pytest.mark.parametrize("headers", [{}, None, {"X-Team": "a"}])
async def test_a_masked_header_left_out_is_removed(
    developer: Client, services: Services, headers: dict[str, str] | None
) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, made["id"], headers=headers)
    assert (await unseal_keys(services, developer, made["id"])).headers == (headers or {})


async def test_a_mask_with_nothing_stored_is_refused(developer: Client, admin: Client) -> None:
    await create_webhook(admin, headers={"X-Api-Key": "of another tenant"})
    masked: dict[str, Any] = {"headers": {"X-Api-Key": MASK}}
    made = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    for answer in (
        await developer.post(PATH, {**BODY, **masked}),
        await developer.put(f"{PATH}/{made['id']}", masked),
    ):
        error = refused(answer, 422, "validation_error")
        assert list(error["details"]) == ["headers.X-Api-Key"]


# Another host


ELSEWHERE = ["https://elsewhere.test/hook", "https://example.com:8443/hook"]


@pytest.mark.parametrize("url", ELSEWHERE)
@pytest.mark.parametrize("headers", [{}, {"headers": {"authorization": MASK, "X-Team": "a"}}])
async def test_what_is_masked_does_not_move_to_another_host(
    developer: Client, url: str, headers: dict[str, Any]
) -> None:
    sent = {"Authorization": "Bearer stored", "X-Team": "a"}
    made = await create_webhook(developer, headers=sent)
    answer = await developer.put(f"{PATH}/{made['id']}", {"url": url, **headers})
    (named,) = refused(answer, 422, "validation_error")["details"]
    assert named.lower() == "headers.authorization"
    assert (await read_webhook(developer, made["id"]))["url"] == made["url"]


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer new"}, {"X-Team": "a"}, {}, None])
async def test_a_webhook_moves_with_headers_that_are_given_anew(
    developer: Client, services: Services, headers: dict[str, str] | None
) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer stored"})
    await update_webhook(developer, made["id"], url=ELSEWHERE[0], headers=headers)
    assert (await unseal_keys(services, developer, made["id"])).headers == (headers or {})


async def test_what_is_masked_stays_where_only_the_path_changes(
    developer: Client, services: Services
) -> None:
    sent = {"Authorization": "Bearer stored"}
    made = await create_webhook(developer, headers=sent)
    await update_webhook(developer, made["id"], url="https://EXAMPLE.com:443/other?q=1")
    assert (await unseal_keys(services, developer, made["id"])).headers == sent


async def test_headers_that_open_nothing_move_along(developer: Client) -> None:
    made = await create_webhook(developer, headers={"X-Team": "a"})
    assert (await update_webhook(developer, made["id"], url=ELSEWHERE[0]))["headers"] == {
        "X-Team": "a"
    }

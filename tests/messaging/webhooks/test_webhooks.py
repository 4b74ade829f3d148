"""/api/v1/webhooks: create and list webhooks, their secrets, and who may reach them."""

import asyncio
import base64
import re
from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import subscribe_url
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.webhooks.factories import (
    BODY,
    PATH,
    VIEW_KEYS,
    create_webhook,
    list_events,
    read_webhook,
    rotate_secret,
    send_test_event,
    update_webhook,
)
from tests.world import Client, World
from workers.main import WorkerProcess

ALL_FIELDS: dict[str, Any] = {
    "url": "https://example.com/hook?key=abc#part",
    "events": ["agent.updated", "agent.created"],
    "active": False,
    "description": "Unser Büro ☕",
    "headers": {"X-Team": "sales"},
}
ROUTES = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rotate-secret")]


def _body_for(method: str) -> dict[str, Any] | None:
    return None if method in {"GET", "DELETE"} else {}


async def _list_ids(client: Client, **params: Any) -> list[str]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [webhook["id"] for webhook in answer.json()["data"]]


# Create


async def test_a_new_webhook_has_its_defaults(developer: Client) -> None:
    webhook = await create_webhook(developer)
    assert set(webhook) == VIEW_KEYS | {"secret"}
    assert re.fullmatch(r"whk_[0-9a-z]{26}", webhook["id"])
    assert {name: webhook[name] for name in VIEW_KEYS - {"id", "created_at", "updated_at"}} == {
        **BODY,
        "active": True,
        "description": "",
        "headers": {},
        "failing_since": None,
        "disabled_reason": None,
        "previous_secret_expires_at": None,
        "secrets_updated_at": None,
    }


async def test_every_field_is_stored_unchanged(developer: Client) -> None:
    webhook = await create_webhook(developer, **ALL_FIELDS)
    stored = await read_webhook(developer, webhook["id"])
    assert {name: stored[name] for name in ALL_FIELDS} == ALL_FIELDS
    assert stored == {name: value for name, value in webhook.items() if name != "secret"}


async def test_the_secret_encodes_32_random_bytes(developer: Client) -> None:
    secrets = [(await create_webhook(developer))["secret"] for _ in range(2)]
    keys = [base64.b64decode(secret.removeprefix("whsec_"), validate=True) for secret in secrets]
    assert [secret[:6] for secret in secrets] == ["whsec_"] * 2
    assert [len(key) for key in keys] == [32, 32]
    assert keys[0] != keys[1]


async def test_a_repeated_event_type_is_stored_once(developer: Client) -> None:
    event_types = ["agent.updated", "agent.created", "agent.updated"]
    assert (await create_webhook(developer, events=event_types))["events"] == event_types[:2]


async def test_creating_ignores_read_only_fields(developer: Client) -> None:
    extra_fields = {
        "id": "whk_mine",
        "secret": "whsec_mine",
        "disabled_reason": "gone",
        "created_at": "2020-01-01T00:00:00Z",
    }
    webhook = await create_webhook(developer, **extra_fields)
    assert (
        not extra_fields.items() & {k: v for k, v in webhook.items() if isinstance(v, str)}.items()
    )
    assert await _list_ids(developer) == [webhook["id"]]


async def test_the_same_idempotency_key_creates_one_webhook(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    answers = await asyncio.gather(*(developer.post(PATH, BODY, headers=headers) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["secret"] for answer in answers}) == 1
    assert len(await _list_ids(developer)) == 1


async def test_an_idempotency_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    await developer.post(PATH, BODY, headers=headers)
    answer = await developer.post(PATH, {**BODY, "active": False}, headers=headers)
    refused(answer, 422, "idempotency_mismatch")


_INSERT_WEBHOOKS = """
INSERT INTO webhooks (tenant_id, id, url, events, keys)
SELECT $1::text, 'whk_' || md5($1 || n::text), 'https://example.com/', '{agent.created}', ''::bytea
FROM generate_series(1, $2::int) n RETURNING id
"""


async def test_a_tenant_has_at_most_500_webhooks(developer: Client, services: Services) -> None:
    rows = await run_sql(services, _INSERT_WEBHOOKS, developer.tenant_id, 499)
    await create_webhook(developer)
    refused(await developer.post(PATH, BODY), 409, "conflict")
    await developer.delete(f"{PATH}/{rows[0]['id']}")
    await create_webhook(developer)


async def test_the_address_of_a_subscription_does_not_count_as_a_webhook(
    developer: Client, services: Services
) -> None:
    await run_sql(services, _INSERT_WEBHOOKS, developer.tenant_id, 499)
    await subscribe_url(developer, "https://example.com/own")
    await create_webhook(developer)


# The secret


async def test_the_secret_is_in_no_other_response(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/echo")
    updated = await update_webhook(developer, webhook["id"], description="Other")
    await rotate_secret(developer, webhook["id"])
    delivery = await send_test_event(developer, webhook["id"])
    path = f"{PATH}/{webhook['id']}"
    paths = [
        PATH,
        path,
        f"{path}/executions",
        f"{path}/executions/{delivery['id']}",
        "/api/v1/event-log",
        f"/api/v1/event-log/trace/{delivery['correlation_id']}",
    ]
    texts = [(await developer.get(url)).text for url in paths]
    assert set(updated) == VIEW_KEYS
    for text in [str(updated), str(delivery), *texts]:
        assert webhook["id"] in text or webhook["url"] in text or delivery["id"] in text
        assert "whsec_" not in text
        assert webhook["secret"].removeprefix("whsec_") not in text


async def test_the_secret_is_sealed_in_the_database(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer planted-in-keys"})
    (row,) = await run_sql(services, "SELECT * FROM webhooks WHERE id = $1", webhook["id"])
    stored = str(dict(row)) + row["keys"].decode("latin-1")
    assert webhook["secret"].removeprefix("whsec_") not in stored
    assert "planted-in-keys" not in stored


# List


async def test_a_list_has_data_and_pagination(developer: Client) -> None:
    webhook = await create_webhook(developer)
    answer = (await developer.get(PATH)).json()
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    assert answer["data"] == [await read_webhook(developer, webhook["id"])]


async def test_the_newest_come_first_and_pages_hold_each_once(developer: Client) -> None:
    webhook_ids = [(await create_webhook(developer))["id"] for _ in range(5)]
    pages = [await _list_ids(developer, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert pages == [webhook_ids[:2:-1], webhook_ids[2:0:-1], webhook_ids[:1], []]


async def test_a_list_can_be_filtered_by_active(developer: Client) -> None:
    active_id = (await create_webhook(developer))["id"]
    inactive_id = (await create_webhook(developer, active=False))["id"]
    assert await _list_ids(developer, active="true") == [active_id]
    assert await _list_ids(developer, active="false") == [inactive_id]
    assert await _list_ids(developer) == [inactive_id, active_id]


_SORTS: list[tuple[str, list[int]]] = [
    ("url", [1, 2, 0]),
    ("-url", [0, 2, 1]),
    ("created_at", [0, 1, 2]),
    ("-created_at", [2, 1, 0]),
    ("updated_at", [0, 2, 1]),
    ("-updated_at", [1, 2, 0]),
]


async def test_a_list_can_be_sorted(world: World, subtests: pytest.Subtests) -> None:
    for sort, order in _SORTS:
        with subtests.test(sort=sort, order=order):
            developer = await world.user()
            urls = [f"https://{letter}.example.com/" for letter in "cab"]
            webhook_ids = [(await create_webhook(developer, url=url))["id"] for url in urls]
            await update_webhook(developer, webhook_ids[1], description="Later")
            assert await _list_ids(developer, sort=sort) == [webhook_ids[index] for index in order]


_INVALID_PARAMETERS: list[tuple[str, str]] = [
    ("sort", "secret"),
    ("sort", "keys"),
    ("sort", "--url"),
    ("sort", "url; drop table webhooks"),
    ("sort", "x" * 65),
    ("active", "perhaps"),
    ("page", "0"),
    ("page", "x"),
    ("per_page", "0"),
    ("per_page", "101"),
]


async def test_a_wrong_parameter_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    for name, value in _INVALID_PARAMETERS:
        with subtests.test(name=name, value=value):
            error = refused(
                await developer.get(PATH, params={name: value}), 422, "validation_error"
            )
            assert set(error["details"]) == {name}


# Permissions and tenants


async def test_the_webhook_of_another_tenant_is_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    for method, rest in ROUTES:
        with subtests.test(method=method, rest=rest):
            developer = await world.user()
            admin = await world.user("tenant_admin")
            webhook = await create_webhook(admin)
            body = _body_for(method)
            answer = await developer(method, f"{PATH}/{webhook['id']}{rest}", json=body)
            refused(answer, 404, "webhook_not_found")
            assert await _list_ids(developer) == []
            assert (await read_webhook(admin, webhook["id"]))["updated_at"] == webhook["updated_at"]


async def test_an_unknown_id_is_not_found(developer: Client, subtests: pytest.Subtests) -> None:
    for webhook_id in ("whk_0", "x" * 5000, "é", "' OR 1=1 --", "sub_1"):
        for method, rest in ROUTES:
            with subtests.test(webhook_id=webhook_id, method=method, rest=rest):
                body = _body_for(method)
                answer = await developer(method, f"{PATH}/{webhook_id}{rest}", json=body)
                assert refused(answer, 404, "webhook_not_found")["message"].isprintable()


async def test_the_address_of_a_subscription_is_not_found_as_a_webhook(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for method, rest in ROUTES:
        with subtests.test(method=method, rest=rest):
            developer = await world.user()
            subscription = await subscribe_url(developer, "https://example.com/own")
            sql = "SELECT id FROM webhooks WHERE subscription_id = $1"
            (row,) = await run_sql(services, sql, subscription["id"])
            body = _body_for(method)
            refused(
                await developer(method, f"{PATH}/{row['id']}{rest}", json=body),
                404,
                "webhook_not_found",
            )
            assert await _list_ids(developer) == []


async def test_a_403_names_the_required_permission(world: World, subtests: pytest.Subtests) -> None:
    cases_1: list[tuple[str, str | None]] = [("GET", None), ("POST", None), *ROUTES]
    for role in ("agent_user", "viewer"):
        for method, rest in cases_1:
            with subtests.test(role=role, method=method, rest=rest):
                developer = await world.user()
                webhook = await create_webhook(developer)
                caller = await world.user(role, developer.tenant_id)
                path = PATH if rest is None else f"{PATH}/{webhook['id']}{rest}"
                answer = await caller(method, path, json=_body_for(method))
                permission = "webhooks:read" if method == "GET" else "webhooks:write"
                error = refused(answer, 403, "forbidden")
                assert error["details"] == {"required": permission, "your_role": role}


async def test_an_anonymous_caller_gets_401(anonymous: Client, subtests: pytest.Subtests) -> None:
    for method, rest in [("GET", ""), ("POST", ""), ("GET", "/whk_1")]:
        with subtests.test(method=method, rest=rest):
            refused(await anonymous(method, PATH + rest), 401, "unauthorized")


async def test_super_admin_creates_in_the_tenant_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    tenant_header = {"x-tenant-id": developer.tenant_id}
    webhook = (await super_admin.post(PATH, BODY, headers=tenant_header)).json()
    assert await _list_ids(developer) == [webhook["id"]]
    body = (await super_admin.get(PATH, headers=tenant_header)).json()
    assert [entry["id"] for entry in body["data"]] == [webhook["id"]]
    (event,) = await list_events(developer, "system.webhook.created")
    assert event["data"]["webhook_id"] == webhook["id"]


async def test_super_admin_reaches_the_webhook_of_any_tenant(
    super_admin: Client, developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await update_webhook(super_admin, webhook["id"], description="Changed")
    rotated = await rotate_secret(super_admin, webhook["id"])
    assert (await send_test_event(super_admin, webhook["id"]))["status"] == "delivered"
    stored = await read_webhook(developer, webhook["id"])
    assert stored == {name: value for name, value in rotated.items() if name != "secret"}
    assert len(await list_events(developer, "system.webhook.updated")) == 2
    assert (await super_admin.delete(f"{PATH}/{webhook['id']}")).status_code == 204
    assert len(await list_events(developer, "system.webhook.deleted")) == 1


async def test_super_admin_of_one_tenant_does_not_see_another(
    super_admin: Client, developer: Client, admin: Client
) -> None:
    webhook = await create_webhook(developer)
    tenant_header = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.get(f"{PATH}/{webhook['id']}", headers=tenant_header)
    refused(answer, 404, "webhook_not_found")

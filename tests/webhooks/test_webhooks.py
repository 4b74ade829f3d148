"""/api/v1/webhooks: endpoints are made, listed, changed and deleted."""

import asyncio
import base64
import re
from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.events.database import run_sql
from tests.webhooks.factories import (
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

WHOLE: dict[str, Any] = {
    "url": "https://example.com/hook?key=abc#part",
    "events": ["agent.updated", "agent.created"],
    "active": False,
    "description": "Unser Büro ☕",
    "headers": {"X-Team": "sales"},
}
STEPS = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rotate-secret")]


def _body(method: str) -> dict[str, Any] | None:
    return None if method in {"GET", "DELETE"} else {}


async def _ids(client: Client, **params: Any) -> list[str]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["data"]]


async def _subscription(client: Client) -> dict[str, Any]:
    """With an address of its own."""
    body = {
        "event_type": "agent.created",
        "action_type": "webhook",
        "action_config": {"url": "https://example.com/own"},
    }
    answer = await client.post("/api/v1/event-subscriptions", body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


# Create


async def test_a_new_webhook_has_its_defaults(developer: Client) -> None:
    made = await create_webhook(developer)
    assert set(made) == VIEW_KEYS | {"secret"}
    assert re.fullmatch(r"whk_[0-9a-z]{26}", made["id"])
    assert {name: made[name] for name in VIEW_KEYS - {"id", "created_at", "updated_at"}} == {
        **BODY,
        "active": True,
        "description": "",
        "headers": {},
        "failing_since": None,
        "disabled_reason": None,
        "previous_secret_expires_at": None,
    }


async def test_every_field_is_kept_as_given(developer: Client) -> None:
    made = await create_webhook(developer, **WHOLE)
    found = await read_webhook(developer, made["id"])
    assert {name: found[name] for name in WHOLE} == WHOLE
    assert found == {name: value for name, value in made.items() if name != "secret"}


async def test_the_secret_spells_32_random_bytes(developer: Client) -> None:
    secrets = [(await create_webhook(developer))["secret"] for _ in range(2)]
    spelled = [base64.b64decode(one.removeprefix("whsec_"), validate=True) for one in secrets]
    assert [one[:6] for one in secrets] == ["whsec_"] * 2
    assert [len(one) for one in spelled] == [32, 32]
    assert spelled[0] != spelled[1]


async def test_an_event_type_named_twice_is_kept_once(developer: Client) -> None:
    named = ["agent.updated", "agent.created", "agent.updated"]
    assert (await create_webhook(developer, events=named))["events"] == named[:2]


async def test_fields_that_are_not_listed_are_not_taken(developer: Client, admin: Client) -> None:
    sly = {
        "id": "whk_mine",
        "secret": "whsec_mine",
        "tenant_id": admin.tenant_id,
        "subscription_id": "sub_1",
        "failing_since": "2026-01-01T00:00:00Z",
        "disabled_reason": "gone",
        "created_at": "2020-01-01T00:00:00Z",
    }
    made = await create_webhook(developer, **sly)
    assert not sly.items() & {k: v for k, v in made.items() if isinstance(v, str)}.items()
    assert await _ids(developer) == [made["id"]]
    assert await _ids(admin) == []


async def test_the_same_idempotency_key_makes_one_webhook(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    answers = await asyncio.gather(*(developer.post(PATH, BODY, headers=headers) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["secret"] for answer in answers}) == 1
    assert len(await _ids(developer)) == 1


async def test_an_idempotency_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    await developer.post(PATH, BODY, headers=headers)
    answer = await developer.post(PATH, {**BODY, "active": False}, headers=headers)
    refused(answer, 422, "idempotency_mismatch")


_PLANT = """
INSERT INTO webhooks (tenant_id, id, url, events, keys)
SELECT $1::text, 'whk_' || md5($1 || n::text), 'https://example.com/', '{agent.created}', ''::bytea
FROM generate_series(1, $2::int) n RETURNING id
"""


async def test_a_tenant_has_at_most_500_webhooks(developer: Client, services: Services) -> None:
    planted = await run_sql(services, _PLANT, developer.tenant_id, 499)
    await create_webhook(developer)
    refused(await developer.post(PATH, BODY), 409, "conflict")
    await developer.delete(f"{PATH}/{planted[0]['id']}")
    await create_webhook(developer)


async def test_the_address_of_a_subscription_takes_no_webhooks_place(
    developer: Client, services: Services
) -> None:
    await run_sql(services, _PLANT, developer.tenant_id, 499)
    await _subscription(developer)
    await create_webhook(developer)


# The secret


async def test_the_secret_is_in_no_other_answer(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/echo")
    changed = await update_webhook(developer, made["id"], description="Other")
    await rotate_secret(developer, made["id"])
    delivery = await send_test_event(developer, made["id"])
    one = f"{PATH}/{made['id']}"
    paths = [
        PATH,
        one,
        f"{one}/executions",
        f"{one}/executions/{delivery['id']}",
        "/api/v1/event-log",
        f"/api/v1/event-log/trace/{delivery['correlation_id']}",
    ]
    texts = [(await developer.get(path)).text for path in paths]
    assert set(changed) == VIEW_KEYS
    for text in [str(changed), str(delivery), *texts]:
        assert made["id"] in text or made["url"] in text or delivery["id"] in text
        assert "whsec_" not in text
        assert made["secret"].removeprefix("whsec_") not in text


async def test_the_secret_is_not_in_the_database_as_it_is(
    developer: Client, services: Services
) -> None:
    made = await create_webhook(developer, headers={"Authorization": "Bearer planted-in-keys"})
    (row,) = await run_sql(services, "SELECT * FROM webhooks WHERE id = $1", made["id"])
    stored = str(dict(row)) + row["keys"].decode("latin-1")
    assert made["secret"].removeprefix("whsec_") not in stored
    assert "planted-in-keys" not in stored


# List


async def test_a_list_has_data_and_pagination(developer: Client) -> None:
    made = await create_webhook(developer)
    answer = (await developer.get(PATH)).json()
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    assert answer["data"] == [await read_webhook(developer, made["id"])]


async def test_the_newest_come_first_and_pages_hold_each_once(developer: Client) -> None:
    made = [(await create_webhook(developer))["id"] for _ in range(5)]
    pages = [await _ids(developer, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert pages == [made[:2:-1], made[2:0:-1], made[:1], []]


async def test_a_list_can_be_of_the_active_ones(developer: Client) -> None:
    on = (await create_webhook(developer))["id"]
    off = (await create_webhook(developer, active=False))["id"]
    assert await _ids(developer, active="true") == [on]
    assert await _ids(developer, active="false") == [off]
    assert await _ids(developer) == [off, on]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("url", [1, 2, 0]),
        ("-url", [0, 2, 1]),
        ("created_at", [0, 1, 2]),
        ("-created_at", [2, 1, 0]),
        ("updated_at", [0, 2, 1]),
        ("-updated_at", [1, 2, 0]),
    ],
)
async def test_a_list_can_be_sorted(developer: Client, sort: str, order: list[int]) -> None:
    urls = [f"https://{letter}.example.com/" for letter in "cab"]
    made = [(await create_webhook(developer, url=url))["id"] for url in urls]
    await update_webhook(developer, made[1], description="Later")
    assert await _ids(developer, sort=sort) == [made[index] for index in order]


@pytest.mark.parametrize(
    ("name", "value"),
    [
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
    ],
)
async def test_a_wrong_parameter_is_named(developer: Client, name: str, value: str) -> None:
    error = refused(await developer.get(PATH, params={name: value}), 422, "validation_error")
    assert set(error["details"]) == {name}


# The webhooks of others


@pytest.mark.parametrize(("method", "rest"), STEPS)
async def test_the_webhook_of_another_tenant_is_not_there(
    developer: Client, admin: Client, method: str, rest: str
) -> None:
    made = await create_webhook(admin)
    body = _body(method)
    answer = await developer(method, f"{PATH}/{made['id']}{rest}", json=body)
    refused(answer, 404, "webhook_not_found")
    assert await _ids(developer) == []
    assert (await read_webhook(admin, made["id"]))["updated_at"] == made["updated_at"]


@pytest.mark.parametrize("webhook_id", ["whk_0", "x" * 5000, "é", "' OR 1=1 --", "sub_1"])
@pytest.mark.parametrize(("method", "rest"), STEPS)
async def test_an_unknown_id_is_not_found(
    developer: Client, method: str, rest: str, webhook_id: str
) -> None:
    body = _body(method)
    answer = await developer(method, f"{PATH}/{webhook_id}{rest}", json=body)
    assert refused(answer, 404, "webhook_not_found")["message"].isprintable()


@pytest.mark.parametrize(("method", "rest"), STEPS)
async def test_the_address_of_a_subscription_is_no_webhook(
    developer: Client, services: Services, method: str, rest: str
) -> None:
    made = await _subscription(developer)
    sql = "SELECT id FROM webhooks WHERE subscription_id = $1"
    (row,) = await run_sql(services, sql, made["id"])
    body = _body(method)
    refused(
        await developer(method, f"{PATH}/{row['id']}{rest}", json=body), 404, "webhook_not_found"
    )
    assert await _ids(developer) == []


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
@pytest.mark.parametrize(("method", "rest"), [("GET", None), ("POST", None), *STEPS])
async def test_who_may_not_is_told_what_is_needed(
    world: World, developer: Client, role: str, method: str, rest: str | None
) -> None:
    made = await create_webhook(developer)
    caller = await world.user(role, developer.tenant_id)
    path = PATH if rest is None else f"{PATH}/{made['id']}{rest}"
    answer = await caller(method, path, json=_body(method))
    needed = "webhooks:read" if method == "GET" else "webhooks:write"
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": needed, "your_role": role}


@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("POST", ""), ("GET", "/whk_1")])
async def test_without_sign_in_there_is_nothing(anonymous: Client, method: str, rest: str) -> None:
    refused(await anonymous(method, PATH + rest), 401, "unauthorized")


async def test_super_admin_creates_in_the_tenant_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    narrowed = {"x-tenant-id": developer.tenant_id}
    made = (await super_admin.post(PATH, BODY, headers=narrowed)).json()
    assert await _ids(developer) == [made["id"]]
    listed = (await super_admin.get(PATH, headers=narrowed)).json()
    assert [one["id"] for one in listed["data"]] == [made["id"]]
    (event,) = await list_events(developer, "system.webhook.created")
    assert event["data"]["webhook_id"] == made["id"]


async def test_super_admin_reaches_the_webhook_of_any_tenant(
    super_admin: Client, developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await update_webhook(super_admin, made["id"], description="Seen to")
    renewed = await rotate_secret(super_admin, made["id"])
    assert (await send_test_event(super_admin, made["id"]))["status"] == "delivered"
    found = await read_webhook(developer, made["id"])
    assert found == {name: value for name, value in renewed.items() if name != "secret"}
    assert len(await list_events(developer, "system.webhook.updated")) == 2
    assert (await super_admin.delete(f"{PATH}/{made['id']}")).status_code == 204
    assert len(await list_events(developer, "system.webhook.deleted")) == 1


async def test_super_admin_of_one_tenant_does_not_see_another(
    super_admin: Client, developer: Client, admin: Client
) -> None:
    made = await create_webhook(developer)
    narrowed = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.get(f"{PATH}/{made['id']}", headers=narrowed)
    refused(answer, 404, "webhook_not_found")

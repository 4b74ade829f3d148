"""/api/v1/incoming-webhooks: the public addresses of a tenant, and how their senders sign."""

import asyncio
import re

import pytest

from app.domain.incoming import queries
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.incoming.factories import (
    GITHUB,
    MASKED,
    PATH,
    RECEIVED,
    SECRET,
    WAITING,
    events_of,
    found,
    log_of,
    opened,
    query,
    received,
    refused_field,
    send,
)
from tests.world import Client, World

KEYS = {
    "id",
    "name",
    "slug",
    "url",
    "workflow_id",
    "active",
    "verification",
    "created_at",
    "updated_at",
}


def _slug(caller: Client) -> str:
    return f"mine-{caller.user_id[-12:].lower()}"


# Creating


async def test_a_name_is_enough(developer: Client, services: Services) -> None:
    answer = await developer.post(PATH, {"name": "Orders of the shop"})
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == KEYS
    assert re.fullmatch(r"inh_[0-9a-z]{26}", made["id"])
    assert made["name"] == "Orders of the shop"
    assert made["url"] == f"{services.settings.public_url}/webhooks/in/{made['slug']}"
    assert (made["active"], made["workflow_id"], made["verification"]) == (True, None, None)
    assert made["created_at"].endswith("Z")
    assert made["updated_at"] >= made["created_at"]


async def test_every_field_is_kept(developer: Client) -> None:
    given = {
        "name": "Ünïcode ✓ 注文",
        "slug": _slug(developer),
        "workflow_id": "wfl_1",
        "active": False,
        "verification": {"scheme": "hmac_sha256", "secret": SECRET, "header": "X-Shop-Signature"},
    }
    made = await opened(developer, **given)
    assert (await developer.get(f"{PATH}/{made['id']}")).json() == made
    shown = {"scheme": "hmac_sha256", "secret": "********", "header": "X-Shop-Signature"}
    assert {name: made[name] for name in given} == {**given, "verification": shown}


async def test_a_slug_that_is_made_is_readable_and_nobody_guesses_it(developer: Client) -> None:
    made = [(await opened(developer, name="Orders & Töne!"))["slug"] for _ in range(5)]
    assert all(re.fullmatch(r"orders-t-ne-[0-9a-z]{16}", slug) for slug in made)
    assert len({slug[-16:] for slug in made}) == 5


@pytest.mark.parametrize("name", ["注文", "!!!", "x" * 100, "-a-"])
async def test_a_slug_is_made_of_any_name(developer: Client, anonymous: Client, name: str) -> None:
    made = await opened(developer, name=name)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{10,78}[a-z0-9]", made["slug"])
    await received(anonymous, made)


@pytest.mark.parametrize("slug", ["abc", "a" * 80, "a-b_c-1", "000"])
async def test_a_slug_may_be_short_and_long(
    developer: Client, anonymous: Client, slug: str
) -> None:
    made = await opened(developer, slug=slug)
    assert made["slug"] == slug
    await received(anonymous, made)
    assert (await developer.delete(f"{PATH}/{made['id']}")).status_code == 204


@pytest.mark.parametrize(
    "slug",
    [
        "ab",
        "a" * 81,
        "",
        "Orders",
        "a b c",
        "a/b",
        "../x",
        "-abc",
        "abc-",
        "_abc",
        "äöü",
        "abc\n",
        "abc\n-",
        "a%2fb",
        "a.b",
        "abc?",
        7,
        ["abc"],
        {},
        True,
    ],
)
async def test_a_slug_that_does_not_fit_an_address_is_named(
    developer: Client, slug: object
) -> None:
    await refused_field(developer, "slug", {"name": "Orders", "slug": slug})


async def test_a_slug_is_given_once_in_all_tenants(developer: Client, admin: Client) -> None:
    made = await opened(developer, slug=_slug(developer))
    for caller in (developer, admin):
        error = refused(
            await caller.post(PATH, {"name": "Again", "slug": made["slug"]}), 409, "conflict"
        )
        assert made["id"] not in str(error)


async def test_the_slug_of_a_deleted_one_is_free_again(developer: Client, admin: Client) -> None:
    made = await opened(developer, slug=_slug(developer))
    await developer.delete(f"{PATH}/{made['id']}")
    assert (await opened(admin, slug=made["slug"]))["slug"] == made["slug"]


@pytest.mark.parametrize("name", [None, "", "   ", "a\nb", "a\0b", "x" * 101, 7, [], {}])
async def test_a_name_that_is_none_is_named(developer: Client, name: object) -> None:
    assert await refused_field(developer, "name", {"name": name})


async def test_a_name_is_needed(developer: Client) -> None:
    assert await refused_field(developer, "name", {}) == "is required"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("active", "yes"),
        ("active", None),
        ("active", 1),
        ("workflow_id", 7),
        ("workflow_id", ""),
        ("workflow_id", "x" * 101),
        ("verification", "github"),
        ("verification", []),
    ],
)
async def test_a_field_of_the_wrong_kind_is_named(
    developer: Client, field: str, value: object
) -> None:
    assert await refused_field(developer, field, {"name": "Orders", field: value})


@pytest.mark.parametrize("body", [None, [], "x", 7, [{"name": "Orders"}]])
async def test_a_body_that_is_no_object_is_told(developer: Client, body: object) -> None:
    refused(await developer.post(PATH, body), 422, "validation_error")


async def test_nothing_else_can_be_set(developer: Client, admin: Client) -> None:
    given = {
        "id": "inh_mine",
        "tenant_id": admin.tenant_id,
        "url": "https://evil.example",
        "created_at": "2020-01-01T00:00:00Z",
    }
    made = await opened(developer, **given)
    assert made["id"] != "inh_mine"
    assert made["url"].endswith(f"/webhooks/in/{made['slug']}")
    assert not made["created_at"].startswith("2020")
    assert (await admin.get(f"{PATH}/{made['id']}")).status_code == 404


async def test_a_tenant_has_only_so_many(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_WEBHOOKS", 2)
    await opened(developer)
    await opened(developer)
    refused(await developer.post(PATH, {"name": "Third"}), 409, "conflict")


# Changing and deleting


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Returns"),
        ("active", False),
        ("workflow_id", "wfl_2"),
        ("workflow_id", None),
        ("verification", MASKED),
    ],
)
async def test_one_field_is_changed_and_the_others_stay(
    developer: Client, field: str, value: object
) -> None:
    made = await opened(developer, workflow_id="wfl_1", verification=GITHUB)
    answer = await developer.put(f"{PATH}/{made['id']}", {field: value})
    assert answer.status_code == 200
    assert {**answer.json(), "updated_at": None} == {**made, field: value, "updated_at": None}


async def test_a_changed_slug_is_the_only_address_then(
    developer: Client, anonymous: Client
) -> None:
    made = await opened(developer)
    changed = (await developer.put(f"{PATH}/{made['id']}", {"slug": _slug(developer)})).json()
    assert changed["url"].endswith(f"/webhooks/in/{_slug(developer)}")
    assert (await send(anonymous, made)).status_code == 404
    assert (await send(anonymous, changed)).status_code == 202


async def test_a_slug_cannot_be_changed_to_another_tenants(
    developer: Client, admin: Client
) -> None:
    theirs, mine = await opened(admin, slug=_slug(admin)), await opened(developer)
    answer = await developer.put(f"{PATH}/{mine['id']}", {"slug": theirs["slug"]})
    refused(answer, 409, "conflict")
    assert (await developer.get(f"{PATH}/{mine['id']}")).json() == mine


async def test_ones_own_slug_may_be_sent_back(developer: Client) -> None:
    made = await opened(developer)
    answer = await developer.put(f"{PATH}/{made['id']}", made)
    assert answer.status_code == 200
    assert answer.json() == made


@pytest.mark.parametrize("field", ["name", "slug", "active"])
async def test_what_must_be_there_cannot_be_taken_away(developer: Client, field: str) -> None:
    made = await opened(developer)
    answer = await developer.put(f"{PATH}/{made['id']}", {field: None})
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_deleting_takes_the_log_along(
    developer: Client, anonymous: Client, services: Services
) -> None:
    made = await opened(developer)
    await received(anonymous, made)
    answer = await developer.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in (f"{PATH}/{made['id']}", f"{PATH}/{made['id']}/events"):
        refused(await developer.get(path), 404, "incoming_webhook_not_found")
    refused(await developer.delete(f"{PATH}/{made['id']}"), 404, "incoming_webhook_not_found")
    sql = "SELECT 1 FROM incoming_payloads WHERE webhook_id = $1"
    assert await query(services, sql, made["id"]) == []
    assert (await send(anonymous, made)).status_code == 404


# The list


async def test_the_list_has_the_newest_first_in_pages(developer: Client) -> None:
    made = [await opened(developer, name=f"N{number}") for number in range(3)]
    first = (await developer.get(PATH, params={"per_page": 2})).json()
    assert first == {
        "data": [made[2], made[1]],
        "pagination": {"page": 1, "per_page": 2, "total": 3, "total_pages": 2},
    }
    second = (await developer.get(PATH, params={"per_page": 2, "page": 2})).json()
    assert second["data"] == [made[0]]


async def test_the_list_can_be_sorted_and_narrowed(developer: Client) -> None:
    for name, active in (("B", True), ("A", False), ("C", True)):
        await opened(developer, name=name, active=active)

    async def names(**params: str) -> list[str]:
        return [one["name"] for one in (await developer.get(PATH, params=params)).json()["data"]]

    assert await names(sort="name") == ["A", "B", "C"]
    assert await names(sort="-name") == ["C", "B", "A"]
    assert await names(sort="created_at", active="true") == ["B", "C"]
    assert await names(active="false") == ["A"]


@pytest.mark.parametrize("name", ["sort", "active", "page", "per_page"])
async def test_a_parameter_out_of_bounds_is_named(developer: Client, name: str) -> None:
    answer = await developer.get(PATH, params={name: "secret"})
    assert set(refused(answer, 422, "validation_error")["details"]) == {name}


# Whose they are, and who may


async def test_another_tenants_are_not_found(developer: Client, admin: Client) -> None:
    made = await opened(admin)
    path = f"{PATH}/{made['id']}"
    for method, where, body in (
        ("GET", path, None),
        ("PUT", path, {"name": "Mine"}),
        ("DELETE", path, None),
        ("GET", f"{path}/events", None),
        ("POST", f"{path}/events/evt_1/replay", None),
    ):
        answer = await developer(method, where, json=body)
        refused(answer, 404, "incoming_webhook_not_found")
    assert (await developer.get(PATH)).json()["data"] == []
    assert (await admin.get(path)).json() == made


async def test_super_admin_reaches_them_and_creates_where_the_header_says(
    super_admin: Client, developer: Client
) -> None:
    made = await opened(developer)
    assert (await super_admin.get(f"{PATH}/{made['id']}")).json() == made
    answer = await super_admin.post(
        PATH, {"name": "For them"}, headers={"x-tenant-id": developer.tenant_id}
    )
    assert (await developer.get(f"{PATH}/{answer.json()['id']}")).status_code == 200


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_who_has_no_key_for_webhooks_gets_403(world: World, role: str) -> None:
    caller = await world.user(role)
    for method, path, needed in (
        ("GET", PATH, "webhooks:read"),
        ("POST", PATH, "webhooks:write"),
        ("GET", f"{PATH}/inh_1", "webhooks:read"),
        ("PUT", f"{PATH}/inh_1", "webhooks:write"),
        ("DELETE", f"{PATH}/inh_1", "webhooks:write"),
        ("GET", f"{PATH}/inh_1/events", "webhooks:read"),
        ("POST", f"{PATH}/inh_1/events/evt_1/replay", "webhooks:write"),
    ):
        error = refused(await caller(method, path, json={"name": "x"}), 403, "forbidden")
        assert error["details"] == {"required": needed, "your_role": role}


async def test_nobody_sees_them_without_signing_in(anonymous: Client) -> None:
    refused(await anonymous.get(PATH), 401, "unauthorized")


# Events


async def test_its_life_is_told_in_events_without_a_secret(developer: Client) -> None:
    made = await opened(developer, verification=GITHUB)
    path = f"{PATH}/{made['id']}"
    changes = {"name": "Returns", "verification": {**GITHUB, "secret": SECRET + "2"}}
    await developer.put(path, changes)
    await developer.put(path, {"name": "Returns"})
    await developer.delete(path)
    told = {}
    for what in ("created", "updated", "deleted"):
        (event,) = await events_of(developer, f"system.incoming_webhook.{what}")
        told[what] = event["data"]
    whose = {"incoming_webhook_id": made["id"]}
    assert told == {
        "created": {**whose, "name": "Orders"},
        "updated": {**whose, "name": "Returns", "changed": ["name", "verification"]},
        "deleted": {**whose, "name": "Returns"},
    }


async def test_deleting_takes_the_events_along_that_hold_its_payloads(
    developer: Client, anonymous: Client
) -> None:
    made, other = await opened(developer), await opened(developer)
    event_id = await received(anonymous, made, {"order": 1})
    kept = await received(anonymous, other, {"order": 2})
    await developer.delete(f"{PATH}/{made['id']}")
    assert [one["id"] for one in await log_of(developer, other)] == [kept]
    assert [one["id"] for one in await events_of(developer, RECEIVED)] == [kept]
    refused(await developer.get(f"/api/v1/event-log/{event_id}"), 404, "event_not_found")
    assert len(await events_of(developer, "system.incoming_webhook.deleted")) == 1


_PAYLOAD = """
WITH told AS (
    INSERT INTO event_log (tenant_id, id, type, correlation_id, data)
    VALUES ($1, $2, 'system.incoming_webhook.received', 'cor_late', '{}'))
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip)
VALUES ($1, $2, $3, '{}', '{}', '')
"""


async def test_what_comes_in_while_it_is_deleted_goes_with_it(
    developer: Client, services: Services
) -> None:
    made, event_id = await opened(developer), new_id("evt")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(_PAYLOAD, developer.tenant_id, event_id, made["id"])
        deleting = asyncio.create_task(developer.delete(f"{PATH}/{made['id']}"))
        await found(services, WAITING, "%incoming_webhooks%")
    assert (await deleting).status_code == 204
    refused(await developer.get(f"/api/v1/event-log/{event_id}"), 404, "event_not_found")

"""/v1/credentials: their fields, lists, secrets that stay hidden, who may, tenants apart."""

from datetime import datetime
from typing import Any

import httpx
import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.asking import refused
from tests.vault.making import (
    GOOD,
    PATH,
    TYPES,
    create,
    grant,
    opened,
    revealed,
    shown,
    sql,
    told,
    trail,
    wrong,
)
from tests.world import Client, World

LISTED = {
    "id",
    "name",
    "type",
    "description",
    "is_valid",
    "last_tested_at",
    "last_used_at",
    "created_at",
    "updated_at",
}
SHOWN = LISTED | {"metadata", "secret_keys"}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
WRITERS = {"super_admin", "tenant_admin", "agent_developer"}
REVEALERS = {"super_admin", "tenant_admin"}


def _body(**fields: Any) -> dict[str, Any]:
    return {"name": "Ours", "type": "bearer_token", "secrets": {"token": "planted-token"}, **fields}


async def _list(caller: Client, **query: Any) -> list[dict[str, Any]]:
    answer = await caller.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _names(caller: Client, **query: Any) -> list[str]:
    return [item["name"] for item in await _list(caller, **query)]


# Create


async def test_a_credential_is_added_with_every_field(admin: Client) -> None:
    made = await create(
        admin, name="Tickets", description="The team's account", metadata={"owner": "support"}
    )
    assert set(made) == SHOWN
    assert made["id"].startswith("crd_")
    assert made["name"] == "Tickets"
    assert made["type"] == "bearer_token"
    assert made["description"] == "The team's account"
    assert made["metadata"] == {"owner": "support"}
    assert made["secret_keys"] == ["token"]
    assert made["is_valid"] is True
    assert (made["last_tested_at"], made["last_used_at"]) == (None, None)
    for moment in (made["created_at"], made["updated_at"]):
        assert moment.endswith("Z")
        assert abs((clock.now() - datetime.fromisoformat(moment)).total_seconds()) < 60


async def test_description_and_metadata_may_be_left_out(admin: Client) -> None:
    made = await create(admin)
    assert (made["description"], made["metadata"]) == ("", {})


@pytest.mark.parametrize("type_", TYPES)
async def test_each_type_is_created_and_shows_only_the_names_of_its_secrets(
    admin: Client, type_: str
) -> None:
    made = await create(admin, type_)
    assert made["type"] == type_
    assert made["secret_keys"] == sorted(GOOD[type_])


async def test_names_may_be_as_long_as_promised_and_need_not_be_unique(admin: Client) -> None:
    for _ in range(2):
        assert (await create(admin, name="ü" * 100))["name"] == "ü" * 100


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"type": "password"}, "type"),
        ({"type": ""}, "type"),
        ({"type": None}, "type"),
        ({"description": "x" * 2001}, "description"),
        ({"description": None}, "description"),
        ({"secrets": None}, "secrets"),
        ({"secrets": []}, "secrets"),
        ({"secrets": "planted-token"}, "secrets"),
        ({"metadata": None}, "metadata"),
        ({"metadata": ["x"]}, "metadata"),
        ({"metadata": "x"}, "metadata"),
    ],
)
async def test_a_wrong_field_is_named(admin: Client, fields: dict[str, Any], field: str) -> None:
    assert set(wrong(await admin.post(PATH, _body(**fields)))) == {field}
    assert await _list(admin) == []


@pytest.mark.parametrize("field", ["name", "type", "secrets"])
async def test_a_missing_field_is_named(admin: Client, field: str) -> None:
    body = _body()
    del body[field]
    assert wrong(await admin.post(PATH, body)) == {field: "is required"}


async def test_fields_that_cannot_be_set_have_no_effect(admin: Client, world: World) -> None:
    mine: dict[str, Any] = {
        "id": "crd_mine",
        "tenant_id": await world.tenant(),
        "is_valid": False,
        "last_used_at": "2000-01-01T00:00:00Z",
        "created_at": "2000-01-01T00:00:00Z",
        "secret_keys": ["other"],
    }
    made = await create(admin, **mine)
    assert not [name for name, value in mine.items() if made.get(name) == value]
    assert [item["id"] for item in await _list(admin)] == [made["id"]]


async def test_the_same_idempotency_key_adds_one_credential(admin: Client) -> None:
    headers = {"idempotency-key": new_id("idem")}
    first = await admin.post(PATH, _body(), headers=headers)
    again = await admin.post(PATH, _body(), headers=headers)
    other = await admin.post(PATH, _body(name="Other"), headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    refused(other, 422, "idempotency_mismatch")
    assert len(await _list(admin)) == 1


# Metadata


async def test_metadata_comes_back_as_it_was_given(admin: Client) -> None:
    given = {"owner": "support", "list": [1, 2.5, None, True], "map": {"ü": {"deep": []}}}
    made = await create(admin, metadata=given)
    assert (await shown(admin, made["id"]))["metadata"] == given


def _nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"x": found}
    return found


@pytest.mark.parametrize(
    "metadata",
    [
        {"text": "x" * 16_400},
        {"x" * 16_400: 1},
        _nested(17),
        _nested(200),
        {"text": "nul\0"},
    ],
)
async def test_metadata_has_limits(admin: Client, metadata: dict[str, Any]) -> None:
    assert set(wrong(await admin.post(PATH, _body(metadata=metadata)))) <= {"metadata", "body"}
    made = await create(admin)
    answer = await admin.put(f"{PATH}/{made['id']}", {"metadata": metadata})
    assert set(wrong(answer)) <= {"metadata", "body"}


@pytest.mark.parametrize("metadata", [{"x": "x" * (16_384 - 8)}, _nested(16)])
async def test_metadata_may_be_as_large_as_promised(
    admin: Client, metadata: dict[str, Any]
) -> None:
    assert (await create(admin, metadata=metadata))["metadata"] == metadata


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"x": ' * 100_000,
        b'{"n": 1e400}',
        b'{"t": "\\ud800"}',
    ],
)
async def test_metadata_that_cannot_be_read_is_refused(admin: Client, content: bytes) -> None:
    body = b'{"name": "A", "type": "bearer_token", "secrets": {"token": "t"}, "metadata": '
    headers = {"content-type": "application/json"}
    answer = await admin("POST", PATH, content=body + content + b"}", headers=headers)
    assert all(field.startswith(("metadata", "body")) for field in wrong(answer))


async def test_a_very_large_number_in_metadata_is_no_failure_of_ours(admin: Client) -> None:
    answer = await admin.post(PATH, _body(metadata={"n": 10**400}))
    assert answer.status_code in {201, 422}, answer.text


@pytest.mark.parametrize(
    "url",
    [
        5,
        "",
        "not an address",
        "ftp://example.com",
        "http://example.com/me",
        "https://me:pass-word-9@example.com/me",
        "https://10.0.0.1/me",
        "https://169.254.169.254/latest/meta-data",
        "http://[::1]/me",
    ],
)
async def test_a_test_url_that_no_test_may_ask_is_refused(admin: Client, url: object) -> None:
    answer = await admin.post(PATH, _body(metadata={"test_url": url}))
    assert set(wrong(answer)) == {"metadata.test_url"}
    assert "pass-word-9" not in answer.text
    made = await create(admin)
    answer = await admin.put(f"{PATH}/{made['id']}", {"metadata": {"test_url": url}})
    assert set(wrong(answer)) == {"metadata.test_url"}


# Get and list


async def test_a_credential_is_shown_as_it_was_created(admin: Client) -> None:
    made = await create(admin, metadata={"owner": "support"})
    assert await shown(admin, made["id"]) == made


async def test_a_list_has_the_list_fields_and_a_page(admin: Client) -> None:
    made = await create(admin)
    answer = await admin.get(PATH)
    assert answer.json() == {
        "data": [{name: made[name] for name in LISTED}],
        "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    }


async def test_the_newest_comes_first(admin: Client) -> None:
    for name in "abc":
        await create(admin, name=name)
    assert await _names(admin) == ["c", "b", "a"]


async def test_pages_neither_overlap_nor_leave_anything_out(admin: Client) -> None:
    for name in "abcde":
        await create(admin, name=name)
    pages = [await _names(admin, page=page, per_page=2, sort="type") for page in (1, 2, 3, 4)]
    assert pages == [["a", "b"], ["c", "d"], ["e"], []]
    answer = await admin.get(PATH, params={"page": 2, "per_page": 2})
    assert answer.json()["pagination"] == {"page": 2, "per_page": 2, "total": 5, "total_pages": 3}


async def test_only_one_type_is_listed_when_asked_for(admin: Client) -> None:
    for type_ in ("api_key", "custom", "api_key"):
        await create(admin, type_, name=type_)
    assert await _names(admin, type="api_key") == ["api_key", "api_key"]
    assert await _names(admin, type="ssh") == []


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("TICKET", ["Tickets 100%"]),
        ("%", ["Tickets 100%"]),
        ("_", ["my_mail"]),
        ("planted", []),
        ("m", ["my_mail"]),
        ("\\", []),
    ],
)
async def test_search_looks_in_names_for_the_text_as_it_is(
    admin: Client, search: str, found: list[str]
) -> None:
    await create(admin, name="Tickets 100%", description="planted")
    await create(admin, name="my_mail")
    assert await _names(admin, search=search) == found


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("name", ["a", "b", "c"]),
        ("-name", ["c", "b", "a"]),
        ("type", ["c", "a", "b"]),
        ("-type", ["b", "a", "c"]),
        ("created_at", ["b", "c", "a"]),
        ("-created_at", ["a", "c", "b"]),
        ("updated_at", ["c", "a", "b"]),
        ("-updated_at", ["b", "a", "c"]),
        ("last_used_at", ["c", "b", "a"]),
        ("-last_used_at", ["c", "a", "b"]),
        ("last_tested_at", ["a", "b", "c"]),
        ("-last_tested_at", ["a", "c", "b"]),
    ],
)
async def test_a_list_is_sorted_by_what_is_asked(
    admin: Client, services: Services, sort: str, found: list[str]
) -> None:
    made = {
        name: await create(admin, type_, name=name)
        for name, type_ in (("b", "ssh"), ("c", "api_key"), ("a", "smtp"))
    }
    await admin.put(f"{PATH}/{made['b']['id']}", {"description": "changed"})
    for column, name in (("last_used_at", "c"), ("last_tested_at", "a")):
        await sql(
            services, f"UPDATE credentials SET {column} = now() WHERE id = $1", made[name]["id"]
        )
    assert await _names(admin, sort=sort) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": 0}, "page"),
        ({"page": "x"}, "page"),
        ({"per_page": 0}, "per_page"),
        ({"per_page": 101}, "per_page"),
        ({"sort": "secrets"}, "sort"),
        ({"sort": "--name"}, "sort"),
        ({"sort": "tenant_id"}, "sort"),
        ({"type": "password"}, "type"),
        ({"search": "x" * 201}, "search"),
    ],
)
async def test_a_bad_query_is_named(admin: Client, query: dict[str, Any], field: str) -> None:
    assert set(wrong(await admin.get(PATH, params=query))) == {field}


async def test_a_hundred_fit_on_a_page(admin: Client) -> None:
    assert (await admin.get(PATH, params={"per_page": 100})).status_code == 200


# Change


async def test_one_field_is_changed_and_the_others_stay(admin: Client) -> None:
    made = await create(admin, description="Before", metadata={"owner": "support"})
    answer = await admin.put(f"{PATH}/{made['id']}", {"name": "After"})
    assert answer.status_code == 200
    changed = answer.json()
    assert changed == {**made, "name": "After", "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > made["updated_at"]
    assert await shown(admin, made["id"]) == changed


async def test_every_field_is_changed_at_once(admin: Client) -> None:
    made = await create(admin, metadata={"owner": "support"})
    body = {"name": "N", "description": "D", "metadata": {"a": 1}, "secrets": {"token": "other"}}
    changed = (await admin.put(f"{PATH}/{made['id']}", body)).json()
    assert (changed["name"], changed["description"], changed["metadata"]) == ("N", "D", {"a": 1})
    assert await revealed(admin, made["id"]) == {"token": "other"}


async def test_the_type_stays(admin: Client) -> None:
    made = await create(admin)
    changed = (await admin.put(f"{PATH}/{made['id']}", {"type": "api_key"})).json()
    assert changed == made


async def test_a_change_that_is_none_changes_nothing(admin: Client) -> None:
    made = await create(admin)
    for body in ({}, {"name": made["name"]}):
        assert (await admin.put(f"{PATH}/{made['id']}", body)).json() == made
    assert [entry["action"] for entry in await trail(admin)] == ["created"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"description": 5}, "description"),
        ({"metadata": None}, "metadata"),
        ({"secrets": None}, "secrets"),
        ({"secrets": {}}, "secrets.token"),
        ({"secrets": {"token": "x", "more": "y"}}, "secrets.more"),
    ],
)
async def test_a_wrong_change_is_named_and_nothing_is_changed(
    admin: Client, body: dict[str, Any], field: str
) -> None:
    made = await create(admin)
    answer = await admin.put(f"{PATH}/{made['id']}", {"description": "New", **body})
    assert set(wrong(answer)) == {field}
    assert await shown(admin, made["id"]) == made


async def test_new_secrets_replace_the_whole_set(admin: Client) -> None:
    made = await create(admin, "smtp")
    answer = await admin.put(f"{PATH}/{made['id']}/secrets", {"secrets": {"host": "new.example"}})
    assert answer.status_code == 200
    assert set(answer.json()) == SHOWN
    assert answer.json()["secret_keys"] == ["host"]
    assert (await revealed(admin, made["id"])) == {"host": "new.example"}


async def test_new_secrets_are_good_until_something_bad_is_known_of_them(
    admin: Client, services: Services
) -> None:
    made = await create(admin)
    await sql(services, "UPDATE credentials SET is_valid = false WHERE id = $1", made["id"])
    assert (await shown(admin, made["id"]))["is_valid"] is False
    answer = await admin.put(f"{PATH}/{made['id']}/secrets", {"secrets": {"token": "new"}})
    assert answer.json()["is_valid"] is True


@pytest.mark.parametrize("body", [{}, {"secrets": None}, {"secrets": "x"}, {"token": "x"}])
async def test_new_secrets_must_be_there(admin: Client, body: dict[str, Any]) -> None:
    made = await create(admin)
    assert set(wrong(await admin.put(f"{PATH}/{made['id']}/secrets", body))) == {"secrets"}


# Delete


async def test_a_deleted_credential_is_gone_and_its_trail_stays(admin: Client) -> None:
    made = await create(admin)
    answer = await admin.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    refused(await admin.get(f"{PATH}/{made['id']}"), 404, "credential_not_found")
    assert await _list(admin) == []
    assert [entry["action"] for entry in await trail(admin)] == ["deleted", "created"]


async def test_a_credential_is_deleted_once(admin: Client) -> None:
    made = await create(admin)
    await admin.delete(f"{PATH}/{made['id']}")
    refused(await admin.delete(f"{PATH}/{made['id']}"), 404, "credential_not_found")


# What is not there, and what is somebody else's


def _everywhere(credential_id: str, access_id: str = "acr_x") -> list[tuple[str, str, Any]]:
    one = f"{PATH}/{credential_id}"
    rule = {"integration_type": "workflow", "integration_id": "wfl_2"}
    return [
        ("GET", one, None),
        ("PUT", one, {"name": "Stolen"}),
        ("GET", f"{one}/reveal", None),
        ("PUT", f"{one}/secrets", {"secrets": {"token": "stolen"}}),
        ("POST", f"{one}/test", None),
        ("GET", f"{one}/audit", None),
        ("GET", f"{one}/access", None),
        ("POST", f"{one}/access", rule),
        ("DELETE", f"{one}/access/{access_id}", None),
        ("DELETE", one, None),
    ]


@pytest.mark.parametrize("credential_id", ["crd_nothing", "x", "crd_" + "0" * 500, "%00", "ü"])
async def test_a_credential_that_does_not_exist_is_404(admin: Client, credential_id: str) -> None:
    for method, path, body in _everywhere(credential_id):
        answer = await admin(method, path, json=body)
        assert answer.status_code in {404, 422}, (method, path, answer.text)


async def test_another_tenant_s_credential_is_not_there(world: World, services: Services) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    made = await create(here)
    rule = await grant(here, made["id"])
    before = await shown(here, made["id"])
    for method, path, body in _everywhere(made["id"], rule["id"]):
        refused(await there(method, path, json=body), 404, "credential_not_found")
    assert await shown(here, made["id"]) == before
    assert await _list(there) == []
    assert await trail(there) == []
    assert await revealed(here, made["id"]) == GOOD["bearer_token"]
    await opened(services, here, made["id"])


async def test_only_super_admin_names_a_tenant(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    made = await create(here)
    headers = {"x-tenant-id": here.tenant_id}
    assert made["id"] not in (await there.get(PATH, headers=headers)).text
    answer = await there.get(f"{PATH}/{made['id']}/reveal", headers=headers)
    refused(answer, 404, "credential_not_found")


async def test_super_admin_acts_in_a_tenant_and_stands_in_its_trail(
    super_admin: Client, admin: Client
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    made = (await super_admin.post(PATH, _body(), headers=headers)).json()
    assert [item["id"] for item in await _list(admin)] == [made["id"]]
    assert await revealed(super_admin, made["id"]) == GOOD["bearer_token"]
    found = await trail(admin)
    assert [entry["action"] for entry in found] == ["revealed", "created"]
    assert {entry["actor_id"] for entry in found} == {super_admin.user_id}
    assert await trail(super_admin, made["id"]) == found


# Who may


def _check_refusal(answer: httpx.Response, role: str, permission: str) -> None:
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": permission, "your_role": role}


@pytest.mark.parametrize("role", ROLES)
async def test_reading_needs_a_permission(world: World, role: str) -> None:
    admin = await world.user("tenant_admin")
    caller = await world.user(role, admin.tenant_id)
    one = f"{PATH}/{(await create(admin))['id']}"
    for path in (PATH, f"{PATH}/types", f"{PATH}/audit", one, f"{one}/audit", f"{one}/access"):
        answer = await caller.get(path)
        if role in WRITERS:
            assert answer.status_code == 200
        else:
            _check_refusal(answer, role, "credentials:read")


@pytest.mark.parametrize("role", ROLES)
async def test_writing_needs_a_permission(world: World, role: str) -> None:
    admin = await world.user("tenant_admin")
    caller = await world.user(role, admin.tenant_id)
    made = await create(admin, metadata={"test_url": "http://127.0.0.1:1/"})
    rule = await grant(admin, made["id"])
    steps = [("POST", PATH, _body())] + [
        step for step in _everywhere(made["id"], rule["id"]) if step[0] != "GET"
    ]
    for method, path, body in steps:
        answer = await caller(method, path, json=body)
        if role in WRITERS:
            assert answer.status_code in {200, 201, 204}, answer.text
        else:
            _check_refusal(answer, role, "credentials:write")
            assert await shown(admin, made["id"]) == made


@pytest.mark.parametrize("role", ROLES)
async def test_revealing_needs_a_permission_of_its_own(world: World, role: str) -> None:
    admin = await world.user("tenant_admin")
    caller = await world.user(role, admin.tenant_id)
    made = await create(admin)
    answer = await caller.get(f"{PATH}/{made['id']}/reveal")
    if role in REVEALERS:
        assert answer.status_code == 200
        assert answer.json() == {
            "id": made["id"],
            "type": "bearer_token",
            "secrets": GOOD["bearer_token"],
        }
    else:
        _check_refusal(answer, role, "credentials:reveal")
        assert "planted-token" not in answer.text


async def test_a_developer_who_tries_to_reveal_is_written_down(world: World) -> None:
    admin = await world.user("tenant_admin")
    developer = await world.user("agent_developer", admin.tenant_id)
    made = await create(admin)
    await developer.get(f"{PATH}/{made['id']}/reveal")
    (latest, _created) = await trail(admin, made["id"])
    assert (latest["action"], latest["success"]) == ("denied", False)
    assert (latest["actor_type"], latest["actor_id"]) == ("user", developer.user_id)
    assert latest["ip_address"] == developer.address


async def test_a_developer_learns_nothing_of_another_tenant_by_trying_to_reveal(
    world: World,
) -> None:
    admin = await world.user("tenant_admin")
    developer = await world.user("agent_developer")
    made = await create(admin)
    theirs = await developer.get(f"{PATH}/{made['id']}/reveal")
    nobody_s = await developer.get(f"{PATH}/crd_nothing/reveal")
    _check_refusal(theirs, "agent_developer", "credentials:reveal")
    assert nobody_s.json() == theirs.json()
    assert [entry["action"] for entry in await trail(admin)] == ["created"]


@pytest.mark.parametrize("path", ["", "/types", "/audit", "/crd_x", "/crd_x/reveal"])
async def test_nobody_comes_in_without_signing_in(anonymous: Client, path: str) -> None:
    refused(await anonymous.get(PATH + path), 401, "unauthorized")


# Secrets


@pytest.mark.parametrize("type_", TYPES)
async def test_secrets_come_back_only_by_revealing(admin: Client, type_: str) -> None:
    made = await create(admin, type_)
    one = f"{PATH}/{made['id']}"
    answers = [
        await admin.get(one),
        await admin.get(PATH),
        await admin.put(one, {"name": "Other"}),
        await admin.put(f"{one}/secrets", {"secrets": GOOD[type_]}),
        await admin.get(f"{one}/audit"),
        await admin.get(f"{PATH}/audit"),
    ]
    assert all("planted" not in answer.text for answer in answers)
    assert "planted" not in str(made)
    assert await revealed(admin, made["id"]) == GOOD[type_]


async def test_what_was_revealed_is_kept_by_no_cache(admin: Client) -> None:
    made = await create(admin)
    answer = await admin.get(f"{PATH}/{made['id']}/reveal")
    assert answer.headers["cache-control"] == "no-store"


async def test_without_an_audit_trail_nothing_is_revealed(
    admin: Client, services: Services
) -> None:
    made = await create(admin)
    await sql(
        services,
        "UPDATE credential_audit_chains SET key = 'x' WHERE tenant_id = $1",
        admin.tenant_id,
    )
    answer = await admin.get(f"{PATH}/{made['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "planted-token" not in answer.text


async def test_secrets_moved_to_another_row_do_not_open(world: World, services: Services) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    theirs, ours = await create(there, secrets={"token": "theirs-alone"}), await create(here)
    await sql(
        services,
        "UPDATE credentials SET secrets = (SELECT secrets FROM credentials WHERE id = $1) "
        "WHERE id = $2",
        theirs["id"],
        ours["id"],
    )
    answer = await here.get(f"{PATH}/{ours['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "theirs-alone" not in answer.text


# Events


async def test_what_happens_to_a_credential_is_told_without_its_secrets(admin: Client) -> None:
    made = await create(admin, name="Ours")
    one = f"{PATH}/{made['id']}"
    await admin.put(one, {"name": "New", "metadata": {"a": 1}, "secrets": {"token": "planted-2"}})
    await admin.put(f"{one}/secrets", {"secrets": {"token": "planted-3"}})
    rule = await grant(admin, made["id"])
    await admin.delete(f"{one}/access/{rule['id']}")
    await admin.delete(one)
    base = {"credential_id": made["id"], "name": "New", "credential_type": "bearer_token"}
    assert await told(admin) == [
        base,
        {**base, "changed": ["access"]},
        {**base, "changed": ["access"]},
        {**base, "changed": ["secrets"]},
        {**base, "changed": ["name", "metadata", "secrets"]},
        {**base, "name": "Ours"},
    ]
    assert "planted" not in (await admin.get("/api/v1/event-log")).text


@pytest.mark.parametrize("key", ["test_url", "allowed_hosts"])
async def test_who_may_not_reveal_does_not_say_where_the_secrets_go(
    world: World, admin: Client, key: str
) -> None:
    made = await create(admin)
    developer = await world.user("agent_developer", admin.tenant_id)
    value = "https://evil.example.com/" if key == "test_url" else ["evil.example.com"]
    path = f"/v1/credentials/{made['id']}"
    answer = await developer.put(path, {"metadata": {key: value}})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:reveal"
    assert (await admin.put(path, {"metadata": {key: value}})).status_code == 200


@pytest.mark.parametrize("hosts", ["evil.example.com", [1], [""], {}])
async def test_allowed_hosts_are_a_list_of_names(admin: Client, hosts: object) -> None:
    body = {
        "name": "One",
        "type": "bearer_token",
        "secrets": {"token": "tkn-0123456789"},
        "metadata": {"allowed_hosts": hosts},
    }
    answer = await admin.post("/v1/credentials", body)
    details = refused(answer, 422, "validation_error")["details"]
    assert next(iter(details)).startswith("metadata.allowed_hosts")

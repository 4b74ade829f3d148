"""What roles may do: shown to administrators, changed by super_admin for the whole instance."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.areas import AREAS
from app.security.sessions import bump_grants
from app.services import Services
from db.session import ALL_TENANTS
from tests.server import Server
from tests.world import Client, World

ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
ADMINS, NO_ADMINS, BELOW = ROLES[:2], ROLES[2:], ROLES[1:]
# Those that the interface names; the catalogue holds more.
NAMED = {
    *("agents:read", "agents:write", "agents:delete", "agents:chat"),
    *("workflows:read", "workflows:write", "workflows:execute"),
    *("forms:read", "forms:write", "forms:submit"),
    *("tools:read", "tools:write"),
    *("conversations:read", "conversations:write"),
    *("data_tables:read", "data_tables:write"),
    "admin:users",
}
READER = AREAS.default_grants["viewer"]


@pytest.fixture(autouse=True)
async def _grants_stay(services: Services) -> AsyncIterator[None]:
    """Grants are of the whole instance: whatever a test changes is as before when it ends."""
    before = await _rows(services)
    try:
        yield
    finally:
        if await _rows(services) != before:
            async with services.db.tx(ALL_TENANTS) as tx:
                version = await bump_grants(tx)
                raw = await tx.raw()
                await raw.execute("DELETE FROM role_grants")
                await raw.executemany(
                    "INSERT INTO role_grants (role, permission) VALUES ($1, $2)", sorted(before)
                )
            await services.session_cache.change_grants(version)


async def _rows(services: Services) -> set[tuple[str, str]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
    return {(row["role"], row["permission"]) for row in rows}


async def _put(caller: Client, role: str, permissions: object, **more: Any) -> httpx.Response:
    return await caller.put(f"/roles/{role}/permissions", {"permissions": permissions}, **more)


async def _change(caller: Client, role: str, *permissions: str) -> None:
    answer = await _put(caller, role, permissions)
    assert answer.status_code == 200, answer.text


async def _reads_events(caller: Client) -> int:
    """The status of a request that needs events:read."""
    return (await caller.get("/api/v1/event-log")).status_code


# The catalogue


@pytest.mark.parametrize("role", ADMINS)
async def test_the_catalogue_is_shown_to_administrators(world: World, role: str) -> None:
    answer = await (await world.user(role)).get("/permissions")
    assert answer.status_code == 200
    assert set(answer.json()) == {"permissions"}


async def test_the_catalogue_is_whole(admin: Client) -> None:
    shown = [item["key"] for item in (await admin.get("/permissions")).json()["permissions"]]
    assert len(shown) == len(AREAS.permission_keys)
    assert set(shown) == AREAS.permission_keys


async def test_the_catalogue_holds_what_the_interface_names(admin: Client) -> None:
    shown = {item["key"] for item in (await admin.get("/permissions")).json()["permissions"]}
    assert shown >= NAMED


async def test_a_permission_is_a_key_a_description_and_a_category(admin: Client) -> None:
    shown = (await admin.get("/permissions")).json()["permissions"]
    wrong = [
        item
        for item in shown
        if set(item) != {"key", "description", "category"}
        or item["category"] != item["key"].partition(":")[0]
        or not item["description"]
    ]
    assert wrong == []


@pytest.mark.parametrize("path", ["/permissions", "/roles/viewer/permissions"])
@pytest.mark.parametrize("role", NO_ADMINS)
async def test_who_is_no_admin_sees_neither_catalogue_nor_roles(
    world: World, role: str, path: str
) -> None:
    answer = await (await world.user(role)).get(path)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "admin:users", "your_role": role}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/permissions"),
        ("GET", "/me/permissions"),
        ("GET", "/roles/viewer/permissions"),
        ("PUT", "/roles/viewer/permissions"),
    ],
)
async def test_nothing_of_it_is_there_without_a_login(
    anonymous: Client, method: str, path: str
) -> None:
    assert (await anonymous(method, path)).status_code == 401


# What a role may do


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("caller", ADMINS)
async def test_a_role_is_shown_with_its_permissions(world: World, caller: str, role: str) -> None:
    answer = await (await world.user(caller)).get(f"/roles/{role}/permissions")
    assert answer.status_code == 200
    assert answer.json() == {"role": role, "permissions": sorted(AREAS.default_grants[role])}


@pytest.mark.parametrize("role", ["owner", "Viewer", "super-admin", "viewer ", "%", "x" * 500])
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_a_role_that_does_not_exist_is_404(
    super_admin: Client, method: str, role: str
) -> None:
    body: dict[str, Any] = {"json": {"permissions": []}} if method == "PUT" else {}
    answer = await super_admin(method, f"/roles/{role}/permissions", **body)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "role_not_found"


# What I may do


@pytest.mark.parametrize("role", ROLES)
async def test_everybody_sees_their_own_permissions_sorted(world: World, role: str) -> None:
    answer = await (await world.user(role)).get("/me/permissions")
    assert answer.status_code == 200
    assert answer.json() == {"role": role, "permissions": sorted(AREAS.default_grants[role])}


async def test_ones_own_permissions_follow_the_grants(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    before = (await viewer.get("/me/permissions")).json()["permissions"]
    await _change(super_admin, "viewer", "tools:read", "agents:chat")
    after = (await viewer.get("/me/permissions")).json()["permissions"]
    assert (before, after) == (sorted(READER), ["agents:chat", "tools:read"])


async def test_super_admins_permissions_are_the_same_in_another_tenant(
    super_admin: Client, admin: Client
) -> None:
    answer = await super_admin.get("/me/permissions", headers={"x-tenant-id": admin.tenant_id})
    assert answer.json() == {"role": "super_admin", "permissions": sorted(AREAS.permission_keys)}


# Change


async def test_changed_permissions_are_answered_sorted(super_admin: Client) -> None:
    answer = await _put(super_admin, "viewer", ["tools:read", "agents:chat", "forms:read"])
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"role", "permissions", "message"}
    assert body["role"] == "viewer"
    assert body["permissions"] == ["agents:chat", "forms:read", "tools:read"]


async def test_changed_permissions_are_there_when_they_are_read_again(
    super_admin: Client,
) -> None:
    await _change(super_admin, "viewer", "tools:read", "agents:chat")
    answer = await super_admin.get("/roles/viewer/permissions")
    assert answer.json() == {"role": "viewer", "permissions": ["agents:chat", "tools:read"]}


@pytest.mark.parametrize("role", BELOW)
async def test_the_permissions_of_each_role_below_can_be_changed(
    super_admin: Client, role: str
) -> None:
    await _change(super_admin, role, "agents:read", "usage:read")
    answer = await super_admin.get(f"/roles/{role}/permissions")
    assert answer.json()["permissions"] == ["agents:read", "usage:read"]


async def test_a_change_of_one_role_leaves_the_others_alone(
    super_admin: Client, services: Services
) -> None:
    before = {row for row in await _rows(services) if row[0] != "viewer"}
    await _change(super_admin, "viewer", "usage:read")
    assert {row for row in await _rows(services) if row[0] != "viewer"} == before


async def test_a_new_permission_holds_on_the_next_request_of_every_user_of_the_role(
    world: World, super_admin: Client
) -> None:
    viewers = [await world.user("viewer") for _ in range(3)]
    before = [await _reads_events(viewer) for viewer in viewers]
    await _change(super_admin, "viewer", *READER, "events:read")
    after = [await _reads_events(viewer) for viewer in viewers]
    assert (before, after) == ([403] * 3, [200] * 3)


async def test_a_permission_that_is_taken_is_gone_on_the_next_request_of_every_user_of_the_role(
    world: World, super_admin: Client
) -> None:
    developers = [await world.user("agent_developer") for _ in range(3)]
    before = [await _reads_events(developer) for developer in developers]
    kept = AREAS.default_grants["agent_developer"] - {"events:read"}
    await _change(super_admin, "agent_developer", *kept)
    after = [await _reads_events(developer) for developer in developers]
    assert (before, after) == ([200] * 3, [403] * 3)


async def test_a_refusal_after_a_change_names_what_was_taken(
    developer: Client, super_admin: Client
) -> None:
    kept = AREAS.default_grants["agent_developer"] - {"events:read"}
    await _change(super_admin, "agent_developer", *kept)
    answer = await developer.get("/api/v1/event-log")
    assert answer.json()["error"]["details"] == {
        "required": "events:read",
        "your_role": "agent_developer",
    }


async def test_a_changed_permission_holds_when_redis_has_forgotten_it(
    world: World, super_admin: Client, services: Services
) -> None:
    viewer = await world.user("viewer")
    before = await _reads_events(viewer)
    await _change(super_admin, "viewer", *READER, "events:read")
    await services.redis.flushall()
    assert (before, await _reads_events(viewer)) == (403, 200)


async def test_a_change_ends_no_session(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    await _change(super_admin, "viewer")
    assert (await viewer.get("/auth/me")).status_code == 200


async def test_a_change_holds_in_another_process_at_once(
    world: World, super_admin: Client, server: Server
) -> None:
    viewer = await world.user("viewer")
    headers = {"authorization": f"Bearer {viewer.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as there:
        before = (await there.get("/api/v1/event-log")).status_code
        await _change(super_admin, "viewer", *READER, "events:read")
        given = (await there.get("/api/v1/event-log")).status_code
        await _change(super_admin, "viewer", *READER)
        taken = (await there.get("/api/v1/event-log")).status_code
    assert (before, given, taken) == (403, 200, 403)


async def test_a_change_in_another_process_holds_here_at_once(
    world: World, super_admin: Client, server: Server
) -> None:
    viewer = await world.user("viewer")
    before = await _reads_events(viewer)
    headers = {"authorization": f"Bearer {super_admin.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as there:
        body = {"permissions": [*READER, "events:read"]}
        answer = await there.put("/roles/viewer/permissions", json=body)
    assert (answer.status_code, before, await _reads_events(viewer)) == (200, 403, 200)


async def test_a_role_may_be_left_with_nothing(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    answer = await _put(super_admin, "viewer", [])
    assert (answer.status_code, answer.json()["permissions"]) == (200, [])
    assert (await viewer.get("/me/permissions")).json()["permissions"] == []


async def test_what_is_named_twice_is_granted_once(super_admin: Client, services: Services) -> None:
    answer = await _put(super_admin, "viewer", ["agents:read", "forms:read"] * 500)
    assert answer.json()["permissions"] == ["agents:read", "forms:read"]
    granted = [row for row in await _rows(services) if row[0] == "viewer"]
    assert sorted(granted) == [("viewer", "agents:read"), ("viewer", "forms:read")]


async def test_the_same_permissions_again_change_nothing(
    super_admin: Client, services: Services
) -> None:
    before = await _rows(services)
    await _change(super_admin, "viewer", *READER)
    assert await _rows(services) == before


async def test_changes_at_once_leave_the_permissions_of_one_of_them(
    super_admin: Client,
) -> None:
    wanted = [
        ["agents:read", key] for key in sorted(AREAS.default_grants["tenant_admin"] - READER)[:8]
    ]
    answers = await asyncio.gather(*(_put(super_admin, "viewer", keys) for keys in wanted))
    assert {answer.status_code for answer in answers} == {200}
    left = (await super_admin.get("/roles/viewer/permissions")).json()["permissions"]
    assert left in [sorted(keys) for keys in wanted]


# What cannot be changed


async def test_an_unknown_permission_is_named_by_its_place(super_admin: Client) -> None:
    answer = await _put(super_admin, "viewer", ["agents:read", "agents:fly", "tools:read"])
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"permissions.1"}


async def test_all_unknown_permissions_are_named_at_once(super_admin: Client) -> None:
    wanted = ["", "agents:read", "Agents:Read", "agents:*", " agents:read", "*"]
    answer = await _put(super_admin, "viewer", wanted)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {
        f"permissions.{place}" for place in (0, 2, 3, 4, 5)
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "permissions"),
        ({"permissions": None}, "permissions"),
        ({"permissions": "agents:read"}, "permissions"),
        ({"permissions": {"agents:read": True}}, "permissions"),
        ({"permissions": ["agents:read"] * 1001}, "permissions"),
        ({"permissions": ["agents:read", 5]}, "permissions.1"),
        ({"permissions": [None]}, "permissions.0"),
        ({"permissions": [["agents:read"]]}, "permissions.0"),
        ({"permissions": ["x" * 101]}, "permissions.0"),
    ],
)
async def test_what_is_no_list_of_permissions_is_named(
    super_admin: Client, body: dict[str, Any], field: str
) -> None:
    answer = await super_admin.put("/roles/viewer/permissions", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


@pytest.mark.parametrize("key", ["admin:roles", "admin:tenants"])
@pytest.mark.parametrize("role", BELOW)
async def test_what_reaches_every_tenant_is_for_super_admin_only(
    super_admin: Client, role: str, key: str
) -> None:
    answer = await _put(super_admin, role, [*AREAS.default_grants[role], key])
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"permissions"}


@pytest.mark.parametrize("lost", ["admin:roles", "admin:tenants", "admin:users", "agents:read"])
async def test_super_admin_loses_no_permission(super_admin: Client, lost: str) -> None:
    answer = await _put(super_admin, "super_admin", sorted(AREAS.permission_keys - {lost}))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"permissions"}


async def test_super_admin_is_not_left_with_nothing(super_admin: Client) -> None:
    assert (await _put(super_admin, "super_admin", [])).status_code == 422


async def test_super_admin_keeps_all_that_it_has(super_admin: Client) -> None:
    answer = await _put(super_admin, "super_admin", sorted(AREAS.permission_keys))
    assert (answer.status_code, answer.json()["permissions"]) == (
        200,
        sorted(AREAS.permission_keys),
    )


@pytest.mark.parametrize(
    ("role", "wanted"),
    [
        ("viewer", ["agents:chat", "agents:fly"]),
        ("viewer", ["agents:chat", "admin:roles"]),
        ("super_admin", ["agents:chat"]),
    ],
)
async def test_a_refused_change_changes_nothing(
    super_admin: Client, services: Services, role: str, wanted: list[str]
) -> None:
    before = await _rows(services)
    answer = await _put(super_admin, role, wanted)
    assert answer.status_code == 422
    assert await _rows(services) == before


# Who may change


@pytest.mark.parametrize("target", ROLES)
@pytest.mark.parametrize("role", BELOW)
async def test_only_super_admin_changes_what_roles_may_do(
    world: World, services: Services, role: str, target: str
) -> None:
    before = await _rows(services)
    answer = await _put(await world.user(role), target, ["agents:read"])
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "admin:roles", "your_role": role}
    assert await _rows(services) == before


@pytest.mark.parametrize("role", BELOW)
async def test_even_with_the_permission_nobody_else_changes_what_roles_may_do(
    world: World, services: Services, role: str
) -> None:
    """No request grants this; a row from elsewhere must not open it either."""
    async with services.db.tx(ALL_TENANTS) as tx:
        version = await bump_grants(tx)
        raw = await tx.raw()
        await raw.execute(
            "INSERT INTO role_grants (role, permission) VALUES ($1, 'admin:roles')", role
        )
    await services.session_cache.change_grants(version)
    before = await _rows(services)
    answer = await _put(await world.user(role), role, sorted(AREAS.default_grants["tenant_admin"]))
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {
        "required": "role:super_admin",
        "your_role": role,
    }
    assert await _rows(services) == before


# The log


async def _told(super_admin: Client) -> list[dict[str, Any]]:
    """What the log of super_admin's own tenant says of changed roles."""
    answer = await super_admin.get(
        "/api/v1/event-log",
        params={"event_type": "system.role.permissions_changed"},
        headers={"x-tenant-id": super_admin.tenant_id},
    )
    return [entry["data"] for entry in answer.json()["data"]]


async def test_setting_what_is_set_already_is_no_change(super_admin: Client) -> None:
    await _change(super_admin, "viewer", *READER)
    assert await _told(super_admin) == []


async def test_a_change_is_told_with_what_came_and_what_went(super_admin: Client) -> None:
    kept = READER - {"tools:read", "forms:read"}
    await _change(super_admin, "viewer", *kept, "usage:read", "agents:chat")
    assert await _told(super_admin) == [
        {
            "role": "viewer",
            "added": ["agents:chat", "usage:read"],
            "removed": ["forms:read", "tools:read"],
        }
    ]


async def test_a_refused_change_is_not_told(super_admin: Client) -> None:
    await _put(super_admin, "viewer", ["agents:fly"])
    assert await _told(super_admin) == []


async def test_a_change_from_within_another_tenant_is_told_in_ones_own(
    super_admin: Client, admin: Client
) -> None:
    answer = await _put(
        super_admin, "viewer", ["agents:read"], headers={"x-tenant-id": admin.tenant_id}
    )
    assert answer.status_code == 200
    assert [entry["role"] for entry in await _told(super_admin)] == ["viewer"]

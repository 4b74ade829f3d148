"""GET /permissions, /roles/:role/permissions and /me/permissions."""

import itertools
from typing import Any

import pytest

from app.areas import AREAS
from tests.identity.accounts.values import ADMIN_ROLES, NON_ADMIN_ROLES, ROLES
from tests.identity.roles.api_calls import VIEWER_GRANTS, set_permissions
from tests.world import Client, World

# Keys that the documented API names; the catalogue has more.
DOCUMENTED_KEYS = {
    *("agents:read", "agents:write", "agents:delete", "agents:chat"),
    *("workflows:read", "workflows:write", "workflows:execute"),
    *("forms:read", "forms:write", "forms:submit"),
    *("tools:read", "tools:write"),
    *("conversations:read", "conversations:write"),
    *("data_tables:read", "data_tables:write"),
    "admin:users",
}


async def test_the_catalogue_is_shown_to_administrators(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ADMIN_ROLES:
        with subtests.test(role=role):
            answer = await (await world.user(role)).get("/permissions")
            assert answer.status_code == 200
            assert set(answer.json()) == {"permissions"}


async def test_the_catalogue_has_every_permission(admin: Client) -> None:
    keys = [item["key"] for item in (await admin.get("/permissions")).json()["permissions"]]
    assert len(keys) == len(AREAS.permission_keys)
    assert set(keys) == AREAS.permission_keys


async def test_the_catalogue_has_every_documented_permission(admin: Client) -> None:
    keys = {item["key"] for item in (await admin.get("/permissions")).json()["permissions"]}
    assert keys >= DOCUMENTED_KEYS


async def test_a_permission_says_what_it_permits_and_whether_it_reaches_every_tenant(
    admin: Client,
) -> None:
    permissions = (await admin.get("/permissions")).json()["permissions"]
    wrong = [
        item
        for item in permissions
        if set(item) != {"key", "description", "category", "instance_wide"}
        or item["category"] != item["key"].partition(":")[0]
        or not item["description"]
    ]
    assert wrong == []


async def test_other_roles_see_neither_catalogue_nor_roles(
    world: World, subtests: pytest.Subtests
) -> None:
    for path, role in itertools.product(
        ("/permissions", "/roles/viewer/permissions"), NON_ADMIN_ROLES
    ):
        with subtests.test(path=path, role=role):
            answer = await (await world.user(role)).get(path)
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "admin:users",
                "your_role": role,
            }


async def test_every_route_needs_a_login(anonymous: Client, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str]] = [
        ("GET", "/permissions"),
        ("GET", "/me/permissions"),
        ("GET", "/roles/viewer/permissions"),
        ("PUT", "/roles/viewer/permissions"),
    ]
    for method, path in cases:
        with subtests.test(method=method, path=path):
            assert (await anonymous(method, path)).status_code == 401


async def test_a_role_is_shown_with_its_permissions(
    world: World, subtests: pytest.Subtests
) -> None:
    for role, caller in itertools.product(ROLES, ADMIN_ROLES):
        with subtests.test(role=role, caller=caller):
            answer = await (await world.user(caller)).get(f"/roles/{role}/permissions")
            assert answer.status_code == 200
            assert answer.json() == {
                "role": role,
                "permissions": sorted(AREAS.default_grants[role]),
            }


async def test_a_role_that_does_not_exist_is_404(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for role in ("owner", "Viewer", "super-admin", "viewer ", "%", "x" * 500):
        for method in ("GET", "PUT"):
            with subtests.test(role=role, method=method):
                body: dict[str, Any] = {"json": {"permissions": []}} if method == "PUT" else {}
                answer = await super_admin(method, f"/roles/{role}/permissions", **body)
                assert answer.status_code == 404
                assert answer.json()["error"]["code"] == "role_not_found"


async def test_users_of_every_role_see_their_own_permissions_sorted(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            answer = await (await world.user(role)).get("/me/permissions")
            assert answer.status_code == 200
            assert answer.json() == {
                "role": role,
                "permissions": sorted(AREAS.default_grants[role]),
            }


async def test_own_permissions_follow_the_grants(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    before = (await viewer.get("/me/permissions")).json()["permissions"]
    await set_permissions(super_admin, "viewer", "tools:read", "agents:chat")
    after = (await viewer.get("/me/permissions")).json()["permissions"]
    assert (before, after) == (sorted(VIEWER_GRANTS), ["agents:chat", "tools:read"])


async def test_super_admins_permissions_are_the_same_in_another_tenant(
    super_admin: Client, admin: Client
) -> None:
    answer = await super_admin.get("/me/permissions", headers={"x-tenant-id": admin.tenant_id})
    assert answer.json() == {"role": "super_admin", "permissions": sorted(AREAS.permission_keys)}

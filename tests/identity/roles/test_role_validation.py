"""Changes of roles that are refused, and who may change roles."""

import itertools
from typing import Any

import pytest

from app.areas import AREAS
from app.services import Services
from tests.identity.accounts.values import ROLES, ROLES_BELOW_SUPER_ADMIN
from tests.identity.roles.api_calls import put_permissions
from tests.security.grants import fetch_grants, set_grant
from tests.world import Client, World


async def test_an_unknown_permission_is_reported_with_its_index(super_admin: Client) -> None:
    answer = await put_permissions(
        super_admin, "viewer", ["agents:read", "agents:fly", "tools:read"]
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"permissions.1"}


async def test_all_unknown_permissions_are_reported_at_once(super_admin: Client) -> None:
    keys = ["", "agents:read", "Agents:Read", "agents:*", " agents:read", "*"]
    answer = await put_permissions(super_admin, "viewer", keys)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {
        f"permissions.{index}" for index in (0, 2, 3, 4, 5)
    }


_INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "permissions"),
    ({"permissions": None}, "permissions"),
    ({"permissions": "agents:read"}, "permissions"),
    ({"permissions": {"agents:read": True}}, "permissions"),
    ({"permissions": ["agents:read"] * 1001}, "permissions"),
    ({"permissions": ["agents:read", 5]}, "permissions.1"),
    ({"permissions": [None]}, "permissions.0"),
    ({"permissions": [["agents:read"]]}, "permissions.0"),
    ({"permissions": ["x" * 101]}, "permissions.0"),
]


async def test_a_body_without_a_list_of_permissions_is_refused(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            answer = await super_admin.put("/roles/viewer/permissions", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}


async def test_instance_wide_permissions_are_for_super_admin_only(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for key, role in itertools.product(("admin:roles", "admin:tenants"), ROLES_BELOW_SUPER_ADMIN):
        with subtests.test(key=key, role=role):
            answer = await put_permissions(super_admin, role, [*AREAS.default_grants[role], key])
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"permissions"}


async def test_no_permission_of_super_admin_can_be_revoked(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for missing in ("admin:roles", "admin:tenants", "admin:users", "agents:read"):
        with subtests.test(missing=missing):
            answer = await put_permissions(
                super_admin, "super_admin", sorted(AREAS.permission_keys - {missing})
            )
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"permissions"}


async def test_super_admin_cannot_have_no_permissions(super_admin: Client) -> None:
    assert (await put_permissions(super_admin, "super_admin", [])).status_code == 422


async def test_super_admin_can_be_set_to_all_permissions(super_admin: Client) -> None:
    answer = await put_permissions(super_admin, "super_admin", sorted(AREAS.permission_keys))
    assert (answer.status_code, answer.json()["permissions"]) == (
        200,
        sorted(AREAS.permission_keys),
    )


async def test_a_refused_change_changes_nothing(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("viewer", ["agents:chat", "agents:fly"]),
        ("viewer", ["agents:chat", "admin:roles"]),
        ("super_admin", ["agents:chat"]),
    ]
    for role, permissions in cases:
        super_admin = await world.user("super_admin")
        with subtests.test(role=role, permissions=permissions):
            before = await fetch_grants(services)
            answer = await put_permissions(super_admin, role, permissions)
            assert answer.status_code == 422
            assert await fetch_grants(services) == before


async def test_only_super_admin_changes_permissions(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for role in ROLES_BELOW_SUPER_ADMIN:
        with subtests.test(role=role):
            before = await fetch_grants(services)
            for target in ROLES:
                with subtests.test(target=target):
                    answer = await put_permissions(await world.user(role), target, ["agents:read"])
                    assert answer.status_code == 403
                    assert answer.json()["error"]["details"] == {
                        "required": "admin:roles",
                        "your_role": role,
                    }
            assert await fetch_grants(services) == before


async def test_other_roles_cannot_change_permissions_even_with_the_grant(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    """No request grants admin:roles; a row that grants it has no effect either."""
    for role in ROLES_BELOW_SUPER_ADMIN:
        with subtests.test(role=role):
            await set_grant(services, role, "admin:roles", is_granted=True)
            before = await fetch_grants(services)
            answer = await put_permissions(
                await world.user(role), role, sorted(AREAS.default_grants["tenant_admin"])
            )
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "role:super_admin",
                "your_role": role,
            }
            assert await fetch_grants(services) == before

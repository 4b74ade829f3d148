"""The permission catalogue, the grants of roles, and the permissions of routes."""

import re
from typing import Any

import pytest

from app import bootstrap
from app.areas import AREAS
from app.security.permissions import ROLES, is_outranked_by
from app.services import Services
from db.models import RoleGrant
from db.session import ALL_TENANTS
from tests.security.grants import change_grant, fetch_grants
from tests.world import Client, World

READER = {"agents:read", "workflows:read", "forms:read", "tools:read"}

VIEWER = READER | {"data_tables:read"}

USER = READER | {"agents:chat", "forms:submit", "approvals:decide"}

DEVELOPER = {
    *("agents:read", "agents:write", "agents:delete", "agents:chat"),
    *("workflows:read", "workflows:write", "workflows:delete", "workflows:execute"),
    *("forms:read", "forms:write", "forms:delete", "forms:submit", "submissions:read"),
    *("tools:read", "tools:write", "tools:delete", "tools:execute"),
    *("conversations:read", "conversations:write"),
    *("data_tables:read", "data_tables:write"),
    *("webhooks:read", "webhooks:write"),
    *("events:read", "events:write"),
    *("files:read", "files:write"),
    *("approvals:read", "approvals:decide"),
    *("credentials:read", "credentials:write"),
    *("notifications:read", "notifications:write"),
    *("models:read", "usage:read"),
}

TENANT_ADMIN = DEVELOPER | {
    *("credentials:reveal", "notifications:reveal", "models:write", "admin:users", "admin:keys"),
    *("work:read", "work:write", "settings:read"),
}

SUPER_ADMIN = TENANT_ADMIN | {"admin:tenants", "admin:roles"}

# The only routes that need no login.
PUBLIC = re.compile(
    r"/(auth/|health/|openapi\.json\Z|api/v1/public/|api/v1/avatars/|webhooks/in/|f/|embed/|v1/chat/)"
)


# The catalogue


def test_every_permission_is_listed_once() -> None:
    keys = [permission.key for permission in AREAS.permissions]
    assert len(keys) == len(set(keys))


def test_a_permission_is_a_category_and_an_action_with_a_description() -> None:
    for permission in AREAS.permissions:
        assert re.fullmatch(r"[a-z_]+:[a-z_]+", permission.key)
        assert permission.category == permission.key.split(":")[0]
        assert permission.description.strip(), permission.key


def test_a_role_has_its_documented_default_grants(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("super_admin", SUPER_ADMIN),
        ("tenant_admin", TENANT_ADMIN),
        ("agent_developer", DEVELOPER),
        ("agent_user", USER),
        ("viewer", VIEWER),
    ]
    for role, expected in cases:
        with subtests.test(role=role):
            assert AREAS.default_grants[role] == expected


def test_the_catalogue_has_no_undocumented_permission() -> None:
    assert AREAS.permission_keys == SUPER_ADMIN


async def test_a_new_instance_is_seeded_with_the_default_grants(services: Services) -> None:
    assert await fetch_grants(services) == {
        (role, permission)
        for role, permissions in AREAS.default_grants.items()
        for permission in permissions
    }


def test_no_role_outranks_itself(subtests: pytest.Subtests) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            assert not is_outranked_by(role, role)


def test_each_role_is_outranked_by_those_listed_before_it() -> None:
    above = [(low, high) for low in ROLES for high in ROLES if is_outranked_by(low, high)]
    assert set(above) == {(low, high) for rank, low in enumerate(ROLES) for high in ROLES[:rank]}


# Every route


async def _list_operations(client: Client) -> list[tuple[str, str, dict[str, Any]]]:
    document = (await client.get("/openapi.json")).json()
    return [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in {"get", "post", "put", "patch", "delete"}
    ]


async def test_a_permission_that_a_route_names_exists(anonymous: Client) -> None:
    permissions = {
        operation["x-permission"]
        for _, _, operation in await _list_operations(anonymous)
        if "x-permission" in operation
    }
    assert permissions
    assert permissions <= AREAS.permission_keys


async def test_a_route_with_a_permission_needs_a_login(anonymous: Client) -> None:
    wrong = [
        (method, path)
        for method, path, operation in await _list_operations(anonymous)
        if "x-permission" in operation and not operation.get("security")
    ]
    assert wrong == []


async def test_only_the_known_public_routes_need_no_login(anonymous: Client) -> None:
    public = [
        path
        for _, path, operation in await _list_operations(anonymous)
        if not operation.get("security")
    ]
    assert public
    assert [path for path in public if not PUBLIC.match(path)] == []


async def test_every_route_that_needs_a_login_refuses_without_one(anonymous: Client) -> None:
    answers = {
        (method, path): (await anonymous(method, re.sub(r"{\w+}", "x_1", path))).status_code
        for method, path, operation in await _list_operations(anonymous)
        if operation.get("security")
    }
    assert answers
    assert set(answers.values()) == {401}


# The check


_REFUSALS: list[tuple[str, str, str, str]] = [
    ("viewer", "GET", "/api/v1/event-log", "events:read"),
    ("agent_user", "GET", "/api/v1/event-log/evt_x", "events:read"),
    ("agent_developer", "POST", "/users/invite", "admin:users"),
    ("agent_developer", "GET", "/api/v1/tenants", "admin:tenants"),
    ("tenant_admin", "GET", "/api/v1/tenants", "admin:tenants"),
    ("tenant_admin", "POST", "/api/v1/tenants", "admin:tenants"),
    ("tenant_admin", "DELETE", "/api/v1/tenants/ten_x", "admin:tenants"),
]


async def test_a_refusal_names_the_permission_and_the_role(
    world: World, subtests: pytest.Subtests
) -> None:
    for role, method, path, permission in _REFUSALS:
        with subtests.test(role=role, method=method):
            answer = await (await world.user(role))(method, path)
            assert answer.status_code == 403
            error = answer.json()["error"]
            assert error["code"] == "forbidden"
            assert error["details"] == {"required": permission, "your_role": role}


async def test_the_permission_is_checked_before_the_body_is_read(developer: Client) -> None:
    assert (await developer("POST", "/users/invite", content=b"{")).status_code == 403


# Changed grants


async def _get_log_status(client: Client) -> int:
    return (await client.get("/api/v1/event-log")).status_code


async def test_a_new_grant_applies_to_the_next_request_of_a_session(
    world: World, services: Services
) -> None:
    viewer = await world.user("viewer")
    before = await _get_log_status(viewer)
    async with change_grant(services, "viewer", "events:read", is_granted=True):
        assert (before, await _get_log_status(viewer)) == (403, 200)


async def test_a_revoked_grant_does_not_apply_to_the_next_request(
    developer: Client, services: Services
) -> None:
    before = await _get_log_status(developer)
    async with change_grant(services, "agent_developer", "events:read", is_granted=False):
        assert (before, await _get_log_status(developer)) == (200, 403)


async def test_a_restored_grant_applies_again(developer: Client, services: Services) -> None:
    async with change_grant(services, "agent_developer", "events:read", is_granted=False):
        assert await _get_log_status(developer) == 403
    assert await _get_log_status(developer) == 200


async def test_a_changed_grant_applies_after_redis_lost_its_data(
    developer: Client, services: Services
) -> None:
    await _get_log_status(developer)
    async with change_grant(services, "agent_developer", "events:read", is_granted=False):
        await services.redis.flushall()
        assert await _get_log_status(developer) == 403


async def test_a_changed_grant_of_one_role_does_not_affect_another(
    developer: Client, services: Services
) -> None:
    async with change_grant(services, "viewer", "events:read", is_granted=True):
        assert await _get_log_status(developer) == 200


async def test_a_restart_keeps_changed_grants(services: Services) -> None:
    async with change_grant(services, "viewer", "events:read", is_granted=True):
        await bootstrap.prepare(services.db, services.keyring, "enterprise")
        async with services.db.tx(ALL_TENANTS) as tx:
            grant = await (await tx.session()).get(RoleGrant, ("viewer", "events:read"))
    assert grant is not None

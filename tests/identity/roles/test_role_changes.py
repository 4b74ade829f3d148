"""Changed permissions of roles, and when they apply."""

import asyncio

import pytest

from app.areas import AREAS
from app.services import Services
from tests.http_clients import open_client
from tests.identity.accounts.values import ROLES_BELOW_SUPER_ADMIN
from tests.identity.roles.api_calls import VIEWER_GRANTS, put_permissions, set_permissions
from tests.security.grants import fetch_grants
from tests.server import Server
from tests.world import Client, World


async def _read_events_status(caller: Client) -> int:
    """Returns the status of a request that needs events:read."""
    return (await caller.get("/api/v1/event-log")).status_code


async def test_a_change_returns_the_permissions_sorted(super_admin: Client) -> None:
    answer = await put_permissions(
        super_admin, "viewer", ["tools:read", "agents:chat", "forms:read"]
    )
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"role", "permissions", "message"}
    assert body["role"] == "viewer"
    assert body["permissions"] == ["agents:chat", "forms:read", "tools:read"]


async def test_changed_permissions_are_stored(
    super_admin: Client,
) -> None:
    await set_permissions(super_admin, "viewer", "tools:read", "agents:chat")
    answer = await super_admin.get("/roles/viewer/permissions")
    assert answer.json() == {"role": "viewer", "permissions": ["agents:chat", "tools:read"]}


async def test_the_permissions_of_every_other_role_can_be_changed(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES_BELOW_SUPER_ADMIN:
        super_admin = await world.user("super_admin")
        with subtests.test(role=role):
            await set_permissions(super_admin, role, "agents:read", "usage:read")
            answer = await super_admin.get(f"/roles/{role}/permissions")
            assert answer.json()["permissions"] == ["agents:read", "usage:read"]


async def test_a_change_of_one_role_does_not_affect_the_others(
    super_admin: Client, services: Services
) -> None:
    before = {row for row in await fetch_grants(services) if row[0] != "viewer"}
    await set_permissions(super_admin, "viewer", "usage:read")
    assert {row for row in await fetch_grants(services) if row[0] != "viewer"} == before


async def test_a_granted_permission_applies_to_the_next_request_of_every_user_of_the_role(
    world: World, super_admin: Client
) -> None:
    viewers = [await world.user("viewer") for _ in range(3)]
    before = [await _read_events_status(viewer) for viewer in viewers]
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS, "events:read")
    after = [await _read_events_status(viewer) for viewer in viewers]
    assert (before, after) == ([403] * 3, [200] * 3)


async def test_a_revoked_permission_is_refused_on_the_next_request_of_every_user_of_the_role(
    world: World, super_admin: Client
) -> None:
    developers = [await world.user("agent_developer") for _ in range(3)]
    before = [await _read_events_status(developer) for developer in developers]
    permissions = AREAS.default_grants["agent_developer"] - {"events:read"}
    await set_permissions(super_admin, "agent_developer", *permissions)
    after = [await _read_events_status(developer) for developer in developers]
    assert (before, after) == ([200] * 3, [403] * 3)


async def test_a_refusal_after_a_change_names_the_revoked_permission(
    developer: Client, super_admin: Client
) -> None:
    permissions = AREAS.default_grants["agent_developer"] - {"events:read"}
    await set_permissions(super_admin, "agent_developer", *permissions)
    answer = await developer.get("/api/v1/event-log")
    assert answer.json()["error"]["details"] == {
        "required": "events:read",
        "your_role": "agent_developer",
    }


async def test_a_changed_permission_applies_after_redis_lost_its_data(
    world: World, super_admin: Client, services: Services
) -> None:
    viewer = await world.user("viewer")
    before = await _read_events_status(viewer)
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS, "events:read")
    await services.redis.flushall()
    assert (before, await _read_events_status(viewer)) == (403, 200)


async def test_a_change_ends_no_session(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    await set_permissions(super_admin, "viewer")
    assert (await viewer.get("/auth/me")).status_code == 200


async def test_a_change_applies_to_another_process_at_once(
    world: World, super_admin: Client, server: Server
) -> None:
    viewer = await world.user("viewer")
    headers = {"authorization": f"Bearer {viewer.token}"}
    async with open_client(base_url=server.url, headers=headers) as client:
        before = (await client.get("/api/v1/event-log")).status_code
        await set_permissions(super_admin, "viewer", *VIEWER_GRANTS, "events:read")
        granted = (await client.get("/api/v1/event-log")).status_code
        await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)
        revoked = (await client.get("/api/v1/event-log")).status_code
    assert (before, granted, revoked) == (403, 200, 403)


async def test_a_change_in_another_process_applies_to_this_one_at_once(
    world: World, super_admin: Client, server: Server
) -> None:
    viewer = await world.user("viewer")
    before = await _read_events_status(viewer)
    headers = {"authorization": f"Bearer {super_admin.token}"}
    async with open_client(base_url=server.url, headers=headers) as client:
        body = {"permissions": [*VIEWER_GRANTS, "events:read"]}
        answer = await client.put("/roles/viewer/permissions", json=body)
    assert (answer.status_code, before, await _read_events_status(viewer)) == (200, 403, 200)


async def test_a_role_may_have_no_permissions(world: World, super_admin: Client) -> None:
    viewer = await world.user("viewer")
    answer = await put_permissions(super_admin, "viewer", [])
    assert (answer.status_code, answer.json()["permissions"]) == (200, [])
    assert (await viewer.get("/me/permissions")).json()["permissions"] == []


async def test_repeated_permissions_are_granted_once(
    super_admin: Client, services: Services
) -> None:
    answer = await put_permissions(super_admin, "viewer", ["agents:read", "forms:read"] * 500)
    assert answer.json()["permissions"] == ["agents:read", "forms:read"]
    granted = [row for row in await fetch_grants(services) if row[0] == "viewer"]
    assert sorted(granted) == [("viewer", "agents:read"), ("viewer", "forms:read")]


async def test_the_same_permissions_again_change_nothing(
    super_admin: Client, services: Services
) -> None:
    before = await fetch_grants(services)
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)
    assert await fetch_grants(services) == before


async def test_of_concurrent_changes_one_is_stored(
    super_admin: Client,
) -> None:
    key_lists = [
        ["agents:read", key]
        for key in sorted(AREAS.default_grants["tenant_admin"] - VIEWER_GRANTS)[:8]
    ]
    answers = await asyncio.gather(
        *(put_permissions(super_admin, "viewer", keys) for keys in key_lists)
    )
    assert {answer.status_code for answer in answers} == {200}
    stored = (await super_admin.get("/roles/viewer/permissions")).json()["permissions"]
    assert stored in [sorted(keys) for keys in key_lists]

"""The tenant that super_admin selects with X-Tenant-ID."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.kit.ids import new_id
from tests.world import Client, World

Invite = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def invite() -> Invite:
    async def send(caller: Client, headers: dict[str, str] | None = None) -> dict[str, Any]:
        body = {"email": f"{new_id('mail')}@example.com", "role": "viewer"}
        answer = await caller.post("/users/invite", body, headers=headers)
        assert answer.status_code == 201, answer.text
        invitation: dict[str, Any] = answer.json()
        return invitation

    return send


async def _list_invitation_ids(caller: Client, **headers: str) -> set[str]:
    """Returns the ids of the invitations in the caller's event log."""
    answer = await caller.get(
        "/api/v1/event-log",
        params={"event_type": "system.user.invited", "per_page": 100},
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    assert answer.status_code == 200, answer.text
    return {entry["data"]["invitation_id"] for entry in answer.json()["data"]}


@pytest.fixture
async def other_admin(world: World) -> Client:
    return await world.user("tenant_admin")


async def test_super_admin_sees_every_tenants_things_in_a_list(
    super_admin: Client, admin: Client, other_admin: Client, invite: Invite
) -> None:
    invitation_ids = {(await invite(caller))["id"] for caller in (admin, other_admin)}
    assert invitation_ids <= await _list_invitation_ids(super_admin)


async def test_the_header_narrows_a_list_to_one_tenant(
    super_admin: Client, admin: Client, other_admin: Client, invite: Invite
) -> None:
    invitation = await invite(admin)
    await invite(other_admin)
    assert await _list_invitation_ids(super_admin, x_tenant_id=admin.tenant_id) == {
        invitation["id"]
    }


async def test_the_header_hides_another_tenants_thing_by_id(
    super_admin: Client, admin: Client, other_admin: Client, invite: Invite
) -> None:
    await invite(admin)
    event = (await admin.get("/api/v1/event-log")).json()["data"][0]["id"]
    narrowed = {"x-tenant-id": other_admin.tenant_id}
    answer = await super_admin.get(f"/api/v1/event-log/{event}", headers=narrowed)
    assert answer.status_code == 404


async def test_super_admin_creates_in_its_own_tenant_by_default(
    super_admin: Client, invite: Invite
) -> None:
    assert (await invite(super_admin))["tenant_id"] == super_admin.tenant_id


async def test_the_header_decides_where_a_create_goes(
    super_admin: Client, admin: Client, invite: Invite
) -> None:
    invitation = await invite(super_admin, {"x-tenant-id": admin.tenant_id})
    assert invitation["tenant_id"] == admin.tenant_id


async def test_what_was_created_in_another_tenant_is_in_that_tenants_log(
    super_admin: Client, admin: Client, invite: Invite
) -> None:
    invitation = await invite(super_admin, {"x-tenant-id": admin.tenant_id})
    assert await _list_invitation_ids(admin) == {invitation["id"]}


async def test_one_tenant_in_the_header_and_another_in_the_body_is_no_crash(
    super_admin: Client, admin: Client, other_admin: Client
) -> None:
    body = {"email": "a@b.example", "role": "viewer", "tenant_id": other_admin.tenant_id}
    narrowed = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.post("/users/invite", body, headers=narrowed)
    assert answer.status_code in {403, 404, 422}


@pytest.mark.parametrize("path", ["/api/v1/event-log", "/auth/me"])
async def test_a_header_that_names_no_tenant_is_404(super_admin: Client, path: str) -> None:
    answer = await super_admin.get(path, headers={"x-tenant-id": "ten_nothing"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "tenant_not_found"


async def test_super_admin_is_still_itself_in_another_tenant(
    super_admin: Client, admin: Client
) -> None:
    answer = await super_admin.get("/auth/me", headers={"x-tenant-id": admin.tenant_id})
    assert answer.status_code == 200
    assert answer.json()["id"] == super_admin.user_id


async def test_the_header_means_nothing_in_a_tenant_admins_list(
    admin: Client, other_admin: Client, invite: Invite
) -> None:
    invitation = await invite(admin)
    await invite(other_admin)
    assert await _list_invitation_ids(admin, x_tenant_id=other_admin.tenant_id) == {
        invitation["id"]
    }


async def test_the_header_means_nothing_in_a_tenant_admins_create(
    admin: Client, other_admin: Client, invite: Invite
) -> None:
    invitation = await invite(admin, {"x-tenant-id": other_admin.tenant_id})
    assert invitation["tenant_id"] == admin.tenant_id


async def test_a_tenant_admin_learns_nothing_from_a_header_that_names_no_tenant(
    admin: Client,
) -> None:
    answer = await admin.get("/auth/me", headers={"x-tenant-id": "ten_nothing"})
    assert answer.status_code == 200

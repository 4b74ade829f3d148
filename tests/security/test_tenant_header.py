"""The tenant that super_admin selects with X-Tenant-ID."""

import pytest

from tests.identity.accounts.api_calls import invitation_body, invite
from tests.world import Client, World


async def _list_invitation_ids(caller: Client, headers: dict[str, str] | None = None) -> set[str]:
    """Returns the ids of the invitations in the caller's event log."""
    params = {"event_type": "system.user.invited", "per_page": 100}
    answer = await caller.get("/api/v1/event-log", params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return {entry["data"]["invitation_id"] for entry in answer.json()["data"]}


@pytest.fixture
async def other_admin(world: World) -> Client:
    return await world.user("tenant_admin")


async def test_super_admin_lists_rows_of_every_tenant(
    super_admin: Client, admin: Client, other_admin: Client
) -> None:
    invitation_ids = {(await invite(caller))["id"] for caller in (admin, other_admin)}
    assert invitation_ids <= await _list_invitation_ids(super_admin)


async def test_the_header_narrows_a_list_to_one_tenant(
    super_admin: Client, admin: Client, other_admin: Client
) -> None:
    invitation = await invite(admin)
    await invite(other_admin)
    headers = {"x-tenant-id": admin.tenant_id}
    assert await _list_invitation_ids(super_admin, headers) == {invitation["id"]}


async def test_the_header_hides_a_row_of_another_tenant(
    super_admin: Client, admin: Client, other_admin: Client
) -> None:
    await invite(admin)
    event_id = (await admin.get("/api/v1/event-log")).json()["data"][0]["id"]
    headers = {"x-tenant-id": other_admin.tenant_id}
    answer = await super_admin.get(f"/api/v1/event-log/{event_id}", headers=headers)
    assert answer.status_code == 404


async def test_super_admin_creates_rows_in_its_own_tenant_by_default(super_admin: Client) -> None:
    assert (await invite(super_admin))["tenant_id"] == super_admin.tenant_id


async def test_the_header_selects_the_tenant_of_a_new_row(
    super_admin: Client, admin: Client
) -> None:
    invitation = await invite(super_admin, headers={"x-tenant-id": admin.tenant_id})
    assert invitation["tenant_id"] == admin.tenant_id


async def test_the_event_of_a_row_created_in_another_tenant_is_in_that_tenants_log(
    super_admin: Client, admin: Client
) -> None:
    invitation = await invite(super_admin, headers={"x-tenant-id": admin.tenant_id})
    assert await _list_invitation_ids(admin) == {invitation["id"]}


async def test_different_tenants_in_header_and_body_are_refused(
    super_admin: Client, admin: Client, other_admin: Client
) -> None:
    body = invitation_body(tenant_id=other_admin.tenant_id)
    headers = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.post("/users/invite", body, headers=headers)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"tenant_id"}


async def test_an_unknown_tenant_in_the_header_is_404(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for path in ("/api/v1/event-log", "/auth/me"):
        with subtests.test(path=path):
            answer = await super_admin.get(path, headers={"x-tenant-id": "ten_nothing"})
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "tenant_not_found"


async def test_super_admin_acting_in_another_tenant_is_the_same_user(
    super_admin: Client, admin: Client
) -> None:
    answer = await super_admin.get("/auth/me", headers={"x-tenant-id": admin.tenant_id})
    assert answer.status_code == 200
    assert answer.json()["id"] == super_admin.user_id


async def test_the_header_has_no_effect_on_a_tenant_admins_list(
    admin: Client, other_admin: Client
) -> None:
    invitation = await invite(admin)
    await invite(other_admin)
    headers = {"x-tenant-id": other_admin.tenant_id}
    assert await _list_invitation_ids(admin, headers) == {invitation["id"]}


async def test_the_header_has_no_effect_on_a_new_row_of_a_tenant_admin(
    admin: Client, other_admin: Client
) -> None:
    invitation = await invite(admin, headers={"x-tenant-id": other_admin.tenant_id})
    assert invitation["tenant_id"] == admin.tenant_id


async def test_an_unknown_tenant_in_the_header_has_no_effect_for_a_tenant_admin(
    admin: Client,
) -> None:
    answer = await admin.get("/auth/me", headers={"x-tenant-id": "ten_nothing"})
    assert answer.status_code == 200

"""Listing and revoking invitations."""

from typing import Any

import pytest

from app.services import Services
from tests.identity.accounts.api_calls import invite, join
from tests.identity.accounts.records import execute
from tests.identity.accounts.values import NON_ADMIN_ROLES
from tests.world import Client, World

ENTRY_KEYS = {
    "id",
    "email",
    "role",
    "tenant_id",
    "invited_by",
    "status",
    "created_at",
    "expires_at",
}


async def _list_invitations(admin: Client, **query: object) -> list[dict[str, Any]]:
    answer = await admin.get("/users/invitations", params=query)
    entries: list[dict[str, Any]] = answer.json()["data"]
    return entries


async def _join(client: Client, invitation: dict[str, Any]) -> int:
    return await join(client, invitation["email"], invitation["invitation_token"])


async def test_an_invitation_is_listed_without_its_token(admin: Client) -> None:
    invitation = await invite(admin)
    (entry,) = await _list_invitations(admin)
    assert set(entry) == ENTRY_KEYS
    assert (entry["id"], entry["status"], entry["invited_by"]) == (
        invitation["id"],
        "pending",
        admin.user_id,
    )


async def test_a_used_invitation_is_listed_as_used(admin: Client, anonymous: Client) -> None:
    await _join(anonymous, await invite(admin))
    assert [entry["status"] for entry in await _list_invitations(admin)] == ["used"]


async def test_an_expired_invitation_is_listed_as_expired(
    admin: Client, services: Services
) -> None:
    invitation = await invite(admin)
    sql = "UPDATE invitations SET expires_at = now() WHERE id = $1"
    await execute(services, sql, invitation["id"])
    assert [entry["status"] for entry in await _list_invitations(admin)] == ["expired"]


async def test_the_newest_invitation_comes_first(admin: Client) -> None:
    invitation_ids = [(await invite(admin))["id"] for _ in range(3)]
    assert [entry["id"] for entry in await _list_invitations(admin)] == invitation_ids[::-1]


async def test_invitations_come_in_pages(admin: Client) -> None:
    invitation_ids = [(await invite(admin))["id"] for _ in range(3)]
    entries = await _list_invitations(admin, page=2, per_page=2, sort="created_at")
    assert [entry["id"] for entry in entries] == invitation_ids[2:]


async def test_an_unknown_sort_is_refused(admin: Client) -> None:
    answer = await admin.get("/users/invitations", params={"sort": "token_hash"})
    assert answer.status_code == 422


async def test_a_revoked_invitation_cannot_be_used(admin: Client, anonymous: Client) -> None:
    invitation = await invite(admin)
    answer = await admin.post(f"/users/invitations/{invitation['id']}/revoke")
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert await _join(anonymous, invitation) == 422


async def test_an_invitation_is_revoked_as_in_release_0_1_0(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    answer = await admin.delete(f"/users/invitations/{invitation['id']}")
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert await _join(anonymous, invitation) == 422


async def test_a_revoked_invitation_is_not_found(admin: Client) -> None:
    invitation = await invite(admin)
    await admin.post(f"/users/invitations/{invitation['id']}/revoke")
    answer = await admin.post(f"/users/invitations/{invitation['id']}/revoke")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "invitation_not_found")


async def test_a_used_invitation_cannot_be_revoked(admin: Client, anonymous: Client) -> None:
    invitation = await invite(admin)
    await _join(anonymous, invitation)
    assert (await admin.post(f"/users/invitations/{invitation['id']}/revoke")).status_code == 409


async def test_an_invitation_above_the_callers_role_cannot_be_revoked(
    world: World, admin: Client
) -> None:
    above = await world.user("super_admin", admin.tenant_id)
    invitation = await invite(above, "super_admin")
    answer = await admin.post(f"/users/invitations/{invitation['id']}/revoke")
    assert (answer.status_code, answer.json()["error"]["details"]["your_role"]) == (
        403,
        "tenant_admin",
    )


async def test_revoking_is_in_the_event_log(admin: Client) -> None:
    invitation = await invite(admin)
    await admin.post(f"/users/invitations/{invitation['id']}/revoke")
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.invitation_revoked"
    assert entry["data"] == {"invitation_id": invitation["id"], "email": invitation["email"]}


async def test_only_administrators_see_invitations(world: World, subtests: pytest.Subtests) -> None:
    for role in NON_ADMIN_ROLES:
        with subtests.test(role=role):
            assert (await (await world.user(role)).get("/users/invitations")).status_code == 403

"""Events of changed roles."""

from typing import Any

from tests.identity.roles.api_calls import VIEWER_GRANTS, put_permissions, set_permissions
from tests.world import Client


async def _list_change_events(super_admin: Client) -> list[dict[str, Any]]:
    """Returns the data of the role events in the log of super_admin's own tenant."""
    answer = await super_admin.get(
        "/api/v1/event-log",
        params={"event_type": "system.role.permissions_changed"},
        headers={"x-tenant-id": super_admin.tenant_id},
    )
    return [entry["data"] for entry in answer.json()["data"]]


async def test_setting_the_same_permissions_emits_no_event(super_admin: Client) -> None:
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)
    assert await _list_change_events(super_admin) == []


async def test_a_change_emits_an_event_with_added_and_removed_permissions(
    super_admin: Client,
) -> None:
    permissions = VIEWER_GRANTS - {"tools:read", "forms:read"}
    await set_permissions(super_admin, "viewer", *permissions, "usage:read", "agents:chat")
    assert await _list_change_events(super_admin) == [
        {
            "role": "viewer",
            "added": ["agents:chat", "usage:read"],
            "removed": ["forms:read", "tools:read"],
        }
    ]


async def test_a_refused_change_emits_no_event(super_admin: Client) -> None:
    await put_permissions(super_admin, "viewer", ["agents:fly"])
    assert await _list_change_events(super_admin) == []


async def test_a_change_by_super_admin_acting_in_another_tenant_emits_its_event_in_its_own(
    super_admin: Client, admin: Client
) -> None:
    answer = await put_permissions(
        super_admin, "viewer", ["agents:read"], headers={"x-tenant-id": admin.tenant_id}
    )
    assert answer.status_code == 200
    assert [entry["role"] for entry in await _list_change_events(super_admin)] == ["viewer"]

"""GET /api/v1/notifications, the number of unread ones, and marking them as read."""

import httpx
import pytest

from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.messaging.notifications.center.api import (
    KEYS,
    PATH,
    count_unread,
    list_notifications,
    list_titles,
    read_page,
)
from tests.messaging.notifications.center.post_office import add_notification
from tests.platform.events.responses import read_json
from tests.world import Client, World

# Title, type, and whether it is read; the newest first.
ROWS = (
    ("e", "message", False),
    ("d", "workflow_failed", True),
    ("c", "message", True),
    ("b", "workflow_failed", False),
    ("a", "message", False),
)


@pytest.fixture
async def reader(developer: Client, services: Services) -> Client:
    """A user with the notifications of ROWS."""
    for age, (title, type_name, read) in enumerate(ROWS):
        await add_notification(
            services, developer, title, type_name, read=read, seconds_ago=60.0 * age
        )
    return developer


async def test_a_new_user_has_an_empty_list(developer: Client) -> None:
    expected = {"data": [], "total": 0, "unread": 0, "page": 1, "per_page": 20}
    assert await read_page(developer) == expected


async def test_a_notification_has_exactly_the_documented_fields(
    developer: Client, services: Services
) -> None:
    notification_id = await add_notification(services, developer, "Done", "workflow_completed")
    page = await read_page(developer)
    assert page.keys() == {"data", "total", "unread", "page", "per_page"}
    (item,) = page["data"]
    assert item.keys() == KEYS
    del item["created_at"]
    assert item == {
        "id": notification_id,
        "type": "workflow_completed",
        "title": "Done",
        "message": "Text.",
        "read": False,
        "data": {"a": 1},
    }


async def test_the_newest_is_first(reader: Client) -> None:
    assert await list_titles(reader) == ["e", "d", "c", "b", "a"]


async def test_filters_select_and_the_unread_are_all_counted(
    reader: Client, subtests: pytest.Subtests
) -> None:
    for params, titles in (
        ({"read": "true"}, "dc"),
        ({"read": "false"}, "eba"),
        ({"type": "message"}, "eca"),
        ({"type": "workflow_failed"}, "db"),
        ({"type": "message", "read": "true"}, "c"),
        ({"type": "message", "read": "false"}, "ea"),
        ({"type": "security"}, ""),
        ({"type": "security", "read": "false"}, ""),
    ):
        with subtests.test(params=params):
            page = await read_page(reader, **params)
            assert [item["title"] for item in page["data"]] == list(titles)
            assert (page["total"], page["unread"]) == (len(titles), 3)


async def test_pages_follow_each_other_without_gaps(
    reader: Client, subtests: pytest.Subtests
) -> None:
    for params, pages in (
        ({}, ["ed", "cb", "a", ""]),
        ({"type": "message"}, ["ec", "a", ""]),
        ({"read": "false"}, ["eb", "a", ""]),
    ):
        for number, titles in enumerate(pages, 1):
            with subtests.test(params=params, page=number):
                page = await read_page(reader, page=number, per_page=2, **params)
                assert [item["title"] for item in page["data"]] == list(titles)
                assert (page["page"], page["per_page"]) == (number, 2)
                assert (page["total"], page["unread"]) == (len("".join(pages)), 3)


async def test_wrong_parameters_are_refused(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, str]] = [
        {"read": "maybe"},
        {"type": "unknown"},
        {"type": ""},
        {"page": "0"},
        {"page": "x"},
        {"per_page": "0"},
        {"per_page": "101"},
    ]
    for params in cases:
        developer = await world.user()
        with subtests.test(params=params):
            refused(await developer.get(PATH, params=params), 422, "validation_error")


async def test_marking_one_as_read_answers_it(reader: Client) -> None:
    unread = (await list_notifications(reader))[0]
    assert await count_unread(reader) == 3
    for _ in range(2):
        marked = read_json(await reader.post(f"{PATH}/{unread['id']}/read"))
        assert marked == unread | {"read": True}
        assert await count_unread(reader) == 2
    assert (await list_notifications(reader))[0] == marked


async def test_marking_an_unknown_one_is_not_found(developer: Client) -> None:
    refused(await developer.post(f"{PATH}/ntf_unknown/read"), 404, "notification_not_found")


async def test_marking_all_as_read_answers_how_many_were_unread(reader: Client) -> None:
    for count in (3, 0):
        assert read_json(await reader.post(f"{PATH}/read-all")) == {"updated": count}
    assert await count_unread(reader) == 0
    assert {item["read"] for item in await list_notifications(reader)} == {True}


async def _mark_read(client: Client, notification_id: str) -> httpx.Response:
    return await client.post(f"{PATH}/{notification_id}/read")


async def test_no_other_user_of_the_tenant_sees_or_reads_them(
    world: World, reader: Client, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "tenant_admin", "super_admin"):
        with subtests.test(role=role):
            other = await world.user(role, reader.tenant_id)
            unread = (await list_notifications(reader))[0]
            assert (await read_page(other))["total"] == await count_unread(other) == 0
            refused(await _mark_read(other, unread["id"]), 404, "notification_not_found")
            assert read_json(await other.post(f"{PATH}/read-all")) == {"updated": 0}
            assert await count_unread(reader) == 3


async def test_no_user_of_another_tenant_sees_or_reads_them(reader: Client, admin: Client) -> None:
    unread = (await list_notifications(reader))[0]
    assert (await read_page(admin))["total"] == 0
    refused(await _mark_read(admin, unread["id"]), 404, "notification_not_found")
    assert read_json(await admin.post(f"{PATH}/read-all")) == {"updated": 0}
    assert await count_unread(reader) == 3


async def test_super_admin_sees_and_reads_own_ones(
    super_admin: Client, reader: Client, services: Services
) -> None:
    own = await add_notification(services, super_admin, "Own")
    assert await list_titles(super_admin) == ["Own"]
    assert await list_titles(super_admin, type="message", read="false") == ["Own"]
    assert read_json(await _mark_read(super_admin, own))["read"] is True
    assert await count_unread(super_admin) == 0
    headers = {"x-tenant-id": reader.tenant_id}
    assert read_json(await super_admin.get(PATH, headers=headers))["data"] == []
    assert await count_unread(reader) == 3


_CASES: list[tuple[str, str]] = [
    ("GET", ""),
    ("GET", "/unread/count"),
    ("GET", "/stream"),
    ("GET", "/preferences"),
    ("PUT", "/preferences"),
    ("POST", "/read-all"),
    ("POST", "/ntf_1/read"),
    ("POST", "/test"),
    ("POST", ""),
]


async def test_nobody_gets_in_without_signing_in(world: World, subtests: pytest.Subtests) -> None:
    for method, path in _CASES:
        anonymous = world.anonymous()
        with subtests.test(method=method, path=path):
            refused(await anonymous(method, PATH + path), 401, "unauthorized")


async def test_the_rows_of_a_deleted_user_are_deleted(
    world: World, reader: Client, services: Services
) -> None:
    admin = await world.user("tenant_admin", reader.tenant_id)
    await add_notification(services, admin, "Stays")
    assert (await admin.delete(f"/users/{reader.user_id}")).status_code == 200
    sql = "SELECT user_id FROM notifications WHERE tenant_id = $1"
    rows = await fetch_rows(services, sql, reader.tenant_id)
    assert rows == [{"user_id": admin.user_id}]


async def test_a_tenant_with_notifications_is_deleted_with_them(
    super_admin: Client, reader: Client, services: Services
) -> None:
    tenant_id = reader.tenant_id
    await reader.put(f"{PATH}/preferences", {"preferences": {"message": {"email": True}}})
    # Without users; what they left stays until the tenant is deleted.
    await run_sql(services, "DELETE FROM users WHERE tenant_id = $1", tenant_id)
    assert (await super_admin.delete(f"/api/v1/tenants/{tenant_id}")).status_code == 204
    for table in ("notification_messages", "notifications", "notification_preferences"):
        rows = await fetch_rows(services, f"SELECT 1 FROM {table} WHERE tenant_id = $1", tenant_id)
        assert rows == []

"""POST /api/v1/notifications."""

from typing import Any

import pytest

from app.security.permissions import ROLES
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import build_nested
from tests.database import fetch_rows, run_sql
from tests.messaging.notifications.center.api import (
    PATH,
    list_notifications,
    list_titles,
    read_page,
    send_by_hand,
)
from tests.messaging.notifications.center.post_office import PostOffice
from tests.platform.events.database import load_events
from tests.platform.events.responses import read_field_errors
from tests.world import Client, World

TEXTS = {"title": "Maintenance", "message": "Tonight at ten."}


async def _count_messages(services: Services, tenant_id: str) -> int:
    sql = "SELECT 1 FROM notification_messages WHERE tenant_id = $1"
    return len(await fetch_rows(services, sql, tenant_id))


async def test_users_by_id_get_the_message_in_their_center(office: PostOffice) -> None:
    users = [await office.user() for _ in range(2)]
    other = await office.user()
    sent = await send_by_hand(
        office.admin,
        user_ids=[user.user_id for user in users] + [users[0].user_id],
        type="workflow_failed",
        data={"ticket": "OPS-7"},
    )
    assert sent.keys() == {"id", "recipients"}
    assert sent["id"].startswith("ntm_")
    assert sent["recipients"] == 2
    await office.wait_until_idle()
    for user in users:
        (item,) = await list_notifications(user)
        assert (item["title"], item["message"]) == tuple(TEXTS.values())
        assert (item["type"], item["data"]) == ("workflow_failed", {"ticket": "OPS-7"})
    assert (await read_page(other))["total"] == 0


async def test_users_with_a_role_get_the_message(office: PostOffice) -> None:
    viewers = [await office.user("viewer") for _ in range(2)]
    stranger = await office.world.user("viewer")
    sent = await send_by_hand(office.admin, role="viewer")
    assert sent["recipients"] == 2
    await office.wait_until_idle()
    for user in viewers:
        (item,) = await list_notifications(user)
        assert (item["type"], item["data"]) == ("message", {})
    assert await list_titles(office.admin) == await list_titles(stranger) == []


async def test_only_active_users_get_the_message(office: PostOffice, services: Services) -> None:
    active, inactive = await office.user(), await office.user()
    sql = "UPDATE users SET status = 'inactive' WHERE id = $1"
    await run_sql(services, sql, inactive.user_id)
    user_ids = [active.user_id, inactive.user_id]
    assert (await send_by_hand(office.admin, user_ids=user_ids))["recipients"] == 1
    assert (await send_by_hand(office.admin, role="viewer"))["recipients"] == 1
    await office.wait_until_idle()
    sql = "SELECT user_id FROM notifications WHERE tenant_id = $1"
    rows = await fetch_rows(services, sql, office.tenant_id)
    assert rows == [{"user_id": active.user_id}] * 2


async def test_a_role_without_users_is_accepted(office: PostOffice) -> None:
    assert (await send_by_hand(office.admin, role="agent_user"))["recipients"] == 0
    await office.wait_until_idle()


_CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "user_ids"),
    ({"user_ids": ["own"], "role": "viewer"}, "user_ids"),
    ({"user_ids": []}, "user_ids"),
    ({"user_ids": ["usr_unknown"]}, "user_ids"),
    ({"user_ids": ["own", "foreign"]}, "user_ids"),
    ({"user_ids": ["own"] * 1001}, "user_ids"),
    ({"role": "king"}, "role"),
    ({"role": ""}, "role"),
    ({"role": "viewer", "type": "security"}, "type"),
    ({"role": "viewer", "type": "webhook_disabled"}, "type"),
    ({"role": "viewer", "type": "credential_invalid"}, "type"),
    ({"role": "viewer", "type": "unknown"}, "type"),
    ({"role": "viewer", "title": ""}, "title"),
    ({"role": "viewer", "title": "  "}, "title"),
    ({"role": "viewer", "title": "Two\nlines"}, "title"),
    ({"role": "viewer", "title": "x" * 201}, "title"),
    ({"role": "viewer", "message": " \n "}, "message"),
    ({"role": "viewer", "message": "x" * 10_001}, "message"),
    ({"role": "viewer", "data": []}, "data"),
    ({"role": "viewer", "data": {"a": "x" * 16 * 1024}}, "data"),
    ({"role": "viewer", "data": build_nested(17)}, "data"),
]


async def test_a_wrong_message_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for fields, field in _CASES:
        admin = await world.user("tenant_admin")
        developer = await world.user()
        with subtests.test(fields=fields, field=field):
            ids = {"own": admin.user_id, "foreign": developer.user_id}
            body = TEXTS | fields
            if "user_ids" in fields:
                body["user_ids"] = [ids.get(id_, id_) for id_ in fields["user_ids"]]
            errors = read_field_errors(await admin.post(PATH, body))
            assert [name.split(".")[0] for name in errors] == [field]
            assert await _count_messages(services, admin.tenant_id) == 0


async def test_a_message_at_its_limits_is_accepted(office: PostOffice) -> None:
    fields: dict[str, Any] = {
        "title": "x" * 200,
        "message": "y" * 10_000,
        "data": {"a": "z" * (16 * 1024 - len('{"a":""}'))},
    }
    await send_by_hand(office.admin, user_ids=[office.admin.user_id], **fields)
    await send_by_hand(office.admin, role="tenant_admin", data=build_nested(16))
    await office.wait_until_idle()
    # Workers send both at once.
    items = {item["title"]: item for item in await list_notifications(office.admin)}
    item = items["x" * 200]
    assert {name: item[name] for name in fields} == fields


async def test_sending_needs_the_permission(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            user = await world.user(role)
            answer = await user.post(PATH, TEXTS | {"role": "viewer"})
            if role in {"super_admin", "tenant_admin", "agent_developer"}:
                assert answer.status_code == 202
            else:
                assert (
                    refused(answer, 403, "forbidden")["details"]["required"]
                    == "notifications:write"
                )


async def test_a_repeated_request_with_one_key_sends_once(office: PostOffice) -> None:
    body = TEXTS | {"user_ids": [office.admin.user_id]}
    headers = {"idempotency-key": "once-more"}
    answers = [await office.admin.post(PATH, body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    await office.wait_until_idle()
    assert (await read_page(office.admin))["total"] == 1
    assert (
        len(await load_events(office.services, office.tenant_id, "system.notification.sent")) == 1
    )


async def test_an_event_records_who_sent_it_and_to_how_many(
    admin: Client, services: Services
) -> None:
    sent = await send_by_hand(admin, user_ids=[admin.user_id], type="form_submission")
    (event,) = await load_events(services, admin.tenant_id, "system.notification.sent")
    assert event["data"] == {
        "notification_id": sent["id"],
        "notification_type": "form_submission",
        "user_id": admin.user_id,
        "recipients": 1,
    }


async def test_super_admin_sends_to_users_of_the_selected_tenant(
    super_admin: Client, office: PostOffice
) -> None:
    headers = {"x-tenant-id": office.tenant_id}
    body = TEXTS | {"role": "tenant_admin"}
    answer = await super_admin.post(PATH, body, headers=headers)
    assert (answer.status_code, answer.json()["recipients"]) == (202, 1)
    await office.wait_until_idle()
    assert await list_titles(office.admin) == ["Maintenance"]
    assert await list_titles(super_admin) == []

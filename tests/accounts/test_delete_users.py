"""Deleting users."""

import asyncio
import io
from urllib.parse import urlsplit

import pytest
from PIL import Image

from app.kit.files import FileNotStored
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.api_calls import (
    USER_ACTIONS,
    UserAction,
    change_role,
    deactivate,
    delete_user,
    list_user_ids,
    log_in,
)
from tests.accounts.mfa_users import enable_mfa
from tests.accounts.records import read_user_events
from tests.world import PASSWORD, Client, World


async def test_a_deletion_answers_with_a_message(admin: Client, colleague: Client) -> None:
    answer = await delete_user(admin, colleague.user_id)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_a_deleted_user_is_gone(admin: Client, colleague: Client) -> None:
    await delete_user(admin, colleague.user_id)
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.status_code == 404
    assert await list_user_ids(admin) == [admin.user_id]


async def test_a_deleted_user_cannot_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await delete_user(admin, colleague.user_id)
    assert (await log_in(anonymous, colleague.email)).status_code == 401


@pytest.mark.parametrize("action", USER_ACTIONS)
async def test_nothing_can_be_done_to_a_deleted_user(
    admin: Client, colleague: Client, action: UserAction
) -> None:
    await delete_user(admin, colleague.user_id)
    answer = await action(admin, colleague.user_id)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


async def test_an_inactive_user_can_be_deleted(admin: Client, colleague: Client) -> None:
    await deactivate(admin, colleague.user_id)
    assert (await delete_user(admin, colleague.user_id)).status_code == 200


@pytest.mark.parametrize("table", ["sessions", "one_time_tokens", "mfa_devices", "recovery_codes"])
async def test_a_deletion_removes_the_users_personal_data(
    admin: Client, colleague: Client, anonymous: Client, services: Services, table: str
) -> None:
    await enable_mfa(colleague)
    await anonymous.post("/auth/forgot-password", {"email": colleague.email})
    counts = [await _count_rows(services, table, colleague.user_id)]
    await delete_user(admin, colleague.user_id)
    counts.append(await _count_rows(services, table, colleague.user_id))
    assert counts[0] > 0
    assert counts[1] == 0


async def _count_rows(services: Services, table: str, user_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count: int = await raw.fetchval(f"SELECT count(*) FROM {table} WHERE user_id = $1", user_id)
    return count


async def _upload_picture(user: Client) -> str:
    """Uploads a picture for the user; returns its key."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    files = {"avatar": ("me.png", out.getvalue(), "image/png")}
    answer = await user("POST", "/api/v1/profile/avatar", files=files)
    url: str = answer.json()["avatar_url"]
    return urlsplit(url).path.rpartition("/")[2]


async def test_the_picture_of_a_deleted_user_is_gone(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    key = await _upload_picture(colleague)
    before = (await anonymous.get(f"/api/v1/avatars/{key}")).status_code
    await delete_user(admin, colleague.user_id)
    assert (before, (await anonymous.get(f"/api/v1/avatars/{key}")).status_code) == (200, 404)
    with pytest.raises(FileNotStored):
        await services.files.read(f"avatars/{key}")


async def test_a_refused_deletion_leaves_the_picture(admin: Client, anonymous: Client) -> None:
    key = await _upload_picture(admin)
    await delete_user(admin, admin.user_id)
    assert (await anonymous.get(f"/api/v1/avatars/{key}")).status_code == 200


async def test_the_invitations_of_a_deleted_user_stay_but_are_void(
    world: World, admin: Client, services: Services
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    body = {"email": f"{new_id('guest')}@example.com", "role": "viewer"}
    invitation = (await inviter.post("/users/invite", body)).json()
    await delete_user(admin, inviter.user_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow(
            "SELECT invited_by, used_at, expires_at <= now() AS void FROM invitations "
            "WHERE id = $1",
            invitation["id"],
        )
    assert tuple(row) == (None, None, True)


async def test_who_is_promoted_keeps_the_invitations_that_they_gave(
    world: World, super_admin: Client, services: Services
) -> None:
    inviter = await world.user("tenant_admin")
    body = {"email": f"{new_id('x')}@example.com", "role": "viewer"}
    invitation = (await inviter.post("/users/invite", body)).json()
    await change_role(super_admin, inviter.user_id, "super_admin")
    async with services.db.tx(ALL_TENANTS) as tx:
        holds = await (await tx.raw()).fetchval(
            "SELECT expires_at > now() FROM invitations WHERE id = $1", invitation["id"]
        )
    assert holds


async def test_a_user_invited_by_a_deleted_user_stays(
    world: World, admin: Client, anonymous: Client
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    email = f"{new_id('guest')}@example.com"
    invitation = (await inviter.post("/users/invite", {"email": email, "role": "viewer"})).json()
    await anonymous.post(
        "/auth/register",
        {
            "email": email,
            "password": PASSWORD,
            "first_name": "Ada",
            "last_name": "Lovelace",
            "invitation_token": invitation["invitation_token"],
        },
    )
    await delete_user(admin, inviter.user_id)
    assert (await log_in(anonymous, email)).status_code == 200


async def test_the_log_of_what_a_deleted_user_did_stays(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await log_in(anonymous, colleague.email)
    await delete_user(admin, colleague.user_id)
    assert len(await read_user_events(services, colleague, "signed_in")) == 1


async def test_a_mail_on_its_way_to_a_deleted_user_stays(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await anonymous.post("/auth/forgot-password", {"email": colleague.email})
    await delete_user(admin, colleague.user_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count = await (await tx.raw()).fetchval(
            "SELECT count(*) FROM mail_messages WHERE recipient = $1", colleague.email
        )
    assert count == 1


async def test_a_deletion_is_in_the_event_log(
    admin: Client, colleague: Client, services: Services
) -> None:
    await delete_user(admin, colleague.user_id)
    assert await read_user_events(services, colleague, "deleted") == [
        {"user_id": colleague.user_id, "email": colleague.email, "role": "agent_user"}
    ]


async def test_of_deletions_at_once_one_succeeds(admin: Client, colleague: Client) -> None:
    answers = await asyncio.gather(*(delete_user(admin, colleague.user_id) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404]


async def test_the_address_of_a_deleted_user_is_free_again(
    admin: Client, colleague: Client
) -> None:
    await delete_user(admin, colleague.user_id)
    body = {"email": colleague.email, "role": "viewer"}
    assert (await admin.post("/users/invite", body)).status_code == 201

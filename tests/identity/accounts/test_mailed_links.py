"""What the links of mails show before they are used."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.identity.accounts.api_calls import (
    deactivate,
    invite,
    join,
    register,
    registration_body,
    request_reset,
)
from tests.identity.accounts.records import read_mailed_tokens
from tests.world import Client, World

INVITATION, LINK = "/auth/invitations/look-up", "/auth/links/look-up"
Invitation = dict[str, Any]


async def _look_up(client: Client, token: str) -> httpx.Response:
    return await client.post(INVITATION, {"token": token})


# Invitations


async def test_an_invitation_shows_who_invites_whom_and_stays_open(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin, role="viewer")
    for _ in range(2):
        answer = await _look_up(anonymous, invitation["invitation_token"])
        assert answer.status_code == 200, answer.text
        link = answer.json()
        assert link.pop("tenant_name").startswith("Tenant ")
        assert link == {
            "email": invitation["email"],
            "inviter": "Test User",
            "role": "viewer",
            "state": "open",
            "expires_at": invitation["expires_at"],
        }
    assert await join(anonymous, invitation["email"], invitation["invitation_token"]) == 201


async def test_an_invitation_says_why_it_can_no_longer_be_used(
    world: World, subtests: pytest.Subtests
) -> None:
    anonymous = world.anonymous()

    async def use(_admin: Client, item: Invitation) -> None:
        await join(anonymous, item["email"], item["invitation_token"])

    async def register_otherwise(_admin: Client, item: Invitation) -> None:
        await anonymous.post("/auth/register", registration_body(email=item["email"]))

    async def invite_again(admin: Client, item: Invitation) -> None:
        await invite(admin, email=item["email"])

    async def revoke(admin: Client, item: Invitation) -> None:
        await admin.post(f"/users/invitations/{item['id']}/revoke")

    async def deactivate_inviter(admin: Client, _item: Invitation) -> None:
        other = await world.user("tenant_admin", admin.tenant_id)
        await deactivate(other, admin.user_id)

    cases: dict[str, tuple[Callable[[Client, Invitation], Awaitable[None]], str]] = {
        "used": (use, "used"),
        "an account without it": (register_otherwise, "used"),
        "a newer one": (invite_again, "superseded"),
        "revoked": (revoke, "revoked"),
        "inviter deactivated": (deactivate_inviter, "revoked"),
    }
    for name, (end, state) in cases.items():
        admin = await world.user("tenant_admin")
        invitation = await invite(admin)
        with subtests.test(name):
            await end(admin, invitation)
            answer = await _look_up(world.anonymous(), invitation["invitation_token"])
            assert (answer.status_code, answer.json().get("state")) == (200, state), answer.text


async def test_an_invitation_expires(admin: Client, anonymous: Client) -> None:
    invitation = await invite(admin)
    with clock.frozen(clock.now() + timedelta(days=7, seconds=1)):
        answer = await _look_up(anonymous, invitation["invitation_token"])
    assert answer.json()["state"] == "expired"


async def test_unknown_invitations_get_the_same_answer(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    messages = set()
    for token in ("x", "unknown" * 10, "inv_01k9x3m7e8c0v2q4r6t8w0y2a4"):
        with subtests.test(token):
            error = refused(await _look_up(anonymous, token), 404, "invitation_not_found")
            messages.add(error["message"])
    assert len(messages) == 1


# Verification and password reset


async def _read_state(client: Client, purpose: str, token: str) -> tuple[int, str | None]:
    answer = await client.post(LINK, {"purpose": purpose, "token": token})
    return answer.status_code, answer.json().get("state")


async def test_a_link_says_whether_it_works(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    anonymous = world.anonymous()
    email = (await register(anonymous))["email"]
    await request_reset(anonymous, email)
    for purpose, page, path in (
        ("verify_email", "verify-email", "/auth/verify-email"),
        ("reset_password", "reset-password", "/auth/reset-password"),
    ):
        with subtests.test(purpose):
            (token,) = await read_mailed_tokens(services, email, page)
            answer = await anonymous.post(LINK, {"purpose": purpose, "token": token})
            assert answer.json() == {"email": email, "state": "open"}
            with clock.frozen(clock.now() + timedelta(days=3, seconds=1)):
                assert await _read_state(anonymous, purpose, token) == (200, "expired")
            body = {"token": token, "new_password": "Battery9Staple"}
            if purpose == "verify_email":
                del body["new_password"]
            assert (await anonymous.post(path, body)).status_code == 200
            assert await _read_state(anonymous, purpose, token) == (200, "used")


async def test_a_link_is_unknown_for_another_purpose_and_for_an_inactive_user(
    world: World, services: Services, admin: Client
) -> None:
    user, anonymous = await world.user("viewer", admin.tenant_id), world.anonymous()
    await request_reset(anonymous, user.email)
    (token,) = await read_mailed_tokens(services, user.email)
    assert await _read_state(anonymous, "verify_email", token) == (404, None)
    assert await _read_state(anonymous, "reset_password", token + "x") == (404, None)
    await deactivate(admin, user.user_id)
    assert await _read_state(anonymous, "reset_password", token) == (404, None)

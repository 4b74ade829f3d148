"""Registration with an invitation, and on an instance without open registration."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from app.web import console_page
from tests.identity.accounts.api_calls import (
    ACCESS_REMOVALS,
    deactivate,
    delete_user,
    invite,
    invited_body,
    reactivate,
    register,
    registration_body,
    sign_in_client,
)
from tests.identity.accounts.records import find_user_by_email, read_mail_texts, read_mailed_tokens
from tests.identity.accounts.values import REGISTERED_KEYS, ROLES
from tests.world import Client, World

# An instance without open registration


async def test_a_closed_instance_refuses_a_registration_without_an_invitation(
    closed_instance: Client, services: Services
) -> None:
    body = registration_body()
    answer = await closed_instance.post("/auth/register", body)
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["code"] == "signup_closed"
    assert "Ask an administrator for an invitation" in error["message"]
    assert await find_user_by_email(services, body["email"]) is None


async def test_the_page_of_a_closed_instance_has_a_form_for_invitations_only(
    closed_instance: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_page, "load_manifest", lambda: None)
    pages = {
        "closed": await closed_instance.get("/register"),
        "invited": await closed_instance.get("/register?token=x"),
        "open": await anonymous.get("/register"),
    }
    has_form = {name: "<form" in answer.text for name, answer in pages.items()}
    assert has_form == {"closed": False, "invited": True, "open": True}
    assert "Ask an administrator for an invitation" in pages["closed"].text


async def test_a_closed_instance_accepts_an_invitation(
    closed_instance: Client, admin: Client
) -> None:
    invitation = await invite(admin)
    answer = await closed_instance.post("/auth/register", invited_body(invitation))
    assert answer.status_code == 201


async def test_a_closed_instance_refuses_an_invalid_invitation(
    closed_instance: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = ["unknown", "", None]
    for token in cases:
        with subtests.test(token=token):
            body = registration_body(invitation_token=token)
            answer = await closed_instance.post("/auth/register", body)
            assert answer.status_code == 422
            assert await find_user_by_email(services, body["email"]) is None


# By invitation


async def test_an_invitation_gives_its_role(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        super_admin = await world.user("super_admin")
        anonymous = world.anonymous()
        with subtests.test(role=role):
            account = (
                await anonymous.post(
                    "/auth/register", invited_body(await invite(super_admin, role=role))
                )
            ).json()
            assert set(account) == REGISTERED_KEYS
            assert (account["role"], account["email_verified"]) == (role, True)


async def test_an_invited_user_joins_the_tenant_of_the_invitation(
    world: World, admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    await anonymous.post("/auth/register", invited_body(invitation))
    me = (await (await sign_in_client(world, invitation["email"])).get("/auth/me")).json()
    assert (me["tenant_id"], me["email_verified"]) == (admin.tenant_id, True)


async def test_a_user_invited_by_super_admin_joins_the_selected_tenant(
    super_admin: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await invite(super_admin, tenant_id=admin.tenant_id)
    await anonymous.post("/auth/register", invited_body(invitation))
    user = await find_user_by_email(services, invitation["email"])
    assert user is not None
    assert user.tenant_id == admin.tenant_id


async def test_an_invited_user_cannot_set_other_fields(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("role", "super_admin"),
        ("tenant_id", "ten_other"),
        ("status", "x"),
    ]
    for field, value in cases:
        admin = await world.user("tenant_admin")
        anonymous = world.anonymous()
        with subtests.test(field=field, value=value):
            invitation = await invite(admin)
            answer = await anonymous.post(
                "/auth/register", invited_body(invitation, **{field: value})
            )
            user = await find_user_by_email(services, invitation["email"])
            assert (answer.status_code == 422) == (user is None)
            assert user is None or getattr(user, field) != value


async def test_an_invited_user_gets_no_verification_mail(
    admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await invite(admin)
    await anonymous.post("/auth/register", invited_body(invitation))
    (text,) = await read_mail_texts(services, invitation["email"])
    assert "/verify-email" not in text


async def test_a_registration_by_invitation_is_in_its_tenants_event_log(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin, role="agent_user")
    account = (await anonymous.post("/auth/register", invited_body(invitation))).json()
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.registered"
    assert entry["data"] == {
        "user_id": account["id"],
        "email": invitation["email"],
        "role": "agent_user",
        "invited": True,
    }


async def test_the_case_of_an_invited_address_does_not_matter(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    body = invited_body(invitation, email=invitation["email"].upper())
    assert (await anonymous.post("/auth/register", body)).status_code == 201


async def test_an_invitation_works_once(
    admin: Client, anonymous: Client, services: Services
) -> None:
    """The same holds for the same person after their account is deleted."""
    invitation = await invite(admin)
    account = (await anonymous.post("/auth/register", invited_body(invitation))).json()
    await delete_user(admin, account["id"])
    answer = await anonymous.post("/auth/register", invited_body(invitation))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"invitation_token"}
    assert await find_user_by_email(services, invitation["email"]) is None


async def test_of_twenty_uses_of_an_invitation_at_once_one_succeeds(
    world: World, admin: Client
) -> None:
    invitation = await invite(admin)
    answers = await asyncio.gather(
        *(world.anonymous().post("/auth/register", invited_body(invitation)) for _ in range(20))
    )
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(201) == 1
    assert set(statuses) <= {201, 409, 422}


async def test_an_invitation_is_for_its_own_email_only(
    admin: Client, anonymous: Client, services: Services
) -> None:
    body = registration_body(invitation_token=(await invite(admin))["invitation_token"])
    answer = await anonymous.post("/auth/register", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"invitation_token"}
    assert await find_user_by_email(services, body["email"]) is None


async def test_an_invitation_expires_after_seven_days(
    admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await invite(admin)
    with clock.frozen(clock.now() + timedelta(days=7)):
        answer = await anonymous.post("/auth/register", invited_body(invitation))
    assert answer.status_code == 422
    assert await find_user_by_email(services, invitation["email"]) is None


async def test_an_invitation_is_valid_for_nearly_seven_days(
    admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    with clock.frozen(clock.now() + timedelta(days=6, hours=23)):
        answer = await anonymous.post("/auth/register", invited_body(invitation))
    assert answer.status_code == 201


async def test_an_invalid_invitation_token_does_not_register(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["unknown", "", " ", None, 5, [], "x" * 4096, "x" * 4097]
    for token in cases:
        anonymous = world.anonymous()
        with subtests.test(token=token):
            body = registration_body(invitation_token=token)
            answer = await anonymous.post("/auth/register", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"invitation_token"}
            assert await find_user_by_email(services, body["email"]) is None


async def test_an_altered_invitation_token_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [
        str.swapcase,
        lambda token: token[:-1],
        lambda token: f"{token} ",
        lambda token: f" {token}",
    ]
    for change in cases:
        admin = await world.user("tenant_admin")
        anonymous = world.anonymous()
        with subtests.test(change=change):
            invitation = await invite(admin)
            body = invited_body(invitation, invitation_token=change(invitation["invitation_token"]))
            assert (await anonymous.post("/auth/register", body)).status_code == 422


async def test_a_verification_token_is_not_accepted_as_an_invitation(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    (token,) = await read_mailed_tokens(services, account["email"], "verify-email")
    answer = await anonymous.post("/auth/register", registration_body(invitation_token=token))
    assert answer.status_code == 422


async def test_a_refused_registration_does_not_use_up_the_invitation(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {"password": "weak"},
        {"first_name": ""},
        {"email": "somebody.else@example.com"},
        {"email": "nobody"},
    ]
    for changes in cases:
        admin = await world.user("tenant_admin")
        anonymous = world.anonymous()
        with subtests.test(changes=changes):
            invitation = await invite(admin)
            failed = await anonymous.post("/auth/register", invited_body(invitation, **changes))
            answer = await anonymous.post("/auth/register", invited_body(invitation))
            assert (failed.status_code, answer.status_code) == (422, 201)


async def test_a_new_invitation_replaces_the_old_one(admin: Client, anonymous: Client) -> None:
    old = await invite(admin)
    new = await invite(admin, email=old["email"])
    statuses = [
        (await anonymous.post("/auth/register", invited_body(invitation))).status_code
        for invitation in (old, new)
    ]
    assert statuses == [422, 201]


async def test_a_registration_voids_other_invitations_of_the_same_email(
    world: World, admin: Client, anonymous: Client
) -> None:
    """The same holds after the account is deleted: an old mail must not give access."""
    other = await world.user("tenant_admin")
    first = await invite(admin)
    second = await invite(other, email=first["email"])
    account = (await anonymous.post("/auth/register", invited_body(first))).json()
    await delete_user(admin, account["id"])
    assert (await anonymous.post("/auth/register", invited_body(second))).status_code == 422


async def test_an_invitation_is_void_after_its_inviter_loses_access(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        super_admin = await world.user("super_admin")
        admin = await world.user("tenant_admin")
        anonymous = world.anonymous()
        with subtests.test(removal=removal.__name__):
            invitation = await invite(admin, role="tenant_admin")
            assert (await removal(super_admin, admin.user_id)).status_code == 200
            answer = await anonymous.post("/auth/register", invited_body(invitation))
            assert answer.status_code == 422
            assert await find_user_by_email(services, invitation["email"]) is None


async def test_an_invitation_to_another_tenant_is_void_after_its_inviter_loses_access(
    world: World, super_admin: Client, admin: Client, anonymous: Client
) -> None:
    inviter = await world.user("super_admin")
    invitation = await invite(inviter, tenant_id=admin.tenant_id)
    await deactivate(super_admin, inviter.user_id)
    assert (await anonymous.post("/auth/register", invited_body(invitation))).status_code == 422


async def test_an_invitation_stays_void_after_its_inviter_is_reactivated(
    super_admin: Client, admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin)
    await deactivate(super_admin, admin.user_id)
    await reactivate(super_admin, admin.user_id)
    assert (await anonymous.post("/auth/register", invited_body(invitation))).status_code == 422


async def test_removing_one_inviter_does_not_void_the_invitations_of_another(
    world: World, super_admin: Client, admin: Client, anonymous: Client
) -> None:
    other = await world.user("tenant_admin", admin.tenant_id)
    invitation = await invite(other)
    assert (await delete_user(super_admin, admin.user_id)).status_code == 200
    assert (await anonymous.post("/auth/register", invited_body(invitation))).status_code == 201

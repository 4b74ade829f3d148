"""How each event about people, roles and tenants is brought about."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from app.kit import clock
from app.kit.ids import new_id
from tests.events.scene import Scene, add_device, done, made
from tests.world import PASSWORD, Client

Deed = Callable[[Scene], Awaitable[None]]
NEW_PASSWORD = "Battery9Staple"


async def _invite(scene: Scene) -> dict[str, Any]:
    body = {"email": f"{new_id('mail')}@example.com", "role": "viewer"}
    invitation: dict[str, Any] = await made(scene.admin, "/users/invite", body)
    return invitation


async def invite(scene: Scene) -> None:
    await _invite(scene)


async def revoke_invitation(scene: Scene) -> None:
    invitation = await _invite(scene)
    await done(await scene.admin.delete(f"/users/invitations/{invitation['id']}"))


async def register(scene: Scene) -> None:
    invitation = await _invite(scene)
    body = {
        "email": invitation["email"],
        "password": NEW_PASSWORD,
        "first_name": "Ada",
        "last_name": "Lovelace",
        "invitation_token": invitation["invitation_token"],
    }
    await made(scene.world.anonymous(), "/auth/register", body)


async def verify_email(scene: Scene) -> None:
    person = await scene.colleague()
    await made(person, "/auth/verify-email/resend", {}, 200)
    token = await scene.mailed_token(person.email, "verify-email")
    await made(scene.world.anonymous(), "/auth/verify-email", {"token": token}, 200)


async def sign_in(scene: Scene) -> None:
    body = {"email": scene.admin.email, "password": PASSWORD}
    await made(scene.world.anonymous(), "/auth/login", body, 200)


async def guess_passwords(scene: Scene) -> None:
    body = {"email": scene.admin.email, "password": "Wrong7Horse"}
    caller = scene.world.anonymous()
    answers = [(await caller.post("/auth/login", body)).status_code for _ in range(12)]
    assert 429 in answers


async def sign_out(scene: Scene) -> None:
    await made(await scene.colleague(), "/auth/logout", {}, 200)


async def replay_refresh_token(scene: Scene) -> None:
    person, caller = await scene.colleague(), scene.world.anonymous()
    body = {"refresh_token": person.refresh_token}
    await made(caller, "/auth/refresh", body, 200)
    with clock.frozen(clock.now() + timedelta(seconds=11)):
        assert (await caller.post("/auth/refresh", body)).status_code == 401


async def forget_password(scene: Scene) -> None:
    body = {"email": scene.admin.email}
    await made(scene.world.anonymous(), "/auth/forgot-password", body, 200)


async def change_password(scene: Scene) -> None:
    body = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    await made(scene.admin, "/auth/change-password", body, 200)
    await _reset_password(scene)


async def _reset_password(scene: Scene) -> None:
    """The other way of changing it, with a payload of the same type."""
    person, caller = await scene.colleague(), scene.world.anonymous()
    await made(caller, "/auth/forgot-password", {"email": person.email}, 200)
    token = await scene.mailed_token(person.email, "reset-password")
    body = {"token": token, "new_password": NEW_PASSWORD}
    await made(caller, "/auth/reset-password", body, 200)


async def change_role(scene: Scene) -> None:
    person = await scene.colleague()
    path = f"/users/{person.user_id}/role"
    await done(await scene.admin.put(path, {"role": "agent_developer"}))


async def deactivate(scene: Scene) -> None:
    await _deactivated(scene)


async def _deactivated(scene: Scene) -> Client:
    person = await scene.colleague()
    await made(scene.admin, f"/users/{person.user_id}/deactivate", {}, 200)
    return person


async def reactivate(scene: Scene) -> None:
    person = await _deactivated(scene)
    await made(scene.admin, f"/users/{person.user_id}/reactivate", {}, 200)


async def delete_user(scene: Scene) -> None:
    person = await scene.colleague()
    await done(await scene.admin.delete(f"/users/{person.user_id}"))


async def enable_mfa(scene: Scene) -> None:
    await add_device(scene.admin)


async def add_second_device(scene: Scene) -> None:
    await add_device(scene.admin)
    await add_device(scene.admin)


async def remove_device(scene: Scene) -> None:
    await add_second_device(scene)
    devices = (await done(await scene.admin.get("/api/v1/mfa/devices")))["devices"]
    await done(await scene.admin.delete(f"/api/v1/mfa/devices/{devices[0]['id']}"))


async def disable_mfa(scene: Scene) -> None:
    """With a recovery code, which is told as well."""
    code = (await add_device(scene.admin))[0]
    await made(scene.admin, "/api/v1/mfa/disable", {"code": code}, 200)


async def reset_mfa(scene: Scene) -> None:
    person = await scene.colleague()
    await add_device(person)
    await made(scene.admin, f"/api/v1/users/{person.user_id}/mfa/reset", {}, 200)


async def replace_recovery_codes(scene: Scene) -> None:
    await add_device(scene.admin)
    await made(scene.admin, "/api/v1/mfa/recovery-codes", {}, 200)


async def change_grants(scene: Scene) -> None:
    """They are of the whole instance, so they are set back."""
    chief, path = await scene.colleague("super_admin"), "/roles/viewer/permissions"
    before = (await done(await chief.get(path)))["permissions"]
    try:
        await done(await chief.put(path, {"permissions": [*before, "events:read"]}))
    finally:
        await done(await chief.put(path, {"permissions": before}))


async def create_tenant(scene: Scene) -> None:
    """Told in the log of the new tenant; the scene moves there."""
    chief = await scene.world.user("super_admin")
    tenant = await made(chief, "/api/v1/tenants", {"name": "Acme", "plan": "team"})
    scene.admin = await scene.world.user("tenant_admin", tenant["id"])


async def delete_tenant(scene: Scene) -> None:
    """Told in the log of whoever deletes it."""
    chief = await scene.colleague("super_admin")
    tenant = await made(chief, "/api/v1/tenants", {"name": "Acme", "plan": "team"})
    await done(await chief.delete(f"/api/v1/tenants/{tenant['id']}"), 204)


async def change_profile(scene: Scene) -> None:
    await done(await scene.admin.put("/api/v1/profile", {"first_name": "Ada"}))


async def change_tenant(scene: Scene) -> None:
    chief = await scene.world.user("super_admin")
    path = f"/api/v1/tenants/{scene.tenant_id}"
    await done(await chief.put(path, {"name": "Another name"}))


DEEDS: dict[str, Deed] = {
    "system.tenant.created": create_tenant,
    "system.tenant.updated": change_tenant,
    "system.tenant.deleted": delete_tenant,
    "system.user.invited": invite,
    "system.user.invitation_revoked": revoke_invitation,
    "system.user.registered": register,
    "system.user.email_verified": verify_email,
    "system.user.signed_in": sign_in,
    "system.user.sign_in_blocked": guess_passwords,
    "system.user.signed_out": sign_out,
    "system.user.session_revoked": replay_refresh_token,
    "system.user.password_reset_requested": forget_password,
    "system.user.password_changed": change_password,
    "system.user.role_changed": change_role,
    "system.user.deactivated": deactivate,
    "system.user.reactivated": reactivate,
    "system.user.deleted": delete_user,
    "system.user.updated": change_profile,
    "system.user.mfa_enabled": enable_mfa,
    "system.user.mfa_device_added": add_second_device,
    "system.user.mfa_device_removed": remove_device,
    "system.user.mfa_disabled": disable_mfa,
    "system.user.mfa_reset": reset_mfa,
    "system.user.recovery_code_used": disable_mfa,
    "system.user.recovery_codes_replaced": replace_recovery_codes,
    "system.role.permissions_changed": change_grants,
}

"""A function for each event type about users, roles and tenants that emits it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from app.kit import clock
from app.kit.ids import new_id
from tests.platform.events.emitter_context import EmitterContext, add_mfa_device
from tests.platform.events.responses import post_json, read_json
from tests.world import PASSWORD, Client

Emitter = Callable[[EmitterContext], Awaitable[None]]
NEW_PASSWORD = "Battery9Staple"


async def _create_invitation(context: EmitterContext) -> dict[str, Any]:
    body = {"email": f"{new_id('mail')}@example.com", "role": "viewer"}
    invitation: dict[str, Any] = await post_json(context.admin, "/users/invite", body)
    return invitation


async def emit_user_invited(context: EmitterContext) -> None:
    await _create_invitation(context)


async def emit_user_invitation_revoked(context: EmitterContext) -> None:
    invitation = await _create_invitation(context)
    read_json(await context.admin.post(f"/users/invitations/{invitation['id']}/revoke"))


async def emit_user_registered(context: EmitterContext) -> None:
    invitation = await _create_invitation(context)
    body = {
        "email": invitation["email"],
        "password": NEW_PASSWORD,
        "first_name": "Ada",
        "last_name": "Lovelace",
        "invitation_token": invitation["invitation_token"],
    }
    await post_json(context.world.anonymous(), "/auth/register", body)


async def emit_user_email_verified(context: EmitterContext) -> None:
    tenant_id = context.admin.tenant_id
    user = await context.world.user("agent_user", tenant_id, is_verified=False)
    await post_json(user, "/auth/verify-email/resend", {}, 200)
    token = await context.find_mailed_token(user.email, "verify-email")
    await post_json(context.world.anonymous(), "/auth/verify-email", {"token": token}, 200)


async def emit_user_signed_in(context: EmitterContext) -> None:
    body = {"email": context.admin.email, "password": PASSWORD}
    await post_json(context.world.anonymous(), "/auth/login", body, 200)


async def emit_user_sign_in_blocked(context: EmitterContext) -> None:
    body = {"email": context.admin.email, "password": "Wrong7Horse"}
    caller = context.world.anonymous()
    statuses = [(await caller.post("/auth/login", body)).status_code for _ in range(12)]
    assert 429 in statuses


async def emit_user_session_ended(context: EmitterContext) -> None:
    user = await context.create_colleague()
    body = {"email": user.email, "password": PASSWORD}
    await post_json(context.world.anonymous(), "/auth/login", body, 200)
    sessions = read_json(await user.get("/auth/sessions"))["data"]
    other = next(item["id"] for item in sessions if not item["is_current"])
    assert (await user.delete(f"/auth/sessions/{other}")).status_code == 204


async def emit_user_signed_out(context: EmitterContext) -> None:
    await post_json(await context.create_colleague(), "/auth/logout", {}, 200)


async def emit_user_session_revoked(context: EmitterContext) -> None:
    user, caller = await context.create_colleague(), context.world.anonymous()
    body = {"refresh_token": user.refresh_token}
    await post_json(caller, "/auth/refresh", body, 200)
    with clock.frozen(clock.now() + timedelta(seconds=11)):
        assert (await caller.post("/auth/refresh", body)).status_code == 401


async def emit_user_password_reset_requested(context: EmitterContext) -> None:
    body = {"email": context.admin.email}
    await post_json(context.world.anonymous(), "/auth/forgot-password", body, 200)


async def emit_user_password_changed(context: EmitterContext) -> None:
    body = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    await post_json(context.admin, "/auth/change-password", body, 200)
    await _reset_password(context)


async def _reset_password(context: EmitterContext) -> None:
    """Also emits `system.user.password_changed`, with other data."""
    user, caller = await context.create_colleague(), context.world.anonymous()
    await post_json(caller, "/auth/forgot-password", {"email": user.email}, 200)
    token = await context.find_mailed_token(user.email, "reset-password")
    body = {"token": token, "new_password": NEW_PASSWORD}
    await post_json(caller, "/auth/reset-password", body, 200)


async def emit_user_role_changed(context: EmitterContext) -> None:
    user = await context.create_colleague()
    path = f"/users/{user.user_id}/role"
    read_json(await context.admin.put(path, {"role": "agent_developer"}))


async def emit_user_deactivated(context: EmitterContext) -> None:
    await _deactivate_user(context)


async def _deactivate_user(context: EmitterContext) -> Client:
    user = await context.create_colleague()
    await post_json(context.admin, f"/users/{user.user_id}/deactivate", {}, 200)
    return user


async def emit_user_reactivated(context: EmitterContext) -> None:
    user = await _deactivate_user(context)
    await post_json(context.admin, f"/users/{user.user_id}/reactivate", {}, 200)


async def emit_user_deleted(context: EmitterContext) -> None:
    user = await context.create_colleague()
    read_json(await context.admin.delete(f"/users/{user.user_id}"))


async def emit_user_mfa_enabled(context: EmitterContext) -> None:
    await add_mfa_device(context.admin)


async def emit_user_mfa_device_added(context: EmitterContext) -> None:
    await add_mfa_device(context.admin)
    await add_mfa_device(context.admin)


async def emit_user_mfa_device_removed(context: EmitterContext) -> None:
    await emit_user_mfa_device_added(context)
    devices = read_json(await context.admin.get("/api/v1/mfa/devices"))["devices"]
    read_json(await context.admin.delete(f"/api/v1/mfa/devices/{devices[0]['id']}"))


async def emit_user_mfa_disabled(context: EmitterContext) -> None:
    """With a recovery code, so that `system.user.recovery_code_used` is emitted as well."""
    code = (await add_mfa_device(context.admin))[0]
    await post_json(context.admin, "/api/v1/mfa/disable", {"code": code}, 200)


async def emit_user_mfa_reset(context: EmitterContext) -> None:
    user = await context.create_colleague()
    await add_mfa_device(user)
    await post_json(context.admin, f"/api/v1/users/{user.user_id}/mfa/reset", {}, 200)


async def emit_user_recovery_codes_replaced(context: EmitterContext) -> None:
    await add_mfa_device(context.admin)
    await post_json(context.admin, "/api/v1/mfa/recovery-codes", {}, 200)


async def emit_role_permissions_changed(context: EmitterContext) -> None:
    """Permissions belong to the whole instance, so they are restored."""
    super_admin, path = await context.create_colleague("super_admin"), "/roles/viewer/permissions"
    before = read_json(await super_admin.get(path))["permissions"]
    try:
        read_json(await super_admin.put(path, {"permissions": [*before, "events:read"]}))
    finally:
        read_json(await super_admin.put(path, {"permissions": before}))


async def emit_tenant_created(context: EmitterContext) -> None:
    """Sets `context.admin` to a user of the new tenant, whose log gets the event."""
    super_admin = await context.world.user("super_admin")
    tenant = await post_json(super_admin, "/api/v1/tenants", {"name": "Acme", "plan": "team"})
    context.admin = await context.world.user("tenant_admin", tenant["id"])


async def emit_tenant_deleted(context: EmitterContext) -> None:
    """In the log of the tenant whose user deletes it."""
    super_admin = await context.create_colleague("super_admin")
    tenant = await post_json(super_admin, "/api/v1/tenants", {"name": "Acme", "plan": "team"})
    read_json(await super_admin.delete(f"/api/v1/tenants/{tenant['id']}"), 204)


async def emit_user_updated(context: EmitterContext) -> None:
    read_json(await context.admin.put("/api/v1/profile", {"first_name": "Ada"}))


async def emit_tenant_updated(context: EmitterContext) -> None:
    super_admin = await context.world.user("super_admin")
    path = f"/api/v1/tenants/{context.tenant_id}"
    read_json(await super_admin.put(path, {"name": "Another name"}))


async def _create_service_key(context: EmitterContext) -> str:
    body = {"name": "Import", "role": "viewer"}
    return str((await post_json(context.admin, "/api/v1/service-keys", body))["id"])


async def emit_service_key_created(context: EmitterContext) -> None:
    await _create_service_key(context)


async def emit_service_key_revoked(context: EmitterContext) -> None:
    path = f"/api/v1/service-keys/{await _create_service_key(context)}"
    read_json(await context.admin.delete(path), 204)


EMITTERS: dict[str, Emitter] = {
    "system.service_key.created": emit_service_key_created,
    "system.service_key.revoked": emit_service_key_revoked,
    "system.tenant.created": emit_tenant_created,
    "system.tenant.updated": emit_tenant_updated,
    "system.tenant.deleted": emit_tenant_deleted,
    "system.user.invited": emit_user_invited,
    "system.user.invitation_revoked": emit_user_invitation_revoked,
    "system.user.registered": emit_user_registered,
    "system.user.email_verified": emit_user_email_verified,
    "system.user.signed_in": emit_user_signed_in,
    "system.user.sign_in_blocked": emit_user_sign_in_blocked,
    "system.user.signed_out": emit_user_signed_out,
    "system.user.session_ended": emit_user_session_ended,
    "system.user.session_revoked": emit_user_session_revoked,
    "system.user.password_reset_requested": emit_user_password_reset_requested,
    "system.user.password_changed": emit_user_password_changed,
    "system.user.role_changed": emit_user_role_changed,
    "system.user.deactivated": emit_user_deactivated,
    "system.user.reactivated": emit_user_reactivated,
    "system.user.deleted": emit_user_deleted,
    "system.user.updated": emit_user_updated,
    "system.user.mfa_enabled": emit_user_mfa_enabled,
    "system.user.mfa_device_added": emit_user_mfa_device_added,
    "system.user.mfa_device_removed": emit_user_mfa_device_removed,
    "system.user.mfa_disabled": emit_user_mfa_disabled,
    "system.user.mfa_reset": emit_user_mfa_reset,
    "system.user.recovery_code_used": emit_user_mfa_disabled,
    "system.user.recovery_codes_replaced": emit_user_recovery_codes_replaced,
    "system.role.permissions_changed": emit_role_permissions_changed,
}

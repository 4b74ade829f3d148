"""Multi-factor authentication: users manage their own, administrators reset it."""

import asyncio
from collections.abc import Awaitable, Callable

import segno
from msgspec import UNSET

from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.kit import clock
from app.kit.errors import Invalid, Unauthorized
from app.kit.ids import new_id
from app.kit.views import Done
from app.security import throttle
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import codes, queries
from .codes import CodeMatch, Owner
from .errors import DeviceNotFound, MfaNotEnabled, MfaNotSetUp, TooManyDevices
from .events import (
    MfaDeviceAdded,
    MfaDeviceRemoved,
    MfaDisabled,
    MfaEnabled,
    MfaReset,
    RecoveryCodesReplaced,
)
from .schemas import (
    Device,
    Devices,
    EnableMfa,
    MfaEnabledView,
    MfaResetView,
    MfaSetup,
    MfaStatus,
    RecoveryCodes,
)

_WRONG_CODE = "is wrong or was used before"
_NOT_ENABLED = "Multi-factor authentication is off; set it up with POST /api/v1/mfa/setup"
MAX_DEVICES = 10
OnAccepted = Callable[[Tx, Row, CodeMatch], Awaitable[None]]


async def get_status(tx: Tx, principal: Principal) -> MfaStatus:
    row = await queries.find_status(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return MfaStatus(row["enabled"], "totp", row["devices_count"], row["codes_left"])


async def setup(services: Services, principal: Principal) -> MfaSetup:
    """Adds a pending device and pending recovery codes. `enable` confirms them."""
    recovery_codes = codes.generate_recovery_codes()
    hashes = await codes.hash_recovery_codes(recovery_codes, principal.user_id)
    seed = codes.generate_seed()
    async with services.db.tx(principal.tenant_id) as tx:
        email = await _add_pending(tx, services, principal, seed, hashes)
    url = codes.build_otpauth_url(seed, email)
    return MfaSetup(seed, await asyncio.to_thread(_draw_qr_code, url), url, recovery_codes)


async def _add_pending(
    tx: Tx, services: Services, principal: Principal, seed: str, hashes: list[str]
) -> str:
    """Returns the user's address."""
    tenant_id, user_id = principal.tenant_id, principal.user_id
    user = await accounts.lock_own_user(tx, principal)
    if user["mfa_enabled"]:
        await accounts.require_code_shown(tx, principal)
        if len(await queries.list_confirmed(tx, tenant_id, user_id)) >= MAX_DEVICES:
            raise TooManyDevices(f"At most {MAX_DEVICES} devices; remove one first")
    device_id = new_id("dev")
    secret = services.keyring.seal(seed.encode(), codes.seal_context(tenant_id, device_id))
    await queries.remove_pending(tx, tenant_id, user_id)
    await queries.add_device(tx, tenant_id, device_id, user_id, "Authenticator", secret)
    await queries.add_codes(tx, tenant_id, user_id, hashes, pending=True)
    email: str = user["email"]
    return email


def _draw_qr_code(url: str) -> str:
    return segno.make(url, error="m").png_data_uri(scale=5, border=4)


async def enable(
    services: Services, principal: Principal, data: EnableMfa, address: str
) -> MfaEnabledView:
    """Confirms the pending device with one of its codes, and the pending recovery codes."""

    async def confirm(tx: Tx, user: Row, code_match: CodeMatch) -> None:
        tenant_id, user_id = user["tenant_id"], user["id"]
        if user["mfa_enabled"]:
            await accounts.require_code_shown(tx, principal)
        name = None if data.name is UNSET else data.name.strip()
        device_id = code_match.device_id
        if not await queries.confirm_device(tx, tenant_id, user_id, device_id, clock.now(), name):
            raise MfaNotSetUp("This set-up was already confirmed")
        await queries.confirm_codes(tx, tenant_id, user_id)
        await accounts.set_mfa(tx, tenant_id, user_id, enabled=True)
        await accounts.mark_code_shown(tx, principal)
        event_class = MfaDeviceAdded if user["mfa_enabled"] else MfaEnabled
        event_id = await events.emit(tx, event_class(user_id, device_id), tenant_id=tenant_id)
        await accounts.mail_notice(tx, services, user, "authenticator_added", event_id)

    if not await _check_code(services, principal, data.code, address, confirm, pending=True):
        raise Invalid.field("code", _WRONG_CODE)
    return MfaEnabledView(
        "Multi-factor authentication is on; your next sign-in asks for a code. "
        "The recovery codes of this set-up are now the only ones that work",
        codes.RECOVERY_CODE_COUNT,
    )


async def disable(services: Services, principal: Principal, code: str, address: str) -> Done:
    async def turn_off(tx: Tx, user: Row, _code_match: CodeMatch) -> None:
        await _turn_off(tx, services, user)

    await _require_enabled(services, principal)
    if not await _check_code(services, principal, code, address, turn_off):
        raise Invalid.field("code", _WRONG_CODE)
    return Done("Multi-factor authentication is off")


async def verify_code(services: Services, principal: Principal, code: str, address: str) -> bool:
    """True when the code is accepted. The session may then change MFA."""

    async def mark_session(tx: Tx, _user: Row, _code_match: CodeMatch) -> None:
        await accounts.mark_code_shown(tx, principal)

    return await _check_code(services, principal, code, address, mark_session)


async def _check_code(
    services: Services,
    principal: Principal,
    code: str,
    address: str,
    on_accepted: OnAccepted,
    *,
    pending: bool = False,
) -> bool:
    """True when the code is accepted. `on_accepted` runs in the transaction that uses the code."""
    owner = Owner(principal.tenant_id, principal.user_id)
    subjects = codes.list_throttle_subjects(owner, address)
    async with services.db.tx(owner.tenant_id, autocommit=True) as tx:
        await throttle.refuse_blocked(tx, subjects)
        secrets = await codes.load_secrets(tx, services.keyring, owner, pending=pending)
    if not secrets:
        if pending:
            raise MfaNotSetUp("Begin with POST /api/v1/mfa/setup")
        return False
    code_match = await codes.match_code(secrets, owner, code)
    if pending and code_match is not None and not code_match.device_id:
        code_match = None
    async with services.db.tx(owner.tenant_id) as tx:
        user = await accounts.lock_own_user(tx, principal)
        attempt = await codes.record_attempt(tx, user, owner, code_match, address)
        if attempt.passed and code_match is not None:
            await on_accepted(tx, user, code_match)
    return attempt.passed


async def _require_enabled(services: Services, principal: Principal) -> None:
    async with services.db.tx(principal.tenant_id, autocommit=True) as tx:
        if not (await get_status(tx, principal)).enabled:
            raise MfaNotEnabled(_NOT_ENABLED)


async def list_devices(tx: Tx, principal: Principal) -> Devices:
    rows = await queries.list_confirmed(tx, principal.tenant_id, principal.user_id)
    return Devices(
        [
            Device(row["id"], row["name"], "totp", row["created_at"], row["last_used_at"])
            for row in rows
        ]
    )


async def remove_device(tx: Tx, services: Services, principal: Principal, device_id: str) -> Done:
    """Removes a device. Removing the last one turns MFA off."""
    user = await accounts.lock_own_user(tx, principal)
    rows = await queries.list_confirmed(tx, user["tenant_id"], user["id"])
    device_ids = {row["id"] for row in rows}
    if device_id not in device_ids:
        raise DeviceNotFound(f"There is no device {device_id[:64]}")
    await accounts.require_code_shown(tx, principal)
    await queries.remove_device(tx, user["tenant_id"], user["id"], device_id)
    removed = MfaDeviceRemoved(user["id"], device_id)
    event_id = await events.emit(tx, removed, tenant_id=user["tenant_id"])
    await accounts.mail_notice(tx, services, user, "authenticator_removed", event_id)
    if device_ids == {device_id}:
        await _turn_off(tx, services, user)
        return Done("The device is removed; it was the last, so multi-factor authentication is off")
    return Done("The device is removed")


async def replace_recovery_codes(tx: Tx, services: Services, principal: Principal) -> RecoveryCodes:
    recovery_codes = codes.generate_recovery_codes()
    hashes = await codes.hash_recovery_codes(recovery_codes, principal.user_id)
    user = await accounts.lock_own_user(tx, principal)
    if not user["mfa_enabled"]:
        raise MfaNotEnabled(_NOT_ENABLED)
    await accounts.require_code_shown(tx, principal)
    await queries.replace_codes(tx, user["tenant_id"], user["id"], hashes)
    replaced = RecoveryCodesReplaced(user["id"])
    event_id = await events.emit(tx, replaced, tenant_id=user["tenant_id"])
    await accounts.mail_notice(tx, services, user, "recovery_codes_replaced", event_id)
    return RecoveryCodes(recovery_codes, "Keep these codes safe; all earlier ones are void")


async def reset(tx: Tx, services: Services, principal: Principal, user_id: str) -> MfaResetView:
    """Removes all devices and recovery codes of a user. Resetting one's own MFA needs a code."""
    user = await accounts.lock_user_to_change(tx, principal, user_id)
    if user_id == principal.user_id and user.mfa_enabled:
        await accounts.require_code_shown(tx, principal)
    row = {"id": user.id, "tenant_id": user.tenant_id, "email": user.email}
    await queries.remove_all(tx, user.tenant_id, user.id)
    await accounts.forget_code_shown(tx, user.tenant_id, user.id)
    if user.mfa_enabled:
        await accounts.set_mfa(tx, user.tenant_id, user.id, enabled=False)
        event_id = await events.emit(tx, MfaReset(user.id), tenant_id=user.tenant_id)
        await accounts.mail_notice(tx, services, row, "mfa_reset", event_id)
    return MfaResetView(
        user.id,
        False,  # noqa: FBT003  # a field of the response
        "Multi-factor authentication is off for this user; they must set it up again",
    )


async def _turn_off(tx: Tx, services: Services, user: Row) -> None:
    await queries.remove_all(tx, user["tenant_id"], user["id"])
    await accounts.forget_code_shown(tx, user["tenant_id"], user["id"])
    await accounts.set_mfa(tx, user["tenant_id"], user["id"], enabled=False)
    event_id = await events.emit(tx, MfaDisabled(user["id"]), tenant_id=user["tenant_id"])
    await accounts.mail_notice(tx, services, user, "mfa_disabled", event_id)

"""Multi-factor authentication of one's own account, and its reset by an administrator."""

import asyncio
from collections.abc import Awaitable, Callable

import segno
from msgspec import UNSET

from app.domain.accounts import service as accounts
from app.domain.accounts.events import SignInBlocked
from app.domain.events import service as events
from app.domain.mfa import codes, queries
from app.domain.mfa.codes import Owner, Proof
from app.domain.mfa.errors import DeviceNotFound, MfaNotEnabled, MfaNotSetUp, TooManyDevices
from app.domain.mfa.events import (
    MfaDeviceAdded,
    MfaDeviceRemoved,
    MfaDisabled,
    MfaEnabled,
    MfaReset,
    RecoveryCodesReplaced,
)
from app.domain.mfa.schemas import (
    Device,
    Devices,
    EnableMfa,
    MfaEnabledView,
    MfaResetView,
    MfaSetup,
    MfaStatus,
    RecoveryCodes,
)
from app.http.responses import Done
from app.kit import clock
from app.kit.errors import Invalid, Unauthorized
from app.kit.ids import new_id
from app.security import throttle
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

_WRONG = "is wrong or was used before"
_OFF = "Multi-factor authentication is off; set it up with POST /api/v1/mfa/setup"
MAX_DEVICES = 10
Accepted = Callable[[Tx, Row, Proof], Awaitable[None]]


async def status(tx: Tx, principal: Principal) -> MfaStatus:
    row = await queries.status(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return MfaStatus(row["enabled"], "totp", row["devices_count"], row["codes_left"])


async def setup(tx: Tx, services: Services, principal: Principal) -> MfaSetup:
    """A first authenticator, or one more. Nothing changes before `enable` confirms it."""
    tenant_id, user_id = principal.tenant_id, principal.user_id
    recovery = codes.new_set()
    hashes = await codes.hashes(recovery, user_id)
    user = await accounts.lock_own(tx, principal)
    if user["mfa_enabled"]:
        await accounts.require_code_shown(tx, principal)
        if len(await queries.confirmed(tx, tenant_id, user_id)) >= MAX_DEVICES:
            raise TooManyDevices(f"At most {MAX_DEVICES} devices; remove one first")
    seed, device_id = codes.new_seed(), new_id("dev")
    sealed = services.keyring.seal(seed.encode(), codes.place_of(tenant_id, device_id))
    await queries.remove_pending(tx, tenant_id, user_id)
    await queries.add_device(tx, tenant_id, device_id, user_id, "Authenticator", sealed)
    await queries.add_codes(tx, tenant_id, user_id, hashes, pending=True)
    url = codes.otpauth_url(seed, user["email"])
    return MfaSetup(seed, await asyncio.to_thread(_qr_code, url), url, recovery)


def _qr_code(url: str) -> str:
    return segno.make(url, error="m").png_data_uri(scale=5, border=4)


async def enable(
    services: Services, principal: Principal, data: EnableMfa, address: str
) -> MfaEnabledView:
    """Confirms what `setup` gave, with a code from it."""

    async def confirm(tx: Tx, user: Row, proof: Proof) -> None:
        tenant_id, user_id = user["tenant_id"], user["id"]
        if user["mfa_enabled"]:
            await accounts.require_code_shown(tx, principal)
        name = None if data.name is UNSET else data.name.strip()
        if not await queries.confirm(tx, tenant_id, user_id, proof.device_id, clock.now(), name):
            raise MfaNotSetUp("This set-up was confirmed already")
        await queries.confirm_codes(tx, tenant_id, user_id)
        await accounts.set_mfa(tx, tenant_id, user_id, enabled=True)
        await accounts.mark_code_shown(tx, principal)
        kind = MfaDeviceAdded if user["mfa_enabled"] else MfaEnabled
        event_id = await events.emit(tx, kind(user_id, proof.device_id), tenant_id=tenant_id)
        await accounts.mail_notice(tx, services, user, "An authenticator was added.", event_id)

    if not await _prove(services, principal, data.code, address, confirm, pending=True):
        raise Invalid.field("code", _WRONG)
    return MfaEnabledView(
        "Multi-factor authentication is on; your next sign-in asks for a code. "
        "The recovery codes of this set-up are now the only ones that work",
        codes.SET_SIZE,
    )


async def disable(services: Services, principal: Principal, code: str, address: str) -> Done:
    async def turn_off(tx: Tx, user: Row, _proof: Proof) -> None:
        await _turn_off(tx, services, user)

    await _require_enabled(services, principal)
    if not await _prove(services, principal, code, address, turn_off):
        raise Invalid.field("code", _WRONG)
    return Done("Multi-factor authentication is off")


async def verify(services: Services, principal: Principal, code: str, address: str) -> bool:
    """Also what lets this session change MFA, if it was opened without a code."""

    async def mark(tx: Tx, _user: Row, _proof: Proof) -> None:
        await accounts.mark_code_shown(tx, principal)

    return await _prove(services, principal, code, address, mark)


async def _prove(
    services: Services,
    principal: Principal,
    code: str,
    address: str,
    accepted: Accepted,
    *,
    pending: bool = False,
) -> bool:
    """Judge a code and count it; what it allows is done in the same transaction."""
    owner = Owner(principal.tenant_id, principal.user_id)
    subjects = codes.subjects(owner, address)
    async with services.db.tx(owner.tenant_id, autocommit=True) as tx:
        await throttle.refuse_blocked(tx, subjects)
        known = await codes.devices(tx, services.keyring, owner, pending=pending)
    if not known:
        if pending:
            raise MfaNotSetUp("Begin with POST /api/v1/mfa/setup")
        return False
    proof = await codes.find(known, owner, code)
    if pending and proof is not None and not proof.device_id:
        proof = None
    async with services.db.tx(owner.tenant_id) as tx:
        user = await accounts.lock_own(tx, principal)
        right = proof is not None and await codes.spend(tx, owner, proof)
        judgement = await throttle.judge(tx, subjects, right=right)
        if judgement.problem is not None:
            # Nothing is kept: what was not judged is not used up.
            raise judgement.problem
        if judgement.tripped:
            blocked = SignInBlocked(owner.user_id, address, "code")
            await events.emit(tx, blocked, tenant_id=owner.tenant_id)
        if judgement.passed and proof is not None:
            await accepted(tx, user, proof)
    return judgement.passed


async def _require_enabled(services: Services, principal: Principal) -> None:
    async with services.db.tx(principal.tenant_id, autocommit=True) as tx:
        if not (await status(tx, principal)).enabled:
            raise MfaNotEnabled(_OFF)


async def devices(tx: Tx, principal: Principal) -> Devices:
    rows = await queries.confirmed(tx, principal.tenant_id, principal.user_id)
    return Devices(
        [
            Device(row["id"], row["name"], "totp", row["created_at"], row["last_used_at"])
            for row in rows
        ]
    )


async def remove_device(tx: Tx, services: Services, principal: Principal, device_id: str) -> Done:
    """Without its last authenticator an account has no MFA any more."""
    user = await accounts.lock_own(tx, principal)
    known = {row["id"] for row in await queries.confirmed(tx, user["tenant_id"], user["id"])}
    if device_id not in known:
        raise DeviceNotFound(f"There is no device {device_id[:64]}")
    await accounts.require_code_shown(tx, principal)
    await queries.remove_device(tx, user["tenant_id"], user["id"], device_id)
    removed = MfaDeviceRemoved(user["id"], device_id)
    event_id = await events.emit(tx, removed, tenant_id=user["tenant_id"])
    await accounts.mail_notice(tx, services, user, "An authenticator was removed.", event_id)
    if known == {device_id}:
        await _turn_off(tx, services, user)
        return Done("The device is removed; it was the last, so multi-factor authentication is off")
    return Done("The device is removed")


async def new_recovery_codes(tx: Tx, services: Services, principal: Principal) -> RecoveryCodes:
    recovery = codes.new_set()
    hashes = await codes.hashes(recovery, principal.user_id)
    user = await accounts.lock_own(tx, principal)
    if not user["mfa_enabled"]:
        raise MfaNotEnabled(_OFF)
    await accounts.require_code_shown(tx, principal)
    await queries.replace_codes(tx, user["tenant_id"], user["id"], hashes)
    replaced = RecoveryCodesReplaced(user["id"])
    event_id = await events.emit(tx, replaced, tenant_id=user["tenant_id"])
    await accounts.mail_notice(tx, services, user, "New recovery codes were made.", event_id)
    return RecoveryCodes(recovery, "Keep these codes safe; all earlier ones are void")


async def reset(tx: Tx, services: Services, principal: Principal, user_id: str) -> MfaResetView:
    """For somebody who lost their devices. One's own MFA is not reset without a code."""
    user = await accounts.lock_user_to_change(tx, principal, user_id)
    if user_id == principal.user_id and user.mfa_enabled:
        await accounts.require_code_shown(tx, principal)
    row = {"id": user.id, "tenant_id": user.tenant_id, "email": user.email}
    await queries.remove_all(tx, user.tenant_id, user.id)
    await accounts.forget_code_shown(tx, user.tenant_id, user.id)
    if user.mfa_enabled:
        await accounts.set_mfa(tx, user.tenant_id, user.id, enabled=False)
        event_id = await events.emit(tx, MfaReset(user.id), tenant_id=user.tenant_id)
        what = "An administrator removed your authenticators."
        await accounts.mail_notice(tx, services, row, what, event_id)
    return MfaResetView(
        user.id,
        False,  # noqa: FBT003  # the answer's own field
        "Multi-factor authentication is off for this user; they must set it up again",
    )


async def _turn_off(tx: Tx, services: Services, user: Row) -> None:
    await queries.remove_all(tx, user["tenant_id"], user["id"])
    await accounts.forget_code_shown(tx, user["tenant_id"], user["id"])
    await accounts.set_mfa(tx, user["tenant_id"], user["id"], enabled=False)
    event_id = await events.emit(tx, MfaDisabled(user["id"]), tenant_id=user["tenant_id"])
    what = "Multi-factor authentication was turned off."
    await accounts.mail_notice(tx, services, user, what, event_id)

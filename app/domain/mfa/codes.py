"""Codes: what a device shows for half a minute, or one of ten recovery codes. Each opens once."""

import hmac
import secrets
from collections.abc import Sequence

import msgspec
import pyotp

from app.domain.events import service as events
from app.domain.mfa import queries
from app.domain.mfa.events import RecoveryCodeUsed
from app.kit import clock
from app.kit.crypto import Keyring, SealContext
from app.security import passwords, throttle
from app.security.throttle import Subject
from db.models import MfaDevice
from db.session import Tx

SET_SIZE = 10
_DIGITS = 6
_LENGTH = 10
# Without the letters and digits that people mistake for each other.
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_STEP_SECONDS = 30


class Owner(msgspec.Struct, frozen=True):
    tenant_id: str
    user_id: str


class Secret(msgspec.Struct, frozen=True):
    """One authenticator's seed, opened."""

    device_id: str
    seed: str


class Proof(msgspec.Struct, frozen=True):
    """A code that fits: a device's at one step, or perhaps one of the recovery codes."""

    device_id: str = ""
    step: int = 0
    code_hash: str = ""


def subjects(owner: Owner, address: str) -> list[Subject]:
    """Whose guesses are counted, apart from wrong passwords."""
    return [Subject(throttle.CODE, owner.user_id), Subject(throttle.CODE_ADDRESS, address)]


def place_of(tenant_id: str, device_id: str) -> SealContext:
    return SealContext.of(MfaDevice.secret, tenant_id, device_id)


async def devices(tx: Tx, keyring: Keyring, owner: Owner, *, pending: bool = False) -> list[Secret]:
    rows = await queries.secrets(tx, owner.tenant_id, owner.user_id, pending=pending)
    return [
        Secret(
            row["id"], keyring.open(row["secret"], place_of(owner.tenant_id, row["id"])).decode()
        )
        for row in rows
    ]


async def find(known: Sequence[Secret], owner: Owner, code: str) -> Proof | None:
    """What the code would prove. Only `spend` says whether it still does."""
    plain = "".join(code.split()).replace("-", "")
    if len(plain) == _DIGITS and plain.isascii() and plain.isdigit():
        return _match(known, plain)
    if len(plain) == _LENGTH and plain.isascii() and plain.isalnum():
        return Proof(code_hash=await passwords.code_hash(plain.upper(), owner.user_id))
    return None


def _match(known: Sequence[Secret], code: str) -> Proof | None:
    now = int(clock.epoch()) // _STEP_SECONDS
    for device in known:
        totp = pyotp.TOTP(device.seed)
        for step in (now, now - 1, now + 1):
            if hmac.compare_digest(totp.generate_otp(step), code):
                return Proof(device.device_id, step)
    return None


async def spend(tx: Tx, owner: Owner, proof: Proof) -> bool:
    """True for the one who uses it first."""
    tenant_id, user_id, now = owner.tenant_id, owner.user_id, clock.now()
    if proof.device_id:
        return await queries.use_step(tx, tenant_id, user_id, proof.device_id, proof.step, now)
    if not await queries.use_code(tx, tenant_id, user_id, proof.code_hash, now):
        return False
    await events.emit(tx, RecoveryCodeUsed(user_id), tenant_id=tenant_id)
    return True


def new_seed() -> str:
    return pyotp.random_base32()


def otpauth_url(seed: str, email: str) -> str:
    return pyotp.TOTP(seed).provisioning_uri(name=email, issuer_name="Parley")


def new_set() -> list[str]:
    return ["".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH)) for _ in range(SET_SIZE)]


async def hashes(codes: Sequence[str], user_id: str) -> list[str]:
    return [await passwords.code_hash(code, user_id) for code in codes]

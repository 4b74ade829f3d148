"""One-time codes: TOTP codes of authenticator devices, and recovery codes. Each works once."""

import hmac
import secrets
from collections.abc import Sequence

import msgspec
import pyotp

from app.crypto.keyring import Keyring, SealContext
from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.kit import clock
from app.security import passwords, throttle
from app.security.throttle import AttemptResult, Subject
from db.fast import Row
from db.models import MfaDevice
from db.session import Tx

from . import queries
from .events import RecoveryCodeUsed

RECOVERY_CODE_COUNT = 10
_RECOVERY_CODE_LENGTH = 10
# Without the letters and digits that people mistake for each other.
_RECOVERY_CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_TOTP_DIGITS = 6
_STEP_SECONDS = 30


class Owner(msgspec.Struct, frozen=True):
    tenant_id: str
    user_id: str


class Secret(msgspec.Struct, frozen=True):
    """The decrypted TOTP seed of one device."""

    device_id: str
    seed: str


class CodeMatch(msgspec.Struct, frozen=True):
    """A device and the step of its code, or the hash of a possible recovery code."""

    device_id: str = ""
    step: int = 0
    code_hash: str = ""


def list_throttle_subjects(owner: Owner, address: str) -> list[Subject]:
    """Returns what wrong codes are counted for; wrong passwords are counted separately."""
    return [Subject(throttle.CODE, owner.user_id), Subject(throttle.CODE_ADDRESS, address)]


def seal_context(tenant_id: str, device_id: str) -> SealContext:
    return SealContext.of(MfaDevice.secret, tenant_id, device_id)


async def load_secrets(
    tx: Tx, keyring: Keyring, owner: Owner, *, pending: bool = False
) -> list[Secret]:
    """Returns the secrets of the owner's confirmed devices, or of the pending one."""
    rows = await queries.list_secrets(tx, owner.tenant_id, owner.user_id, pending=pending)
    return [
        Secret(
            row["id"],
            keyring.open(row["secret"], seal_context(owner.tenant_id, row["id"])).decode(),
        )
        for row in rows
    ]


async def match_code(device_secrets: Sequence[Secret], owner: Owner, code: str) -> CodeMatch | None:
    """Returns the device or recovery code that the code may belong to. The code is accepted only
    once `use_code` returns True.
    """
    plain = "".join(code.split()).replace("-", "")
    if len(plain) == _TOTP_DIGITS and plain.isascii() and plain.isdigit():
        return _match_totp(device_secrets, plain)
    if len(plain) == _RECOVERY_CODE_LENGTH and plain.isascii() and plain.isalnum():
        return CodeMatch(code_hash=await passwords.hash_code(plain.upper(), owner.user_id))
    return None


def _match_totp(device_secrets: Sequence[Secret], code: str) -> CodeMatch | None:
    now = int(clock.epoch()) // _STEP_SECONDS
    for device in device_secrets:
        totp = pyotp.TOTP(device.seed)
        for step in (now, now - 1, now + 1):
            if hmac.compare_digest(totp.generate_otp(step), code):
                return CodeMatch(device.device_id, step)
    return None


async def record_attempt(
    tx: Tx, user: Row, owner: Owner, code_match: CodeMatch | None, address: str
) -> AttemptResult:
    """Uses the code and counts the attempt. Raises RateLimited while the user must wait."""
    is_correct = code_match is not None and await _use_code(tx, owner, code_match)
    subjects = list_throttle_subjects(owner, address)
    attempt = await throttle.record_attempt(tx, subjects, succeeded=is_correct)
    if attempt.problem is not None:
        # Rolls back, so that the code can be used after the wait.
        raise attempt.problem
    if attempt.starts_block:
        await accounts.emit_sign_in_blocked(tx, user, address, "code")
    return attempt


async def _use_code(tx: Tx, owner: Owner, code_match: CodeMatch) -> bool:
    """Marks the code as used. True only for its first use."""
    tenant_id, user_id, now = owner.tenant_id, owner.user_id, clock.now()
    if code_match.device_id:
        return await queries.use_step(
            tx, tenant_id, user_id, code_match.device_id, code_match.step, now
        )
    if not await queries.use_recovery_code(tx, tenant_id, user_id, code_match.code_hash, now):
        return False
    await events.emit(tx, RecoveryCodeUsed(user_id), tenant_id=tenant_id)
    return True


def generate_seed() -> str:
    return pyotp.random_base32()


def build_otpauth_url(seed: str, email: str) -> str:
    return pyotp.TOTP(seed).provisioning_uri(name=email, issuer_name="Parley")


def generate_recovery_codes() -> list[str]:
    return [_generate_recovery_code() for _ in range(RECOVERY_CODE_COUNT)]


def _generate_recovery_code() -> str:
    letters = (secrets.choice(_RECOVERY_CODE_ALPHABET) for _ in range(_RECOVERY_CODE_LENGTH))
    return "".join(letters)


async def hash_recovery_codes(codes: Sequence[str], user_id: str) -> list[str]:
    return [await passwords.hash_code(code, user_id) for code in codes]

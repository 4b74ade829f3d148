"""The accounts' SQL. Signing in and mailed tokens look for a user before the tenant is known."""

from datetime import datetime
from typing import Any

import msgspec

from app import email_addresses
from db import fast
from db.fast import Row
from db.session import Tx

_BY_EMAIL = """
SELECT id, tenant_id, email, role, status, password_hash,
       EXISTS (SELECT 1 FROM sessions s
               WHERE s.user_id = u.id AND s.ip_address = $2
                 AND s.created_at > now() - interval '90 days') AS familiar
FROM users u WHERE lower(email) = $1
"""

_BY_ID = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at
FROM users WHERE tenant_id = $1 AND id = $2
"""

_ADDRESS = """
SELECT email FROM users
WHERE id = $2 AND status = 'active' AND (tenant_id = $1 OR role = 'super_admin')
"""
_EXISTING = "SELECT id FROM users WHERE tenant_id = $1 AND id = ANY($2)"
_HASH = "SELECT email, password_hash FROM users WHERE tenant_id = $1 AND id = $2"

# A user's row is always locked before the rows of its sessions.
_LOCK = """
SELECT id, tenant_id, email, role, status, password_hash, mfa_enabled, email_verified
FROM users WHERE tenant_id = $1 AND id = $2
"""
_LOCK_TO_CHANGE = _LOCK + " FOR NO KEY UPDATE"
_LOCK_TO_READ = _LOCK + " FOR SHARE"

_SIGNED_IN = "UPDATE users SET last_login_at = $3 WHERE tenant_id = $1 AND id = $2"
_STORE_HASH = """
UPDATE users SET password_hash = $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2
"""
_SET_VERIFIED = """
UPDATE users SET email_verified = true, updated_at = $3
WHERE tenant_id = $1 AND id = $2 AND NOT email_verified
"""
_SET_MFA = "UPDATE users SET mfa_enabled = $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2"

_SESSION = """
SELECT id, refresh_jti, expires_at, ended_at, spent::text AS spent FROM sessions
WHERE tenant_id = $1 AND id = $2 AND user_id = $3 FOR UPDATE
"""
_ROTATE = """
UPDATE sessions SET refresh_jti = $3, expires_at = $4, spent = $5::jsonb, updated_at = $6
WHERE tenant_id = $1 AND id = $2
"""
_END_ONE = """
UPDATE sessions SET ended_at = $3 WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
"""
_END_ALL = """
UPDATE sessions SET ended_at = $3
WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL AND id IS DISTINCT FROM $4
RETURNING id
"""
_MARK_CODE = "UPDATE sessions SET code_shown_at = $3 WHERE tenant_id = $1 AND id = $2"
_FORGET_CODE = """
UPDATE sessions SET code_shown_at = NULL
WHERE tenant_id = $1 AND user_id = $2 AND code_shown_at IS NOT NULL
"""
_CODE_SHOWN = """
SELECT code_shown_at IS NOT NULL FROM sessions WHERE tenant_id = $1 AND id = $2
"""

_ONE_TIME_ADD = """
INSERT INTO one_time_tokens (tenant_id, id, user_id, purpose, token_hash, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
"""
_ONE_TIME_READ = """
SELECT id, tenant_id, user_id FROM one_time_tokens
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 AND tries < $4
"""
_ONE_TIME_TRY = """
UPDATE one_time_tokens SET tries = tries + 1
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 AND tries < $4
RETURNING id, tenant_id, user_id
"""
_ONE_TIME_USE = """
UPDATE one_time_tokens SET used_at = $3
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3
RETURNING id, tenant_id, user_id
"""
_ONE_TIME_VOID = """
UPDATE one_time_tokens SET used_at = $4
WHERE tenant_id = $1 AND user_id = $2 AND purpose = ANY($3) AND used_at IS NULL
"""

_INVITATION = """
UPDATE invitations SET used_at = $3
WHERE token_hash = $1 AND lower(email) = $2 AND used_at IS NULL AND expires_at > $3
RETURNING id, tenant_id, role
"""
_INVITATIONS_VOID = """
UPDATE invitations SET expires_at = $2
WHERE invited_by = $1 AND used_at IS NULL AND expires_at > $2
"""
_INVITATIONS_TO_VOID = """
UPDATE invitations SET expires_at = $2
WHERE lower(email) = $1 AND used_at IS NULL AND expires_at > $2
  AND ($3::text IS NULL OR tenant_id = $3)
"""

_ADMINS_LOCK = "SELECT pg_advisory_xact_lock(7210032)"
_OTHER_SUPER_ADMIN = """
SELECT EXISTS (SELECT 1 FROM users
               WHERE role = 'super_admin' AND status = 'active' AND id <> $1)
"""
_OTHER_ADMIN = """
SELECT EXISTS (SELECT 1 FROM users
               WHERE tenant_id = $1 AND role IN ('tenant_admin', 'super_admin')
                 AND status = 'active' AND id <> $2)
"""


async def by_email(tx: Tx, email: str, address: str | None = None) -> Row | None:
    """Whoever has this e-mail, in any tenant, however it is written; `familiar` when they have
    signed in from this network address before.
    """
    wanted = email_addresses.comparable(email)
    found: Row | None = await (await tx.raw()).fetchrow(_BY_EMAIL, wanted, address)
    return found


async def by_id(tx: Tx, tenant: str, user_id: str) -> dict[str, Any] | None:
    found: Any = await fast.row(tx, tenant, _BY_ID, user_id)
    return dict(found) if found is not None else None


async def address_of(tx: Tx, tenant: str, user_id: str) -> str | None:
    found: str | None = await fast.value(tx, tenant, _ADDRESS, user_id)
    return found


async def existing(tx: Tx, tenant: str, user_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant, _EXISTING, user_ids)}


async def password_of(tx: Tx, tenant: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant, _HASH, user_id)


async def lock_user(tx: Tx, tenant: str, user_id: str, *, to_change: bool = True) -> Row | None:
    return await fast.row(tx, tenant, _LOCK_TO_CHANGE if to_change else _LOCK_TO_READ, user_id)


async def set_signed_in(tx: Tx, tenant: str, user_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant, _SIGNED_IN, user_id, at)


async def set_password(tx: Tx, tenant: str, user_id: str, hashed: str, at: datetime) -> None:
    await fast.execute(tx, tenant, _STORE_HASH, user_id, hashed, at)


async def set_verified(tx: Tx, tenant: str, user_id: str, at: datetime) -> bool:
    return await fast.execute(tx, tenant, _SET_VERIFIED, user_id, at) == 1


async def set_mfa(tx: Tx, tenant: str, user_id: str, at: datetime, *, enabled: bool) -> None:
    await fast.execute(tx, tenant, _SET_MFA, user_id, enabled, at)


async def lock_session(tx: Tx, tenant: str, session_id: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant, _SESSION, session_id, user_id)


async def rotate_session(
    tx: Tx,
    tenant: str,
    session_id: str,
    *,
    refresh_jti: str,
    expires_at: datetime,
    spent: list[Any],
    at: datetime,
) -> None:
    packed = msgspec.json.encode(spent).decode()
    await fast.execute(tx, tenant, _ROTATE, session_id, refresh_jti, expires_at, packed, at)


async def end_session(tx: Tx, tenant: str, session_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant, _END_ONE, session_id, at)


async def end_sessions(
    tx: Tx, tenant: str, user_id: str, at: datetime, keep: str | None
) -> list[str]:
    return [row["id"] for row in await fast.rows(tx, tenant, _END_ALL, user_id, at, keep)]


async def mark_code_shown(tx: Tx, tenant: str, session_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant, _MARK_CODE, session_id, at)


async def forget_code_shown(tx: Tx, tenant: str, user_id: str) -> None:
    await fast.execute(tx, tenant, _FORGET_CODE, user_id)


async def code_shown(tx: Tx, tenant: str, session_id: str) -> bool:
    return bool(await fast.value(tx, tenant, _CODE_SHOWN, session_id))


async def add_token(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ONE_TIME_ADD, *values)


async def read_token(tx: Tx, hashed: str, purpose: str, at: datetime, max_tries: int) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(
        _ONE_TIME_READ, hashed, purpose, at, max_tries
    )
    return found


async def try_token(tx: Tx, hashed: str, purpose: str, at: datetime, max_tries: int) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(
        _ONE_TIME_TRY, hashed, purpose, at, max_tries
    )
    return found


async def use_token(tx: Tx, hashed: str, purpose: str, at: datetime) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(_ONE_TIME_USE, hashed, purpose, at)
    return found


async def void_tokens(
    tx: Tx, tenant: str, user_id: str, purposes: tuple[str, ...], at: datetime
) -> None:
    await fast.execute(tx, tenant, _ONE_TIME_VOID, user_id, list(purposes), at)


async def use_invitation(tx: Tx, hashed: str, email: str, at: datetime) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(
        _INVITATION, hashed, email_addresses.comparable(email), at
    )
    return found


async def void_invitations(tx: Tx, inviter_id: str, at: datetime) -> None:
    """In whichever tenant: super_admin invites to all of them."""
    await (await tx.raw()).execute(_INVITATIONS_VOID, inviter_id, at)


async def void_invitations_to(tx: Tx, email: str, at: datetime, tenant: str | None = None) -> None:
    """Of an address: in one tenant, or in all of them."""
    await (await tx.raw()).execute(
        _INVITATIONS_TO_VOID, email_addresses.comparable(email), at, tenant
    )


async def lock_admins(tx: Tx) -> None:
    """Until the end of this transaction nobody else takes an administrator away."""
    await (await tx.raw()).execute(_ADMINS_LOCK)


async def other_super_admin(tx: Tx, user_id: str) -> bool:
    return bool(await (await tx.raw()).fetchval(_OTHER_SUPER_ADMIN, user_id))


async def other_admin(tx: Tx, tenant: str, user_id: str) -> bool:
    return bool(await fast.value(tx, tenant, _OTHER_ADMIN, user_id))


# Profiles. A picture is found by its key alone, whoever asks.

_PROFILE = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at, avatar_key, timezone, language
FROM users WHERE tenant_id = $1 AND id = $2
"""
_UPDATE_PROFILE = """
UPDATE users
SET first_name = coalesce($3, first_name), last_name = coalesce($4, last_name),
    timezone = coalesce($5, timezone), language = coalesce($6, language), updated_at = $7
WHERE tenant_id = $1 AND id = $2
RETURNING id, first_name, last_name, timezone, language, updated_at
"""
# The old key comes from the row as it is locked, so that of two uploads each removes one file.
_SET_AVATAR = """
WITH old AS (SELECT id, avatar_key FROM users WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE)
UPDATE users u SET avatar_key = $3, avatar_type = $4, updated_at = $5
FROM old WHERE u.id = old.id
RETURNING old.avatar_key AS old_key
"""
_AVATAR_TYPE = "SELECT avatar_type FROM users WHERE avatar_key = $1"


async def find_profile(tx: Tx, tenant: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant, _PROFILE, user_id)


async def update_profile(
    tx: Tx, tenant: str, user_id: str, values: tuple[str | None, ...], at: datetime
) -> Row | None:
    return await fast.row(tx, tenant, _UPDATE_PROFILE, user_id, *values, at)


async def set_avatar(
    tx: Tx, tenant: str, user_id: str, key: str | None, media_type: str | None, at: datetime
) -> str | None:
    """The key of the picture that was there before."""
    old: str | None = await fast.value(tx, tenant, _SET_AVATAR, user_id, key, media_type, at)
    return old


async def avatar_type(tx: Tx, key: str) -> str | None:
    media_type: str | None = await (await tx.raw()).fetchval(_AVATAR_TYPE, key)
    return media_type

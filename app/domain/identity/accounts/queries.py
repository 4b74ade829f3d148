"""SQL of accounts. Sign-in and mailed tokens find a user before the tenant is known."""

from datetime import datetime
from typing import Any

import msgspec

from app.domain.platform.history import api as history
from app.kit import email_addresses
from db import fast
from db.fast import Row
from db.locks import AdvisoryLock
from db.session import Tx

_FIND_BY_EMAIL = """
SELECT id, tenant_id, email, role, status, password_hash,
       EXISTS (SELECT 1 FROM sessions s
               WHERE s.user_id = u.id
                 AND CASE WHEN s.ip_address LIKE '%:%' THEN s.ip_address::inet <<= $3::text::inet
                          ELSE s.ip_address = $2 END
                 AND s.created_at > now() - interval '90 days') AS familiar
FROM users u WHERE lower(email) = $1
"""

_FIND_BY_ID = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at
FROM users WHERE tenant_id = $1 AND id = $2
"""

_FIND_EMAIL = """
SELECT email, email_verified FROM users
WHERE id = $2 AND status = 'active' AND (tenant_id = $1 OR role = 'super_admin')
"""


def member_sql(tenant: str, address: str) -> str:
    """Returns the condition that an address is verified by an active user of the tenant."""
    return f"""EXISTS (
        SELECT 1 FROM users u
        WHERE u.tenant_id = {tenant} AND lower(u.email) = lower({address})
          AND u.email_verified AND u.status = 'active')"""


# Locked, so that no user is deleted before the caller's rows about them are written. A message to a
# role or to all is not for those who have not verified their address: anybody can register one.
_LIST_CONTACTS = """
SELECT id, tenant_id, email, email_verified, timezone FROM users
WHERE (tenant_id = $1 OR $6 AND $2::text[] IS NOT NULL AND role = 'super_admin')
  AND ($2::text[] IS NULL AND email_verified OR id = ANY($2)) AND ($3::text IS NULL OR role = $3)
  AND status = 'active' AND id > $4
ORDER BY id LIMIT $5 FOR KEY SHARE
"""
_COUNT_CONTACTS = """
SELECT count(*) FROM users
WHERE tenant_id = $1 AND ($2::text[] IS NULL AND email_verified OR id = ANY($2))
  AND ($3::text IS NULL OR role = $3) AND status = 'active'
"""
_FIND_EXISTING_IDS = "SELECT id FROM users WHERE tenant_id = $1 AND id = ANY($2)"
_FIND_HASH = "SELECT email, password_hash FROM users WHERE tenant_id = $1 AND id = $2"

# A user's row is always locked before the rows of its sessions.
_SELECT_USER = """
SELECT id, tenant_id, email, role, status, password_hash, mfa_enabled, email_verified
FROM users WHERE tenant_id = $1 AND id = $2
"""
_LOCK_TO_CHANGE = _SELECT_USER + " FOR NO KEY UPDATE"
_LOCK_TO_READ = _SELECT_USER + " FOR SHARE"

_SET_LAST_LOGIN = "UPDATE users SET last_login_at = $3 WHERE tenant_id = $1 AND id = $2"
_SET_HASH = """
UPDATE users SET password_hash = $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2
"""
_SET_EMAIL_VERIFIED = """
UPDATE users SET email_verified = true, updated_at = $3
WHERE tenant_id = $1 AND id = $2 AND NOT email_verified
"""
_SET_MFA = "UPDATE users SET mfa_enabled = $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2"

_LOCK_SESSION = """
SELECT id, refresh_jti, expires_at, ended_at, spent::text AS spent FROM sessions
WHERE tenant_id = $1 AND id = $2 AND user_id = $3 FOR UPDATE
"""
_ROTATE_SESSION = """
UPDATE sessions SET refresh_jti = $3, expires_at = $4, spent = $5::jsonb, updated_at = $6,
    last_seen_at = $6
WHERE tenant_id = $1 AND id = $2
"""
_END_SESSION = """
UPDATE sessions SET ended_at = $3 WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
"""
_END_SESSIONS = """
UPDATE sessions SET ended_at = $3
WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL AND id IS DISTINCT FROM $4
RETURNING id
"""
_LIST_OPEN_SESSIONS = """
SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL
"""
_END_OWN_SESSION = """
UPDATE sessions SET ended_at = $4
WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND ended_at IS NULL AND expires_at > $4
"""
_MARK_CODE_SHOWN = "UPDATE sessions SET code_shown_at = $3 WHERE tenant_id = $1 AND id = $2"
_FORGET_CODE_SHOWN = """
UPDATE sessions SET code_shown_at = NULL
WHERE tenant_id = $1 AND user_id = $2 AND code_shown_at IS NOT NULL
"""
_IS_CODE_SHOWN = """
SELECT code_shown_at IS NOT NULL FROM sessions WHERE tenant_id = $1 AND id = $2
"""

_ADD_ONE_TIME = """
INSERT INTO one_time_tokens (tenant_id, id, user_id, purpose, token_hash, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
"""
_FIND_ONE_TIME = """
SELECT id, tenant_id, user_id FROM one_time_tokens
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 AND tries < $4
"""
_FIND_ANY_ONE_TIME = """
SELECT t.used_at, t.expires_at, u.email FROM one_time_tokens t
JOIN users u ON u.tenant_id = t.tenant_id AND u.id = t.user_id AND u.status = 'active'
WHERE t.token_hash = $1 AND t.purpose = $2
"""
_COUNT_ONE_TIME_TRY = """
UPDATE one_time_tokens SET tries = tries + 1
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 AND tries < $4
RETURNING id, tenant_id, user_id
"""
_USE_ONE_TIME = """
UPDATE one_time_tokens SET used_at = $3
WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3
RETURNING id, tenant_id, user_id
"""
_VOID_ONE_TIME = """
UPDATE one_time_tokens SET used_at = $4
WHERE tenant_id = $1 AND user_id = $2 AND purpose = ANY($3) AND used_at IS NULL
"""

_LOCK_ADMINS = f"SELECT pg_advisory_xact_lock({AdvisoryLock.ADMINISTER_USERS:d})"
_HAS_OTHER_SUPER_ADMIN = """
SELECT EXISTS (SELECT 1 FROM users
               WHERE role = 'super_admin' AND status = 'active' AND id <> $1)
"""
_HAS_OTHER_ADMIN = """
SELECT EXISTS (SELECT 1 FROM users
               WHERE tenant_id = $1 AND role IN ('tenant_admin', 'super_admin')
                 AND status = 'active' AND id <> $2)
"""


async def find_user_by_email(tx: Tx, email: str, address: str | None = None) -> Row | None:
    """Finds a user of any tenant, ignoring the case of the e-mail. `familiar` is true when the user
    signed in from this IPv4 address, or from this network of IPv6, within 90 days.
    """
    network = f"{address}/64" if address and ":" in address else None
    values = (email_addresses.comparable(email), address, network)
    row: Row | None = await (await tx.raw()).fetchrow(_FIND_BY_EMAIL, *values)
    return row


async def find_user_view(tx: Tx, tenant_id: str, user_id: str) -> dict[str, Any] | None:
    row: Any = await fast.row(tx, tenant_id, _FIND_BY_ID, user_id)
    return dict(row) if row is not None else None


async def find_email(tx: Tx, tenant_id: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND_EMAIL, user_id)


async def list_contacts(
    tx: Tx,
    tenant_id: str,
    user_ids: list[str] | None,
    role: str | None,
    after: str,
    limit: int,
    *,
    super_admins: bool,
) -> list[Row]:
    values = (user_ids, role, after, limit, super_admins)
    return await fast.rows(tx, tenant_id, _LIST_CONTACTS, *values)


async def count_contacts(
    tx: Tx, tenant_id: str, user_ids: list[str] | None, role: str | None
) -> int:
    return int(await fast.value(tx, tenant_id, _COUNT_CONTACTS, user_ids, role))


async def find_existing_ids(tx: Tx, tenant_id: str, user_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant_id, _FIND_EXISTING_IDS, user_ids)}


async def find_password_hash(tx: Tx, tenant_id: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND_HASH, user_id)


async def lock_user(tx: Tx, tenant_id: str, user_id: str, *, to_change: bool = True) -> Row | None:
    return await fast.row(tx, tenant_id, _LOCK_TO_CHANGE if to_change else _LOCK_TO_READ, user_id)


async def set_last_login(tx: Tx, tenant_id: str, user_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant_id, _SET_LAST_LOGIN, user_id, at)


async def set_password(
    tx: Tx, tenant_id: str, user_id: str, password_hash: str, at: datetime
) -> None:
    await fast.execute(tx, tenant_id, _SET_HASH, user_id, password_hash, at)
    history.note(tx, "user", user_id, None, tenant_id=tenant_id, secrets=("password",))


async def set_email_verified(tx: Tx, tenant_id: str, user_id: str, at: datetime) -> bool:
    """False when the e-mail was verified before."""
    is_new = await fast.execute(tx, tenant_id, _SET_EMAIL_VERIFIED, user_id, at) == 1
    if is_new:
        note_user(tx, tenant_id, user_id, "email_verified", before=False, after=True)
    return is_new


def note_user(
    tx: Tx, tenant_id: str, user_id: str, field: str, *, before: object, after: object
) -> None:
    changes = {field: (before, after)}
    history.note(tx, "user", user_id, None, tenant_id=tenant_id, changes=changes)


async def set_mfa(tx: Tx, tenant_id: str, user_id: str, at: datetime, *, enabled: bool) -> None:
    await fast.execute(tx, tenant_id, _SET_MFA, user_id, enabled, at)
    note_user(tx, tenant_id, user_id, "mfa_enabled", before=not enabled, after=enabled)


async def lock_session(tx: Tx, tenant_id: str, session_id: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _LOCK_SESSION, session_id, user_id)


async def rotate_session(
    tx: Tx,
    tenant_id: str,
    session_id: str,
    *,
    refresh_jti: str,
    expires_at: datetime,
    spent: list[Any],
    at: datetime,
) -> None:
    spent_json = msgspec.json.encode(spent).decode()
    await fast.execute(
        tx, tenant_id, _ROTATE_SESSION, session_id, refresh_jti, expires_at, spent_json, at
    )


async def end_session(tx: Tx, tenant_id: str, session_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant_id, _END_SESSION, session_id, at)


async def end_own_session(
    tx: Tx, tenant_id: str, user_id: str, session_id: str, at: datetime
) -> bool:
    """False when the user has no such live session."""
    return await fast.execute(tx, tenant_id, _END_OWN_SESSION, user_id, session_id, at) == 1


async def end_sessions(
    tx: Tx, tenant_id: str, user_id: str, at: datetime, keep: str | None
) -> list[str]:
    return [row["id"] for row in await fast.rows(tx, tenant_id, _END_SESSIONS, user_id, at, keep)]


async def list_open_sessions(tx: Tx, tenant_id: str, user_id: str) -> list[str]:
    """Returns the ids of the sessions that have not ended, expired ones included."""
    return [row["id"] for row in await fast.rows(tx, tenant_id, _LIST_OPEN_SESSIONS, user_id)]


async def mark_code_shown(tx: Tx, tenant_id: str, session_id: str, at: datetime) -> None:
    await fast.execute(tx, tenant_id, _MARK_CODE_SHOWN, session_id, at)


async def forget_code_shown(tx: Tx, tenant_id: str, user_id: str) -> None:
    await fast.execute(tx, tenant_id, _FORGET_CODE_SHOWN, user_id)


async def is_code_shown(tx: Tx, tenant_id: str, session_id: str) -> bool:
    return bool(await fast.value(tx, tenant_id, _IS_CODE_SHOWN, session_id))


async def add_token(tx: Tx, tenant_id: str, *values: object) -> None:
    await fast.execute(tx, tenant_id, _ADD_ONE_TIME, *values)


async def find_token(
    tx: Tx, token_hash: str, purpose: str, at: datetime, max_tries: int
) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(
        _FIND_ONE_TIME, token_hash, purpose, at, max_tries
    )
    return row


async def find_any_token(tx: Tx, token_hash: str, purpose: str) -> Row | None:
    """Returns used_at, expires_at and the e-mail of an active user, for any token."""
    row: Row | None = await (await tx.raw()).fetchrow(_FIND_ANY_ONE_TIME, token_hash, purpose)
    return row


async def count_token_try(
    tx: Tx, token_hash: str, purpose: str, at: datetime, max_tries: int
) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(
        _COUNT_ONE_TIME_TRY, token_hash, purpose, at, max_tries
    )
    return row


async def use_token(tx: Tx, token_hash: str, purpose: str, at: datetime) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(_USE_ONE_TIME, token_hash, purpose, at)
    return row


async def void_tokens(
    tx: Tx, tenant_id: str, user_id: str, purposes: tuple[str, ...], at: datetime
) -> None:
    await fast.execute(tx, tenant_id, _VOID_ONE_TIME, user_id, list(purposes), at)


async def lock_admins(tx: Tx) -> None:
    """Serializes changes of administrators until the end of the transaction."""
    await (await tx.raw()).execute(_LOCK_ADMINS)


async def has_other_super_admin(tx: Tx, user_id: str) -> bool:
    return bool(await (await tx.raw()).fetchval(_HAS_OTHER_SUPER_ADMIN, user_id))


async def has_other_admin(tx: Tx, tenant_id: str, user_id: str) -> bool:
    return bool(await fast.value(tx, tenant_id, _HAS_OTHER_ADMIN, user_id))


# Profiles. A picture is found by its key alone, without a tenant.

_FIND_PROFILE = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at, avatar_key, timezone,
       coalesce(language, 'en') AS language, language IS NOT NULL AS has_chosen_language
FROM users WHERE tenant_id = $1 AND id = $2
"""
_UPDATE_PROFILE = """
WITH old AS (
    SELECT id, first_name, last_name, timezone, coalesce(language, 'en') AS language FROM users
    WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE
)
UPDATE users u
SET first_name = coalesce($3, u.first_name), last_name = coalesce($4, u.last_name),
    timezone = coalesce($5, u.timezone), language = coalesce($6, u.language), updated_at = $7
FROM old WHERE u.tenant_id = $1 AND u.id = old.id
RETURNING u.id, u.email, u.first_name, u.last_name, u.timezone,
          coalesce(u.language, 'en') AS language, u.updated_at,
          old.first_name AS old_first_name, old.last_name AS old_last_name,
          old.timezone AS old_timezone, old.language AS old_language
"""
# The old key is read from the locked row, so that two concurrent uploads remove one file each.
_SET_AVATAR = """
WITH old AS (SELECT id, avatar_key FROM users WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE)
UPDATE users u SET avatar_key = $3, avatar_type = $4, updated_at = $5
FROM old WHERE u.id = old.id
RETURNING old.avatar_key AS old_key
"""
_FIND_AVATAR = "SELECT tenant_id, avatar_type FROM users WHERE avatar_key = $1"


async def find_profile(tx: Tx, tenant_id: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND_PROFILE, user_id)


async def update_profile(
    tx: Tx, tenant_id: str, user_id: str, values: tuple[str | None, ...], at: datetime
) -> Row | None:
    return await fast.row(tx, tenant_id, _UPDATE_PROFILE, user_id, *values, at)


async def set_avatar(
    tx: Tx, tenant_id: str, user_id: str, key: str | None, media_type: str | None, at: datetime
) -> str | None:
    """Returns the key of the previous picture."""
    old_key: str | None = await fast.value(tx, tenant_id, _SET_AVATAR, user_id, key, media_type, at)
    return old_key


async def find_avatar(tx: Tx, key: str) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(_FIND_AVATAR, key)
    return row

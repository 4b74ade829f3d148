"""One's own profile. A picture is found by its key alone, whoever asks."""

from datetime import datetime

from db import fast
from db.fast import Row
from db.session import Tx

_ONE = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at, avatar_key, timezone, language
FROM users WHERE tenant_id = $1 AND id = $2
"""
_UPDATE = """
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


async def one(tx: Tx, tenant: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ONE, user_id)


async def update(
    tx: Tx, tenant: str, user_id: str, values: tuple[str | None, ...], at: datetime
) -> Row | None:
    return await fast.row(tx, tenant, _UPDATE, user_id, *values, at)


async def set_avatar(
    tx: Tx, tenant: str, user_id: str, key: str | None, media_type: str | None, at: datetime
) -> str | None:
    """The key of the picture that was there before."""
    found: str | None = await fast.value(tx, tenant, _SET_AVATAR, user_id, key, media_type, at)
    return found


async def avatar_type(tx: Tx, key: str) -> str | None:
    found: str | None = await (await tx.raw()).fetchval(_AVATAR_TYPE, key)
    return found

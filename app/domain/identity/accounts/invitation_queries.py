"""SQL of invitations: using them, voiding them, and what their links show."""

from datetime import datetime
from typing import Literal

from app.kit import email_addresses
from db.fast import Row
from db.session import Tx
from db.user_names import user_name_sql

Withdrawal = Literal["superseded", "voided"]

_USE = """
UPDATE invitations SET used_at = $3
WHERE token_hash = $1 AND lower(email) = $2 AND used_at IS NULL AND expires_at > $3
RETURNING id, tenant_id, role
"""
_VOID_BY = """
UPDATE invitations SET expires_at = $2, withdrawn_as = 'voided'
WHERE invited_by = $1 AND used_at IS NULL AND expires_at > $2
"""
_VOID_TO = """
UPDATE invitations SET expires_at = $2, withdrawn_as = $3
WHERE lower(email) = $1 AND used_at IS NULL AND expires_at > $2
  AND ($4::text IS NULL OR tenant_id = $4)
"""
# By the token alone: its holder has no tenant yet. The inviter may be a super_admin of another one.
_FIND = f"""
SELECT i.email, i.role, i.expires_at, i.withdrawn_as, t.name AS tenant_name,
       {user_name_sql("u")} AS inviter,
       i.used_at IS NOT NULL OR EXISTS (
           SELECT 1 FROM users m WHERE lower(m.email) = lower(i.email)) AS is_used
FROM invitations i
JOIN tenants t ON t.id = i.tenant_id
LEFT JOIN users u ON u.id = i.invited_by
WHERE i.token_hash = $1
"""


async def use(tx: Tx, token_hash: str, email: str, at: datetime) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(
        _USE, token_hash, email_addresses.comparable(email), at
    )
    return row


async def void_by(tx: Tx, inviter_id: str, at: datetime) -> None:
    """Voids the inviter's open invitations in all tenants: super_admin invites to any."""
    await (await tx.raw()).execute(_VOID_BY, inviter_id, at)


async def void_to(
    tx: Tx, email: str, at: datetime, reason: Withdrawal | None, tenant_id: str | None = None
) -> None:
    """Voids the open invitations to an e-mail, in one tenant or in all. There is no reason to give
    to somebody who has joined.
    """
    address = email_addresses.comparable(email)
    await (await tx.raw()).execute(_VOID_TO, address, at, reason, tenant_id)


async def find(tx: Tx, token_hash: str) -> Row | None:
    """`is_used` is also true when somebody has an account with the address."""
    row: Row | None = await (await tx.raw()).fetchrow(_FIND, token_hash)
    return row

"""The users' SQL; signing in looks for one before the tenant is known."""

from typing import Any

from db import fast
from db.fast import Row
from db.session import Tx

_BY_EMAIL = """
SELECT id, tenant_id, email, role, status, password_hash FROM users WHERE lower(email) = lower($1)
"""

_BY_ID = """
SELECT id, email, first_name, last_name, role, tenant_id, email_verified, mfa_enabled, status,
       last_login_at, created_at, updated_at
FROM users WHERE tenant_id = $1 AND id = $2
"""


async def by_email(tx: Tx, email: str) -> Row | None:
    """Whoever has this address, in any tenant."""
    found: Row | None = await (await tx.raw()).fetchrow(_BY_EMAIL, email)
    return found


async def by_id(tx: Tx, tenant: str, user_id: str) -> dict[str, Any] | None:
    found: Any = await fast.row(tx, tenant, _BY_ID, user_id)
    return dict(found) if found is not None else None

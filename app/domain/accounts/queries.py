"""Statements that look for a user before the tenant is known."""

from db.fast import Row
from db.session import ALL_TENANTS, Database

_BY_EMAIL = """
SELECT id, tenant_id, email, role, status, password_hash FROM users WHERE lower(email) = lower($1)
"""


async def by_email(db: Database, email: str) -> Row | None:
    async with db.tx(ALL_TENANTS, read_only=True) as tx:
        found: Row | None = await (await tx.raw()).fetchrow(_BY_EMAIL, email)
    return found

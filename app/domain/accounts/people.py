"""What other areas may know of people."""

from app.domain.accounts import queries
from db.session import Tx


async def address_of(tx: Tx, tenant_id: str, user_id: str | None) -> str | None:
    """Where to write to somebody who may still sign in: of the tenant, or of those who are above
    all tenants.
    """
    return await queries.address_of(tx, tenant_id, user_id) if user_id else None


async def unknown(tx: Tx, tenant_id: str, user_ids: list[str]) -> list[str]:
    """Those of them that the tenant does not have."""
    known = await queries.known(tx, tenant_id, user_ids)
    return [user_id for user_id in user_ids if user_id not in known]

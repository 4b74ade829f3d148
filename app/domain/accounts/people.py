"""What other areas may know of people."""

from app.domain.accounts import queries
from db.session import Tx


async def address_of(tx: Tx, tenant_id: str, user_id: str | None) -> str | None:
    """Where to write to somebody who may still sign in."""
    found = await queries.by_id(tx, tenant_id, user_id) if user_id else None
    if found is None or found["status"] != "active":
        return None
    email: str = found["email"]
    return email


async def unknown(tx: Tx, tenant_id: str, user_ids: list[str]) -> list[str]:
    """Those of them that the tenant does not have."""
    known = await queries.known(tx, tenant_id, user_ids)
    return [user_id for user_id in user_ids if user_id not in known]

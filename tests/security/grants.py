"""Changes of role grants in the database."""

from app.security.sessions import bump_grants
from app.services import Services
from db.models import RoleGrant
from db.session import ALL_TENANTS


async def set_grant(services: Services, role: str, permission: str, *, is_granted: bool) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        row = await session.get(RoleGrant, (role, permission))
        if is_granted and row is None:
            session.add(RoleGrant(role=role, permission=permission))
        if not is_granted and row is not None:
            await session.delete(row)
        version = await bump_grants(tx)
    await services.session_cache.change_grants(version)

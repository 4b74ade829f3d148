"""Changes of role grants in the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.areas import AREAS
from app.security.sessions import bump_grants
from app.services import Services
from db.models import RoleGrant
from db.session import ALL_TENANTS


async def fetch_grants(services: Services) -> set[tuple[str, str]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
    return {(row["role"], row["permission"]) for row in rows}


@asynccontextmanager
async def restore_grants(services: Services) -> AsyncIterator[None]:
    """Restores the grants afterwards, since they apply to the whole instance."""
    before = await fetch_grants(services)
    try:
        yield
    finally:
        if await fetch_grants(services) != before:
            async with services.db.tx(ALL_TENANTS) as tx:
                version = await bump_grants(tx)
                raw = await tx.raw()
                await raw.execute("DELETE FROM role_grants")
                await raw.executemany(
                    "INSERT INTO role_grants (role, permission) VALUES ($1, $2)", sorted(before)
                )
            await services.session_cache.change_grants(version)


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


@asynccontextmanager
async def change_grant(
    services: Services, role: str, permission: str, *, is_granted: bool
) -> AsyncIterator[None]:
    """Grants or revokes the permission, and restores the default afterwards."""
    await set_grant(services, role, permission, is_granted=is_granted)
    try:
        yield
    finally:
        is_default = permission in AREAS.default_grants[role]
        await set_grant(services, role, permission, is_granted=is_default)

"""Restores the grants, which tests of roles change."""

from collections.abc import AsyncIterator

import pytest

from app.security.sessions import bump_grants
from app.services import Services
from db.session import ALL_TENANTS
from tests.roles.api_calls import fetch_grants


@pytest.fixture(autouse=True)
async def _restore_grants(services: Services) -> AsyncIterator[None]:
    """Restores the grants after a test, since they apply to the whole instance."""
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

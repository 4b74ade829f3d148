"""Requests of role permissions, and the stored grants."""

from typing import Any

import httpx

from app.areas import AREAS
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client

VIEWER_GRANTS = AREAS.default_grants["viewer"]


async def fetch_grants(services: Services) -> set[tuple[str, str]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
    return {(row["role"], row["permission"]) for row in rows}


async def put_permissions(
    caller: Client, role: str, permissions: object, **more: Any
) -> httpx.Response:
    return await caller.put(f"/roles/{role}/permissions", {"permissions": permissions}, **more)


async def set_permissions(caller: Client, role: str, *permissions: str) -> None:
    answer = await put_permissions(caller, role, permissions)
    assert answer.status_code == 200, answer.text

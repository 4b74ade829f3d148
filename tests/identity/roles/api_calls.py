"""Requests of role permissions."""

from typing import Any

import httpx

from app.areas import AREAS
from tests.world import Client

VIEWER_GRANTS = AREAS.default_grants["viewer"]


async def put_permissions(
    caller: Client, role: str, permissions: object, **more: Any
) -> httpx.Response:
    return await caller.put(f"/roles/{role}/permissions", {"permissions": permissions}, **more)


async def set_permissions(caller: Client, role: str, *permissions: str) -> None:
    answer = await put_permissions(caller, role, permissions)
    assert answer.status_code == 200, answer.text

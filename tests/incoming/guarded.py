"""Incoming webhooks whose senders sign, and what becomes of what they send at one moment."""

from typing import Any

import httpx

from app.kit import clock
from app.services import Services
from tests.asking import refused
from tests.incoming.factories import RECEIVED, bodies, events_of, opened
from tests.incoming.signers import NOW, SECRET
from tests.world import Client

BODY = b'{"order": 4711, "note": "\xc3\xbc"}'


async def guarded(owner: Client, scheme: str, **more: str) -> dict[str, Any]:
    return await opened(owner, verification={"scheme": scheme, "secret": SECRET, **more})


async def send_signed(
    sender: Client, door: dict[str, Any], headers: Any, body: bytes = BODY
) -> httpx.Response:
    with clock.frozen(NOW):
        return await sender.http.post(f"/webhooks/in/{door['slug']}", content=body, headers=headers)


async def shut_out(
    owner: Client,
    sender: Client,
    services: Services,
    door: dict[str, Any],
    headers: Any,
    body: bytes,
) -> None:
    """401 without a word of what would fit, and nothing is left of it."""
    error = refused(await send_signed(sender, door, headers, body), 401, "unauthorized")
    assert SECRET not in str(error)
    assert "details" not in error
    assert await bodies(services, door) == []
    assert await events_of(owner, RECEIVED) == []

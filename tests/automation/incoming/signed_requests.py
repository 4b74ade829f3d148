"""Creates webhooks with a signature scheme and sends signed payloads at a fixed time."""

from typing import Any

import httpx

from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import RECEIVED, list_events
from tests.automation.incoming.factories import create_webhook
from tests.automation.incoming.signers import NOW, SECRET
from tests.automation.incoming.sql import list_bodies
from tests.world import Client

BODY = b'{"order": 4711, "note": "\xc3\xbc"}'


async def create_signed_webhook(owner: Client, scheme: str, **more: str) -> dict[str, Any]:
    return await create_webhook(owner, verification={"scheme": scheme, "secret": SECRET, **more})


async def send_signed_payload(
    sender: Client, webhook: dict[str, Any], headers: Any, body: bytes = BODY
) -> httpx.Response:
    with clock.frozen(NOW):
        return await sender.http.post(
            f"/webhooks/in/{webhook['slug']}", content=body, headers=headers
        )


async def assert_rejected(
    owner: Client,
    sender: Client,
    services: Services,
    webhook: dict[str, Any],
    headers: Any,
    body: bytes,
) -> None:
    """The response is 401 without details, and nothing is stored."""
    error = refused(await send_signed_payload(sender, webhook, headers, body), 401, "unauthorized")
    assert SECRET not in str(error)
    assert "details" not in error
    assert await list_bodies(services, webhook) == []
    assert await list_events(owner, RECEIVED) == []

"""Creates incoming webhooks and sends payloads to them."""

from typing import Any

import httpx
import msgspec

from tests.automation.incoming.api import PATH
from tests.world import Client

FORM = "application/x-www-form-urlencoded"
SECRET = "a-long-random-secret-9f2c"
GITHUB = {"scheme": "github", "secret": SECRET}
MASKED_GITHUB = {"scheme": "github", "secret": "********", "header": None}
JSON = {"content-type": "application/json"}


def build_slug(caller: Client) -> str:
    return f"mine-{caller.user_id[-12:].lower()}"


async def create_webhook(owner: Client, **fields: Any) -> dict[str, Any]:
    answer = await owner.post(PATH, {"name": "Orders", **fields})
    assert answer.status_code == 201, answer.text
    webhook: dict[str, Any] = answer.json()
    return webhook


async def send_payload(
    sender: Client, webhook: dict[str, Any], body: object = b"{}", **headers: str | bytes
) -> httpx.Response:
    """Sends bytes as they are, other values as JSON. The header `x_name` is sent as `x-name`."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    extra_headers: Any = {name.replace("_", "-"): value for name, value in headers.items()}
    return await sender.http.post(
        f"/webhooks/in/{webhook['slug']}", content=content, headers={**JSON, **extra_headers}
    )


async def submit_payload(
    sender: Client, webhook: dict[str, Any], body: object = b"{}", **headers: str
) -> str:
    """Sends a payload that must be accepted; returns its id."""
    answer = await send_payload(sender, webhook, body, **headers)
    assert answer.status_code == 202, answer.text
    event_id: str = answer.json()["event_id"]
    return event_id

"""Signs payloads like the senders of each scheme, without code of the application."""

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import standardwebhooks

NOW: Final = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
SECRET: Final = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OTHER: Final = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="

Headers = dict[str, str]
Signer = Callable[[str, bytes, datetime], Headers]


def _hex(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _seconds(at: datetime) -> str:
    return str(int(at.timestamp()))


def hmac_sha256(secret: str, body: bytes, at: datetime) -> Headers:
    return {"X-Signature": f"sha256={_hex(secret, body)}"}


def github(secret: str, body: bytes, at: datetime) -> Headers:
    return {"X-Hub-Signature-256": f"sha256={_hex(secret, body)}"}


def stripe(secret: str, body: bytes, at: datetime) -> Headers:
    signed = _hex(secret, f"{_seconds(at)}.".encode() + body)
    return {"Stripe-Signature": f"t={_seconds(at)},v1={signed},v0={'0' * 64}"}


def slack(secret: str, body: bytes, at: datetime) -> Headers:
    signed = _hex(secret, f"v0:{_seconds(at)}:".encode() + body)
    return {"X-Slack-Request-Timestamp": _seconds(at), "X-Slack-Signature": f"v0={signed}"}


def standard(secret: str, body: bytes, at: datetime) -> Headers:
    signed = standardwebhooks.Webhook(secret).sign("msg_1", at, body.decode())
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": _seconds(at),
        "webhook-signature": signed,
    }


SIGNERS: Final[dict[str, Signer]] = {
    "hmac_sha256": hmac_sha256,
    "standard_webhooks": standard,
    "github": github,
    "stripe": stripe,
    "slack": slack,
}
TIMED: Final = ("standard_webhooks", "stripe", "slack")
EARLY: Final = NOW - timedelta(seconds=300)
LATE: Final = NOW + timedelta(seconds=300)
SECOND: Final = timedelta(seconds=1)

"""Signatures of deliveries: our own headers, and those of Standard Webhooks."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

PREFIX: Final = "whsec_"
_KEY_BYTES = 32


def new_secret() -> str:
    """Returns a secret in the format of Standard Webhooks."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The key is the whole secret, with its prefix."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def sign_standard(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """As Standard Webhooks defines it: the key is the secret, decoded from base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key, content, 'sha256')).decode()}"


def build_headers(
    secrets_: list[str], event_id: str, event_type: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Returns the headers that identify and sign a delivery. The first secret is the current one;
    a second one is the previous one, which signs as well.
    """
    headers = {
        "X-Service-Signature": sign(secrets_[0], timestamp, body),
        "X-Service-Timestamp": str(timestamp),
        "X-Service-Event-Id": event_id,
        "X-Service-Event-Type": event_type,
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            sign_standard(secret, event_id, timestamp, body) for secret in secrets_
        ),
    }
    if len(secrets_) > 1:
        headers["X-Service-Signature-Previous"] = sign(secrets_[1], timestamp, body)
    return headers

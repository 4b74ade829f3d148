"""How a delivery is signed: our own headers, and those of Standard Webhooks beside them."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

PREFIX: Final = "whsec_"
_KEY_BYTES = 32


def new_secret() -> str:
    """Verifiers of Standard Webhooks take it as it is."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Keyed with the whole secret, its prefix included."""
    signed = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"sha256={signed.hexdigest()}"


def standard_signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """As Standard Webhooks has it: keyed with the bytes that the secret spells in base 64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key, content, 'sha256')).decode()}"


def headers(
    secrets_: list[str], event_id: str, event_type: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """All that says whose delivery this is. The first secret is the current one; the one before
    it, if it still counts, signs as well.
    """
    signed = {
        "X-Service-Signature": signature(secrets_[0], timestamp, body),
        "X-Service-Timestamp": str(timestamp),
        "X-Service-Event-Id": event_id,
        "X-Service-Event-Type": event_type,
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            standard_signature(secret, event_id, timestamp, body) for secret in secrets_
        ),
    }
    if len(secrets_) > 1:
        signed["X-Service-Signature-Previous"] = signature(secrets_[1], timestamp, body)
    return signed

"""Computes the documented signature of a request, independently of the app's code."""

import hashlib
import hmac

from tests.messaging.deliveries.receiver import ReceivedRequest


def compute_signature(secret: str, request: ReceivedRequest, body: bytes | None = None) -> str:
    """Signs `body`, or the request's own body if it is None."""
    content = request.headers["X-Service-Timestamp"].encode() + b"."
    content += request.body if body is None else body
    return "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()

"""Verifies signatures of payloads: a registry of signature schemes.

Every scheme signs the raw bytes. A timestamp, if the scheme has one, must be recent.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from app.kit import clock

TOLERANCE_SECONDS: Final = 300
_KEY_PREFIX = "whsec_"
_MIN_SECRET_LENGTH = 8
_TIMESTAMP = re.compile(r"[0-9]{1,12}\Z")
_MAX_SIGNATURES = 10

SchemeName = Literal["hmac_sha256", "standard_webhooks", "github", "stripe", "slack"]


class RawRequest(msgspec.Struct, frozen=True):
    """A request as it was sent; the names of `headers` are in lower case."""

    headers: Mapping[str, str]
    body: bytes

    def get_header(self, name: str) -> str:
        return self.headers.get(name.lower(), "")


class Scheme(msgspec.Struct, frozen=True):
    """`is_genuine` gets a request, the secret, and the header that the author chose if the scheme
    takes one. `find_key_problem` says why the scheme cannot use a secret. With a handshake, the
    sender verifies the address by a challenge before it sends payloads.
    """

    is_genuine: Callable[[RawRequest, str, str | None], bool]
    find_key_problem: Callable[[str], str | None] = lambda _secret: None
    takes_header: bool = False
    has_handshake: bool = False


def _compute_hmac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _is_equal(signature: str, expected: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(signature.encode(), expected.encode())


def _is_recent(timestamp: str) -> bool:
    return bool(_TIMESTAMP.match(timestamp)) and (
        abs(clock.epoch() - int(timestamp)) <= TOLERANCE_SECONDS
    )


def _hmac_sha256(request: RawRequest, secret: str, header: str | None) -> bool:
    signature = request.get_header(header or "X-Signature").strip()
    return _is_equal(signature.removeprefix("sha256=").lower(), _compute_hmac(secret, request.body))


def _github(request: RawRequest, secret: str, _header: str | None) -> bool:
    return _is_equal(
        request.get_header("X-Hub-Signature-256"), f"sha256={_compute_hmac(secret, request.body)}"
    )


def _standard_webhooks(request: RawRequest, secret: str, _header: str | None) -> bool:
    # Older senders use the prefix `svix-`.
    prefix = "webhook" if request.get_header("webhook-id") else "svix"
    message_id = request.get_header(f"{prefix}-id")
    timestamp = request.get_header(f"{prefix}-timestamp")
    if not message_id or not _is_recent(timestamp):
        return False
    content = f"{message_id}.{timestamp}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix(_KEY_PREFIX))
    expected = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    signatures = request.get_header(f"{prefix}-signature").split()[:_MAX_SIGNATURES]
    return any(_is_equal(signature, f"v1,{expected}") for signature in signatures)


def _stripe(request: RawRequest, secret: str, _header: str | None) -> bool:
    parts = [
        part.strip().partition("=") for part in request.get_header("Stripe-Signature").split(",")
    ]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    if not _is_recent(timestamp):
        return False
    expected = _compute_hmac(secret, f"{timestamp}.".encode() + request.body)
    signatures = [value for name, _, value in parts if name == "v1"][:_MAX_SIGNATURES]
    return any(_is_equal(signature, expected) for signature in signatures)


def _slack(request: RawRequest, secret: str, _header: str | None) -> bool:
    timestamp = request.get_header("X-Slack-Request-Timestamp")
    if not _is_recent(timestamp):
        return False
    expected = _compute_hmac(secret, f"v0:{timestamp}:".encode() + request.body)
    return _is_equal(request.get_header("X-Slack-Signature"), f"v0={expected}")


def _find_base64_problem(secret: str) -> str | None:
    try:
        key = base64.b64decode(secret.removeprefix(_KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return "must be whsec_ and base64"
    if len(key) < _MIN_SECRET_LENGTH:
        return f"must encode at least {_MIN_SECRET_LENGTH} bytes in base64"
    return None


SCHEMES: Final[dict[str, Scheme]] = {
    "hmac_sha256": Scheme(_hmac_sha256, takes_header=True),
    "standard_webhooks": Scheme(_standard_webhooks, _find_base64_problem),
    "github": Scheme(_github),
    "stripe": Scheme(_stripe),
    "slack": Scheme(_slack, has_handshake=True),
}


def is_genuine(scheme: str, secret: str, header: str | None, request: RawRequest) -> bool:
    return SCHEMES[scheme].is_genuine(request, secret, header)


def find_secret_problem(scheme: str, secret: str) -> str | None:
    """Returns why the scheme cannot use the secret; None when it can."""
    if len(secret) < _MIN_SECRET_LENGTH:
        return f"must be at least {_MIN_SECRET_LENGTH} characters"
    return SCHEMES[scheme].find_key_problem(secret)


def find_header_problem(scheme: str) -> str | None:
    """Returns why a header cannot be chosen for the scheme; None when it can."""
    if SCHEMES[scheme].takes_header:
        return None
    names = (name for name, other in SCHEMES.items() if other.takes_header)
    return f"is only for the scheme {' or '.join(names)}"


def has_handshake(scheme: str | None) -> bool:
    return scheme is not None and SCHEMES[scheme].has_handshake

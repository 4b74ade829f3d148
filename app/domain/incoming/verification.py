"""Whether a payload comes from who it says: a registry of the schemes that senders sign by.

All of them sign the raw bytes; where the scheme has a timestamp, it must be of these minutes.
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
_PREFIX = "whsec_"
_SHORTEST = 8
_NUMBER = re.compile(r"[0-9]{1,12}\Z")
_MOST_SIGNATURES = 10

SchemeName = Literal["hmac_sha256", "standard_webhooks", "github", "stripe", "slack"]


class Received(msgspec.Struct, frozen=True):
    """What was sent: headers by lower-case name, and the body byte by byte."""

    headers: Mapping[str, str]
    body: bytes

    def get(self, name: str) -> str:
        return self.headers.get(name.lower(), "")


Check = Callable[[Received, str, str | None], bool]


def _hex(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _is_of_now(timestamp: str) -> bool:
    return bool(_NUMBER.match(timestamp)) and (
        abs(clock.epoch() - int(timestamp)) <= TOLERANCE_SECONDS
    )


def _hmac_sha256(got: Received, secret: str, header: str | None) -> bool:
    given = got.get(header or "X-Signature").strip()
    return _same(given.removeprefix("sha256=").lower(), _hex(secret, got.body))


def _github(got: Received, secret: str, _header: str | None) -> bool:
    return _same(got.get("X-Hub-Signature-256"), f"sha256={_hex(secret, got.body)}")


def _standard(got: Received, secret: str, _header: str | None) -> bool:
    # Some senders still write their own name before each header.
    kind = "webhook" if got.get("webhook-id") else "svix"
    message, timestamp = got.get(f"{kind}-id"), got.get(f"{kind}-timestamp")
    if not message or not _is_of_now(timestamp):
        return False
    content = f"{message}.{timestamp}.".encode() + got.body
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    wanted = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    given = got.get(f"{kind}-signature").split()[:_MOST_SIGNATURES]
    return any(_same(one, f"v1,{wanted}") for one in given)


def _stripe(got: Received, secret: str, _header: str | None) -> bool:
    parts = [part.strip().partition("=") for part in got.get("Stripe-Signature").split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    if not _is_of_now(timestamp):
        return False
    wanted = _hex(secret, f"{timestamp}.".encode() + got.body)
    given = [value for name, _, value in parts if name == "v1"][:_MOST_SIGNATURES]
    return any(_same(one, wanted) for one in given)


def _slack(got: Received, secret: str, _header: str | None) -> bool:
    timestamp = got.get("X-Slack-Request-Timestamp")
    if not _is_of_now(timestamp):
        return False
    wanted = _hex(secret, f"v0:{timestamp}:".encode() + got.body)
    return _same(got.get("X-Slack-Signature"), f"v0={wanted}")


SCHEMES: Final[dict[str, Check]] = {
    "hmac_sha256": _hmac_sha256,
    "standard_webhooks": _standard,
    "github": _github,
    "stripe": _stripe,
    "slack": _slack,
}


def is_genuine(scheme: str, secret: str, header: str | None, got: Received) -> bool:
    return SCHEMES[scheme](got, secret, header)


def problem_with_secret(scheme: str, secret: str) -> str | None:
    if len(secret) < _SHORTEST:
        return f"must be at least {_SHORTEST} characters"
    if scheme == "standard_webhooks":
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            return "must be whsec_ and base 64"
        if len(key) < _SHORTEST:
            return f"must spell at least {_SHORTEST} bytes in base 64"
    return None

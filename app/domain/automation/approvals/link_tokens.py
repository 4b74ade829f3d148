"""Tokens of the links in mails: each is for one approval and one of those who are asked."""

from datetime import UTC, datetime, timedelta
from typing import Final

import jwt
import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.kit import clock
from db.fast import Row

from .errors import ApprovalExpired, ApprovalLinkNotFound

# So that no log shows one.
PREFIX: Final = "apl_"
LIFETIME: Final = timedelta(days=7)
_ALGORITHM = "HS256"


class LinkClaims(msgspec.Struct, frozen=True):
    approval_id: str
    user_id: str
    # In seconds.
    exp: int


def find_expiry(approval: Row) -> datetime:
    """Returns the deadline of the approval, or an earlier time: a mail may be read by others
    later on.
    """
    latest: datetime = approval["created_at"] + LIFETIME
    deadline: datetime | None = approval["expires_at"]
    return latest if deadline is None else min(deadline, latest)


def issue(keyring: Keyring, approval: Row, user_id: str) -> str:
    """The token is the same each time, so that a mail that is sent again has the same links."""
    claims = LinkClaims(approval["id"], user_id, int(find_expiry(approval).timestamp()))
    kid = keyring.active
    payload = msgspec.to_builtins(claims)
    key = _derive_key(keyring, kid)
    return PREFIX + jwt.encode(payload, key, algorithm=_ALGORITHM, headers={"kid": kid})


def verify(keyring: Keyring, token: str) -> LinkClaims:
    """Raises ApprovalLinkNotFound for a bad signature, and ApprovalExpired."""
    encoded = token.removeprefix(PREFIX)
    try:
        kid = jwt.get_unverified_header(encoded).get("kid", "")
        options: jwt.types.Options = {"require": ["exp"], "verify_exp": False}
        key = _derive_key(keyring, kid)
        payload = jwt.decode(encoded, key, algorithms=[_ALGORITHM], options=options)
        claims = msgspec.convert(payload, LinkClaims)
    except (jwt.PyJWTError, CannotOpen, ValueError, TypeError) as error:
        raise not_found() from error
    if claims.exp <= clock.epoch():
        moment = datetime.fromtimestamp(claims.exp, UTC)
        raise ApprovalExpired("This link has expired", details={"expires_at": moment})
    return claims


def not_found() -> ApprovalLinkNotFound:
    """Also for an approval that is deleted and a user who may no longer decide it."""
    return ApprovalLinkNotFound("This link is not valid")


def _derive_key(keyring: Keyring, kid: str) -> bytes:
    return keyring.derive(kid, "approval-link", "")

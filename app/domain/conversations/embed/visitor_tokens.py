"""Tokens of visitors: short-lived, and bound to a key, an agent, an origin and a session."""

import jwt
import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.domain.conversations.chat.api import Visitor
from app.kit import clock
from app.kit.errors import Unauthorized
from app.security.principal import VISITOR_PREFIX

SECONDS = 900
_ALGORITHM = "HS256"
# Enough for the longest claims of a customer.
_MAX_CHARS = 16_384
_JWS = jwt.PyJWS()


class VisitorClaims(msgspec.Struct, frozen=True, kw_only=True):
    """`origin` is empty for a program that sends none. `groups` are those of the customer.
    `identity` is a digest of the secret that the customer's user token was signed with. `since` is
    when the session was opened with a key, in seconds; a renewal keeps it.
    """

    key_id: str
    agent_id: str
    origin: str
    session_id: str
    visitor: Visitor | None = None
    groups: tuple[str, ...] = ()
    identity: str | None = None
    since: int
    exp: int = 0


def issue(keyring: Keyring, claims: VisitorClaims) -> str:
    exp = int(clock.epoch()) + SECONDS
    # As UTF-8: with escapes, the names of some customers would be too long for a header.
    payload = msgspec.json.encode(msgspec.structs.replace(claims, exp=exp))
    kid = keyring.active
    token = _JWS.encode(payload, _key(keyring, kid), algorithm=_ALGORITHM, headers={"kid": kid})
    return VISITOR_PREFIX + token


def verify(keyring: Keyring, token: str) -> VisitorClaims:
    """Raises Unauthorized for a bad signature or an expired token."""
    # A longer one is none of ours.
    encoded = token.removeprefix(VISITOR_PREFIX)[:_MAX_CHARS]
    try:
        kid = jwt.get_unverified_header(encoded).get("kid", "")
        options: jwt.types.Options = {"require": ["exp"], "verify_exp": False}
        payload = jwt.decode(encoded, _key(keyring, kid), algorithms=[_ALGORITHM], options=options)
        claims = msgspec.convert(payload, VisitorClaims)
    except (jwt.PyJWTError, CannotOpen, ValueError, TypeError) as error:
        raise refusal("This visitor token is not valid; get one with POST …/session") from error
    if claims.exp <= clock.epoch():
        raise refusal("This visitor token has expired; get a new one with POST …/session")
    return claims


def refusal(message: str) -> Unauthorized:
    return Unauthorized(message, headers={"WWW-Authenticate": "Bearer"})


def _key(keyring: Keyring, kid: str) -> bytes:
    return keyring.derive(kid, "visitor-token", "")

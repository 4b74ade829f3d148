"""User tokens say who a visitor is. A customer's server signs them with the identity secret of its
embed key.
"""

import hashlib
import re
import secrets
from typing import Annotated, Any, NamedTuple

import jwt
import msgspec
from msgspec import Meta

from app.crypto.keyring import Keyring, SealContext
from app.domain.agents.definition.api import EmbeddedAgent, Labels, trim_labels
from app.domain.conversations.chat.api import Visitor
from app.kit import clock
from app.kit.texts import storable
from app.kit.validation import ONE_LINE
from db.models import EmbedKey

from .errors import UserTokenInvalid, UserTokenRequired

PREFIX = "ids_"
_ALGORITHM = "HS256"
# How far the clocks of two servers may differ.
_LEEWAY_SECONDS = 60
_FINGERPRINT_CHARS = 16
# Control characters, and those that change the direction of the text around them.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class _Claims(msgspec.Struct):
    sub: Annotated[str, Meta(min_length=1, max_length=200, pattern=ONE_LINE)]
    exp: float
    nbf: float = 0
    name: Annotated[str, Meta(max_length=200)] | None = None
    email: Annotated[str, Meta(max_length=320)] | None = None
    groups: Labels = []


class Customer(NamedTuple):
    """A visitor, and the groups of customers that their site has put them in."""

    visitor: Visitor
    groups: tuple[str, ...]


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def seal_context(tenant_id: str, key_id: str) -> SealContext:
    return SealContext.of(EmbedKey.identity_secret, tenant_id, key_id)


def identify(keyring: Keyring, agent: EmbeddedAgent, token: str | None) -> Customer | None:
    """Returns who the visitor is, or None without a token. Raises UserTokenRequired when the key
    demands one, and UserTokenInvalid.
    """
    if token is None:
        if agent.rules.require_user_token:
            raise UserTokenRequired("This site's chat is for its signed-in customers only")
        return None
    secret = _open_secret(keyring, agent)
    if secret is None:
        raise UserTokenInvalid("This embed key has no identity secret; create one for it first")
    claims = _verify(token, secret)
    visitor = Visitor(claims.sub, _clean(claims.name), _clean(claims.email))
    return Customer(visitor, tuple(trim_labels(map(storable, claims.groups))))


def fingerprint_for(keyring: Keyring, agent: EmbeddedAgent, visitor: Visitor | None) -> str | None:
    """Returns a digest of the identity secret for a session of a customer, which ends when the
    secret is replaced. None for other visitors.
    """
    secret = _open_secret(keyring, agent) if visitor is not None else None
    return hashlib.sha256(secret).hexdigest()[:_FINGERPRINT_CHARS] if secret is not None else None


def _open_secret(keyring: Keyring, agent: EmbeddedAgent) -> bytes | None:
    sealed = agent.rules.identity_secret
    context = seal_context(agent.runtime.tenant_id, agent.embed_key_id)
    return keyring.open(sealed, context) if sealed is not None else None


def _clean(text: str | None) -> str | None:
    """Returns one line of visible text: names are shown to people and to the model."""
    return " ".join(_INVISIBLE.sub(" ", storable(text)).split()) or None if text else None


def _verify(token: str, secret: bytes) -> _Claims:
    try:
        payload: dict[str, Any] = jwt.decode(
            token,
            secret,
            algorithms=[_ALGORITHM],
            options={
                "require": ["sub", "exp"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "verify_aud": False,
            },
        )
        claims = msgspec.convert(payload, _Claims)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise UserTokenInvalid(
            "The user token is not valid: sign sub and exp with HS256 and the identity secret, and "
            "at most 20 groups"
        ) from error
    if claims.sub != storable(claims.sub):
        # It would be stored like another customer's.
        raise UserTokenInvalid("The sub of the user token has characters that cannot be stored")
    now = clock.epoch()
    if not claims.nbf - _LEEWAY_SECONDS <= now < claims.exp + _LEEWAY_SECONDS:
        raise UserTokenInvalid("The user token has expired, or is not valid yet; sign a new one")
    return claims

"""User tokens say who a visitor is. A customer's server signs them with the identity secret of its
embed key.
"""

import secrets
from typing import Annotated, Any

import jwt
import msgspec
from msgspec import Meta

from app.domain.agents.service import EmbeddedAgent
from app.domain.chat.service import Visitor
from app.domain.embed.errors import UserTokenInvalid, UserTokenRequired
from app.kit import clock
from app.kit.crypto import Keyring, SealContext
from app.kit.texts import storable
from db.models import EmbedKey

PREFIX = "ids_"
_ALGORITHM = "HS256"
# How far the clocks of two servers may differ.
_LEEWAY_SECONDS = 60


class _Claims(msgspec.Struct):
    sub: Annotated[str, Meta(min_length=1, max_length=200)]
    exp: float
    nbf: float = 0
    name: Annotated[str, Meta(max_length=200)] | None = None
    email: Annotated[str, Meta(max_length=320)] | None = None


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def seal_context(tenant_id: str, key_id: str) -> SealContext:
    return SealContext.of(EmbedKey.identity_secret, tenant_id, key_id)


def identify(keyring: Keyring, agent: EmbeddedAgent, token: str | None) -> Visitor | None:
    """Returns who the visitor is, or None without a token. Raises UserTokenRequired when the key
    demands one, and UserTokenInvalid.
    """
    if token is None:
        if agent.rules.require_user_token:
            raise UserTokenRequired("This site's chat is for its signed-in customers only")
        return None
    sealed = agent.rules.identity_secret
    if sealed is None:
        raise UserTokenInvalid("This embed key has no identity secret; create one for it first")
    context = seal_context(agent.runtime.tenant_id, agent.embed_key_id)
    claims = _verify(token, keyring.open(sealed, context))
    return Visitor(storable(claims.sub), _clean(claims.name), _clean(claims.email))


def _clean(text: str | None) -> str | None:
    """One line: names become part of what the model reads."""
    return " ".join(storable(text).split()) or None if text else None


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
            "The user token is not valid: sign sub and exp with HS256 and the identity secret"
        ) from error
    now = clock.epoch()
    if not claims.nbf - _LEEWAY_SECONDS <= now < claims.exp + _LEEWAY_SECONDS:
        raise UserTokenInvalid("The user token has expired, or is not valid yet; sign a new one")
    return claims

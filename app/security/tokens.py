"""Access and refresh tokens: JWTs signed with a key derived from a root key. The `kid` header
names the root key.
"""

import hashlib
import secrets
from typing import Any, Literal

import jwt
import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.kit import clock
from app.security.errors import TokenInvalid

ACCESS_SECONDS = 15 * 60
REFRESH_SECONDS = 7 * 24 * 3600
_ALGORITHM = "HS256"
_CACHE_SIZE = 20_000
_MAX_TOKEN_CHARS = 4096

TokenType = Literal["access", "refresh"]


class Claims(msgspec.Struct, frozen=True):
    sub: str
    tid: str
    role: str
    sid: str
    jti: str
    typ: str
    exp: int


class Tokens:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._cache: dict[bytes, Claims] = {}

    def issue(
        self, typ: TokenType, seconds: int, at: float | None = None, /, *, jti: str, **claims: str
    ) -> str:
        """Signs a token. The same claims at the same time give the same token."""
        now = int(clock.epoch() if at is None else at)
        payload = {**claims, "jti": jti, "typ": typ, "iat": now, "exp": now + seconds}
        kid = self._keyring.active
        return jwt.encode(payload, self._key(kid), algorithm=_ALGORITHM, headers={"kid": kid})

    def verify(self, token: str, typ: TokenType) -> Claims:
        """Returns the claims. Raises TokenInvalid for a bad signature, another type or expiry."""
        digest = hashlib.sha256(token.encode()).digest()
        claims = self._cache.get(digest)
        if claims is None:
            claims = self._decode(token)
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[digest] = claims
        if claims.exp <= clock.epoch():
            self._cache.pop(digest, None)
            raise TokenInvalid("The token has expired; get a new one with POST /auth/refresh")
        if claims.typ != typ:
            raise TokenInvalid(f"This token is of another type; send the {typ} token")
        return claims

    def _decode(self, token: str) -> Claims:
        if len(token) > _MAX_TOKEN_CHARS:
            raise TokenInvalid("The token is not valid")
        try:
            kid = jwt.get_unverified_header(token).get("kid", "")
            payload: dict[str, Any] = jwt.decode(
                token,
                self._key(kid),
                algorithms=[_ALGORITHM],
                options={
                    "require": ["exp", "sub", "jti"],
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
            return msgspec.convert(payload, Claims)
        except (jwt.PyJWTError, CannotOpen, msgspec.ValidationError, TypeError) as error:
            raise TokenInvalid("The token is not valid") from error

    def _key(self, kid: str) -> bytes:
        return self._keyring.derive(kid, "jwt", "")


def new_secret() -> str:
    """Returns a random token that is mailed or shown once; only its hash is stored."""
    return secrets.token_urlsafe(32)


def hash_secret(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

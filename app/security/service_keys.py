"""Service keys, with which programs act for themselves.

A key is checked like a session: its id is the session's, so that its revocation, and the plan and
grants that apply, come with the same round trip to Redis.
"""

import hashlib
import math
from datetime import datetime
from typing import Final

import msgspec

from app.kit import clock
from app.security.errors import TokenInvalid
from app.security.principal import Principal
from app.security.tokens import Claims
from db import fast
from db.fast import Row
from db.session import ALL_TENANTS, Database

ID_PREFIX: Final = "svk"
# Programs do not manage people, what roles may do, and the keys of programs.
WITHHELD: Final = frozenset({"admin:users", "admin:roles", "admin:keys"})
_CACHE_SIZE = 10_000
_NEVER = 2**53
_FIND = """
SELECT id, tenant_id, role, agent_ids::text AS agent_ids, expires_at FROM service_keys
WHERE ($1::text IS NULL OR tenant_id = $1) AND key_hash = $2 AND revoked_at IS NULL
"""


class KeyClaims(Claims, frozen=True, kw_only=True):
    """`agent_ids` None means all agents."""

    agent_ids: frozenset[str] | None


class ServiceKeys:
    """Knows the keys that this process has seen; whether they are still valid is for the session
    check.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, KeyClaims] = {}

    def find(self, key: str) -> KeyClaims | None:
        return self._known.get(hash_key(key))

    def verify(self, key: str) -> KeyClaims:
        """Raises TokenInvalid for a key that is not known, or has expired."""
        claims = self.find(key)
        if claims is None:
            raise TokenInvalid("This service key is not valid, or it was revoked")
        if claims.exp <= clock.epoch():
            raise TokenInvalid("This service key has expired; create a new one")
        return claims

    async def load(self, key: str) -> None:
        """Searches for a key that this process has not seen."""
        key_hash = hash_key(key)
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            row = await fast.row(tx, None, _FIND, key_hash)
        if row is None:
            return
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        self._known[key_hash] = _to_claims(row)


def restrict(principal: Principal, claims: KeyClaims) -> Principal:
    """Returns the caller with what a service key may do."""
    return msgspec.structs.replace(
        principal,
        permissions=principal.permissions - WITHHELD,
        is_service_key=True,
        agent_ids=claims.agent_ids,
    )


def hash_key(key: str) -> str:
    """Needs no salt and no slow hash, because the key is random."""
    return hashlib.sha256(key.encode()).hexdigest()


def _to_claims(row: Row) -> KeyClaims:
    expires_at: datetime | None = row["expires_at"]
    agent_ids = msgspec.json.decode(row["agent_ids"] or "null", type=frozenset[str] | None)
    return KeyClaims(
        sub=row["id"],
        tid=row["tenant_id"],
        role=row["role"],
        sid=row["id"],
        jti="",
        typ="service",
        exp=_NEVER if expires_at is None else math.floor(expires_at.timestamp()),
        agent_ids=agent_ids,
    )

"""Tokens that tools get with client secrets of their own; kept in memory while they last."""

import asyncio
import hashlib

from app.domain.tools.auths import OAuth2Auth
from app.domain.vault.service import OAuth2Secrets, TokenGrant, is_expired, request_token
from app.kit.egress import Egress

_MOST = 1000


class ClientTokens:
    """One per process. Whoever needs the same token at the same time shares one request."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._grants: dict[str, TokenGrant] = {}
        self._asking: dict[str, asyncio.Task[TokenGrant]] = {}

    async def fresh(self, auth: OAuth2Auth, *, refused: str | None = None) -> str:
        key = _key(auth)
        known = self._grants.get(key)
        if known is not None and known.access_token != refused and not is_expired(known.expires_at):
            return known.access_token
        running = self._asking.get(key)
        if running is None:
            running = asyncio.create_task(self._asked(key, auth))
            self._asking[key] = running
            running.add_done_callback(lambda _: self._asking.pop(key, None))
        return (await asyncio.shield(running)).access_token

    async def _asked(self, key: str, auth: OAuth2Auth) -> TokenGrant:
        secrets = OAuth2Secrets(
            client_id=auth.client_id,
            client_secret=auth.client_secret,
            token_url=auth.token_url,
            scopes=auth.scope.split(),
        )
        grant = await request_token(self._egress, secrets)
        if len(self._grants) >= _MOST:
            self._grants.clear()
        self._grants[key] = grant
        return grant


def _key(auth: OAuth2Auth) -> str:
    parts = (auth.token_url, auth.client_id, auth.client_secret, auth.scope)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

"""OAuth 2 tokens for tools with client secrets of their own, cached in memory until they expire."""

import asyncio
import hashlib

from app.domain.agents.vault.api import OAuth2Secrets, TokenGrant, is_expired, request_token
from app.jobs import background
from app.net.egress import Egress

from .auth_configs import OAuth2Auth

_MAX_GRANTS = 1000


class ClientTokens:
    """One per process. Concurrent calls that need the same token share one request."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._grants: dict[str, TokenGrant] = {}
        self._requests: dict[str, asyncio.Task[TokenGrant]] = {}

    async def get_token(self, auth: OAuth2Auth, *, rejected: str | None = None) -> str:
        """Returns a valid access token other than `rejected`, which a server did not accept."""
        key = _cache_key(auth)
        grant = self._grants.get(key)
        if (
            grant is not None
            and grant.access_token != rejected
            and not is_expired(grant.expires_at)
        ):
            return grant.access_token
        request = self._requests.get(key)
        if request is None:
            request = background.start(self._request_grant(key, auth))
            self._requests[key] = request
            request.add_done_callback(lambda _: self._requests.pop(key, None))
        return (await asyncio.shield(request)).access_token

    async def _request_grant(self, key: str, auth: OAuth2Auth) -> TokenGrant:
        secrets = OAuth2Secrets(
            client_id=auth.client_id,
            client_secret=auth.client_secret,
            token_url=auth.token_url,
            scopes=auth.scope.split(),
        )
        grant = await request_token(self._egress, secrets)
        if len(self._grants) >= _MAX_GRANTS:
            self._grants.clear()
        self._grants[key] = grant
        return grant


def _cache_key(auth: OAuth2Auth) -> str:
    parts = (auth.token_url, auth.client_id, auth.client_secret, auth.scope)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

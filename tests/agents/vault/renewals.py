"""Renewals of OAuth 2 tokens whose response the token server holds back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.domain.agents.vault.decrypted import DecryptedCredential
from app.domain.agents.vault.oauth import TokenRefresher
from app.domain.agents.vault.types import OAuth2Secrets
from app.services import Services
from tests.agents.vault.servers import TokenServer
from tests.assertions import until


@asynccontextmanager
async def hold_renewal(
    services: Services, token_server: TokenServer, credential: DecryptedCredential
) -> AsyncIterator[asyncio.Task[OAuth2Secrets]]:
    """Yields a renewal whose request has arrived; the server responds after the block."""
    token_server.may_respond.clear()
    renewal = asyncio.create_task(services.get(TokenRefresher).get_fresh_secrets(credential))
    await until(lambda: token_server.requests)
    yield renewal
    token_server.may_respond.set()

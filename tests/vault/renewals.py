"""Renewals of OAuth 2 tokens whose response the token server holds back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.domain.vault.decrypted import DecryptedCredential
from app.domain.vault.service import TokenRefresher
from app.domain.vault.types import OAuth2Secrets
from app.services import Services
from tests.asking import until
from tests.vault.servers import TokenServer


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

"""The parts that web tier, workers and command line share, put together once per process."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from litestar.connection import ASGIConnection
from redis.asyncio import Redis

from app.domain.models.gateway import Models
from app.domain.tools.client_tokens import ClientTokens
from app.domain.vault.oauth import Refresher
from app.http.turnstile import Turnstile
from app.kit import background, keys
from app.kit.batches import Batches
from app.kit.crypto import Keyring
from app.kit.egress import Egress, Guard
from app.kit.files import Files
from app.kit.redis import connect
from app.kit.sandbox.box import Sandbox
from app.kit.work import Doorbell
from app.security.sessions import Copies, Grants
from app.security.tokens import Tokens
from app.settings import Settings
from db.session import Database


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    db: Database
    redis: Redis
    keyring: Keyring
    tokens: Tokens
    grants: Grants
    copies: Copies
    doorbell: Doorbell
    egress: Egress
    # For deliveries: how many are on their way, and to whom, is the couriers' own affair. What an
    # endpoint says is kept in part, never unpacked.
    couriers: Egress
    files: Files
    models: Models
    batches: Batches
    refresher: Refresher
    client_tokens: ClientTokens
    # Workers start it; nobody else runs anybody's code.
    sandbox: Sandbox
    outside: Turnstile

    async def close(self) -> None:
        await background.drain()
        await self.models.close()
        await self.egress.close()
        await self.couriers.close()
        await self.doorbell.close()
        with suppress(OSError, asyncio.CancelledError):
            await self.redis.aclose()
        await self.db.close()


def build(settings: Settings) -> Parts:
    """Opens no connection yet, so that it can be used before the parts are up."""
    keyring = keys.load(settings)
    db = Database(settings.sqlalchemy_url, pool_size=settings.pool_size)
    redis = connect(settings.redis_address)
    guard = Guard(settings.egress_allow)
    egress = Egress(guard)
    doorbell = Doorbell(settings.redis_address)
    db.ring = doorbell.wake
    return Parts(
        settings=settings,
        db=db,
        redis=redis,
        keyring=keyring,
        tokens=Tokens(keyring),
        grants=Grants(db),
        copies=Copies(redis),
        doorbell=doorbell,
        egress=egress,
        couriers=Egress(guard, limit=0, per_host=0, decompress=False),
        files=Files.at(settings.files_uri, settings.data_dir),
        models=Models(guard, redis, has_local=settings.local_model),
        batches=Batches(),
        refresher=Refresher(db, keyring, egress),
        client_tokens=ClientTokens(egress),
        sandbox=Sandbox(settings),
        outside=Turnstile(),
    )


def parts_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Parts:
    parts: Parts = connection.app.state.parts
    return parts

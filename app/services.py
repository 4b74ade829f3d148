"""What one process shares: settings, connections, keys, and the objects that areas bring.

`app/container.py` puts it together, above all areas; everything else receives it.
"""

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from redis.asyncio import Redis

from app.kit import background
from app.kit.batches import Batches
from app.kit.concurrency import ConcurrencyLimit
from app.kit.crypto import Keyring
from app.kit.egress import Egress
from app.kit.files import Files
from app.kit.sandbox.box import Sandbox
from app.kit.work import Doorbell
from app.security.sessions import Grants, SessionCache
from app.security.tokens import Tokens
from app.settings import Settings
from db.session import Database

T = TypeVar("T")


class Services(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    db: Database
    redis: Redis
    keyring: Keyring
    tokens: Tokens
    grants: Grants
    session_cache: SessionCache
    doorbell: Doorbell
    egress: Egress
    files: Files
    batches: Batches
    # Workers start it; no other process runs code of users.
    sandbox: Sandbox
    outbound_limit: ConcurrencyLimit
    # Objects that areas bring, by class.
    of_areas: dict[type[Any], Any] = {}

    def get(self, kind: type[T]) -> T:
        """The object of this class that an area brought."""
        found: T = self.of_areas[kind]
        return found

    def add(self, shared: object) -> None:
        self.of_areas[type(shared)] = shared

    async def close(self) -> None:
        await background.drain()
        for shared in self.of_areas.values():
            if hasattr(shared, "close"):
                await shared.close()
        await self.egress.close()
        await self.doorbell.close()
        with suppress(OSError, asyncio.CancelledError):
            await self.redis.aclose()
        await self.db.close()

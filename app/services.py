"""The objects that one process shares: settings, connections, keys, and objects of areas.

`app/container.py` builds them, because it may import every area; all other code receives them.
"""

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from redis.asyncio import Redis

from app.crypto.keyring import Keyring
from app.jobs import background
from app.jobs.batches import Batches
from app.jobs.work import Doorbell
from app.kit.concurrency import ConcurrencyLimit
from app.kit.files import Files
from app.net.egress import Egress
from app.observe.readiness import Readiness
from app.sandbox.box import Sandbox
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
    readiness: Readiness
    tokens: Tokens
    grants: Grants
    session_cache: SessionCache
    doorbell: Doorbell
    egress: Egress
    files: Files
    batches: Batches
    # Only workers start it, because no other process runs user code.
    sandbox: Sandbox
    outbound_limit: ConcurrencyLimit
    # Shared objects of areas, by class.
    area_objects: dict[type[Any], Any] = {}

    def get(self, kind: type[T]) -> T:
        """Returns the shared object of this class."""
        shared: T = self.area_objects[kind]
        return shared

    def add(self, shared: object) -> None:
        self.area_objects[type(shared)] = shared

    async def close(self) -> None:
        await background.drain()
        for shared in self.area_objects.values():
            if hasattr(shared, "close"):
                await shared.close()
        await self.egress.close()
        await self.egress.guard.close()
        await self.doorbell.close()
        with suppress(OSError, asyncio.CancelledError):
            await self.redis.aclose()
        await self.db.close()

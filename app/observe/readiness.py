"""Whether a process may use the database: its schema and its root keys must fit.

Until then the web tier refuses requests, and workers claim no work.
"""

import asyncio
from contextlib import suppress

from app.crypto import key_check
from app.crypto.keyring import KeyProblem, Keyring
from app.kit import logs
from db import schema
from db.session import ALL_TENANTS, Database

log = logs.get("readiness")

_CHECK_SECONDS = 5.0
_RETRY_SECONDS = 1.0
_WRONG_KEYS = "the root keys do not fit this database: run `parley doctor`"


class Readiness:
    def __init__(self, db: Database, keyring: Keyring) -> None:
        self._db = db
        self._keyring = keyring
        # Why the process must not use the database, in words for everyone.
        self.problem: str | None = None

    async def check(self) -> None:
        """Sets `problem`. Raises KeyProblem, because no later check would find other keys."""
        try:
            async with (
                asyncio.timeout(_CHECK_SECONDS),
                self._db.tx(ALL_TENANTS, autocommit=True) as tx,
            ):
                raw = await tx.raw()
                revision = await schema.read_revision(raw)
                fit = schema.compare(revision)
                if fit == "behind":
                    self._set_problem(schema.describe(revision))
                    return
                await key_check.check(raw, self._keyring)
        except KeyProblem:
            self.problem = _WRONG_KEYS
            raise
        except Exception as error:  # noqa: BLE001  # any error means that it is unusable
            self._set_problem("the database is unavailable", str(error)[:200])
            return
        if fit == "ahead":
            # During a roll-out, processes of the older release serve on.
            log.warning("the database is newer than this release", reason=schema.describe(revision))
        self._set_problem(None)

    def record_revision(self, revision: str | None) -> None:
        """Sets `problem` when the schema became too old, as after the restore of a backup. `watch`
        clears it.
        """
        if self.problem is None and schema.compare(revision) == "behind":
            self._set_problem(schema.describe(revision))

    async def watch(self, stopped: asyncio.Event) -> None:
        """Checks as long as there is a problem, until `stopped` is set. Raises KeyProblem."""
        while not stopped.is_set():
            if self.problem is not None:
                await self.check()
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _RETRY_SECONDS)

    async def wait(self, stopped: asyncio.Event) -> None:
        """Checks until there is no problem or `stopped` is set. Raises KeyProblem."""
        await self.check()
        while self.problem is not None and not stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _RETRY_SECONDS)
            await self.check()

    def _set_problem(self, problem: str | None, reason: str | None = None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("not ready", reason=reason or problem)
        self.problem = problem


async def require_schema(db: Database) -> None:
    """Raises SchemaBehind. A newer schema is used, as by processes that serve."""
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        revision = await schema.read_revision(await tx.raw())
    if schema.compare(revision) == "behind":
        raise schema.SchemaBehind(schema.describe(revision))

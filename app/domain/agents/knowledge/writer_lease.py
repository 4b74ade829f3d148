"""The lease of an agent's table: one process at a time writes it, so that commits never conflict.

A killed process loses its lease by time. What a writer records in Postgres is fenced by the lease:
who lost it records nothing.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from app.jobs.renewal import Renewal
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import table_queries
from .lance import TableRef

_MAX_PAUSE_SECONDS = 0.5


class TableBusy(Exception):
    """Another writer has the table; try again later."""


class NoKnowledgeBase(LookupError):
    """The agent was deleted."""


class TableReplaced(Exception):
    """The lease was lost, or the table has another generation: the change must be made again."""


class Writer(msgspec.Struct, frozen=True):
    """The holder of the lease, and the table as it was when the lease was taken."""

    tenant_id: str
    token: str
    table: TableRef
    embedding_model: str

    async def record_change(self, tx: Tx, *, removed: bool, maintain_seconds: float) -> None:
        """Makes a change of the table known to readers. Raises TableReplaced."""
        was_recorded = await table_queries.record_change(
            tx,
            self.tenant_id,
            self.table.agent_id,
            self.token,
            self.table.generation,
            removed=removed,
            maintain_seconds=maintain_seconds,
        )
        if not was_recorded:
            raise TableReplaced(self.table.name)


@asynccontextmanager
async def hold_table(
    services: Services, tenant_id: str, agent_id: str, wait_seconds: float = 0
) -> AsyncIterator[Writer]:
    """Takes the lease, waiting for it at most so long, and renews it. Raises NoKnowledgeBase and
    TableBusy.

    A writer that is cancelled must not leave the block while a commit is under way: run what
    changes the table with `background.run_to_end`.
    """
    token, seconds = new_id("wrt"), services.settings.lease_seconds
    row = await _take(services, tenant_id, agent_id, token, wait_seconds)
    lease = (tenant_id, agent_id, token)

    async def renew() -> None:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await table_queries.renew_writer(tx, *lease, seconds)

    renewal = Renewal(seconds / 3, renew)
    try:
        table = TableRef(agent_id, row["generation"])
        yield Writer(tenant_id, token, table, row["embedding_model"])
    finally:
        renewal.stop()
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await table_queries.release_writer(tx, *lease)


async def _take(
    services: Services, tenant_id: str, agent_id: str, token: str, wait_seconds: float
) -> Row:
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + wait_seconds, 0.01
    seconds = services.settings.lease_seconds
    while True:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            row = await table_queries.take_writer(tx, tenant_id, agent_id, token, seconds)
            if row is None and await table_queries.find_base(tx, tenant_id, agent_id) is None:
                raise NoKnowledgeBase(agent_id)
        if row is not None:
            return row
        if loop.time() >= deadline:
            raise TableBusy(agent_id)
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # no secret
        pause = min(pause * 2, _MAX_PAUSE_SECONDS)

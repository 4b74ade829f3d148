"""The records that routes change, as their option `record` declares them."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from app.http import record_queries
from app.kit.errors import NotFound
from db.session import Tx

# Receives the parameters of the path, and the caller as `user_id` unless the path has one.
Lock = Callable[[Tx, Mapping[str, str]], Awaitable[None]]


class Record(msgspec.Struct, frozen=True):
    """`lock` keeps the record unchanged until the end of the transaction. `reader` is the name of
    the handler that answers with the record, by default the GET of the same path. A PUT that
    creates the record where there is none names in `absent` the error of that GET. `tagged` are
    fields of the answer that are part of the tag although no body has them, for what bodies change
    and answers do not show.
    """

    lock: Lock | None = None
    reader: str | None = None
    absent: type[NotFound] | None = None
    tagged: tuple[str, ...] = ()


def lock_row(table: str, **columns: str) -> Lock:
    """Locks the row whose columns have the values of these parameters."""
    names = tuple(columns.values())
    statement = record_queries.build_lock(table, list(columns))

    async def lock(tx: Tx, parameters: Mapping[str, str]) -> None:
        await record_queries.lock(tx, statement, [parameters[name] for name in names])

    return lock


def lock_in_order(*locks: Lock) -> Lock:
    async def lock(tx: Tx, parameters: Mapping[str, str]) -> None:
        for step in locks:
            await step(tx, parameters)

    return lock

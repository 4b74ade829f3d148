"""Rotates the root key: re-wraps every sealed column in batches, while Parley serves requests."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import msgspec
from sqlalchemy import Column, Table

from app.crypto import key_check, key_file
from app.crypto import keyring as keyrings
from app.crypto.keyring import (
    CannotOpen,
    KeyProblem,
    Keyring,
    SealContext,
    kid_of,
)
from app.kit.ids import new_id
from app.settings import Settings
from db import writers
from db.base import Base, Sealed
from db.fast import Row
from db.session import ALL_TENANTS, Database

_BATCH = 200
_MAX_PASSES = 5
_POLL_SECONDS = 0.05
CANNOT_OPEN = "cannot open"

Counts = dict[str, dict[str, int]]


class SealedColumn(msgspec.Struct, frozen=True):
    table: str
    field: str
    has_tenant: bool

    @property
    def name(self) -> str:
        return f"{self.table}.{self.field}"

    @property
    def select(self) -> str:
        tenant = "tenant_id, " if self.has_tenant else ""
        return f"SELECT id, {tenant}{self.field} AS sealed FROM {self.table}"  # noqa: S608  # names from the schema

    def context(self, row: Row) -> SealContext:
        tenant = row["tenant_id"] if self.has_tenant else ""
        return SealContext(tenant=tenant, table=self.table, record=row["id"], field=self.field)


def sealed_columns() -> list[SealedColumn]:
    columns = []
    for table in Base.metadata.sorted_tables:
        columns += [
            SealedColumn(table.name, column.name, "tenant_id" in table.c)
            for column in _sealed_columns_of(table)
        ]
    return columns


def _sealed_columns_of(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if isinstance(column.type, Sealed)]


def new_active_key(settings: Settings, keyring: Keyring) -> Keyring:
    """Adds a new first key to the key file. With PARLEY_MASTER_KEYS, the operator has added it."""
    if settings.master_keys:
        return keyring
    entries = key_file.key_file(settings).read_text(encoding="ascii").split()
    kid = new_id("k")
    key_file.write(settings, [Keyring.generate(kid), *entries])
    return key_file.load(settings)


async def rotate_to_new_key(
    settings: Settings, db: Database, keyring: Keyring, report: Callable[[str], object]
) -> Counts:
    """Rotates to a new active key. Raises KeyProblem when a key is not the one of this database, or
    when another process goes on sealing with an older key.
    """
    with key_file.lock_key_file(settings):
        await _check_keys(db, keyring)
        # The active key must stay the same throughout.
        keyring = new_active_key(settings, keyring).snapshot()
        await _check_keys(db, keyring)
        if not settings.master_keys:
            report("waiting until every process has read the new key …")
            await asyncio.sleep(2 * keyrings.RELOAD_SECONDS)
        await _wait_for_writers(db, report)
        return await _rotate_completely(db, keyring, report)


async def _check_keys(db: Database, keyring: Keyring) -> None:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        await key_check.check(await tx.raw(), keyring, allow_missing=True)


async def _wait_for_writers(db: Database, report: Callable[[str], object]) -> None:
    """Waits for the transactions that may have stored values of an older key."""
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        start = await writers.read_time(raw)
        if await writers.has_writer_since_before(raw, start):
            report("waiting for open transactions …")
            while await writers.has_writer_since_before(raw, start):  # noqa: ASYNC110  # in Postgres
                await asyncio.sleep(_POLL_SECONDS)


async def _rotate_completely(
    db: Database, keyring: Keyring, report: Callable[[str], object]
) -> Counts:
    """Rotates until no value of an older key is left; only then, these keys may be missing."""
    for _ in range(_MAX_PASSES):
        counts = await rotate(db, keyring, report)
        if has_unopened(counts):
            return counts
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            if not await _has_other_values(raw, keyring.active):
                await key_check.forget_other_keys(raw, keyring)
                return counts
    raise KeyProblem(
        f"another process still seals with an older key: start all processes with "
        f"{keyring.active!r} as the first key, then run this again"
    )


async def _has_other_values(raw: asyncpg.Connection, kid: str) -> bool:
    prefix = keyrings.header(kid)
    for column in sealed_columns():
        sql = f"SELECT EXISTS ({column.select} WHERE substring({column.field}, 1, $1) <> $2)"
        if await raw.fetchval(sql, len(prefix), prefix):
            return True
    return False


def has_unopened(counts: Counts) -> bool:
    return any(CANNOT_OPEN in column_counts for column_counts in counts.values())


async def _batches(db: Database, column: SealedColumn) -> AsyncIterator[list[Row]]:
    sql = f"{column.select} WHERE id > $1 AND {column.field} IS NOT NULL ORDER BY id LIMIT {_BATCH}"
    last = ""
    while True:
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            rows = list(await (await tx.raw()).fetch(sql, last))
        if rows:
            yield rows
        # Otherwise a pass would follow rows that are inserted as fast as it reads them.
        if len(rows) < _BATCH:
            return
        last = rows[-1]["id"]


async def rotate(db: Database, keyring: Keyring, report: Callable[[str], object]) -> Counts:
    """Re-wraps all values of older keys. Returns the number of values per column and key."""
    counts: Counts = {}
    for column in sealed_columns():
        column_counts: Counter[str] = Counter()
        async for rows in _batches(db, column):
            async with db.tx(ALL_TENANTS) as tx:
                column_counts += await _rewrap(
                    await tx.raw(), keyring, column, [row["id"] for row in rows]
                )
            report(f"{column.name}: {column_counts.total()} rows")
        counts[column.name] = dict(column_counts)
    return counts


async def _rewrap(
    raw: asyncpg.Connection, keyring: Keyring, column: SealedColumn, ids: list[str]
) -> Counter[str]:
    """Re-wraps rows that it locks, so that no concurrent change is overwritten."""
    select = (
        f"{column.select} WHERE id = ANY($1) AND {column.field} IS NOT NULL ORDER BY id FOR UPDATE"
    )
    update = f"UPDATE {column.table} SET {column.field} = $2 WHERE id = $1"  # noqa: S608  # names from the schema
    counts: Counter[str] = Counter()
    changes = []
    for row in await raw.fetch(select, ids):
        try:
            rewrapped = keyring.rewrap(row["sealed"], column.context(row))
        except CannotOpen:
            counts[CANNOT_OPEN] += 1
            continue
        if rewrapped != row["sealed"]:
            changes.append((row["id"], rewrapped))
        counts[keyring.active] += 1
    await raw.executemany(update, changes)
    return counts


async def verify(db: Database, keyring: Keyring) -> Counts:
    """Opens every value. Returns the number per column and key, failures as CANNOT_OPEN."""
    counts: Counts = {}
    for column in sealed_columns():
        column_counts: Counter[str] = Counter()
        async for rows in _batches(db, column):
            for row in rows:
                try:
                    keyring.open(row["sealed"], column.context(row))
                    column_counts[kid_of(row["sealed"])] += 1
                except CannotOpen:
                    column_counts[CANNOT_OPEN] += 1
        counts[column.name] = dict(column_counts)
    return counts

"""One transaction per request or job, scoped to a tenant.

`Database` owns the connection pool. Services receive a `Tx`: an ORM session and, through `db.fast`,
the asyncpg connection below it, both in the same transaction. A `Tx` takes a connection from the
pool with its first statement. The code that opened it commits it once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, Final, cast

import asyncpg
import msgspec
from sqlalchemy import Connection, PoolProxiedConnection, event
from sqlalchemy.exc import MissingGreenlet, SQLAlchemyError
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    create_async_engine,
)
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction, with_loader_criteria
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql import visitors
from sqlalchemy.util import greenlet_spawn

from db import record_changes
from db.base import TenantOwned
from db.connecting import SERVER_SETTINGS, LazyConnect, refuse_closed
from db.connection_shares import ConnectionClaim, ConnectionShares
from db.record_changes import RecordChanges, Recorder
from db.url import DRIVER, parse_url


class Unscoped(RuntimeError):
    """A statement on tenant-owned rows in a session that names no tenant."""


class CrossTenant(RuntimeError):
    """A row of one tenant was to be written in a session of another tenant."""


class DatabaseUnavailable(ConnectionError):
    """Postgres cannot be reached, or refuses the connection."""


class AllTenants:
    """The scope of super_admin and of the system itself: every tenant's rows."""

    def __repr__(self) -> str:
        return "ALL_TENANTS"


ALL_TENANTS: Final = AllTenants()
# What a statement raises for any reason of the database.
DATABASE_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    SQLAlchemyError,
    OSError,
)

_log = logging.getLogger(__name__)

Scope = str | AllTenants
AfterCommit = Callable[[], Awaitable[None]]
# Tells the workers that there is new work; receives its kind and its id.
Ring = Callable[[str, str], Awaitable[None]]


class ScopedSession(Session):
    pass


@event.listens_for(ScopedSession, "do_orm_execute")
def _add_tenant_condition(state: ORMExecuteState) -> None:
    scope = state.session.info.get("scope")
    if isinstance(scope, AllTenants):
        return
    if scope is None:
        if any(table in _tenant_owned_tables() for table in _tables_in(state.statement)):
            raise Unscoped("this session names no tenant: open it with a scope")
        return
    if not state.is_orm_statement:
        if any(table in _tenant_owned_tables() for table in _tables_in(state.statement)):
            raise Unscoped("select the mapped class, not its table: only the class is scoped")
        return
    if any(issubclass(mapper.class_, TenantOwned) for mapper in state.all_mappers):
        _refuse_unchecked_write(state)
    state.statement = state.statement.options(
        with_loader_criteria(TenantOwned, lambda cls: cls.tenant_id == scope, include_aliases=True)
    )


def _refuse_unchecked_write(state: ORMExecuteState) -> None:
    """Refuses statements that bypass the tenant condition or move a row to another tenant."""
    if state.is_insert:
        raise CrossTenant("insert tenant-owned rows by session.add(), which checks the tenant")
    if not state.is_update:
        return
    if isinstance(state.parameters, list):
        raise CrossTenant("update many rows by a condition, not by a list of keys")
    values = getattr(state.statement, "_values", None) or {}
    if any(getattr(column, "key", column) == "tenant_id" for column in values):
        raise CrossTenant("a row does not move to another tenant")


def _tables_in(statement: Any) -> Iterator[object]:
    """Yields the name of every table in a statement, subqueries included."""
    for element in visitors.iterate(statement):
        if element.__visit_name__ == "table":
            yield getattr(element, "name", None)


@cache
def _tenant_owned_tables() -> frozenset[str]:
    classes = TenantOwned.__subclasses__()
    return frozenset(str(getattr(kind, "__tablename__", "")) for kind in classes)


@event.listens_for(ScopedSession, "before_flush")
def _check_tenant(session: Session, _ctx: UOWTransaction, _objects: object) -> None:
    scope = session.info.get("scope")
    if isinstance(scope, AllTenants):
        return
    for row in (*session.new, *session.dirty, *session.deleted):
        if not isinstance(row, TenantOwned):
            continue
        if scope is None:
            raise Unscoped("this session names no tenant: open it with a scope")
        if cast("str | None", row.tenant_id) is None:
            row.tenant_id = scope
        elif row.tenant_id != scope:
            raise CrossTenant(f"{type(row).__name__} of {row.tenant_id} in a session of {scope}")


event.listen(ScopedSession, "after_flush", record_changes.collect)


class Tx:
    """One transaction. With `autocommit`, plain SQL runs without BEGIN and COMMIT."""

    def __init__(
        self,
        engine: AsyncEngine,
        shares: ConnectionShares,
        scope: Scope | None,
        *,
        autocommit: bool,
        ring: Ring | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.scope = scope
        self.record_changes = RecordChanges(recorder)
        self._ring = ring
        self.after_commit: list[AfterCommit] = []
        # Awaited once, as the first step of the transaction; not with `autocommit`.
        self.on_begin: Callable[[], Awaitable[None]] | None = None
        self._engine = engine
        self._shares = shares
        self._autocommit = autocommit
        self._connection: PoolProxiedConnection | None = None
        self._claim: ConnectionClaim | None = None
        self._has_begun = False
        self._session: AsyncSession | None = None

    def set_scope(self, scope: Scope) -> None:
        """Sets the scope, once, for a public endpoint that looks up its tenant itself."""
        if self.scope is not None and self.scope != scope:
            raise CrossTenant(f"this transaction is of {self.scope}, not of {scope}")
        self.scope = scope
        if self._session is not None:
            self._session.info["scope"] = scope

    def wake(self, kind: str, work_id: str) -> None:
        """Tells a worker of the work after the commit. If that fails, the poller finds the work."""
        if self._ring is not None:
            self.after_commit.append(partial(self._ring, kind, work_id))

    async def session(self) -> AsyncSession:
        if self._session is None:
            engine, pooled = self._engine, await self._begin()
            connection = AsyncConnection(engine, Connection(engine.sync_engine, pooled))
            self._session = AsyncSession(
                connection,
                sync_session_class=ScopedSession,
                expire_on_commit=False,
                info={"scope": self.scope, record_changes.INFO: self.record_changes},
            )
        return self._session

    async def raw(self) -> asyncpg.Connection:
        """Returns the asyncpg connection, inside the transaction unless `autocommit` is set."""
        if self._autocommit and self._session is None:
            return _dbapi_connection(await self._acquire()).driver_connection
        connection = await self._begin()
        if self._session is not None:
            await self._session.flush()
        return _dbapi_connection(connection).driver_connection

    async def commit(self) -> None:
        try:
            if self._session is not None:
                await self._session.flush()
            await self.record_changes.write(self)
            if self._has_begun and self._connection is not None:
                await self._run_or_invalidate(
                    greenlet_spawn(_dbapi_connection(self._connection).commit)
                )
        finally:
            await self._close()
        calls, self.after_commit = self.after_commit, []
        for call in calls:
            try:
                await call()
            except Exception:  # noqa: BLE001
                # The commit succeeded, so the caller must not see an error.
                _log.exception("a call after the commit failed")

    async def rollback(self) -> None:
        self.after_commit.clear()
        self.record_changes.items.clear()
        await self._close()

    async def _acquire(self) -> PoolProxiedConnection:
        if self._connection is None:
            claim = await ConnectionClaim.make(self._shares, _tenant_of(self.scope))
            try:
                self._connection = self._take_idle() or await self._connect()
            except BaseException:
                claim.end()
                raise
            self._claim = claim
        return self._connection

    async def _connect(self) -> PoolProxiedConnection:
        engine = self._engine.sync_engine
        try:
            return await greenlet_spawn(engine.pool.connect)
        except (OSError, engine.dialect.loaded_dbapi.Error) as error:
            raise DatabaseUnavailable(f"Postgres cannot be reached: {error}") from error

    def _take_idle(self) -> PoolProxiedConnection | None:
        """Returns an idle connection of the pool, if there is one, without SQLAlchemy's greenlet.

        Only opening a connection, or replacing a closed one, needs the greenlet.
        """
        pool = cast("QueuePool", self._engine.sync_engine.pool)
        if pool.checkedin() == 0:
            return None
        try:
            return pool.connect()
        except MissingGreenlet:
            return None

    async def _begin(self) -> PoolProxiedConnection:
        connection = await self._acquire()
        if not self._has_begun:
            # SQLAlchemy would send BEGIN with its first statement; plain SQL may come before.
            await self._run_or_invalidate(_dbapi_connection(connection)._start_transaction())  # noqa: SLF001
            self._has_begun = True
            if self.on_begin is not None:
                on_begin, self.on_begin = self.on_begin, None
                await on_begin()
                # It may have rolled back, and begun once more.
                return await self._begin()
        return connection

    async def _run_or_invalidate(self, step: Awaitable[object]) -> None:
        """Runs a BEGIN or COMMIT. When it is interrupted, the state of the transaction is unknown,
        so the connection is closed instead of returned to the pool.
        """
        try:
            await step
        except BaseException:
            connection, claim = self._take_connection()
            self._has_begun = False
            if connection is not None:
                connection.invalidate()
            if claim is not None:
                claim.end()
            raise

    def _take_connection(self) -> tuple[PoolProxiedConnection | None, ConnectionClaim | None]:
        connection, self._connection = self._connection, None
        claim, self._claim = self._claim, None
        return connection, claim

    async def _close(self) -> None:
        session, self._session = self._session, None
        connection, claim = self._take_connection()
        has_begun, self._has_begun = self._has_begun, False
        try:
            if session is not None:
                await session.close()
        finally:
            if connection is not None and claim is not None:
                await _return_to_pool(connection, claim, has_begun=has_begun)


def _tenant_of(scope: Scope | None) -> str | None:
    """Returns whose share of the connections is used. Routes without a sign-in share one."""
    if scope is None:
        return ""
    return scope if isinstance(scope, str) else None


async def _return_to_pool(
    connection: PoolProxiedConnection, claim: ConnectionClaim, *, has_begun: bool
) -> None:
    """Returns a connection to the pool, even if the caller is cancelled, and never inside a
    transaction.
    """
    driver = _dbapi_connection(connection).driver_connection
    if has_begun or driver.is_closed():
        # Closing rolls back an open transaction. The shield lets it finish on cancellation.
        closing = asyncio.ensure_future(greenlet_spawn(connection.close))
        closing.add_done_callback(lambda _: claim.end())
        await asyncio.shield(closing)
        return
    try:
        if driver.is_in_transaction():
            connection.invalidate()
        connection.close()
    finally:
        claim.end()


def _dbapi_connection(connection: PoolProxiedConnection) -> Any:
    """SQLAlchemy's wrapper of the asyncpg connection."""
    return connection.dbapi_connection


class Database:
    def __init__(self, url: str, *, pool_size: int = 20) -> None:
        arguments = parse_url(url)
        self.engine = create_async_engine(
            DRIVER,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            # The connections that were used last have prepared most statements.
            pool_use_lifo=True,
            pool_recycle=1800,
            hide_parameters=True,
            # Also decodes JSON for plain SQL.
            json_deserializer=msgspec.json.decode,
            connect_args={
                **arguments,
                "async_creator_fn": LazyConnect,
                "server_settings": {
                    **SERVER_SETTINGS,
                    **arguments.get("server_settings", {}),
                    # Times within JSON have the session's time zone.
                    "timezone": "UTC",
                },
            },
        )
        event.listen(self.engine.sync_engine, "checkout", refuse_closed)
        self._shares = ConnectionShares(pool_size)
        # Set by the container when there is a doorbell.
        self.ring: Ring | None = None
        # Writes the history of records, set by its area.
        self.recorder: Recorder | None = None

    def begin(self, scope: Scope | None, *, autocommit: bool = False) -> Tx:
        return Tx(
            self.engine,
            self._shares,
            scope,
            autocommit=autocommit,
            ring=self.ring,
            recorder=self.recorder,
        )

    @asynccontextmanager
    async def tx(self, scope: Scope | None, *, autocommit: bool = False) -> AsyncIterator[Tx]:
        tx = self.begin(scope, autocommit=autocommit)
        try:
            yield tx
        except BaseException:
            await tx.rollback()
            raise
        await tx.commit()

    async def close(self) -> None:
        await self.engine.dispose()

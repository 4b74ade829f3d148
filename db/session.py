"""One transaction per request or job, scoped to a tenant.

`Database` owns the pool. `Tx` is what services receive: an ORM session and, through `db.fast`, the
asyncpg connection below it, both in the same transaction. Nothing is borrowed from the pool before
the first statement, and whoever opened the transaction commits it once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, Final, cast

import asyncpg
from sqlalchemy import Connection, PoolProxiedConnection, event
from sqlalchemy.exc import DisconnectionError, MissingGreenlet
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

from db.base import TenantOwned


class Unscoped(RuntimeError):
    """A statement on tenant-owned rows in a session that names no tenant."""


class CrossTenant(RuntimeError):
    """A row of one tenant written through another tenant's session."""


class DatabaseAway(ConnectionError):
    """Postgres does not answer."""


class AllTenants:
    """The scope of super_admin and of the system itself: every tenant's rows."""

    def __repr__(self) -> str:
        return "ALL_TENANTS"


ALL_TENANTS: Final = AllTenants()

_log = logging.getLogger(__name__)

Scope = str | AllTenants
AfterCommit = Callable[[], Awaitable[None]]
# Tells the workers of a kind that there is work for them.
Ring = Callable[[str, str], Awaitable[None]]


class ScopedSession(Session):
    pass


@event.listens_for(ScopedSession, "do_orm_execute")
def _add_tenant_condition(state: ORMExecuteState) -> None:
    scope = state.session.info.get("scope")
    if isinstance(scope, AllTenants):
        return
    if scope is None:
        if any(table in _owned_tables() for table in _tables_in(state.statement)):
            raise Unscoped("this session names no tenant: open it with a scope")
        return
    if not state.is_orm_statement:
        if any(table in _owned_tables() for table in _tables_in(state.statement)):
            raise Unscoped("ask for the mapped class, not its table: only that is scoped")
        return
    if any(issubclass(mapper.class_, TenantOwned) for mapper in state.all_mappers):
        _refuse_unchecked_write(state)
    state.statement = state.statement.options(
        with_loader_criteria(TenantOwned, lambda cls: cls.tenant_id == scope, include_aliases=True)
    )


def _refuse_unchecked_write(state: ORMExecuteState) -> None:
    """Statements that the condition does not reach, or that move a row to another tenant."""
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
    """Every table that a statement reads, subqueries included."""
    for element in visitors.iterate(statement):
        if element.__visit_name__ == "table":
            yield getattr(element, "name", None)


@cache
def _owned_tables() -> frozenset[str]:
    mappers = TenantOwned.__subclasses__()
    return frozenset(str(getattr(kind, "__tablename__", "")) for kind in mappers)


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


class Tx:
    """One unit of work. `autocommit` lets plain SQL run without BEGIN and COMMIT around it."""

    def __init__(
        self,
        engine: AsyncEngine,
        scope: Scope | None,
        *,
        autocommit: bool,
        ring: Ring | None = None,
    ) -> None:
        self.scope = scope
        self._ring = ring
        self.after_commit: list[AfterCommit] = []
        self._engine = engine
        self._autocommit = autocommit
        self._borrowed: PoolProxiedConnection | None = None
        self._begun = False
        self._session: AsyncSession | None = None

    def enter(self, scope: Scope) -> None:
        """Name the tenant once it is known, where the caller had none: a public endpoint."""
        if self.scope is not None and self.scope != scope:
            raise CrossTenant(f"this transaction is of {self.scope}, not of {scope}")
        self.scope = scope
        if self._session is not None:
            self._session.info["scope"] = scope

    def wake(self, kind: str, work_id: str) -> None:
        """Once this is committed, a worker hears of the work; else its poller finds it."""
        if self._ring is not None:
            self.after_commit.append(partial(self._ring, kind, work_id))

    async def session(self) -> AsyncSession:
        if self._session is None:
            borrowed = await self._begin()
            engine = self._engine
            connection = AsyncConnection(engine, Connection(engine.sync_engine, borrowed))
            self._session = AsyncSession(
                connection,
                sync_session_class=ScopedSession,
                expire_on_commit=False,
                info={"scope": self.scope},
            )
        return self._session

    async def raw(self) -> asyncpg.Connection:
        """The asyncpg connection, inside the transaction unless this is a read."""
        if self._autocommit and self._session is None:
            return _adapted(await self._borrow()).driver_connection
        borrowed = await self._begin()
        if self._session is not None:
            await self._session.flush()
        return _adapted(borrowed).driver_connection

    async def commit(self) -> None:
        try:
            if self._session is not None:
                await self._session.flush()
            if self._begun and self._borrowed is not None:
                await self._or_discard(greenlet_spawn(_adapted(self._borrowed).commit))
        finally:
            await self._close()
        calls, self.after_commit = self.after_commit, []
        for call in calls:
            try:
                await call()
            except Exception:  # noqa: BLE001
                # The work is done and will be answered for; what hangs on it is best effort.
                _log.exception("a call after the commit failed")

    async def rollback(self) -> None:
        self.after_commit.clear()
        await self._close()

    async def _borrow(self) -> PoolProxiedConnection:
        if self._borrowed is None:
            self._borrowed = self._idle() or await self._connect()
        return self._borrowed

    async def _connect(self) -> PoolProxiedConnection:
        try:
            return await greenlet_spawn(self._engine.sync_engine.pool.connect)
        except OSError as error:
            raise DatabaseAway(f"Postgres cannot be reached: {error}") from error

    def _idle(self) -> PoolProxiedConnection | None:
        """A connection that waits in the pool, taken as it is.

        Only making one, or replacing a dead one, needs SQLAlchemy's greenlet.
        """
        pool = cast("QueuePool", self._engine.sync_engine.pool)
        if pool.checkedin() == 0:
            return None
        try:
            return pool.connect()
        except MissingGreenlet:
            return None

    async def _begin(self) -> PoolProxiedConnection:
        borrowed = await self._borrow()
        if not self._begun:
            # SQLAlchemy sends BEGIN with its own first statement; ours may come before that.
            await self._or_discard(_adapted(borrowed)._start_transaction())  # noqa: SLF001
            self._begun = True
        return borrowed

    async def _or_discard(self, step: Awaitable[object]) -> None:
        """Begin or commit. Interrupted, nobody knows what the server did: throw the connection
        away rather than hand it on with a transaction inside.
        """
        try:
            await step
        except BaseException:
            borrowed, self._borrowed = self._borrowed, None
            self._begun = False
            if borrowed is not None:
                borrowed.invalidate()
            raise

    async def _close(self) -> None:
        session, self._session = self._session, None
        borrowed, self._borrowed = self._borrowed, None
        begun, self._begun = self._begun, False
        try:
            if session is not None:
                await session.close()
        finally:
            if borrowed is not None:
                await _give_back(borrowed, begun=begun)


async def _give_back(borrowed: PoolProxiedConnection, *, begun: bool) -> None:
    """Back into the pool, whatever happens to the caller, and never with a transaction inside."""
    driver = _adapted(borrowed).driver_connection
    if begun or driver.is_closed():
        # This rolls back what is still open. It goes on when the caller is cancelled meanwhile.
        await asyncio.shield(asyncio.ensure_future(greenlet_spawn(borrowed.close)))
        return
    if driver.is_in_transaction():
        borrowed.invalidate()
    borrowed.close()


def _adapted(borrowed: PoolProxiedConnection) -> Any:
    """SQLAlchemy's wrapper of the asyncpg connection."""
    return borrowed.dbapi_connection


class _Connecting:
    """`asyncpg.connect`, begun only when it is awaited: `Tx` may find that it cannot be."""

    def __init__(self, **where: Any) -> None:
        self._where = where

    def __await__(self) -> Generator[Any, None, asyncpg.Connection]:
        return cast("Generator[Any, None, asyncpg.Connection]", self._connect().__await__())

    async def _connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(**self._where)


def _refuse_closed(dbapi_connection: Any, _record: object, _proxy: object) -> None:
    """After a restart of Postgres the pool holds dead connections; asyncpg knows which."""
    if dbapi_connection.driver_connection.is_closed():
        raise DisconnectionError


# An execution option: the plan of a statement is read instead of its rows.
EXPLAIN: Final = "parley_explain"


def _explain(
    _connection: object,
    _cursor: object,
    statement: str,
    parameters: Any,
    context: Any,
    _many: bool,  # noqa: FBT001  # SQLAlchemy calls it so
) -> tuple[str, Any]:
    if context is not None and context.execution_options.get(EXPLAIN):
        statement = f"EXPLAIN (FORMAT JSON) {statement}"
    return statement, parameters


class Database:
    def __init__(self, url: str, *, pool_size: int = 20) -> None:
        self.engine = create_async_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            pool_recycle=1800,
            hide_parameters=True,
            connect_args={
                "async_creator_fn": _Connecting,
                # Nobody waits forever for a row, and a transaction that was forgotten ends. What is
                # asked for by its key is found by it, whatever the disks of 2000 were like.
                "server_settings": {
                    "random_page_cost": "1.1",
                    "lock_timeout": "15s",
                    "idle_in_transaction_session_timeout": "120s",
                },
            },
        )
        event.listen(self.engine.sync_engine, "checkout", _refuse_closed)
        event.listen(self.engine.sync_engine, "before_cursor_execute", _explain, retval=True)
        # Where there is a queue at all.
        self.ring: Ring | None = None

    def begin(self, scope: Scope | None, *, autocommit: bool = False) -> Tx:
        return Tx(self.engine, scope, autocommit=autocommit, ring=self.ring)

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

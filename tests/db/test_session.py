"""One transaction per request, scoped to a tenant: what the session adds, checks and refuses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, cast

import asyncpg
import pytest
from sqlalchemy import Select, delete, exists, func, insert, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlalchemy.pool import QueuePool

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db import fast
from db.models import Invitation, Tenant, User
from db.session import ALL_TENANTS, CrossTenant, Database, Tx, Unscoped
from tests.stores import Stores
from tests.world import Client, World

_COUNT = "SELECT count(*) FROM invitations WHERE ($1::text IS NULL OR tenant_id = $1)"


class Pair(NamedTuple):
    """Two tenants, each with one user and one invitation that the other's user is named in."""

    mine: Client
    theirs: Client
    my_row: str
    their_row: str


def _invitation(tenant_id: str | None, invited_by: str | None = None) -> Invitation:
    return Invitation(
        id=new_id("inv"),
        tenant_id=tenant_id,
        email=f"{new_id('mail')}@example.com",
        role="viewer",
        token_hash=new_id("hash"),
        invited_by=invited_by,
        expires_at=clock.now() + timedelta(days=7),
    )


@pytest.fixture
async def pair(world: World, services: Services) -> Pair:
    mine, theirs = await world.user(), await world.user()
    my_row = _invitation(mine.tenant_id, mine.user_id)
    their_row = _invitation(theirs.tenant_id, mine.user_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all([my_row, their_row])
    return Pair(mine, theirs, my_row.id, their_row.id)


@pytest.fixture
async def database(stores: Stores) -> AsyncIterator[Database]:
    """A pool of its own, for tests that count or break connections."""
    made = Database(stores.settings.sqlalchemy_url, pool_size=3)
    yield made
    await made.close()


def _pool(db: Database) -> QueuePool:
    return cast("QueuePool", db.engine.sync_engine.pool)


async def _exists(services: Services, row_id: str) -> bool:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await (await tx.session()).get(Invitation, row_id) is not None


async def _email_of(services: Services, row_id: str) -> str:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get(Invitation, row_id)
    assert row is not None
    return row.email


# Reading: no statement names a tenant


def _by_alias() -> Select[str]:
    return select(aliased(Invitation).id)


def _by_subquery() -> Select[str]:
    inner = select(Invitation).subquery()
    return select(inner.c.id)


def _by_cte() -> Select[str]:
    inner = select(Invitation.id).cte()
    return select(inner.c.id)


def _by_in() -> Select[str]:
    return select(Invitation.id).where(Invitation.id.in_(select(aliased(Invitation).id)))


READS: dict[str, Callable[[], Select[str]]] = {
    "column": lambda: select(Invitation.id),
    "alias": _by_alias,
    "subquery": _by_subquery,
    "cte": _by_cte,
    "in": _by_in,
    "join": lambda: select(Invitation.id).join(User, User.id == Invitation.invited_by),
    "joined": lambda: (
        select(Invitation.id)
        .select_from(Tenant)
        .join(Invitation, Invitation.tenant_id == Tenant.id)
    ),
}


@pytest.mark.parametrize("name", READS)
async def test_a_read_that_forgets_the_tenant_finds_its_own_rows_only(
    services: Services, pair: Pair, name: str
) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        found = list(await (await tx.session()).scalars(READS[name]()))
    assert found == [pair.my_row]


@pytest.mark.parametrize("name", READS)
async def test_all_tenants_reads_every_tenants_rows(
    services: Services, pair: Pair, name: str
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        found = set(await (await tx.session()).scalars(READS[name]()))
    assert {pair.my_row, pair.their_row} <= found


async def test_a_select_of_whole_rows_finds_its_own_only(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        found = await (await tx.session()).scalars(select(Invitation))
        assert [row.id for row in found] == [pair.my_row]


async def test_a_joined_table_is_scoped_as_well(services: Services, pair: Pair) -> None:
    """Their invitation names my user: my user must not lead to it."""
    wanted = select(Invitation.id).select_from(User)
    wanted = wanted.join(Invitation, Invitation.invited_by == User.id)
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert list(await (await tx.session()).scalars(wanted)) == [pair.my_row]


async def test_a_count_counts_its_own_rows_only(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        session = await tx.session()
        assert await session.scalar(select(func.count()).select_from(Invitation)) == 1


async def test_a_count_of_a_subquery_counts_its_own_rows_only(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        inner = select(Invitation).subquery()
        assert await (await tx.session()).scalar(select(func.count()).select_from(inner)) == 1


async def test_exists_does_not_see_another_tenants_row(services: Services, pair: Pair) -> None:
    wanted = select(Tenant.id).where(exists(select(Invitation.id).where(_of(Tenant.id))))
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert list(await (await tx.session()).scalars(wanted)) == [pair.mine.tenant_id]


def _of(tenant_id: Any) -> Any:
    return Invitation.tenant_id == tenant_id


async def test_a_union_finds_its_own_rows_only(services: Services, pair: Pair) -> None:
    wanted = select(Invitation.id).union_all(select(Invitation.id))
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert set(await (await tx.session()).scalars(wanted)) == {pair.my_row}


async def test_get_by_id_does_not_find_another_tenants_row(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert await (await tx.session()).get(Invitation, pair.their_row) is None


async def test_get_by_id_finds_ones_own_row(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert await (await tx.session()).get(Invitation, pair.my_row) is not None


async def test_scopes_do_not_leak_through_the_statement_cache(
    services: Services, pair: Pair
) -> None:
    found: list[list[str]] = []
    for tenant_id in (pair.mine.tenant_id, pair.theirs.tenant_id, pair.mine.tenant_id):
        async with services.db.tx(tenant_id) as tx:
            found.append(list(await (await tx.session()).scalars(select(Invitation.id))))
    assert found == [[pair.my_row], [pair.their_row], [pair.my_row]]


async def test_a_forgetful_route_shows_each_tenant_its_own_rows(pair: Pair) -> None:
    shown = [(await caller.get("/test/forgetful")).json() for caller in (pair.mine, pair.theirs)]
    assert shown == [[pair.my_row], [pair.their_row]]


async def test_a_forgetful_route_shows_super_admin_all_rows(
    pair: Pair, super_admin: Client
) -> None:
    answer = await super_admin.get("/test/forgetful")
    assert {pair.my_row, pair.their_row} <= set(answer.json())


async def test_a_forgetful_route_shows_a_narrowed_super_admin_one_tenant(
    pair: Pair, super_admin: Client
) -> None:
    narrowed = {"x-tenant-id": pair.theirs.tenant_id}
    answer = await super_admin.get("/test/forgetful", headers=narrowed)
    assert answer.json() == [pair.their_row]


# Writing many rows at once


async def test_a_bulk_update_leaves_other_tenants_alone(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        await (await tx.session()).execute(update(Invitation).values(email="hit@example.com"))
    assert await _email_of(services, pair.their_row) != "hit@example.com"


async def test_a_bulk_update_reaches_ones_own_rows(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        await (await tx.session()).execute(update(Invitation).values(email="hit@example.com"))
    assert await _email_of(services, pair.my_row) == "hit@example.com"


async def test_a_bulk_update_by_key_leaves_other_tenants_alone(
    services: Services, pair: Pair
) -> None:
    """SQLAlchemy's other bulk form: a list of keys and values, with no WHERE of its own."""
    changes = [{"id": pair.their_row, "email": "hit@example.com"}]
    # Refusing is as good as finding nothing.
    with suppress(CrossTenant):
        async with services.db.tx(pair.mine.tenant_id) as tx:
            await (await tx.session()).execute(update(Invitation), changes)
    assert await _email_of(services, pair.their_row) != "hit@example.com"


async def test_a_bulk_update_cannot_move_rows_to_another_tenant(
    services: Services, pair: Pair
) -> None:
    move = update(Invitation).values(tenant_id=pair.theirs.tenant_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(pair.mine.tenant_id) as tx:
            await (await tx.session()).execute(move)


async def test_a_bulk_delete_leaves_other_tenants_alone(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        await (await tx.session()).execute(delete(Invitation))
    assert (await _exists(services, pair.my_row), await _exists(services, pair.their_row)) == (
        False,
        True,
    )


# Adding and changing rows


async def test_add_fills_in_the_tenant(services: Services, pair: Pair) -> None:
    row = _invitation(None)
    async with services.db.tx(pair.mine.tenant_id) as tx:
        (await tx.session()).add(row)
    assert row.tenant_id == pair.mine.tenant_id


async def test_add_of_another_tenants_row_is_refused(services: Services, pair: Pair) -> None:
    row = _invitation(pair.theirs.tenant_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(pair.mine.tenant_id) as tx:
            (await tx.session()).add(row)
    assert not await _exists(services, row.id)


async def test_a_row_cannot_change_its_tenant(services: Services, pair: Pair) -> None:
    async def move() -> None:
        async with services.db.tx(pair.mine.tenant_id) as tx:
            row = await (await tx.session()).get_one(Invitation, pair.my_row)
            row.tenant_id = pair.theirs.tenant_id

    with pytest.raises(CrossTenant):
        await move()


async def test_a_row_of_another_session_cannot_be_deleted_through_this_one(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(Invitation, pair.their_row)
    with pytest.raises(CrossTenant):
        async with services.db.tx(pair.mine.tenant_id) as tx:
            await (await tx.session()).delete(row)
    assert await _exists(services, pair.their_row)


def _values(tenant_id: str) -> dict[str, Any]:
    return {
        "id": new_id("inv"),
        "tenant_id": tenant_id,
        "email": "a@example.com",
        "role": "viewer",
        "token_hash": new_id("hash"),
        "expires_at": clock.now(),
    }


@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
@pytest.mark.parametrize("make", [insert, postgresql.insert], ids=["plain", "postgresql"])
async def test_an_insert_statement_of_tenant_rows_is_refused(
    services: Services, pair: Pair, make: Callable[..., Any], *, own: bool
) -> None:
    values = _values((pair.mine if own else pair.theirs).tenant_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(pair.mine.tenant_id) as tx:
            await (await tx.session()).execute(make(Invitation).values(**values))


# No scope, all scopes


UNSCOPED: dict[str, Callable[[AsyncSession], Awaitable[object]]] = {
    "select": lambda session: session.scalars(select(Invitation)),
    "column": lambda session: session.scalars(select(Invitation.id)),
    "get": lambda session: session.get(Invitation, "inv_x"),
    "count": lambda session: session.scalar(select(func.count()).select_from(Invitation)),
    "count of a subquery": lambda session: session.scalar(
        select(func.count()).select_from(select(Invitation).subquery())
    ),
    "join": lambda session: session.scalars(
        select(Tenant.id).join(Invitation, Invitation.tenant_id == Tenant.id)
    ),
    "exists": lambda session: session.scalar(select(exists(select(Invitation.id)))),
    "update": lambda session: session.execute(update(Invitation).values(role="viewer")),
    "delete": lambda session: session.execute(delete(Invitation)),
    "insert": lambda session: session.execute(insert(Invitation).values(**_values("ten_x"))),
}


@pytest.mark.parametrize("name", UNSCOPED)
async def test_without_a_scope_tenant_rows_are_out_of_reach(services: Services, name: str) -> None:
    tx = services.db.begin(None)
    try:
        with pytest.raises(Unscoped):
            await UNSCOPED[name](await tx.session())
    finally:
        await tx.rollback()


async def test_without_a_scope_nothing_can_be_added(services: Services, pair: Pair) -> None:
    with pytest.raises(Unscoped):
        async with services.db.tx(None) as tx:
            (await tx.session()).add(_invitation(pair.mine.tenant_id))


async def test_without_a_scope_tables_of_no_tenant_can_be_read(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(None) as tx:
        assert await (await tx.session()).get(Tenant, pair.mine.tenant_id) is not None


async def test_without_a_scope_plain_sql_has_no_tenant_to_name(services: Services) -> None:
    tx = services.db.begin(None)
    with pytest.raises(Unscoped):
        fast.tenant_of(tx)


async def test_all_tenants_stands_for_no_condition_in_plain_sql(services: Services) -> None:
    assert fast.tenant_of(services.db.begin(ALL_TENANTS)) is None


async def test_all_tenants_may_add_for_any_tenant(services: Services, pair: Pair) -> None:
    row = _invitation(pair.theirs.tenant_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add(row)
    assert await _exists(services, row.id)


async def test_a_transaction_can_name_its_tenant_once_it_is_known(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(None) as tx:
        session = await tx.session()
        tx.enter(pair.mine.tenant_id)
        assert list(await session.scalars(select(Invitation.id))) == [pair.my_row]


async def test_entering_the_same_tenant_again_is_harmless(services: Services) -> None:
    tx = services.db.begin(None)
    tx.enter("ten_a")
    tx.enter("ten_a")
    assert tx.scope == "ten_a"


async def test_a_transaction_cannot_go_over_to_another_tenant(services: Services) -> None:
    tx = services.db.begin(None)
    tx.enter("ten_a")
    with pytest.raises(CrossTenant):
        tx.enter("ten_b")


async def test_a_transaction_of_one_tenant_cannot_widen_to_all(services: Services) -> None:
    tx = services.db.begin("ten_a")
    with pytest.raises(CrossTenant):
        tx.enter(ALL_TENANTS)


# Plain SQL


async def test_plain_sql_gets_the_tenant_first(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert await fast.value(tx, fast.tenant_of(tx), _COUNT) == 1


async def test_plain_sql_tells_how_many_rows_it_touched(services: Services, pair: Pair) -> None:
    sql = "UPDATE invitations SET role = $2 WHERE tenant_id = $1"
    async with services.db.tx(pair.mine.tenant_id) as tx:
        assert await fast.execute(tx, pair.mine.tenant_id, sql, "agent_user") == 1


async def test_plain_sql_gives_one_row_or_none(services: Services, pair: Pair) -> None:
    sql = "SELECT id FROM invitations WHERE tenant_id = $1 AND id = $2"
    async with services.db.tx(pair.mine.tenant_id, autocommit=True) as tx:
        mine = await fast.row(tx, pair.mine.tenant_id, sql, pair.my_row)
        theirs = await fast.row(tx, pair.mine.tenant_id, sql, pair.their_row)
    assert mine is not None
    assert (mine["id"], theirs) == (pair.my_row, None)


async def test_plain_sql_gives_rows_as_a_list(services: Services, pair: Pair) -> None:
    sql = "SELECT id FROM invitations WHERE tenant_id = $1"
    async with services.db.tx(pair.mine.tenant_id, autocommit=True) as tx:
        found = await fast.rows(tx, pair.mine.tenant_id, sql)
    assert [row["id"] for row in found] == [pair.my_row]


async def test_many_runs_a_statement_once_per_set_of_values(services: Services, pair: Pair) -> None:
    sql = "UPDATE invitations SET email = $2 WHERE id = $1"
    async with services.db.tx(ALL_TENANTS) as tx:
        await fast.many(tx, sql, [(pair.my_row, "a@x.example"), (pair.their_row, "b@x.example")])
    emails = [await _email_of(services, row) for row in (pair.my_row, pair.their_row)]
    assert emails == ["a@x.example", "b@x.example"]


# One transaction


async def test_plain_sql_sees_rows_that_the_session_has_not_committed(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        (await tx.session()).add(_invitation(None))
        assert await fast.value(tx, fast.tenant_of(tx), _COUNT) == 2


async def test_the_session_sees_what_plain_sql_wrote(services: Services, pair: Pair) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        await (await tx.raw()).execute(
            "UPDATE invitations SET email = 'raw@example.com' WHERE id = $1", pair.my_row
        )
        row = await (await tx.session()).get_one(Invitation, pair.my_row)
        assert row.email == "raw@example.com"


async def test_both_ways_of_writing_are_in_the_same_transaction(
    services: Services, pair: Pair
) -> None:
    async with services.db.tx(pair.mine.tenant_id) as tx:
        by_session = await (await tx.session()).scalar(text("SELECT txid_current()"))
        assert await (await tx.raw()).fetchval("SELECT txid_current()") == by_session


@pytest.mark.parametrize("first", ["session", "raw"])
async def test_a_rollback_undoes_both_ways_of_writing(
    services: Services, pair: Pair, first: str
) -> None:
    by_session = _invitation(pair.mine.tenant_id)
    tx = services.db.begin(pair.mine.tenant_id)

    async def write_by_session() -> None:
        (await tx.session()).add(by_session)

    async def write_raw() -> None:
        await (await tx.raw()).execute("DELETE FROM invitations WHERE id = $1", pair.my_row)

    steps = [write_by_session, write_raw]
    for step in steps if first == "session" else reversed(steps):
        await step()
    await tx.rollback()
    assert (await _exists(services, by_session.id), await _exists(services, pair.my_row)) == (
        False,
        True,
    )


async def test_an_error_in_the_block_undoes_it(services: Services, pair: Pair) -> None:
    row = _invitation(None)

    async def write_and_fail() -> None:
        async with services.db.tx(pair.mine.tenant_id) as tx:
            session = await tx.session()
            session.add(row)
            await session.flush()
            raise LookupError

    with pytest.raises(LookupError):
        await write_and_fail()
    assert not await _exists(services, row.id)


async def test_an_error_of_postgres_leaves_the_connection_usable(
    database: Database, pair: Pair
) -> None:
    for _ in range(_pool(database).size() + 1):
        with pytest.raises(asyncpg.PostgresError):
            async with database.tx(pair.mine.tenant_id) as tx:
                await (await tx.raw()).execute("SELECT 1 / 0")
    async with database.tx(pair.mine.tenant_id) as tx:
        assert await (await tx.raw()).fetchval("SELECT 1") == 1


async def test_nothing_is_visible_to_others_before_the_commit(
    services: Services, pair: Pair
) -> None:
    row = _invitation(None)
    async with services.db.tx(pair.mine.tenant_id) as tx:
        session = await tx.session()
        session.add(row)
        await session.flush()
        assert not await _exists(services, row.id)


async def test_what_waits_for_the_commit_finds_the_row_visible_to_others(
    services: Services, pair: Pair
) -> None:
    row, seen = _invitation(None), []

    async def look() -> None:
        seen.append(await _exists(services, row.id))

    async with services.db.tx(pair.mine.tenant_id) as tx:
        (await tx.session()).add(row)
        tx.after_commit.append(look)
    assert seen == [True]


async def _note(notes: list[str], text: str) -> None:
    notes.append(text)


async def test_a_rollback_runs_nothing_that_waits_for_the_commit(services: Services) -> None:
    notes: list[str] = []
    tx = services.db.begin(ALL_TENANTS)
    await tx.raw()
    tx.after_commit.append(partial(_note, notes, "ran"))
    await tx.rollback()
    await tx.commit()
    assert notes == []


async def test_a_failed_commit_runs_nothing_that_waits_for_it(
    services: Services, pair: Pair
) -> None:
    notes: list[str] = []

    async def write_a_row_that_does_not_fit() -> None:
        async with services.db.tx(pair.mine.tenant_id) as tx:
            tx.after_commit.append(partial(_note, notes, "ran"))
            (await tx.session()).add(_invitation(None, invited_by="usr_nobody"))

    with pytest.raises(Exception, match="foreign key"):
        await write_a_row_that_does_not_fit()
    assert notes == []


async def test_what_waits_for_the_commit_runs_in_order(services: Services) -> None:
    notes: list[str] = []
    async with services.db.tx(ALL_TENANTS) as tx:
        tx.after_commit += [partial(_note, notes, word) for word in ("first", "second")]
    assert notes == ["first", "second"]


async def test_a_read_opens_no_transaction(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.fetchval("SELECT 1")
        assert not raw.is_in_transaction()


async def test_a_write_opens_a_transaction(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        assert (await tx.raw()).is_in_transaction()


async def test_a_read_through_the_session_shares_its_transaction_with_plain_sql(
    services: Services,
) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.session()).scalar(select(Tenant.id).limit(1))
        assert (await tx.raw()).is_in_transaction()


# The pool


async def test_nothing_is_borrowed_before_the_first_statement(database: Database) -> None:
    tx = database.begin(ALL_TENANTS)
    tx.enter(ALL_TENANTS)
    assert _pool(database).checkedout() == 0
    await tx.commit()


async def test_one_connection_serves_both_ways_of_writing(database: Database) -> None:
    async with database.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).fetchval("SELECT 1")
        await (await tx.session()).scalar(select(Tenant.id).limit(1))
        assert _pool(database).checkedout() == 1


async def _read(tx: Tx) -> None:
    await (await tx.raw()).fetchval("SELECT 1")


async def _select(tx: Tx) -> None:
    await (await tx.session()).scalar(select(Tenant.id).limit(1))


@pytest.mark.parametrize("autocommit", [True, False], ids=["read", "write"])
@pytest.mark.parametrize("use", [_read, _select], ids=["raw", "session"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_connection_goes_back_when_the_transaction_ends(
    database: Database, use: Callable[[Tx], Awaitable[None]], end: str, *, autocommit: bool
) -> None:
    tx = database.begin(ALL_TENANTS, autocommit=autocommit)
    await use(tx)
    await (tx.commit() if end == "commit" else tx.rollback())
    assert _pool(database).checkedout() == 0


async def test_a_connection_that_is_given_back_is_in_no_transaction(database: Database) -> None:
    tx = database.begin(ALL_TENANTS)
    raw = await tx.raw()
    await tx.rollback()
    assert not raw.is_in_transaction()


async def test_more_transactions_than_connections_wait_their_turn(database: Database) -> None:
    async def hold() -> int:
        async with database.tx(ALL_TENANTS) as tx:
            pid: int = await (await tx.raw()).fetchval("SELECT pg_backend_pid() FROM pg_sleep(0)")
            return pid

    pids = await asyncio.gather(*(hold() for _ in range(12)))
    assert len(set(pids)) <= _pool(database).size()


async def _fill(db: Database) -> list[asyncpg.Connection]:
    """Have every connection of the pool open and waiting in it."""
    held = [db.begin(ALL_TENANTS) for _ in range(_pool(db).size())]
    opened = [await tx.raw() for tx in held]
    for tx in held:
        await tx.rollback()
    return opened


async def _terminate(services: Services, connections: list[asyncpg.Connection]) -> None:
    """End them on the server's side, and return when asyncpg has noticed."""
    gone = [asyncio.Event() for _ in connections]
    for connection, event in zip(connections, gone, strict=True):
        connection.add_termination_listener(partial(_set, event))
    pids = [connection.get_server_pid() for connection in connections]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.raw()).execute(
            "SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids
        )
    async with asyncio.timeout(10):
        for event in gone:
            await event.wait()


def _set(event: asyncio.Event, _connection: asyncpg.Connection) -> None:
    event.set()


@pytest.mark.parametrize("autocommit", [True, False], ids=["read", "write"])
@pytest.mark.parametrize("use", [_read, _select], ids=["raw", "session"])
async def test_the_pool_survives_the_loss_of_its_connections(
    services: Services,
    database: Database,
    use: Callable[[Tx], Awaitable[None]],
    *,
    autocommit: bool,
) -> None:
    lost = await _fill(database)
    await _terminate(services, lost)
    for _ in lost:
        async with database.tx(ALL_TENANTS, autocommit=autocommit) as tx:
            await use(tx)


async def test_a_connection_lost_inside_a_transaction_goes_back_to_the_pool(
    services: Services, database: Database
) -> None:
    tx = database.begin(ALL_TENANTS)
    await _terminate(services, [await tx.raw()])
    await tx.rollback()
    assert _pool(database).checkedout() == 0


async def test_the_next_transaction_works_after_one_lost_its_connection(
    services: Services, database: Database
) -> None:
    tx = database.begin(ALL_TENANTS)
    await _terminate(services, [await tx.raw()])
    await tx.rollback()
    async with database.tx(ALL_TENANTS) as another:
        assert await (await another.raw()).fetchval("SELECT 1") == 1


async def _age(db: Database) -> list[asyncpg.Connection]:
    """Fill the pool, and have it find every connection too old to be used again."""
    opened = await _fill(db)
    pool: Any = _pool(db)
    pool._recycle = 0
    return opened


async def test_a_connection_past_its_age_is_replaced_without_an_error(database: Database) -> None:
    old = await _age(database)
    async with database.tx(ALL_TENANTS) as tx:
        assert await tx.raw() not in old


@pytest.mark.parametrize("harm", ["lost", "old"])
async def test_replacing_connections_loses_no_place_in_the_pool(
    services: Services, database: Database, harm: str
) -> None:
    if harm == "lost":
        await _terminate(services, await _fill(database))
    else:
        await _age(database)
    for _ in range(_pool(database).size()):
        async with database.tx(ALL_TENANTS) as tx:
            await _read(tx)
    assert _pool(database).checkedout() == 0


@pytest.mark.parametrize("turns", range(12))
async def test_a_transaction_cancelled_at_any_point_leaves_a_clean_connection(
    stores: Stores, world: World, turns: int
) -> None:
    """With one connection in the pool, whoever comes next gets the very same one."""
    tenant = await world.tenant()
    db = Database(stores.settings.sqlalchemy_url, pool_size=1)

    async def write() -> None:
        async with db.tx(tenant) as tx:
            raw = await tx.raw()
            await raw.execute("UPDATE tenants SET name = 'cancelled' WHERE id = $1", tenant)

    try:
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            await (await tx.raw()).fetchval("SELECT 1")
        task = asyncio.create_task(write())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with db.tx(tenant) as tx:
            raw = await tx.raw()
            await raw.execute("UPDATE tenants SET name = 'after' WHERE id = $1", tenant)
        async with world.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            assert await raw.fetchval("SELECT name FROM tenants WHERE id = $1", tenant) == "after"
    finally:
        await db.close()


async def test_a_table_asked_for_without_its_class_is_refused(
    world: World, services: Services
) -> None:
    async with services.db.tx(await world.tenant(), autocommit=True) as tx:
        session = await tx.session()
        with pytest.raises(Unscoped):
            await session.execute(select(Invitation.__table__))

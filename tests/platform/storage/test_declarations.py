"""Every table declares whether its rows count toward the quota, and the database counts them so."""

from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from app.areas import AREAS
from app.domain.platform.storage.schemas import StoredBytes
from db.base import Base
from db.storage_quota import PLATFORM_TABLES, CountedTable, UncountedTable
from tests.platform.storage.triggers import (
    Trigger,
    build_triggers,
    list_counted,
    list_tables,
    read_triggers,
)
from tests.stores import Stores


def _owners() -> dict[str, str]:
    """Returns the file that has the model of each table."""
    return {
        mapper.class_.__tablename__: mapper.class_.__module__.rpartition(".")[2]
        for mapper in Base.registry.mappers
    }


def test_every_table_declares_its_bytes_or_why_it_does_not_count() -> None:
    declared = Counter(table.table for table in list_tables())
    assert set(_owners()) == set(Base.metadata.tables)
    missing = set(Base.metadata.tables) - set(declared)
    assert missing == set(), "add them to the `tables` of their area"
    assert set(declared) - set(Base.metadata.tables) == set()
    assert [table for table, count in declared.items() if count > 1] == []


def test_tables_are_declared_by_the_area_that_owns_them() -> None:
    owners, names = _owners(), {area.name for area in AREAS}
    wrong = [
        (area.name, table.table)
        for area in AREAS
        for table in area.tables
        if owners[table.table] != area.name
    ]
    assert wrong == []
    assert [table.table for table in PLATFORM_TABLES if owners[table.table] in names] == []


def test_every_reason_says_something() -> None:
    uncounted = [table for table in list_tables() if isinstance(table, UncountedTable)]
    assert [table.table for table in uncounted if not table.reason.strip()] == []


def test_tenants_see_every_kind() -> None:
    kinds = {table.kind for table in list_counted()}
    assert kinds == set(StoredBytes.__struct_fields__) - {"files"}


@pytest.fixture(scope="module")
async def connection(stores: Stores) -> AsyncIterator[asyncpg.Connection]:
    """A migrated database of its own: nothing else waits while triggers are replaced."""
    settings = await stores.create_database()
    connection = await asyncpg.connect(settings.database_url)
    yield connection
    await connection.close()


async def _create_triggers(
    connection: asyncpg.Connection, tables: list[CountedTable]
) -> dict[str, Trigger]:
    """Returns the triggers that Postgres makes of a declaration."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        for name in await read_triggers(connection):
            await connection.execute(f"DROP FUNCTION {name}() CASCADE")
        for table in tables:
            for sql in build_triggers(table).values():
                await connection.execute(sql)
        return await read_triggers(connection)
    finally:
        await transaction.rollback()


async def test_the_database_counts_as_declared(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    actual = await read_triggers(connection)
    expected = await _create_triggers(connection, list_counted())
    assert set(actual) - set(expected) == set(), "a migration must drop these functions"
    for table in list_counted():
        for name, sql in build_triggers(table).items():
            with subtests.test(trigger=name):
                assert actual.get(name) == expected[name], (
                    f"a migration must run {sql} and count the stored rows"
                )


_CHANGES: list[tuple[str, dict[str, object]]] = [
    ("agents", {"kind": "forms"}),
    ("agents", {"content": "octet_length(t.system_prompt)"}),
    ("agents", {"changes": "OLD.system_prompt <> NEW.system_prompt"}),
    ("agents", {"changes": ""}),
    ("agents", {"rows": 2}),
    ("chat_jobs", {"from_end": False}),
]


async def test_a_changed_declaration_differs_from_the_database(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for table, change in _CHANGES:
        with subtests.test(table=table, change=change):
            (counted,) = (counted for counted in list_counted() if counted.table == table)
            actual = await read_triggers(connection)
            assert build_triggers(counted).keys() <= actual.keys()
            changed = await _create_triggers(
                connection, [msgspec.structs.replace(counted, **change)]
            )
            assert {name: actual[name] for name in build_triggers(counted)} != changed

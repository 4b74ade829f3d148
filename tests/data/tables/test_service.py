"""The interface for other areas, within a transaction of theirs."""

from typing import Any

import pytest

from app.domain.data.tables import row_queries, rows, service
from app.domain.data.tables.columns import Table
from app.domain.data.tables.errors import (
    DataTableNotFound,
    NotUnique,
    RowNotFound,
    RowQuotaExceeded,
    RowsTooLarge,
)
from app.domain.data.tables.filters import Filters
from app.domain.data.tables.schemas import RowView
from app.kit.errors import Invalid
from app.services import Services
from db.fast import Row
from db.session import Tx
from tests.assertions import refused
from tests.data.tables.api import TABLES, add_rows, create_table, rows_path
from tests.database import fetch_rows
from tests.world import Client, World

COLUMNS: list[dict[str, Any]] = [
    {"name": "code", "type": "text", "unique": True},
    {"name": "n", "type": "integer"},
]


async def _query(
    tx: Tx, tenant_id: str, table_id: str, filters: Filters | None = None
) -> list[RowView]:
    return await service.query_rows(tx, tenant_id, table_id, filters or {}, sort=None, limit=100)


async def test_a_source_inserts_one_row(developer: Client, services: Services) -> None:
    table_id = (await create_table(developer, COLUMNS))["id"]
    ids = set()
    for _ in range(2):
        async with services.db.tx(developer.tenant_id) as tx:
            row = await service.insert_row(
                tx, developer.tenant_id, table_id, {"n": 1}, source="node-1"
            )
            ids.add(row.id)
            again = {"n": 2}
            same = await service.insert_row(
                tx, developer.tenant_id, table_id, again, source="node-1"
            )
            assert same == row
    assert len(ids) == 1


async def test_a_row_that_another_request_stores_meanwhile_is_named_as_a_whole(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_none(*_: object) -> None:
        """Stands for another transaction that ends after this search."""

    monkeypatch.setattr(row_queries, "find_by_source", find_none)
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        await service.insert_row(tx, tenant_id, table_id, {"n": 1}, source="node-2")
        with pytest.raises(NotUnique) as caught:
            await service.insert_row(tx, tenant_id, table_id, {"n": 1}, source="node-2")
    message = "another request stored this row at the same time; try again"
    assert caught.value.details == {"values": message}


async def test_an_error_leaves_the_transaction_usable(
    developer: Client, services: Services
) -> None:
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        await service.insert_row(tx, tenant_id, table_id, {"code": "a", "n": 1})
        other = await service.insert_row(tx, tenant_id, table_id, {"code": "b", "n": 2})
        with pytest.raises(NotUnique):
            await service.insert_row(tx, tenant_id, table_id, {"code": "a"})
        with pytest.raises(NotUnique):
            await service.update_row(tx, tenant_id, table_id, other.id, {"code": "a"})
        for text in ("a\0b", "\ud800"):
            with pytest.raises(Invalid):
                await service.insert_row(tx, tenant_id, table_id, {"code": text})
        for filters in ({"none": 1}, {"n": {"like": 1}}, {"n": "x"}, {"n": {"in": 1}}):
            with pytest.raises(Invalid):
                await service.query_rows(tx, tenant_id, table_id, filters, sort=None, limit=5)
        with pytest.raises(RowNotFound):
            await service.delete_row(tx, tenant_id, table_id, "row_none")
        assert len(await _query(tx, tenant_id, table_id)) == 2


async def test_rows_are_queried_changed_and_deleted_by_filters(
    developer: Client, services: Services
) -> None:
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        table = await service.load_table(tx, tenant_id, table_id)
        assert [column.name for column in table.columns] == ["code", "n"]
        for n in range(5):
            await service.insert_row(tx, tenant_id, table_id, {"n": n})
        few = await service.query_rows(
            tx, tenant_id, table_id, {"n": {"gte": 1, "lt": 4}}, sort="-n", limit=2
        )
        assert [row.values["n"] for row in few] == [3, 2]
        assert await service.update_rows(tx, tenant_id, table_id, {"n": {"in": [0, 1]}}, {"n": 9})
        assert len(await _query(tx, tenant_id, table_id, {"n": 9})) == 2
        assert await service.delete_rows(tx, tenant_id, table_id, {"n": 9}) == 2
        assert len(await _query(tx, tenant_id, table_id, {"code": None})) == 3
    types = await fetch_rows(
        services,
        "SELECT type, count(*) AS n FROM event_log WHERE tenant_id = $1 GROUP BY type",
        tenant_id,
    )
    assert {row["type"]: row["n"] for row in types} == {
        "data_table.created": 1,
        "data_table.row.created": 5,
        "data_table.row.updated": 2,
        "data_table.row.deleted": 2,
    }


async def test_a_table_of_another_tenant_is_not_found(
    developer: Client, services: Services, world: World
) -> None:
    table_id, other = (await create_table(developer, COLUMNS))["id"], await world.tenant()
    async with services.db.tx(other) as tx:
        with pytest.raises(DataTableNotFound):
            await service.insert_row(tx, other, table_id, {"n": 1})


async def test_rows_are_changed_in_batches_all_or_none(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch bounds how many decoded rows are in memory."""
    monkeypatch.setattr(rows, "_BATCH", 2)
    sizes: list[int] = []
    lock = row_queries.lock

    async def record(tx: Tx, table: Table, row_ids: list[str]) -> list[Row]:
        sizes.append(len(row_ids))
        return await lock(tx, table, row_ids)

    monkeypatch.setattr(row_queries, "lock", record)
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        for n in range(5):
            await service.insert_row(tx, tenant_id, table_id, {"n": n})
        await service.insert_row(tx, tenant_id, table_id, {"code": "a", "n": 9})
        assert await service.update_rows(tx, tenant_id, table_id, {"n": {"lt": 5}}, {"n": 1}) == 5
        assert sizes == [2, 2, 1]
        some = {"n": 1, "code": {"is_null": True}}
        with pytest.raises(NotUnique):
            await service.update_rows(tx, tenant_id, table_id, some, {"n": 7, "code": "a"})
        assert len(await _query(tx, tenant_id, table_id, {"n": 1})) == 5
        assert await service.delete_rows(tx, tenant_id, table_id, {"n": 1}) == 5
        assert len(await _query(tx, tenant_id, table_id)) == 1


async def test_rows_that_are_too_large_together_are_not_read(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_QUERY_BYTES", 2 * len('{"c1": "aaa", "c2": 1}'))
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        for code in ("aaa", "bbb", "ccc"):
            await service.insert_row(tx, tenant_id, table_id, {"code": code, "n": 1})
        for filters, sort in (({}, None), ({}, "code"), ({"n": 1}, None), ({"n": 1}, "code")):
            query = (tx, tenant_id, table_id, filters)
            with pytest.raises(RowsTooLarge):
                await service.query_rows(*query, sort=sort, limit=3)
            found = await service.query_rows(*query, sort=sort, limit=2)
            codes = ["aaa", "bbb"] if sort else ["ccc", "bbb"]
            assert [row.values["code"] for row in found] == codes


async def test_a_tenant_has_as_many_rows_as_its_plan_allows(
    services: Services, world: World
) -> None:
    owner = await world.user(tenant_id=await world.tenant(limits={"data_rows": 3}))
    first, second = [await create_table(owner, COLUMNS) for _ in range(2)]
    await add_rows(owner, first, {"n": 1}, {"n": 2})
    answer = await owner.post(rows_path(second), {"rows": [{"n": 3}, {"n": 4}]})
    error = refused(answer, 409, "row_quota_exceeded")
    assert error["details"] == {"used_rows": 2, "limit_rows": 3}
    await add_rows(owner, second, {"n": 3})
    async with services.db.tx(owner.tenant_id) as tx:
        with pytest.raises(RowQuotaExceeded):
            await service.insert_row(tx, owner.tenant_id, second["id"], {"n": 4})
    # The rows of a deleted table do not count, although they are still there.
    await owner.delete(f"{TABLES}/{first['id']}")
    await add_rows(owner, second, {"n": 4}, {"n": 5})


async def test_more_than_a_thousand_rows_are_not_changed_at_once(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.data.tables.rows.MAX_CHANGED_ROWS", 2)
    tenant_id, table_id = developer.tenant_id, (await create_table(developer, COLUMNS))["id"]
    async with services.db.tx(tenant_id) as tx:
        for n in range(3):
            await service.insert_row(tx, tenant_id, table_id, {"n": n})
        with pytest.raises(Invalid):
            await service.delete_rows(tx, tenant_id, table_id, {})
        assert await service.delete_rows(tx, tenant_id, table_id, {"n": {"lt": 2}}) == 2

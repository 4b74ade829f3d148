"""References between the rows of two tenants, which no request stores: a GET shows nothing of the
other tenant even then, since every table of a statement has its tenant condition.
"""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import product as cartesian_product

import asyncpg
import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.database import run_sql
from tests.matrix import seeds
from tests.matrix.routes import iterate_texts, list_routes
from tests.matrix.seeds import MARKER, VALID_VALUES, Rows, list_values
from tests.world import World

_MARKED = re.compile(rf"\w+-{MARKER}-\d+")


@pytest.fixture
async def tenants(product: World) -> AsyncIterator[tuple[Rows, Rows]]:
    """Two tenants with a row in every table."""
    services = product.services
    own, other = [await _insert_rows(services, await product.tenant()) for _ in range(2)]
    yield own, other
    for rows in (own, other):
        await seeds.delete_rows(services, rows["tenants"]["id"])


async def _insert_rows(services: Services, tenant_id: str) -> Rows:
    """All rows belong to one trace."""
    rows = await seeds.insert_rows(services, tenant_id)
    correlation_id = rows["event_log"]["correlation_id"]
    for table, row in rows.items():
        if "correlation_id" in row:
            sql = f"UPDATE {table} SET correlation_id = $2 WHERE tenant_id = $1"
            await run_sql(services, sql, tenant_id, correlation_id)
            row["correlation_id"] = correlation_id
    # The trace shows the host.
    with_host = "UPDATE webhooks SET url = 'https://' || url WHERE tenant_id = $1"
    for sql in (*VALID_VALUES, with_host):
        await run_sql(services, sql, tenant_id)
    return rows


def _list_references(rows: Rows, place: int | None) -> Iterator[tuple[str, str, str]]:
    """Yields table, column and referenced table of the references within a tenant: all of them, or
    of each table the one at this place.
    """
    for table in seeds.list_owned_tables():
        found = [
            (table.name, column.name, key.column.table.name)
            for column in table.c
            for key in column.foreign_keys
            if key.column.table.name != "tenants" and column.name in rows[table.name]
        ]
        yield from found if place is None else found[place : place + 1]


async def _redirect(services: Services, rows: Rows, targets: Rows, place: int | None = None) -> int:
    """Makes the rows of a tenant refer to those of another one, where no unique key forbids it."""
    count, tenant_id = 0, rows["tenants"]["id"]
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        for table, column, target in _list_references(rows, place):
            sql = f"UPDATE {table} SET {column} = $2 WHERE tenant_id = $1"
            try:
                async with raw.transaction():
                    await raw.execute(sql, tenant_id, targets[target]["id"])
            except asyncpg.UniqueViolationError:
                continue
            rows[table][column] = targets[target]["id"]
            count += 1
    return count


async def _find_leaks(product: World, own: Rows, other: Rows) -> list[str]:
    """Calls every GET with the ids of a tenant; returns the texts of the other one in answers."""
    own_values = {str(value) for row in own.values() for value in row.values()}
    other_values = {str(value) for row in other.values() for value in row.values()}
    foreign = {value for value in other_values - own_values if MARKER in value and value != MARKER}
    reader, leaks = await product.user("tenant_admin", own["tenants"]["id"]), []
    for route in list_routes(product.app):
        choices = [list_values(name, own) for name in route.parameters]
        for values in cartesian_product(*choices) if route.method == "GET" else ():
            answer = await route.call(reader, dict(zip(route.parameters, values, strict=True)))
            is_json = answer.headers.get("Content-Type", "").endswith("json")
            text = "\n".join(iterate_texts(answer.json())) if is_json else answer.text
            found = foreign.intersection(_MARKED.findall(text))
            leaks += [f"{route} {values}: {value}" for value in found]
    return leaks


async def test_references_to_another_tenant_show_nothing_of_it(
    product: World, tenants: tuple[Rows, Rows]
) -> None:
    """Of tables with several references one at a time: the row is found by the others."""
    own, other = tenants
    services, leaks, counts = product.services, [], []
    for place in range(2):
        counts.append(await _redirect(services, own, other, place))
        leaks += await _find_leaks(product, own, other)
        await _redirect(services, own, own, place)
    assert leaks == []
    assert all(counts)
    assert sum(counts) > 10


async def test_references_of_another_tenant_show_nothing_of_it(
    product: World, tenants: tuple[Rows, Rows]
) -> None:
    own, other = tenants
    assert await _redirect(product.services, other, own) > 10
    assert await _find_leaks(product, own, other) == []

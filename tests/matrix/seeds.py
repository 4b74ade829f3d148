"""A tenant that owns a row in every tenant-owned table, whatever tables there are.

The rows come from the schema itself: each text says whose it is, so that a leak shows in any answer
that carries it, and a snapshot of all of them shows whether anybody changed something.
"""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    select,
)
from sqlalchemy.dialects.postgresql import JSON, insert

from app.services import Services
from db.base import Base
from db.session import ALL_TENANTS

MARK = "belongs-to-somebody-else"
_number = itertools.count(1)

Rows = dict[str, dict[str, Any]]


def owned_tables() -> list[Table]:
    """In the order in which rows can be inserted."""
    return [table for table in Base.metadata.sorted_tables if "tenant_id" in table.c]


async def plant(services: Services, tenant_id: str) -> Rows:
    """One row per table; gives them by table name."""
    planted: Rows = {"tenants": {"id": tenant_id}}
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        for table in owned_tables():
            values = {
                column.name: _value(column, planted, tenant_id)
                for column in table.c
                if _can_be_filled(column, planted)
            }
            await session.execute(insert(table).values(values))
            planted[table.name] = values
    return planted


def _can_be_filled(column: Column[Any], planted: Rows) -> bool:
    """All but a reference to what is not there yet, like a table's to itself."""
    return all(key.column.table.name in planted for key in column.foreign_keys)


def _value(column: Column[Any], planted: Mapping[str, Mapping[str, Any]], tenant_id: str) -> Any:
    if column.name == "tenant_id":
        return tenant_id
    for key in column.foreign_keys:
        return planted[key.column.table.name][key.column.name]
    # The library wraps some types in its own.
    match getattr(column.type, "impl_instance", column.type):
        case JSON():
            return {"text": MARK}
        case ARRAY():
            return []
        case DateTime():
            return datetime.now(UTC) + timedelta(days=1)
        case Boolean():
            return False
        case Integer() | Numeric() | Float():
            return 1
        case LargeBinary():
            return MARK.encode()
    return f"{column.table.name}-{MARK}-{next(_number)}"


async def snapshot(services: Services, tenant_id: str) -> dict[str, list[Any]]:
    """All that the tenant owns, as it is now."""
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        found = {}
        for table in owned_tables():
            rows = await session.execute(select(table).where(table.c.tenant_id == tenant_id))
            found[table.name] = sorted(map(repr, rows.mappings()))
        tenants = Base.metadata.tables["tenants"]
        rows = await session.execute(select(tenants).where(tenants.c.id == tenant_id))
        found["tenants"] = list(map(repr, rows.mappings()))
    return found


async def uproot(services: Services, tenant_id: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("DELETE FROM work WHERE tenant_id = $1", tenant_id)
        await raw.execute("DELETE FROM tenants WHERE id = $1", tenant_id)

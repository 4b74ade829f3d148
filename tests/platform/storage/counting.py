"""What a tenant stores, as it is counted, and counted anew from its rows."""

from app.domain.platform.storage import service as storage
from app.domain.platform.storage.service import AmpleSpace
from app.services import Services
from tests.assertions import wait_until
from tests.database import fetch_rows
from tests.platform.storage.triggers import list_counted

_SET_USAGE = """
INSERT INTO storage_usage AS u (tenant_id, used_bytes) VALUES ($1, $2)
ON CONFLICT (tenant_id) DO UPDATE SET used_bytes = excluded.used_bytes
"""


# Kind and SQL of the bytes of a row `t`, by table.
SIZES: dict[str, tuple[str, str]] = {
    counted.table: (counted.kind, counted.size) for counted in list_counted()
}


async def add_up(services: Services, tenant_id: str) -> None:
    """Adds up the changes of a tenant, and waits for a worker that has claimed some of them."""

    async def is_added() -> bool:
        await storage.add_up(services)
        sql = "SELECT 1 FROM storage_changes WHERE tenant_id = $1"
        return not await fetch_rows(services, sql, tenant_id)

    await wait_until(is_added)


async def read_counted(services: Services, tenant_id: str) -> dict[str, int]:
    """Returns the counted bytes by kind, without kinds of which there are none."""
    await add_up(services, tenant_id)
    sql = "SELECT kind, bytes FROM storage_kinds WHERE tenant_id = $1 AND bytes <> 0"
    return {row["kind"]: row["bytes"] for row in await fetch_rows(services, sql, tenant_id)}


async def count_anew(services: Services, tenant_id: str) -> dict[str, int]:
    """Returns the bytes of the rows by kind."""
    sums: dict[str, int] = {}
    for table, (kind, size) in SIZES.items():
        sql = f"SELECT coalesce(sum({size}), 0) AS bytes FROM {table} t"
        (row,) = await fetch_rows(services, f"{sql} WHERE tenant_id = $1", tenant_id)
        sums[kind] = sums.get(kind, 0) + int(row["bytes"])
    return {kind: count for kind, count in sums.items() if count}


async def set_file_bytes(services: Services, tenant_id: str, used_bytes: int) -> None:
    """Sets what the tenant's files take, as if it had them, and forgets what was read before."""
    await fetch_rows(services, _SET_USAGE, tenant_id, used_bytes)
    services.get(AmpleSpace)._until.clear()

"""SQL that locks the records that requests change."""

from collections.abc import Sequence

from db import fast
from db.fast import tenant_of
from db.session import Tx

# The rows of tenants are not rows of a tenant.
_TENANTS = "tenants"


def build_lock(table: str, columns: Sequence[str]) -> str:
    tenant = "id" if table == _TENANTS else "tenant_id"
    conditions = [f"{name} = ${number}" for number, name in enumerate(columns, start=2)]
    return (
        f"SELECT 1 FROM {table} WHERE ($1::text IS NULL OR {tenant} = $1)"  # noqa: S608
        f" AND {' AND '.join(conditions)} FOR UPDATE"
    )


async def lock(tx: Tx, statement: str, values: Sequence[str]) -> None:
    await fast.execute(tx, tenant_of(tx), statement, *values)

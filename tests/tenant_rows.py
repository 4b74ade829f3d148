"""All that the database has of one tenant, to search it for a text."""

from app.services import Services
from tests.database import fetch_rows

_TABLES = """
SELECT format('%I.%I', schemaname, tablename) AS name, EXISTS (
    SELECT 1 FROM information_schema.columns c
    WHERE c.table_schema = schemaname AND c.table_name = tablename AND c.column_name = 'tenant_id'
) AS has_tenant
FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""


async def read_tenant_rows(services: Services, tenant_id: str) -> dict[str, str]:
    """Returns the rows of each table as text: those of the tenant, and those of no tenant."""
    statements = [
        f"SELECT '{table['name']}' AS name, row_to_json(t)::text AS text FROM {table['name']} t"
        + (" WHERE tenant_id = $1 OR tenant_id IS NULL" if table["has_tenant"] else "")
        for table in await fetch_rows(services, _TABLES)
    ]
    texts: dict[str, list[str]] = {}
    for row in await fetch_rows(services, " UNION ALL ".join(statements), tenant_id):
        texts.setdefault(row["name"].removeprefix("public."), []).append(row["text"])
    return {name: "\n".join(rows) for name, rows in texts.items()}

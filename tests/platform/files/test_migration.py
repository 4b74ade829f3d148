"""Documents that were stored before files had rows are counted by the migration."""

from app.services import Services
from db.session import ALL_TENANTS
from tests.migrations import load_migration
from tests.world import Client

_AGENT = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}


async def test_the_migration_counts_the_documents_that_are_stored(
    developer: Client, services: Services
) -> None:
    agent_id = (await developer.post("/api/v1/agents", _AGENT)).json()["id"]
    parts = [("files", ("a.txt", b"12345")), ("files", ("b.txt", b"678"))]
    parts.append(("files", ("c.exe", b"refused")))
    await developer("POST", f"/api/v1/agents/{agent_id}/train", files=parts)
    migration, tenant_id = load_migration("0017_files"), developer.tenant_id
    tx = services.db.begin(ALL_TENANTS)
    raw = await tx.raw()
    files = "SELECT key, filename, size_bytes, owner_id FROM files WHERE tenant_id = $1 ORDER BY 2"
    before = await raw.fetch(files, tenant_id)
    for table in ("files", "storage_usage"):
        await raw.execute(f"DELETE FROM {table}")
    await raw.execute(migration._ADD_DOCUMENTS)
    await raw.execute(migration._COUNT_FILES)
    after = await raw.fetch(files, tenant_id)
    usage = await raw.fetchrow("SELECT * FROM storage_usage WHERE tenant_id = $1", tenant_id)
    await tx.rollback()
    assert len(after) == 2
    assert after == before
    assert (usage["used_bytes"], usage["file_count"]) == (8, 2)

"""What no row refers to is deleted from the store."""

from datetime import timedelta

import pytest

from app.domain.platform.files import maintenance
from app.kit import clock
from app.services import Services
from tests.assertions import wait_until
from tests.database import fetch_rows, run_sql
from tests.identity.tenants.factories import PATH as TENANTS
from tests.identity.tenants.factories import create_tenant
from tests.platform.files.api import content_path, is_stored, stored_files, upload
from tests.running_worker import run_worker
from tests.world import Client


async def test_a_sweep_deletes_old_files_without_a_row(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await upload(developer)
    orphan = f"files/{developer.tenant_id}/fil_orphan"
    await services.files.put(orphan, b"text")
    # What the store leaves of a large file when its process is killed.
    part = stored_files(services, developer.tenant_id)[0].with_name("fil_part#1")
    part.write_bytes(b"part")
    await maintenance.sweep(services)
    assert await is_stored(services, orphan)
    assert part.exists()
    monkeypatch.setattr(maintenance, "_MAX_UPLOAD_TIME", timedelta(days=-1))
    await maintenance.sweep(services)
    assert not await is_stored(services, orphan)
    assert not part.exists()
    assert (await developer.get(content_path(file))).content == b"content"


async def test_a_sweep_deletes_the_files_of_a_deleted_tenant(
    super_admin: Client, services: Services
) -> None:
    tenant_id = (await create_tenant(super_admin))["id"]
    headers = {"x-tenant-id": tenant_id}
    files = {"file": ("a.txt", b"content")}
    assert (await super_admin("POST", "/api/v1/files", files=files, headers=headers)).is_success
    assert len(stored_files(services, tenant_id)) == 1
    assert (await super_admin.delete(f"{TENANTS}/{tenant_id}")).status_code == 204
    await maintenance.sweep(services)
    assert stored_files(services, tenant_id) == []


async def test_workers_sweep_once_in_a_period(services: Services) -> None:
    sql = "SELECT state FROM work WHERE kind = 'files.sweep'"
    await run_sql(services, "DELETE FROM work WHERE kind = 'files.sweep'")
    with clock.frozen(clock.now()):
        for _ in range(2):
            await maintenance.accept_sweep(services)
    assert len(await fetch_rows(services, sql)) == 1

    async def is_done() -> bool:
        return [row["state"] for row in await fetch_rows(services, sql)] == ["done"]

    async with run_worker(services.settings, "default"):
        await wait_until(is_done)

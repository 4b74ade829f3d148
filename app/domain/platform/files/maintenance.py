"""Deletes files in the store that no row refers to: those of uploads that did not end, and those
of deleted tenants.
"""

from datetime import datetime, timedelta
from typing import Final

from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import clock, logs
from app.services import Services
from db.session import ALL_TENANTS

from . import queries
from .service import FOLDER

# Deletes files that no row refers to.
SWEEP: Final = WorkKind("files.sweep", timeout_seconds=1800, retry_delays=(60,))


log = logs.get("files")

_SWEEP_HOURS = 1
# An upload stores its file before its row.
_MAX_UPLOAD_TIME = timedelta(days=1)


async def accept_sweep(services: Services) -> None:
    """Accepts one sweep for all workers in a period."""
    period = int(clock.now().timestamp()) // (3600 * _SWEEP_HOURS)
    async with services.db.tx(ALL_TENANTS) as tx:
        await work.accept(tx, SWEEP, tenant_id=None, dedupe_key=str(period))


async def sweep(services: Services) -> None:
    moment = clock.now() - _MAX_UPLOAD_TIME
    await services.files.delete_unfinished(FOLDER, moment)
    tenant_ids = await services.files.list_folders(FOLDER)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        existing = await queries.list_existing_tenants(tx, tenant_ids)
    for tenant_id in tenant_ids:
        folder = f"{FOLDER}{tenant_id}/"
        try:
            if tenant_id in existing:
                await _sweep_folder(services, folder, moment)
            else:
                log.info("deleting the files of a deleted tenant", tenant_id=tenant_id)
                await services.files.delete_folder(folder)
        except (RuntimeError, OSError):
            # One folder that cannot be deleted must not keep the others.
            log.exception("a sweep failed", tenant_id=tenant_id)


async def _sweep_folder(services: Services, folder: str, moment: datetime) -> None:
    async for keys in services.files.iterate_older(folder, moment):
        if not keys:
            continue
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            unused = set(keys) - await queries.list_known_keys(tx, keys)
        for key in sorted(unused):
            await services.files.delete(key)

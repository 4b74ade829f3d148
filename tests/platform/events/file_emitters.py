"""Emits the events of files."""

from typing import Final

from app.domain.platform.storage import service as storage
from tests.database import run_sql
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import read_json
from tests.platform.events.user_emitters import Emitter
from tests.platform.files.api import PATH, upload


async def emit_file_created(context: EmitterContext) -> None:
    await upload(context.admin)


async def emit_file_deleted(context: EmitterContext) -> None:
    file = await upload(context.admin)
    read_json(await context.admin.delete(f"{PATH}/{file['id']}"), 204)


async def emit_storage_warning(context: EmitterContext) -> None:
    sql = "UPDATE storage_usage SET used_bytes = 900000000000 WHERE tenant_id = $1"
    await upload(context.admin)
    await run_sql(context.services, sql, context.tenant_id)
    await storage.warn(context.services)


EMITTERS: Final[dict[str, Emitter]] = {
    "system.file.created": emit_file_created,
    "system.file.deleted": emit_file_deleted,
    "system.storage.warning": emit_storage_warning,
}

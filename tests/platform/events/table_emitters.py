"""A function for each event type of data tables that emits it."""

from typing import Any

from tests.assertions import wait_until
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json, read_json
from tests.platform.events.user_emitters import Emitter
from tests.running_worker import run_worker

_TABLE: dict[str, Any] = {"name": "Leads", "columns": [{"name": "n", "type": "integer"}]}


async def _create_table(context: EmitterContext) -> str:
    table = await post_json(context.admin, "/api/v1/data-tables", _TABLE)
    return f"/api/v1/data-tables/{table['data']['id']}"


async def _create_row(context: EmitterContext) -> str:
    path = f"{await _create_table(context)}/rows"
    row = await post_json(context.admin, path, {"values": {"n": 1}})
    return f"{path}/{row['data']['id']}"


async def emit_table_created(context: EmitterContext) -> None:
    await _create_table(context)


async def emit_table_updated(context: EmitterContext) -> None:
    path = await _create_table(context)
    columns = [{"id": "c1"}, {"name": "text", "type": "text"}]
    read_json(await context.admin.put(path, {"name": "Renamed", "columns": columns}))


async def emit_table_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_table(context)), 204)


async def emit_row_created(context: EmitterContext) -> None:
    await _create_row(context)


async def emit_row_updated(context: EmitterContext) -> None:
    read_json(await context.admin.put(await _create_row(context), {"values": {"n": 2}}))


async def emit_row_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_row(context)), 204)


async def emit_table_imported(context: EmitterContext) -> None:
    path = await _create_table(context)
    files = {"file": ("rows.csv", b"n\n1\nx\n")}
    answer = read_json(await context.admin.http.post(f"{path}/import", files=files), 202)
    import_path = f"{path}/imports/{answer['data']['id']}"

    async def is_completed() -> bool:
        record = read_json(await context.admin.get(import_path))["data"]
        return bool(record["status"] == "completed")

    async with run_worker(context.services.settings, "imports"):
        await wait_until(is_completed)


EMITTERS: dict[str, Emitter] = {
    "data_table.created": emit_table_created,
    "data_table.updated": emit_table_updated,
    "data_table.deleted": emit_table_deleted,
    "data_table.row.created": emit_row_created,
    "data_table.row.updated": emit_row_updated,
    "data_table.row.deleted": emit_row_deleted,
    "data_table.imported": emit_table_imported,
}

"""Emits the events of files."""

from typing import Final

from tests.events.emitter_context import EmitterContext
from tests.events.responses import read_json
from tests.events.user_emitters import Emitter
from tests.files.api import PATH, upload


async def emit_file_created(context: EmitterContext) -> None:
    await upload(context.admin)


async def emit_file_deleted(context: EmitterContext) -> None:
    file = await upload(context.admin)
    read_json(await context.admin.delete(f"{PATH}/{file['id']}"), 204)


EMITTERS: Final[dict[str, Emitter]] = {
    "system.file.created": emit_file_created,
    "system.file.deleted": emit_file_deleted,
}

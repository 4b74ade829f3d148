"""Files that users and visitors attach to their messages. Only their texts are stored."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import asyncpg

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.knowledge import api as knowledge
from app.kit import filenames, files
from app.kit.errors import FileTooLarge, Invalid, UnsupportedFileType
from app.kit.files import Upload
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

from . import attachment_queries
from .schemas import AttachmentView, MessageAttachment
from .turn import Speaker

MAX_MB: Final = 10
# The options of a route that takes an attachment.
ATTACHMENT: Final[dict[str, Any]] = {
    "cost": "chat",
    "idempotent": "long_running",
    "errors": (415,),
    "upload": True,
    "full_files": 1,
    "max_upload_mb": MAX_MB,
}
_MEGABYTE = 1024 * 1024


async def add(
    services: Services,
    runtime: AgentRuntime,
    speaker: Speaker,
    upload: Upload,
    keep_charges: Callable[[], None],
) -> AttachmentView:
    """Reads the file's text and stores it; `keep_charges` is called before. Raises Invalid for a
    file that cannot be read, UnsupportedFileType, FileTooLarge, and Unavailable while too many
    files are read.
    """
    name = filenames.clean(upload.filename)
    if not name:
        raise Invalid.field("file", "must have a name")
    kind = knowledge.kind_of(name)
    if kind is None:
        raise UnsupportedFileType(
            f"Attach {knowledge.FORMATS} files; the name's ending tells the format"
        )
    owner = _owner_of(speaker)
    reader = services.get(knowledge.FileReader)
    load = partial(_load, upload, min(MAX_MB, services.settings.max_body_mb))
    keep_charges()
    try:
        sender = "/".join(filter(None, owner))
        file = await reader.read(runtime.tenant_id, sender, kind, load)
    except knowledge.Unreadable as error:
        raise Invalid.field("file", str(error)) from None
    described = (name, knowledge.MIME_TYPES[kind], file.size_bytes)
    text = (file.text, len(file.text), file.is_truncated)
    attachment_id = new_id("att")
    try:
        async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
            ids = (runtime.tenant_id, attachment_id, runtime.agent_id)
            row = await attachment_queries.add(tx, *ids, *owner, *described, *text)
    except asyncpg.ForeignKeyViolationError:
        raise AgentNotFound("This agent was deleted at this moment") from None
    if row is None:
        raise RuntimeError("an attachment was not stored")
    return AttachmentView(attachment_id, *described, *text[1:], row["expires_at"])


async def add_for_user(
    services: Services,
    principal: Principal,
    agent_id: str,
    upload: Upload,
    keep_charges: Callable[[], None],
) -> AttachmentView:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, agent_id)
    return await add(services, runtime, Speaker(principal.user_id), upload, keep_charges)


async def _load(upload: Upload, max_mb: int) -> bytes:
    def too_large() -> FileTooLarge:
        details = {"field": "file", "max_size_mb": max_mb}
        return FileTooLarge(f"The file is larger than {max_mb} MB", details=details)

    blocks = files.read_blocks(upload, max_mb * _MEGABYTE, too_large)
    return b"".join([block async for block in blocks])


async def find_usable(
    tx: Tx, runtime: AgentRuntime, speaker: Speaker, ids: list[str]
) -> list[MessageAttachment]:
    """Returns the speaker's own attachments for this agent, in the order of their ids. Raises
    Invalid for others.
    """
    if not ids:
        return []
    owner = _owner_of(speaker)
    rows = await attachment_queries.find_usable(tx, runtime.tenant_id, runtime.agent_id, owner, ids)
    usable = {
        row["id"]: MessageAttachment(row["id"], row["name"], row["size_bytes"]) for row in rows
    }
    Invalid.check(
        (f"attachments.{number}", "is not a file that you attached for this agent, or has expired")
        for number, attachment_id in enumerate(ids)
        if attachment_id not in usable
    )
    return [usable[attachment_id] for attachment_id in dict.fromkeys(ids)]


def _owner_of(speaker: Speaker) -> tuple[str | None, str | None, str | None]:
    return speaker.user_id, speaker.embed_key_id, speaker.session_id

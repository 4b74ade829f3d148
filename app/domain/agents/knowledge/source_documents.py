"""Documents of a source, which are changed and deleted together."""

from typing import Any

import msgspec

from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.jobs import work
from app.kit.texts import as_json
from app.services import Services
from db.session import Tx

from . import queries, source_queries
from .events import DocumentDeleted
from .metadata import list_columns
from .schemas import DocumentChange
from .work_kinds import REMOVE_DOCUMENT


async def lock(tx: Tx, tenant_id: str, agent_id: str) -> None:
    """Lets no document be taken in until the end of the transaction. Call it before the source is
    locked, as the documents that are taken in lock it last.
    """
    await queries.lock_uploads(tx, tenant_id, agent_id)


async def change(
    tx: Tx,
    tenant_id: str,
    agent_id: str,
    source_id: str,
    data: DocumentChange,
    url: str | None = None,
) -> None:
    """Changes the document of an address, or all of the source."""
    await lock(tx, tenant_id, agent_id)
    await source_queries.change(tx, tenant_id, source_id, as_json(list_columns(data)), url)


async def find_metadata(tx: Tx, tenant_id: str, source_id: str, url: str) -> dict[str, Any]:
    """Returns what the document of an address has been set, by columns."""
    text = await source_queries.find_metadata(tx, tenant_id, source_id, url)
    columns: dict[str, Any] = msgspec.json.decode(text or "{}")
    return columns


async def delete(
    tx: Tx,
    services: Services,
    tenant_id: str,
    agent_id: str,
    source_id: str,
    urls: list[str] | None = None,
) -> int:
    """Hides the documents of these addresses, or all of the source, and returns how many. One
    worker removes their chunks together.
    """
    await lock(tx, tenant_id, agent_id)
    rows = await source_queries.list_ids(tx, tenant_id, source_id, urls)
    if not rows:
        return 0
    work_ids = [row["work_id"] for row in rows if row["work_id"] is not None]
    await work.cancel_many(tx, services.doorbell, tenant_id, work_ids)
    ids = [row["id"] for row in rows]
    work_id = await work.accept(tx, REMOVE_DOCUMENT, tenant_id=tenant_id, ref_id=ids[0])
    hidden = await source_queries.hide(tx, tenant_id, ids, work_id)
    keys = [row["file_key"] for row in hidden if row["file_key"] is not None]
    await files.release(tx, services, tenant_id, keys)
    for row in hidden:
        deleted = DocumentDeleted(agent_id, row["id"], row["name"])
        await events.emit(tx, deleted, tenant_id=tenant_id)
    return len(hidden)

"""Sources of an agent's documents: creates, shows, changes and deletes them."""

from typing import Any

import msgspec
from msgspec import UnsetType

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.knowledge.api import list_columns, source_documents
from app.domain.agents.knowledge.schemas import DocumentChange
from app.domain.platform.files import api as files
from app.domain.platform.history import api as history
from app.jobs import work
from app.kit import clock, paging, validation
from app.kit.changes import apply_changes
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.services import Services
from db.fast import Row
from db.models import DocumentSource
from db.session import ALL_TENANTS, Tx

from . import entry_queries, queries, schedules, settings
from .errors import SourceBusy, SourceNotFound
from .schemas import ChangeSource, CreateSource, DocumentSourceView
from .work_kinds import SYNC

_MAX_DUE = 50
# A change of these makes the next sync read all again.
_CONTENTS = {"config", "max_documents", "include", "exclude"}


async def list_page(
    tx: Tx, agent_id: str, page: Page, *, status: str | None, search: str | None, sort: str | None
) -> Paged[DocumentSourceView]:
    views, total = await queries.list_page(
        tx, agent_id, page, status=status, search=search, sort=sort
    )
    if not views:
        await agents.require(tx, agent_id)
    return paging.paged(views, total, page)


async def get(tx: Tx, agent_id: str, source_id: str) -> DocumentSourceView:
    view = await queries.find(tx, agent_id, source_id)
    if view is None:
        raise not_found(source_id)
    return view


async def find_work(tx: Tx, agent_id: str, source_id: str) -> Row:
    row = await queries.find_work(tx, agent_id, source_id)
    if row is None:
        raise not_found(source_id)
    return row


async def lock(tx: Tx, agent_id: str, source_id: str) -> Row:
    """Returns the work of a source, to which no other transaction adds some."""
    row = await find_work(tx, agent_id, source_id)
    if not await queries.lock(tx, row["tenant_id"], source_id):
        raise not_found(source_id)
    return await find_work(tx, agent_id, source_id)


def not_found(source_id: str) -> SourceNotFound:
    return SourceNotFound(f"This agent has no source {source_id[:64]}")


async def create(context: RequestContext, agent_id: str, data: CreateSource) -> DocumentSourceView:
    """The first sync starts at once."""
    agent = await agents.find(context.tx, agent_id, for_update=True)
    tx, tenant_id = context.tx, agent.tenant_id
    await queries.check_quota(tx, tenant_id, agent_id)
    settings.validate_secrets(data.type, data.secrets)
    settings.validate(data.type, data.config, context.guard, has_secrets=bool(data.secrets))
    source_id = new_id("src")
    session = await tx.session()
    session.add(
        DocumentSource(
            id=source_id,
            tenant_id=tenant_id,
            agent_id=agent_id,
            name=data.name,
            type=data.type,
            config=data.config,
            secrets=_seal(context, tenant_id, source_id, data.secrets),
            schedule=data.schedule,
            apply=data.apply,
            max_documents=data.max_documents,
            include=data.include,
            exclude=data.exclude,
            document=_store_fields(data.document),
            created_by=context.principal.user_id,
        )
    )
    await session.flush()
    await start_sync(tx, tenant_id, source_id, data.schedule)
    return await get(tx, agent_id, source_id)


def _store_fields(document: DocumentChange | UnsetType) -> dict[str, Any]:
    """Returns what is set. Raises Invalid."""
    if isinstance(document, UnsetType):
        return {}
    list_columns(document)
    fields: dict[str, Any] = msgspec.to_builtins(document)
    return fields


def _seal(
    context: RequestContext, tenant_id: str, source_id: str, secrets: dict[str, str]
) -> bytes | None:
    return settings.seal(context.keyring, tenant_id, source_id, secrets) if secrets else None


async def change(
    context: RequestContext, agent_id: str, source_id: str, data: ChangeSource
) -> DocumentSourceView:
    tx, values = context.tx, validation.set_fields(data)
    tenant_id = (await find_work(tx, agent_id, source_id))["tenant_id"]
    document: DocumentChange | None = values.pop("document", None)
    if document is not None:
        await source_documents.change(tx, tenant_id, agent_id, source_id, document)
    source = await _find(tx, source_id)
    _replace_settings(context, source, values)
    if document is not None:
        values["document"] = {**source.document, **_store_fields(document)}
    changed = apply_changes(source, values)
    if _CONTENTS.intersection(changed):
        source.completed_no = source.sync_no
    if "schedule" in changed:
        source.next_sync_at = schedules.find_next(data.schedule or "manual", clock.now())
    await (await tx.session()).flush()
    return await get(tx, agent_id, source_id)


async def _find(tx: Tx, source_id: str) -> DocumentSource:
    session = await tx.session()
    source = await session.get(DocumentSource, source_id, with_for_update=True)
    if source is None:
        raise not_found(source_id)
    return source


def _replace_settings(
    context: RequestContext, source: DocumentSource, values: dict[str, Any]
) -> None:
    """Stored secrets are not sent to another server than the one that they were given for."""
    secrets: dict[str, str] | None = values.pop("secrets", None)
    if secrets is not None:
        settings.validate_secrets(source.type, secrets)
        source.secrets = _seal(context, source.tenant_id, source.id, secrets)
    config = values.get("config", source.config)
    has_secrets = source.secrets is not None
    settings.validate(source.type, config, context.guard, has_secrets=has_secrets)
    if secrets is None and has_secrets:
        targets = {
            settings.destination(source.type, item, context.guard)
            for item in (config, source.config)
        }
        if len(targets) > 1:
            raise Invalid.field(
                "secrets", "must be entered again, because the config leads to another server"
            )


async def delete(
    tx: Tx, services: Services, agent_id: str, source_id: str, *, keep_documents: bool
) -> None:
    row = await find_work(tx, agent_id, source_id)
    tenant_id = row["tenant_id"]
    # Work is locked before the source, as a worker does that finishes it.
    if row["work_id"] is not None:
        await work.cancel(tx, services.doorbell, tenant_id, row["work_id"])
    await source_documents.lock(tx, tenant_id, agent_id)
    if not await queries.lock(tx, tenant_id, source_id):
        raise not_found(source_id)
    if not keep_documents:
        await source_documents.delete(tx, services, tenant_id, agent_id, source_id)
    keys = await entry_queries.list_file_keys(tx, tenant_id, source_id=source_id)
    await files.release(tx, services, tenant_id, keys)
    await queries.delete(tx, tenant_id, source_id)
    history.note(tx, "source", source_id, row["name"], tenant_id=tenant_id, action="deleted")


# Syncs


async def request_sync(tx: Tx, agent_id: str, source_id: str) -> DocumentSourceView:
    """A source that is being synced is not synced twice."""
    row = await lock(tx, agent_id, source_id)
    if row["must_wait"]:
        until = row["wait_until"].isoformat(timespec="seconds")
        raise SourceBusy(f"The server of this source wants no requests before {until}")
    if not row["is_busy"]:
        await start_sync(tx, row["tenant_id"], source_id, row["schedule"])
    return await get(tx, agent_id, source_id)


async def start_sync(
    tx: Tx, tenant_id: str, source_id: str, schedule: schedules.ScheduleName
) -> None:
    """The next time is set already now: if this sync is lost, there is another one."""
    work_id = await work.accept(tx, SYNC, tenant_id=tenant_id, ref_id=source_id)
    next_sync_at = schedules.find_next(schedule, clock.now())
    await queries.set_work(tx, tenant_id, source_id, work_id, next_sync_at)


async def start_due(services: Services) -> bool:
    """Returns True when more may be due. Several workers may do so at once."""
    async with services.db.tx(ALL_TENANTS) as tx:
        rows = await queries.take_due(tx, _MAX_DUE)
        for row in rows:
            await start_sync(tx, row["tenant_id"], row["id"], row["schedule"])
    return len(rows) == _MAX_DUE

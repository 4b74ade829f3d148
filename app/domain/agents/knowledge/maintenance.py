"""Keeps tables fast and clean: compaction and indexes, and the removal of what nobody needs."""

from datetime import timedelta

from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.platform.files import api as files
from app.jobs import background, work
from app.kit import clock, logs
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS

from . import queries, rebuilding, table_queries
from .arrow_rows import TABLE_FORMAT
from .chunk_store import ChunkStore
from .files import DOCUMENTS_FOLDER, documents_folder
from .lance import TableRef
from .work_kinds import MAINTAIN, SWEEP
from .writer_lease import TableBusy, Writer, hold_table

log = logs.get("knowledge")

# Few, because a process maintains one table at a time.
_MAX_DUE = 8
_WAIT_SECONDS = 5.0
# After so long a model that failed is tried again.
_MODEL_SECONDS = 600.0
_SWEEP_HOURS = 1
# An upload stores its files before its documents.
_MAX_UPLOAD_TIME = timedelta(days=1)


async def accept_due(services: Services) -> None:
    """Accepts work for the tables that are due. Several workers may do so at once."""
    if services.get(ChunkStore).maintaining.locked():
        return
    async with services.db.tx(ALL_TENANTS) as tx:
        for row in await table_queries.take_due(tx, MAINTAIN.name, _MAX_DUE):
            await work.accept(tx, MAINTAIN, tenant_id=row["tenant_id"], ref_id=row["agent_id"])


async def mark_due(services: Services) -> None:
    """Makes tables due whose vectors are of another model than the configured one, which an earlier
    release wrote, or that still have text of removed chunks, for example because their rebuilding
    was given up.
    """
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await table_queries.mark_due(tx, MAINTAIN.name, services.settings.embedding_model)


async def accept_sweep(services: Services) -> None:
    """Accepts one sweep for all workers in a period."""
    period = int(clock.now().timestamp()) // (3600 * _SWEEP_HOURS)
    async with services.db.tx(ALL_TENANTS) as tx:
        await work.accept(tx, SWEEP, tenant_id=None, dedupe_key=str(period))


async def maintain(services: Services, tenant_id: str, agent_id: str) -> None:
    """Raises TableBusy also while this process maintains another table."""
    maintaining = services.get(ChunkStore).maintaining
    if maintaining.locked():
        raise TableBusy(agent_id)
    async with maintaining:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            base = await table_queries.find_base(tx, tenant_id, agent_id)
        if base is not None:
            await _maintain(services, base)


async def _maintain(services: Services, base: Row) -> None:
    tenant_id, agent_id = base["tenant_id"], base["agent_id"]
    if base["may_rebuild"]:
        model = services.settings.embedding_model
        if base["embedding_model"] != model and await _change_model(services, base, model):
            return
        if base["has_removed_chunks"] or base["format"] < TABLE_FORMAT:
            table = TableRef(agent_id, base["generation"])
            await rebuilding.rebuild(services, tenant_id, table, base["embedding_model"])
            return
    async with hold_table(services, tenant_id, agent_id, _WAIT_SECONDS) as writer:
        await background.run_to_end(_optimize(services, writer))


async def _change_model(services: Services, base: Row, model: str) -> bool:
    """False when the model cannot be used for this tenant now, for example without a key."""
    tenant_id, agent_id = base["tenant_id"], base["agent_id"]
    try:
        table = TableRef(agent_id, base["generation"])
        await rebuilding.rebuild(services, tenant_id, table, model)
    except (ModelFailed, ModelNotConfigured) as error:
        reason = error.message[:200]
        log.warning("a table keeps its embedding model", agent_id=agent_id, reason=reason)
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await table_queries.delay_rebuild(tx, tenant_id, agent_id, _MODEL_SECONDS)
        return False
    return True


async def _optimize(services: Services, writer: Writer) -> None:
    await services.get(ChunkStore).optimize(writer.table)
    async with services.db.tx(writer.tenant_id, autocommit=True) as tx:
        await table_queries.record_maintenance(
            tx, writer.tenant_id, writer.table.agent_id, writer.token
        )


# Tables and files that nobody needs


async def remove_agent(services: Services, agent_id: str) -> None:
    store = services.get(ChunkStore)
    for ref in await store.list_tables(agent_id):
        await store.drop(ref)
    await services.files.delete_folder(documents_folder(agent_id))
    await files.release_owned(services, agent_id, "document")


async def sweep(services: Services) -> None:
    """Deletes what belongs to no agent, generations that were replaced, and files of uploads that
    did not end.
    """
    store = services.get(ChunkStore)
    tables = await store.list_tables()
    agent_ids = {ref.agent_id for ref in tables}
    agent_ids |= set(await services.files.list_folders(DOCUMENTS_FOLDER))
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        generations = await table_queries.list_generations(tx, sorted(agent_ids))
        existing = await table_queries.list_existing_agents(tx, sorted(agent_ids))
    for ref in tables:
        if ref.generation < generations.get(ref.agent_id, 0):
            await store.drop(ref)
    for agent_id in agent_ids:
        try:
            if agent_id in existing:
                await _sweep_files(services, agent_id)
            else:
                log.info("deleting the documents of a deleted agent", agent_id=agent_id)
                await remove_agent(services, agent_id)
        except (RuntimeError, OSError):
            # One folder or table that cannot be deleted must not keep the others.
            log.exception("a sweep failed", agent_id=agent_id)


async def _sweep_files(services: Services, agent_id: str) -> None:
    moment = clock.now() - _MAX_UPLOAD_TIME
    keys = await services.files.list_older(documents_folder(agent_id), moment)
    if not keys:
        return
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        unused = set(keys) - await queries.list_file_keys(tx, agent_id)
    for key in sorted(unused):
        await services.files.delete(key)

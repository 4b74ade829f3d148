"""Who may find which documents: the one place where a search learns it."""

from collections.abc import Iterable
from typing import Final

from app.domain.agents.definition.api import DocumentFilter, KnowledgeInfo
from app.services import Services

from . import audience_queries
from .reader import Reader
from .restriction import Restriction

# So many hidden documents are listed without a look at the others.
_MAX_HIDDEN: Final = 300


async def find_restriction(
    services: Services,
    tenant_id: str,
    base: KnowledgeInfo,
    reader: Reader,
    filters: Iterable[DocumentFilter] = (),
) -> Restriction:
    """Returns which documents a reader finds by the agent's filter and these ones. Reads the
    database only where something may be hidden.
    """
    filters = [item for item in (base.settings.filter, *filters) if not item.is_empty]
    deleted = base.hidden_document_ids
    if not (filters or reader.is_visitor or base.has_invalid):
        return Restriction.all_but(deleted)
    ids = (tenant_id, base.agent_id, reader)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        if not filters:
            hidden = await audience_queries.list_hidden(tx, *ids, _MAX_HIDDEN + 1)
            if len(hidden) <= _MAX_HIDDEN:
                return Restriction.all_but({*deleted, *hidden})
        rows = await audience_queries.split(tx, *ids, filters)
    counts = {row["is_allowed"]: row["count"] for row in rows}
    listed = {row["is_allowed"]: row["ids"].split(",") for row in rows if row["ids"]}
    allowed, hidden_count = counts.get(True, 0), counts.get(False, 0)
    share = allowed / max(allowed + hidden_count, 1)
    if allowed < hidden_count:
        return Restriction.only({*listed.get(True, ())} - {*deleted}, share)
    return Restriction.all_but({*deleted, *listed.get(False, ())}, share)

"""SQL of what all agents know."""

from typing import Final

from app.kit import paging
from app.kit.paging import Page, SortOrders
from db.fast import tenant_of
from db.lists import Total, Where
from db.models import Agent
from db.session import Tx
from db.views import View

from .overview_schemas import AgentKnowledge

_VIEW = View(
    AgentKnowledge,
    "agents",
    documents="""
    (SELECT json_build_object(
         'count', count(*),
         'passage_count', coalesce(sum(d.chunk_count), 0),
         'failed_count', count(*) FILTER (WHERE d.status = 'failed'),
         'working_count', count(*) FILTER (WHERE d.status IN ('pending', 'processing')),
         'changed_at', max(coalesce(d.processed_at, d.created_at)))
     FROM documents d
     WHERE d.tenant_id = agents.tenant_id AND d.agent_id = agents.id AND d.deleted_at IS NULL)""",
)
_SORT_ORDERS: Final = SortOrders(
    "-created_at", Agent.id, name=Agent.name, created_at=Agent.created_at
)


async def list_page(
    tx: Tx, page: Page, *, search: str | None, sort: str | None
) -> tuple[list[AgentKnowledge], Total]:
    where = Where(tenant_of(tx))
    where.contain(search, "name")
    return await paging.fetch(tx, _VIEW, "agents", where, _SORT_ORDERS.sql(sort), page)

from litestar import Controller, get

from app.http.dependencies import Page, Tx
from app.http.paging import Search, Sort
from app.kit import paging
from app.kit.paging import Paged

from . import overview_queries
from .overview_schemas import AgentKnowledge


class KnowledgeOverviewController(Controller):
    path = "/api/v1/knowledge"
    tags = ["Knowledge"]

    @get(summary="List what agents know", needs="agents:write")
    async def list_agent_knowledge(
        self, tx: Tx, page_in: Page, search: Search = None, sort: Sort = None
    ) -> Paged[AgentKnowledge]:
        """All agents with the figures of their documents. `search` looks in names. Sort by name or
        created_at; by default the newest come first.
        """
        rows, total = await overview_queries.list_page(tx, page_in, search=search, sort=sort)
        return paging.paged(rows, total, page_in)

"""SQL of web search configs, and of the searches in traces."""

from datetime import datetime
from typing import NamedTuple

from db import fast
from db.fast import Row, tenant_of
from db.models import WebSearchConfig
from db.session import Tx
from db.views import View

from .schemas import WebSearchConfigView

_DEFAULTS = WebSearchConfigView()
_VIEW = View(
    WebSearchConfigView,
    enabled=f"coalesce(w.enabled, {_DEFAULTS.enabled})",
    search_engine=f"coalesce(w.search_engine, '{_DEFAULTS.search_engine}')",
    max_results=f"coalesce(w.max_results, {_DEFAULTS.max_results})",
    safe_search=f"coalesce(w.safe_search, {_DEFAULTS.safe_search})",
)
_FIND_VIEW = f"""
SELECT {_VIEW.columns}
FROM agents a
LEFT JOIN web_search_configs w ON w.agent_id = a.id AND w.tenant_id = a.tenant_id
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""


async def find_view(tx: Tx, agent_id: str) -> WebSearchConfigView | None:
    """Returns the agent's config or the defaults; None when there is no such agent."""
    return await _VIEW.find(tx, tenant_of(tx), _FIND_VIEW, agent_id)


async def find(tx: Tx, agent_id: str) -> WebSearchConfig | None:
    return await (await tx.session()).get(WebSearchConfig, agent_id)


# Searches. Their records are of use, but not worth a wait for the disk.

_ADD_SEARCH = """
INSERT INTO web_searches
    (tenant_id, id, correlation_id, engine, status, result_count, started_at, duration_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING set_config('synchronous_commit', 'off', true)
"""
_LIST_SEARCHES = """
SELECT id, engine, status, result_count, started_at, duration_ms FROM web_searches
WHERE tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND correlation_id = $2
ORDER BY started_at, id LIMIT $3
"""


class FinishedSearch(NamedTuple):
    id: str
    correlation_id: str
    engine: str
    status: str
    result_count: int | None
    started_at: datetime
    duration_ms: float


async def add_search(tx: Tx, tenant: str, search: FinishedSearch) -> None:
    await fast.execute(tx, tenant, _ADD_SEARCH, *search)


async def list_searches(tx: Tx, tenant: str | None, correlation_id: str, limit: int) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_SEARCHES, correlation_id, limit)
